"""Gradients reach their parameters in the order in which eager's do.

DistributedDataParallel lays gradients out in its buckets in the order in which the first backward brings them, and a
sum over more than two processes rounds by where in its bucket a number lies. So the order is part of the numbers.
"""

from collections.abc import Collection, Sequence

Task = tuple[int, int]
"""A step that is ready to run: its priority, and its place among those that were made ready together."""


def order_of_ends(
    targets: Collection[int], arrival: Sequence[int], leaves: Collection[int], *, before_another: bool
) -> tuple[int, ...]:
    """Return in which order a step of history gets its inputs, so that their gradients arrive as in `arrival`.

    targets: those inputs of the step that get a gradient.  leaves: those that are leaves.  before_another: the first
    thing that the step makes ready is another step of the same backward.
    """
    within = [target for target in targets if target not in leaves]
    ends = [target for target in arrival if target in targets and target in leaves]
    return (*within, *pushed_for(ends, len(within) + before_another))


def pushed_for(arrival: Sequence[int], behind: int = 0) -> list[int]:
    """Return in which order to make the ends of gradients ready, so that autograd's engine runs them as in `arrival`.

    behind: how many steps of lower priority are made ready before them.  Ends of leaves all have one priority, and the
    engine takes equal ones as a binary heap gives them (GNU's `std::priority_queue`).
    """
    heap: list[Task] = []
    tasks = [*((0, -1) for _ in range(behind)), *((1, place) for place in range(len(arrival)))]
    for task in tasks:
        _push(heap, task, len(heap))
    pushed = [0] * len(arrival)
    for wanted in arrival:
        pushed[_pop(heap)[1]] = wanted
    return pushed


def _push(heap: list[Task], task: Task, hole: int) -> None:
    """Let a task rise from a hole, above those of lower priority alone."""
    if hole == len(heap):
        heap.append(task)
    while hole and heap[(hole - 1) // 2][0] < task[0]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = task


def _pop(heap: list[Task]) -> Task:
    """Take the first task: the hole sinks along the larger, of equals the right, and the last task rises from there."""
    first, last = heap[0], heap.pop()
    if not heap:
        return first
    hole, child = 0, 2
    while child < len(heap):
        larger = child - 1 if heap[child][0] < heap[child - 1][0] else child
        heap[hole], hole = heap[larger], larger
        child = 2 * hole + 2
    if child == len(heap):
        heap[hole], hole = heap[child - 1], child - 1
    _push(heap, last, hole)
    return first
