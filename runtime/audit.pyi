from orcalike.runtime.marshal import Codec
from orcalike.runtime.replica import Replica

def why_not(codec: Codec, replica: Replica) -> str | None: ...
