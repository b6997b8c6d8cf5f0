"""`torch.func.functional_call`: a module called with other parameters and buffers, which it gives back afterwards.

The tables of the module are swapped under evaluation only: nothing is written into the real module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from ..constant import Constant
from ..guard import GuardKind
from ..python.containers.mapping_views import Entry
from ..python.containers.mappings import DictValue
from ..python.containers.sequences import SequenceValue
from ..reasons import TORCH_CALL_FORM, Break
from ..rule_tables import calls
from ..value import Arguments, CaptureContext, Keywords, Value
from .modules import ModuleValue
from .tensor import TensorValue

_NAMES = ("module", "parameter_and_buffer_dicts", "args", "kwargs")


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """Where a module keeps a tensor: the registry and the entry in it."""

    table: DictValue
    entry: Entry


@calls(torch.func.functional_call)
def _functional_call(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    arguments = {**dict(zip(_NAMES, args, strict=False)), **kwargs}
    module = ctx.realize(arguments["module"])
    if not isinstance(module, ModuleValue):
        raise Break(TORCH_CALL_FORM, f"functional_call of {module.describe()}")
    if ctx.realize(arguments.get("strict", Constant(False))).truth(ctx):
        raise Break(TORCH_CALL_FORM, "functional_call that checks the names")
    tie = ctx.realize(arguments.get("tie_weights", Constant(True))).truth(ctx)
    positional = ctx.realize(arguments.get("args", Constant(None)))
    inner = _arguments(ctx, positional)
    keywords = ctx.realize(arguments.get("kwargs", Constant(None)))
    named: Keywords = {}
    if isinstance(keywords, DictValue):
        named = {str(entry.key.constant()): entry.value for entry in keywords.read_all(ctx).values()}
    tensors = _tensors(ctx, ctx.realize(arguments["parameter_and_buffer_dicts"]))
    places = _places(ctx, module, "")
    if len({id(place.entry) for place in places.values()}) != len(places):  # eager leaves what it was given in there
        raise Break(TORCH_CALL_FORM, "functional_call of a module that has one part under two names")
    replaced = {name: value for name, value in tensors.items() if name in places}
    with _swapped(ctx, places, _tied(ctx, places, replaced) if tie else replaced):
        result = ctx.call(module, inner, named)
        for name, value in replaced.items():
            registered = any(entry is places[name].entry for entry in places[name].table.entries.values())
            if not registered or places[name].entry.value is not value:
                raise Break(TORCH_CALL_FORM, f"functional_call of a module that sets {name!r}")
    return result


def _arguments(ctx: CaptureContext, value: Value) -> list[Value]:
    if isinstance(value, Constant) and value.value is None:
        return []
    return value.elements(ctx) if isinstance(value, SequenceValue) and value.kind is tuple else [value]


def _tensors(ctx: CaptureContext, value: Value) -> dict[str, Value]:
    """Return the tensors by name, from one dictionary or several."""
    tensors: dict[str, Value] = {}
    for holder in value.elements(ctx) if isinstance(value, SequenceValue) else [value]:
        if not isinstance(holder, DictValue):
            raise Break(TORCH_CALL_FORM, f"functional_call with {holder.describe()}")
        for entry in holder.read_all(ctx).values():
            name, tensor = str(entry.key.constant()), ctx.realize(entry.value)
            if not isinstance(tensor, TensorValue) or name in tensors:
                raise Break(TORCH_CALL_FORM, f"functional_call with {tensor.describe()} for {name!r}")
            tensors[name] = tensor
    return tensors


def _places(ctx: CaptureContext, module: ModuleValue, prefix: str) -> dict[str, TensorSlot]:
    """Return name -> place of every parameter and buffer, under each name that leads to it."""
    slots: dict[str, TensorSlot] = {}
    for name in ("_parameters", "_buffers"):
        table = module.table(ctx, name)
        entries = table.read_all(ctx).values() if table is not None else ()
        for entry in entries:
            assert table is not None
            entry.value = ctx.realize(entry.value)
            if isinstance(entry.value, TensorValue):
                slots[prefix + str(entry.key.constant())] = TensorSlot(table, entry)
    modules = module.table(ctx, "_modules")
    for entry in modules.read_all(ctx).values() if modules is not None else ():
        part = entry.value = ctx.realize(entry.value)
        if isinstance(part, ModuleValue):
            slots |= _places(ctx, part, f"{prefix}{entry.key.constant()}.")
    return slots


def _tied(ctx: CaptureContext, places: dict[str, TensorSlot], replaced: dict[str, Value]) -> dict[str, Value]:
    """Return the replacements with those of names that share a tensor; which names do is guarded."""
    names: dict[int, list[str]] = {}
    for name, place in places.items():
        names.setdefault(id(place.entry.value), []).append(name)
    values = {id(place.entry.value): place.entry.value for place in places.values()}
    sources = tuple(value.source for value in values.values() if value.source is not None)
    if len(sources) > 1:
        ctx.guards.add(None, GuardKind.DISTINCT, "distinct", sources)
    tied = dict(replaced)
    for group in names.values():
        replacements = [replaced[name] for name in group if name in replaced]
        if any(value is not replacements[0] for value in replacements):
            raise Break(TORCH_CALL_FORM, "functional_call with several tensors for one")
        tied |= dict.fromkeys(group, replacements[0]) if replacements else {}
    return tied


@contextmanager
def _swapped(ctx: CaptureContext, places: dict[str, TensorSlot], values: dict[str, Value]) -> Iterator[None]:
    """Put tensors into the tables for the block."""
    before = {name: places[name].entry.value for name in values}
    for name, value in values.items():
        places[name].entry.value = value
    try:
        yield
    finally:
        for name, value in before.items():
            places[name].entry.value = value
