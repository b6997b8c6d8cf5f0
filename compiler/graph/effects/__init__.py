"""What a graph does beside giving values: writes, draws, failures on data, and how a failed run is undone."""
