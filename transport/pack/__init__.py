"""The parts of PACK, the layer that packs messages (`transport/layers/pack.pyx`)."""
