"""Shared objects among the tasks and actors of a Ray job, while Ray starts and ends their processes.

    @ray.remote
    def count(word: str) -> None:
        orcalike.ext.ray.group().find(Counter, "words").add(1)

    with orcalike.ext.ray.attach() as guests:
        words = guests.group.share(Counter, "words")
        ray.get([count.remote(word) for word in text.split()])

A process becomes a member the first time that a task or actor in it calls `group`, and stays one for the
tasks that it runs later. A named actor, the anchor, makes the group and is a member as long as it is attached: it
keeps the objects while there are no tasks, and tells the others where to join.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from dataclasses import asdict
from typing import Any, Self

from orcalike.errors import OrcalikeError
from orcalike.ext.invitation import Terms, accept, drawn_key
from orcalike.group import Group
from orcalike.launch_protocol.environment import DEFAULT_NAME
from orcalike.objects import Event
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.runtime.event_loops import refuse_on_loop
from orcalike.transport.degree import Resilience, degree_of

try:
    import ray
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"orcalike.ext.ray needs {missing.name}: pip install 'orcalike[ray]'", name=missing.name
    ) from None

__all__ = ["Attachment", "attach", "group"]

TIMEOUT = 30.0
"""Seconds that a process has to become a member, if nothing else is said."""

OVER = "orcalike.ext.ray"
"""The shared event by which the members learn that it is over."""

_groups: dict[str, Group] = {}
_lock = threading.Lock()


def attach(
    name: str = DEFAULT_NAME,
    *,
    member: bool = True,
    resilience: Resilience = 0,
    unix: bool = False,
    timeout: Duration = TIMEOUT,
) -> Attachment:
    """Start the anchor of the group `name` in this job; this process joins, if `member` says so.

    The block `with attach() as guests:` ends by `guests.detach()`. If the anchor is there already, from another
    driver in this namespace, the end of the block leaves it.

    The members communicate by TCP, at the addresses of their nodes, under a key that the anchor draws, and
    gives to the processes that call it: it is as secret as what Ray sends. With `unix` they communicate
    by Unix sockets: for a cluster that is on one host and stays there.

    `timeout`, in seconds or as a text, is what each process has to join. Raises what `orcalike.join`
    raises; then there is no anchor.
    """
    degree_of(resilience)
    return Attachment(name, member, resilience, unix, seconds_of(timeout) or TIMEOUT)


def group(name: str = DEFAULT_NAME, *, timeout: Duration = TIMEOUT) -> Group:
    """The group of this process, which joins it if it has not yet.

    Raises OrcalikeError if the group is not attached in this job, or its anchor was lost; and
    what `orcalike.join` raises.
    """
    with _lock:
        found = _groups.get(name)
        if found is None:
            anchor = _find_anchor(name)
            found = _groups[name] = _join(name, anchor, seconds_of(timeout) or TIMEOUT)
        return found


class Attachment:
    """What `attach` returns: there is a group until `detach`, or the end of the block."""

    def __init__(
        self, name: str, member: bool, resilience: Resilience, unix: bool, timeout: float
    ) -> None:
        self.name = name
        self._is_member = member
        self._token = ray.get_runtime_context().get_job_id()
        remote = ray.remote(num_cpus=0, max_restarts=0)(Anchor)
        self._anchor = remote.options(name=_actor_name(name), get_if_exists=True).remote(
            Terms(name, resilience), unix, self._token, timeout
        )
        try:
            self._is_first = ray.get(self._anchor.maker.remote()) == self._token
            if member:
                group(name, timeout=timeout)
        except BaseException:
            ray.kill(self._anchor)
            raise

    @property
    def group(self) -> Group:
        """The group, if this process is a member; raises OrcalikeError if it is not."""
        if not self._is_member:
            raise OrcalikeError(
                f"this process is no member of the group {self.name!r}: attach(member=True)"
            )
        return group(self.name)

    def detach(self) -> None:
        """All leave the group, and the anchor ends; the objects are gone."""
        _refuse_loop("detach")
        try:
            ray.get(self._anchor.end.remote())
            ray.kill(self._anchor)
        except ray.exceptions.RayActorError:
            pass  # it has ended, with its node or by another driver
        finally:
            self.leave()

    def leave(self) -> None:
        """This process leaves the group; the others stay members."""
        _refuse_loop("leave")
        with _lock:
            found = _groups.pop(self.name, None)
        if found is not None:
            found.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_first:
            self.detach()
        else:
            self.leave()

    def __repr__(self) -> str:
        return (
            f"<Attachment {self.name!r}: {_groups.get(self.name) or 'this process is no member'}>"
        )


def _refuse_loop(what: str) -> None:
    """Raise BlockingInLoop if an event loop runs on this thread that others depend on."""
    refuse_on_loop(what, f"write `await asyncio.to_thread(attachment.{what})`")


class Anchor:
    """The actor that makes the group, and is its first member."""

    def __init__(self, terms: Terms, unix: bool, maker: str, timeout: float) -> None:
        self._maker = maker
        self._folder = tempfile.mkdtemp(prefix="orcalike-") if unix else ""
        atexit.register(self._remove_folder)
        self._terms = Terms(
            terms.name, terms.resilience, self._folder, None if unix else drawn_key()
        )
        self._group = accept(self._terms, [], ray.util.get_node_ip_address(), timeout)
        self._over = self._group.share(Event, OVER)

    def maker(self) -> str:
        """The job that has started it."""
        return self._maker

    def invite(self) -> dict[str, Any]:
        """What a process needs to join."""
        return {"seeds": [self._group.address], "terms": asdict(self._terms)}

    def end(self) -> None:
        """Have all leave, and leave last."""
        self._over.set()
        self._group.close()
        self._remove_folder()

    def _remove_folder(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _actor_name(name: str) -> str:
    return f"orcalike-{name}"


def _find_anchor(name: str) -> Any:
    try:
        return ray.get_actor(_actor_name(name))
    except ValueError:
        raise OrcalikeError(
            f"no group {name!r} is attached in this job: with orcalike.ext.ray.attach() in the driver it is; "
            "if it was, its anchor has ended, or was lost with its node"
        ) from None


def _join(name: str, anchor: Any, timeout: float) -> Group:
    invitation = ray.get(anchor.invite.remote(), timeout=timeout)
    terms = Terms(**invitation["terms"])
    joined = accept(terms, invitation["seeds"], ray.util.get_node_ip_address(), timeout)
    over = joined.find(Event, OVER)
    threading.Thread(
        target=_leave_at_end, args=(name, joined, over), name=OVER, daemon=True
    ).start()
    return joined


def _leave_at_end(name: str, joined: Group, over: Event) -> None:
    """Leave when the attachment ends."""
    try:
        over.wait()
    except OrcalikeError:  # it was left, or is lost
        pass
    with _lock:
        if _groups.get(name) is not joined:
            return
        del _groups[name]
    joined.close()
