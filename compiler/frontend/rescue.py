"""When a captured graph fails at run time: whose error is it, and how does the program get to see it.

A backend of ours leaves nothing behind when it fails (graph/effects/undo.py). Then the graph runs once more as it was
captured. If that fails too, the error is the program's: its own code runs from the start, so that its handlers see the
error where it happens, and what it had changed before stays changed as in eager. Otherwise the error is the backend's.
"""

from collections.abc import Callable
from ctypes import ArgumentError

from torch import fx

from ..base.stack_room import has_room
from ..graph.effects.call_effects import Effects
from ..graph.effects.hook_failures import raised_by_tensor_hook
from ..graph.effects.undo import saved, takes_history_for_good
from ..values.guard import Guard
from .residual import EAGER
from .units.failure import report_failure
from .units.unit import Unit


class Rescue:
    """What is done when the compiled form of a graph raises.

    forward: runs the graph, and gives its warnings where it succeeds. is_graph: nothing was compiled, it is the graph.
    """

    def __init__(
        self,
        unit: Unit,
        module: fx.GraphModule,
        forward: Callable[..., object],
        guards: tuple[Guard, ...],
        effects: Effects,
        is_graph: bool,
    ) -> None:
        self.unit = unit
        self.module = module
        self.forward = forward
        self.guards = guards
        self.effects = effects
        self.is_graph = is_graph

    def __call__(self, error: Exception, inputs: tuple[object, ...]) -> object:
        """Return what the graph gives; EAGER if it fails too: then the program must see the error where it happens.

        Raises `error` where it is not the program's and must be seen: that of a saved-tensor hook of the caller's, that
        of a user's backend, one of a program that has filled the stack, and under `strict`.
        """
        if isinstance(error, ArgumentError) and RecursionError.__name__ in str(error):
            error = RecursionError("maximum recursion depth exceeded")  # in a conversion, which tells it in words alone
        if raised_by_tensor_hook(error) or (isinstance(error, RecursionError) and not has_room()):
            raise error
        if self.is_graph or takes_history_for_good(self.effects, inputs):
            return EAGER
        before = saved(self.effects.written, self.effects.draws, inputs)
        try:
            result = self.forward(*inputs)
        except Exception:
            before.restore()
            return EAGER
        if self.unit.family.user_backend or self.unit.family.options.strict:
            before.restore()
            raise error
        report_failure("compiled code", self.unit, error, (), self.guards, self.module.graph, inputs)
        return result
