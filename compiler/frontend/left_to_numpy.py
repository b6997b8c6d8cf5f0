"""Calls of functions of NumPy arrays that are so little work that NumPy does them sooner than compiled code starts.

A capture finds it out: the graph is on record as captured, and no backend compiles it.  From then on the unit tells
such calls by their arguments (`units/small_calls.py`), and runs the user's function.
"""

from ..base.events import Captured, FellBack, record
from ..values.library.numpy_arrays import ArrayMemory
from ..values.source import Argument
from .array_work import array_work
from .context.recorder import Recorder
from .guards.guard_rules import guard_words
from .specialise import SpecialisationWriter
from .units.small_calls import elements_of
from .units.unit import Specialisation, Unit


def left_to_numpy(unit: Unit, writer: SpecialisationWriter, args: tuple[object, ...]) -> Specialisation | None:
    """Return what runs the original code once, where that is faster; None where the graph is to be compiled.

    args: those of the unit.  Where sizes are open and the work is much, the capture relies on that from here on.
    """
    threshold, recorder = unit.family.small_work, writer.recorder
    arguments = unit.own_arguments(args)
    if not threshold or unit.is_resume or not _is_of_arrays(recorder) or not unit.small.takes(arguments):
        return None
    work = array_work(recorder.graph.fx, [value.node for value in writer.out.outputs])
    if not work.is_at_most(threshold):
        return None
    most = work.sizes_within(threshold, elements_of(arguments))
    unit.small.add(arguments, most)
    _record(unit, writer, most)
    return Specialisation(unit.eager, (), "", eager=True, has_graph=False, kept=False)


def _is_of_arrays(recorder: Recorder) -> bool:
    """Return whether the graph has operations, and all its tensors are arrays that are arguments, or made of them."""
    graph = recorder.graph
    tensors = [source for source, real in graph.placeholders.values() if not isinstance(real, int | float)]
    return (
        bool(tensors)
        and all(isinstance(source, ArrayMemory) and isinstance(source.of, Argument) for source in tensors)
        and any(node.op != "placeholder" for node in graph.fx.nodes)
    )


def _record(unit: Unit, writer: SpecialisationWriter, most: int) -> None:
    graph = writer.recorder.graph
    operations = sum(node.op != "placeholder" for node in graph.fx.nodes)
    places = tuple(guard.origin.place() if guard.origin is not None else "" for guard in writer.guards)
    words = tuple(map(guard_words, writer.guards))
    record(Captured(unit.name, operations, len(graph.placeholders), words, unit.origin(), places))
    why = f"arrays of up to {most} elements are less work than entering compiled code; numpy_threshold=0 compiles it"
    record(FellBack(f"small arrays of {unit.name}", why, unit.origin()))
