"""The tree of errors, split by whose fault it is.

OrcalikeError
├── DeclarationError        a class that cannot be shared
├── NotSerializable         a value that cannot travel
├── ClassMismatch           a name shared with another class
├── NestedWrite             an operation that used another object
├── GuardFalse              a guard that no other call could make true
├── ObjectDropped           the object was ended
├── GroupClosed             the group was left
├── WindowFull              too much is under way: drain
├── TooManyWaiting          too many calls wait already
├── BlockingInLoop          a waiting call on a running loop's thread
├── InvocationTimeout       a time limit passed (also a TimeoutError)
├── InvocationCancelled     it was withdrawn
├── ReplicaDivergence       this replica stopped serving
├── InvariantBroken         a write after which an invariant does not hold
├── ForkFailed              no process was started that is a member
├── ConfigMismatch          the group has other options
├── JoinFailed              no member answered, or the group refused
├── NotPrimary              the view may not go on writing
│   └── NotEnoughMembers    too few replicas for the resilience degree
├── Expelled                the group goes on without this member
├── DataLossPossible        the group was reset
├── StackError              layers that do not hold together
├── ProtocolError           a frame that cannot be believed
├── AuthenticationError     a peer without the key
└── InsecureConfig          an open address without a key
"""

from orcalike.runtime.errors import (
    BlockingInLoop,
    ClassMismatch,
    DeclarationError,
    ForkFailed,
    GroupClosed,
    GuardFalse,
    InvariantBroken,
    InvocationCancelled,
    InvocationTimeout,
    NestedWrite,
    NotSerializable,
    ObjectDropped,
    ReplicaDivergence,
    TooManyWaiting,
    WindowFull,
)
from orcalike.transport.errors import (
    AuthenticationError,
    ConfigMismatch,
    DataLossPossible,
    Expelled,
    InsecureConfig,
    JoinFailed,
    NotEnoughMembers,
    NotPrimary,
    OrcalikeError,
    ProtocolError,
    StackError,
)

__all__ = [
    "AuthenticationError",
    "BlockingInLoop",
    "ClassMismatch",
    "ConfigMismatch",
    "DataLossPossible",
    "DeclarationError",
    "Expelled",
    "ForkFailed",
    "GroupClosed",
    "GuardFalse",
    "InsecureConfig",
    "InvariantBroken",
    "InvocationCancelled",
    "InvocationTimeout",
    "JoinFailed",
    "NestedWrite",
    "NotEnoughMembers",
    "NotPrimary",
    "NotSerializable",
    "ObjectDropped",
    "OrcalikeError",
    "ProtocolError",
    "ReplicaDivergence",
    "StackError",
    "TooManyWaiting",
    "WindowFull",
]

# Users import them from `orcalike`, and so read them there in tracebacks.
for _name in __all__:
    globals()[_name].__module__ = "orcalike"
