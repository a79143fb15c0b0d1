"""What group communication raises. `orcalike.errors` draws the whole tree.

Each error says what happened, to which member or layer, and what to do about it.
"""

from __future__ import annotations


class OrcalikeError(Exception):
    """The root of everything that orcalike raises on purpose."""


class StackError(OrcalikeError):
    """A stack string that cannot be read, or whose layers lack what they need from below."""


class ProtocolError(OrcalikeError):
    """A frame that arrived and cannot be believed; it names the sender and what was wrong."""


class DamagedMemory(ProtocolError):
    """What is in memory that members share cannot be; it names the word, and no member, for any may have written it."""


class ConfigMismatch(OrcalikeError):
    """A joiner asked for options that the group was not made with."""


class NotPrimary(OrcalikeError):
    """The view may not go on writing; it names the members that are missed."""


class NotEnoughMembers(NotPrimary):
    """The view has fewer members with replicas than the resilience degree needs."""


class Expelled(OrcalikeError):
    """The group goes on without this member, which was taken for dead, or was too slow."""


class DataLossPossible(OrcalikeError):
    """The group was reset: what only the missing members held is lost. The next call of each member raises it, once."""


class AuthenticationError(OrcalikeError):
    """A process that was asked does not have this one's key, or has not proved it."""


NOT_PROVED = "it has not proved the key of this group"
"""Why a handshake ended; a joiner finds it in what went wrong at an address."""


OTHER_VERSION = "both need the same version of orcalike"
"""What to do where two speak different wire versions; a joiner finds it in what went wrong at an address."""


class InsecureConfig(OrcalikeError):
    """An address that is no Unix socket, and no key for it, nothing to seal with, or a key that others can read."""


class JoinFailed(OrcalikeError):
    """No member of the group could be reached in time, or the group refused."""
