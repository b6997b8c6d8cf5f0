"""Blocks that change whom torch asks: `DisableTorchFunctionSubclass`, and entering a `TorchFunctionMode`."""

import types

import torch

from ...constant import Constant
from ...python.objects.classes import constructs
from ...python.objects.instances import ObjectValue
from ...reasons import TORCH_SETTING, UNKNOWN_CALLEE, Break
from ...rule_tables import CallRule, calls
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from ..modes import GraphBlock
from .override_facts import pop_function_mode, push_function_mode, subclass_switch
from .subclass_values import hold_switch


class SubclassSwitch(GraphBlock):
    """A block in which subclasses have no say: nothing in the graph, which carries plain tensors."""

    def __init__(self) -> None:
        super().__init__(subclass_switch, (), subclass_switch)

    def enter(self, ctx: CaptureContext) -> Value:
        """Switch the subclasses off, for what is captured next and for what goes on after a break."""
        hold_switch(ctx)
        ctx.modes.overrides.off += 1
        ctx.modes.keep_open(self)
        return Constant(None)

    def leave(self, ctx: CaptureContext) -> None:
        """Let the subclasses have their say."""
        ctx.modes.close(self)
        ctx.modes.overrides.off -= 1


@constructs(subclass_switch)
def _switch(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return SubclassSwitch()


class OpenMode(Value):
    """A mode that the program has entered, as what goes on after a break has to find it."""

    def __init__(self, mode: Value) -> None:
        self.mode = mode

    def python_type(self) -> type:
        """Return the class of the mode."""
        return self.mode.python_type()

    def rebuild(self, out: Rebuilder) -> str:
        """Make what pushes the mode when it is entered."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(Pushing)}({out.value(self.mode)})")
        return name


class Pushing:
    """Puts a mode on torch's stack; the mode's own `__enter__` has run."""

    def __init__(self, mode: object) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        """Push it."""
        push_function_mode(self.mode)


@calls(push_function_mode)
def _push(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    mode = ctx.realize(args[0])
    if not isinstance(mode, ObjectValue):
        raise Break(TORCH_SETTING, f"entering {mode.describe()}")
    block = OpenMode(mode)
    ctx.modes.keep_open(block)
    ctx.modes.overrides.modes.append(mode)
    ctx.modes.overrides.blocks.append(block)
    return Constant(None)


@calls(pop_function_mode)
def _pop(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    state = ctx.modes.overrides
    if not state.blocks:
        raise Break(TORCH_SETTING, "leaving a mode that was entered before the captured code")
    ctx.modes.close(state.blocks.pop())
    mode: Value = state.modes.pop()
    return mode


def descriptor_rule(function: object) -> CallRule | None:
    """Give the reading of an attribute of tensors as overrides are given it: `Tensor.shape.__get__`."""
    if not isinstance(function, types.MethodWrapperType) or function.__name__ != "__get__":
        return None
    descriptor = function.__self__
    name = getattr(descriptor, "__name__", "")
    if not isinstance(descriptor, types.GetSetDescriptorType) or not issubclass(torch.Tensor, descriptor.__objclass__):
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        if len(args) != 1 or kwargs or not issubclass(ctx.realize(args[0]).python_type(), torch.Tensor):
            raise Break(UNKNOWN_CALLEE, f"__get__ of Tensor.{name}")
        return ctx.realize(args[0]).get_attr(ctx, name)

    return rule
