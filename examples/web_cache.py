"""Web workers with one cache: a page is made by one of them, and served by each.

orcalike run -n 2 examples/web_cache.py
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import orcalike as orca
from orcalike.objects import Cache, Counter, Dict


class Worker(BaseHTTPRequestHandler):
    cache: Cache[str, str]
    made: Counter

    def do_GET(self) -> None:
        body = self.cache.get_or_set(self.path, lambda: f"page {self.made.add()}")
        self.wfile.write(f"HTTP/1.0 200 OK\r\n\r\n{body}".encode())

    def log_message(self, *arguments: object) -> None:
        pass


if __name__ == "__main__":
    with orca.join() as group, ThreadingHTTPServer(("127.0.0.1", 0), Worker) as server:
        Worker.cache = group.share(Cache[str, str], "pages", 1000, ttl=60.0)
        Worker.made = group.share(Counter, "made")
        ports = group.share(Dict[int, int], "ports")
        threading.Thread(target=server.serve_forever).start()
        ports[group.rank] = server.server_port
        group.barrier()
        if group.rank == 0:  # a visitor, which comes to any worker
            for n in range(20):
                urlopen(f"http://127.0.0.1:{ports[n % group.size]}/{n % 5}").read()
            print("20 requests,", Worker.made.value, "pages made")
        group.barrier()
        server.shutdown()
