"""Words that orcalike does not use, what to write instead, and what of a file is read for them."""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ban:
    """Some words, as an expression, and the files and folders in which they are left.

    A file that is free of them by now is taken off `left`; none is put on it.
    """

    words: str
    instead: str
    left: tuple[str, ...] = ()

    def stands_in(self, text: str) -> bool:
        """Whether a text has one of the words, in one piece, in capitals or not."""
        words = self.words.replace(" ", r"\s+")
        return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None


BANS = (
    Ban(
        "who|whom|whoever|somebody|someone|anybody|anyone|nobody|nobodys|everybody|everyone",
        "member, process, thread or caller, with `that` or `which`; `no member`, `all members`",
    ),
    Ban(
        r"(?:none|also|even|code 1|raises? \w+) where",
        "`if`, or `when`: `where` is for places",
    ),
    Ban(
        "heed|heeds|heeded",
        "accept",
    ),
    Ban(
        "(?:come|comes|came|coming) right(?! after)|(?:take|takes|took) office",
        "recover; become sequencer",
    ),
    Ban("owe|owes|owed|debt|debts", "pending"),
    Ban("gift|gifts", "transfer"),
    Ban("beats? to", "heartbeats to, heartbeat peers"),
    Ban("seat|seats", "endpoint"),
    Ban("stranger|strangers", "non-member"),
    Ban("crew|crews", "processes, process table"),
    Ban("zoo|zoos", "shared classes"),
    Ban("patience", "deadline, timeout"),
    Ban("dice", "rng", ("CHANGELOG.md",)),
    Ban("judge|judges|judged|judgement", "check, checker, monitor"),
    Ban(
        "told|hear|hears",
        "reported, notified, received; what a command or an option says",
    ),
    Ban("(?:in|by|take|takes|taking) turns", "interleaved rounds"),
    Ban("what waits", "pending calls; the calls, threads or messages that wait"),
    Ban("bell|bells", "the event that wakes a thread"),
)

_ANY = re.compile(r"\b(?:" + "|".join(ban.words for ban in BANS).replace(" ", r"\s+") + r")\b")
_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_LINE_ENDS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_NO_WORDS = {tokenize.NL, tokenize.COMMENT}
_MUTANT_TEXTS = ("name", "breaks", "equivalent")


def prose(path: Path) -> str:
    """What a file says in words of ours: comments, docstrings and names; all of a document.

    Other strings are data: what a test sends, or the words of a program. What stands in `` ` `` is
    code, and may have the words of a protocol.
    """
    text = path.read_text()
    if not _ANY.search(text.replace("_", " ").lower()):  # one search: most files have none of them
        return ""
    if path.suffix == ".md":
        return _CODE.sub("", text)
    return "\n".join(_mutants(text) if path.suffix == ".toml" else _program(text))


def _program(text: str) -> Iterator[str]:
    """Of Python and Cython. A docstring is a string with which a line begins."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.string.replace("_", " ") + ";"
        elif token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and before in _LINE_ENDS
        ):
            yield _CODE.sub("", token.string)
        if token.type not in _NO_WORDS:
            before = token.type


def _mutants(text: str) -> Iterator[str]:
    """Of a file of `tests/campaign/mutants`, but for the code that it changes."""
    yield from re.findall(r"^#.*", text, re.MULTILINE)
    for mutant in tomllib.loads(text).get("mutant", []):
        yield from (mutant[key] for key in _MUTANT_TEXTS if key in mutant)
