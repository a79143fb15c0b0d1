"""`undo`: what an operation or atomic function that raises leaves is as it was before.

It holds for a call that a group runs, for one on an object that is not shared, and for one that
another operation makes, which may catch the exception and go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from orcalike.runtime.classes import ClassInfo, lookup_class
from orcalike.runtime.marshal import Codec
from orcalike.runtime.replica import replica_of
from orcalike.runtime.state import plain_state_of, set_plain_state_of, what
from orcalike.runtime.stream_decoder import decode_whole
from orcalike.runtime.stream_encoder import encode_whole


class SavedStates:
    """The states of objects of shared classes, encoded.

    Objects that they refer to are not among them: these references stay. Raises NotSerializable,
    and what `snapshot` does.
    """

    def __init__(self, objects: Iterable[object]) -> None:
        self._referred: list[object] = []
        self._codec = Codec(self._refer, self._referred.__getitem__)
        self._states = [
            (
                each,
                info,
                encode_whole(self._codec, plain_state_of(each, info), _what(each), is_state=True),
            )
            for each in objects
            if (info := _info_of(each)) is not None
        ]

    def put_back(self) -> None:
        """Make the states what they were."""
        for each, info, state in self._states:
            set_plain_state_of(each, info, decode_whole(self._codec, state, _what(each)))

    def _refer(self, value: object) -> int | None:
        if _info_of(value) is None:
            return None
        self._referred.append(value)
        return len(self._referred) - 1


def _info_of(value: object) -> ClassInfo | None:
    """What was declared of its class, or of the nearest base."""
    return next(filter(None, map(lookup_class, type(value).__mro__)), None)


def _what(shared: object) -> str:
    replica = replica_of(shared)
    return what(type(shared).__name__ if replica is None else replica.name)
