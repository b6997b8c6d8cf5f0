"""The capture in progress: frames, guards, graph, side effects, modes, sizes and calls, each a part of its own."""
