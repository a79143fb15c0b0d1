"""Names of groups in variables and lines: percent-encoded, so that they have no separators."""

from __future__ import annotations


def quoted(name: str) -> str:
    """The name without separators; most names are so already, and `urllib` takes long to import."""
    if name.isascii() and name.isalnum():
        return name
    from urllib.parse import quote

    return quote(name, safe="")


def unquoted(text: str) -> str:
    """The name."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)
