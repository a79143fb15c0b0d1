"""Group communication: layers, stacks, total order, views, drivers. It knows no objects."""
