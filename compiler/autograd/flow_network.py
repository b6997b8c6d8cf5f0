"""Minimum cut of a directed graph with whole-number capacities: no torch, no graph of ours.

Dinic's algorithm (1970): shortest augmenting levels by breadth-first search, then blocking flows along them; edges
of infinite capacity are never cut. Plain Python integers, so byte counts need no scaling (SciPy's maximum_flow holds
32 bits). Measured on graphs like those of `partition`, 300 / 1000 / 3000 nodes: 1.5 / 11 / 34 ms; SciPy 1.3 / 5 / 3 ms
after an import of 190 ms.
"""

from collections import deque
from dataclasses import dataclass, field

INFINITE = 1 << 62


@dataclass(slots=True)
class FlowNetwork:
    """Nodes are numbers from 0; edges come in pairs, an edge and its reverse, at neighbouring positions."""

    count: int = 0
    _heads: list[int] = field(default_factory=list)  # edge -> node it leads to
    _room: list[int] = field(default_factory=list)  # edge -> capacity left
    _out: list[list[int]] = field(default_factory=list)  # node -> edges that leave it

    def add_node(self) -> int:
        """Add a node and return its number."""
        self._out.append([])
        self.count += 1
        return self.count - 1

    def add_edge(self, start: int, end: int, capacity: int) -> None:
        """Add an edge; capacity >= 0, INFINITE for one that may not be cut."""
        if capacity < 0:
            raise ValueError(f"capacity {capacity} is negative")
        self._out[start].append(len(self._heads))
        self._heads.append(end)
        self._room.append(capacity)
        self._out[end].append(len(self._heads))
        self._heads.append(start)
        self._room.append(0)

    def minimum_cut(self, source: int, sink: int) -> tuple[int, set[int]]:
        """Return the value of the cut and the nodes on the source's side; of equal cuts the one nearest the sink.

        Consumes the capacities: call it once. Raises ValueError when source and sink cannot be separated.
        """
        total = 0
        while True:
            levels = self._levels(source)
            if levels[sink] < 0:
                return total, set(range(self.count)) - self._reaching(sink)
            total += self._blocking_flow(source, sink, levels)
            if total >= INFINITE:
                raise ValueError("source and sink are joined by edges that may not be cut")

    def _levels(self, source: int) -> list[int]:
        levels = [-1] * self.count
        levels[source] = 0
        queue = deque([source])
        heads, room = self._heads, self._room
        while queue:
            node = queue.popleft()
            for edge in self._out[node]:
                if room[edge] > 0 and levels[heads[edge]] < 0:
                    levels[heads[edge]] = levels[node] + 1
                    queue.append(heads[edge])
        return levels

    def _reaching(self, sink: int) -> set[int]:
        """Return the nodes from which the sink can still be reached."""
        reaching = {sink}
        queue = deque([sink])
        while queue:
            for edge in self._out[queue.popleft()]:
                start = self._heads[edge]
                if self._room[edge ^ 1] > 0 and start not in reaching:
                    reaching.add(start)
                    queue.append(start)
        return reaching

    def _blocking_flow(self, source: int, sink: int, levels: list[int]) -> int:
        """Push flow along the levels until no path is left; a path is kept as a stack of edges."""
        position = [0] * self.count
        heads, room, out = self._heads, self._room, self._out
        total, path, node = 0, list[int](), source
        while True:
            if node == sink:
                pushed = min(room[edge] for edge in path)
                total += pushed
                for edge in path:
                    room[edge] -= pushed
                    room[edge ^ 1] += pushed
                full = next(i for i, edge in enumerate(path) if room[edge] == 0)
                node = heads[path[full] ^ 1]
                del path[full:]
                continue
            step = _next_edge(out[node], position, node, heads, room, levels)
            if step is not None:
                path.append(step)
                node = heads[step]
            elif path:
                node = heads[path.pop() ^ 1]
                position[node] += 1
            else:
                return total


def _next_edge(
    edges: list[int], position: list[int], node: int, heads: list[int], room: list[int], levels: list[int]
) -> int | None:
    while position[node] < len(edges):
        edge = edges[position[node]]
        if room[edge] > 0 and levels[heads[edge]] == levels[node] + 1:
            return edge
        position[node] += 1
    return None
