"""torch.distributed's functional collectives: their Python is evaluated, their operators are nodes of the graph.

What they ask of a process group, its name and its size, are constants; the group is guarded.
"""

import types
from collections.abc import Callable

import torch

from ...base.torch_facts import group_size
from ..constant import Constant, Known, fold
from ..guard import GuardKind
from ..reasons import UNKNOWN_CALLEE, Break
from ..rule_tables import CallRule
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value

COLLECTIVES = "torch.distributed._functional_collectives"
_GROUPS = "torch.distributed.distributed_c10d"


def collective_rule(function: object) -> CallRule | None:
    """Return the rule of a function that collectives ask about groups; these modules are loaded when they are used."""
    if not isinstance(function, types.FunctionType):
        return None
    return _RULES.get((function.__module__, function.__qualname__))


def _group_name(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `_resolve_group(group, tag)`: the name of a group, which operators take."""
    group = ctx.realize(args[0]) if args else Constant(None)
    if isinstance(group, Constant) and isinstance(group.value, str):
        return group
    real = group.value if isinstance(group, Known) else getattr(group, "real", None)
    if not isinstance(real, torch.distributed.ProcessGroup) or kwargs:
        raise Break(UNKNOWN_CALLEE, f"a collective of {group.describe()}; a process group or its name is captured")
    if group.source is not None:
        ctx.guards.add(group.source, GuardKind.IDENTITY, real)
    return Constant(str(real.group_name))


def _group_size(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    name = ctx.realize(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(name, Constant) or not isinstance(name.value, str):
        raise Break(UNKNOWN_CALLEE, "the size of a process group that is not known")
    size = group_size(name.value)
    ctx.guards.add(None, GuardKind.STATE, (_world, _world()))
    return Constant(size)


def _world_group(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `dist.group.WORLD`."""
    del args, kwargs
    world = _world()
    ctx.guards.add(None, GuardKind.STATE, (_world, world))
    return Constant(None) if world is None else Known(world, Injected(world))


def _state_of_world(ctx: CaptureContext, args: Arguments, kwargs: Keywords, function: Callable[[], object]) -> Value:
    """Evaluate what is asked of the default group: it holds as long as that group stays."""
    if args or kwargs:
        raise Break(UNKNOWN_CALLEE, f"torch.distributed.{function.__name__} of a process group")
    ctx.guards.add(None, GuardKind.STATE, (_world, _world()))
    return fold(ctx, function)


def _is_available(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `torch.distributed.is_available()`, which is a property of how torch was built."""
    if args or kwargs:
        raise Break(UNKNOWN_CALLEE, "torch.distributed.is_available with arguments")
    return fold(ctx, torch.distributed.is_available)


def _asked(name: str) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        return _state_of_world(ctx, args, kwargs, getattr(torch.distributed, name))

    return rule


def _world() -> object:
    return torch.distributed.group.WORLD


_RULES: dict[tuple[str, str], CallRule] = {
    (COLLECTIVES, "_resolve_group"): _group_name,
    (_GROUPS, "_get_group_size_by_name"): _group_size,
    (_GROUPS, "_WorldMeta.WORLD"): _world_group,
    ("torch.distributed", "is_available"): _is_available,
    **{(_GROUPS, name): _asked(name) for name in ("is_initialized", "get_rank", "get_world_size")},
}
