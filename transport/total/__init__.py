"""The parts of TOTAL, the layer of the total order (`transport/layers/total.pyx`)."""
