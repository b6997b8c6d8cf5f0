"""Numbers that a graph, or what runs before it, gives: read from tensors, drawn."""
