from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.marshal import Codec

def codec_of(runtime: Runtime) -> Codec: ...
