"""For an operator that writes to its arguments: the operator that gives the new values instead.

ATen has such a twin for nearly all (`add_` and `add`, `mul.out` and `mul`). Where none exists (custom operators that
mutate, odd layouts of random fills) one is defined in the `plumbline` namespace: clone, then call the original.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from ..base.errors import Unsupported
from ..base.own_operators import define, implement
from ..base.torch_facts import OpOverload
from ..graph.facts import op_facts
from ..graph.shapes.shape_rules import rule_as_of

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Twin:
    """An operator without side effects in place of one that writes.

    dropped: names of arguments the twin does not take (out=).  written: for each written argument position of the
    original, which result of the twin is its new value.  returned: for each result of the original, which result of
    the twin it is (a written argument's result is its new value).  single: the twin gives one value, not a tuple.
    """

    operator: OpOverload
    dropped: frozenset[str]
    written: tuple[int, ...]
    returned: tuple[int, ...]
    single: bool


# The statistics that the original writes are the last two results of the twin.
_SPECIAL: dict[OpOverload, Twin] = {
    aten._native_batch_norm_legit.default: Twin(
        aten._native_batch_norm_legit_functional.default, frozenset(), (3, 4), (0, 1, 2), False
    ),
    aten.normal_.default: Twin(aten.normal_functional.default, frozenset(), (0,), (0,), True),
}
# In-place calls that change the geometry of the tensor object; the out-of-place view is the same name without "_".
GEOMETRY_CHANGES: dict[OpOverload, OpOverload] = {
    aten.t_.default: aten.t.default,
    aten.transpose_.default: aten.transpose.int,
    aten.squeeze_.default: aten.squeeze.default,
    aten.squeeze_.dim: aten.squeeze.dim,
    aten.squeeze_.dims: aten.squeeze.dims,
    aten.unsqueeze_.default: aten.unsqueeze.default,
    aten.as_strided_.default: aten.as_strided.default,
    aten.swapaxes_.default: aten.transpose.int,
    aten.swapdims_.default: aten.transpose.int,
    aten.detach_.default: aten.detach.default,
}
# They give a tensor other memory: no value semantics can follow.
REFUSED = frozenset({"aten::set_", "aten::resize_", "aten::resize_as_", "aten::resize_as_sparse_"})


@cache
def twin_of(operator: OpOverload) -> Twin:
    """Return the side-effect-free twin of a writing operator; raises Unsupported for what changes memory itself."""
    if operator._schema.name in REFUSED:
        raise Unsupported(
            f"{operator} gives a tensor other memory", why="graphs hold values", hint="expected: the graph runs eagerly"
        )
    if operator in _SPECIAL:
        return _SPECIAL[operator]
    return _named_twin(operator) or cloning_twin(operator)


def _named_twin(operator: OpOverload) -> Twin | None:
    """Find the twin by name: `foo_` -> `foo`, `foo.out` -> `foo`, with equal types of the remaining arguments."""
    schema = operator._schema
    namespace, _, name = schema.name.partition("::")
    written = op_facts(operator).mutates
    in_place = name.endswith("_") and not name.endswith("__") and written == (0,)
    outs = [schema.arguments[index] for index in written]
    if not in_place and not all(argument.is_out for argument in outs):
        return None
    parameters = [a for a in schema.arguments if in_place or not a.is_out]
    packet = getattr(getattr(torch.ops, namespace), name[:-1] if in_place else name, None)
    for overload in packet.overloads() if packet is not None else ():
        candidate = getattr(packet, overload)
        if _takes(candidate, parameters) and len(candidate._schema.returns) == len(written):
            dropped = frozenset() if in_place else frozenset(argument.name for argument in outs)
            places = tuple(range(len(written)))
            return Twin(candidate, dropped, places, places[: len(schema.returns)], len(written) == 1)
    return None


def _takes(candidate: OpOverload, arguments: list[torch.Argument]) -> bool:
    theirs = candidate._schema.arguments
    facts = op_facts(candidate)
    if facts.mutates or facts.aliases or len(theirs) != len(arguments):
        return False
    return all(
        str(mine.type) == str(other.type) and mine.kwarg_only == other.kwarg_only
        for mine, other in zip(arguments, theirs, strict=True)
    )


@cache
def cloning_twin(operator: OpOverload) -> Twin:
    """Define and return `plumbline::<name>`: clone what is written, call the original, give results and clones."""
    schema = operator._schema
    written = op_facts(operator).mutates
    if any(str(schema.arguments[index].type) not in ("Tensor", "Optional[Tensor]") for index in written):
        raise Unsupported(f"{operator} writes to lists", hint="expected: the graph runs eagerly")
    fresh = [i for i, value in enumerate(schema.returns) if value.alias_info is None]
    name = "pure_" + schema.name.replace("::", "_") + ("_" + schema.overload_name if schema.overload_name else "")
    results = [str(schema.returns[i].type) for i in fresh] + ["Tensor"] * len(written)
    seeded = torch.Tag.nondeterministic_seeded
    tags = [seeded] if seeded in operator.tags else []
    define(f"{name}({_arguments_text(schema)}) -> ({', '.join(results)})", tags=tags)
    implement(name, _cloning_kernel(operator, written, fresh), "CompositeExplicitAutograd")
    places = tuple(range(len(fresh), len(fresh) + len(written)))
    returned = tuple(fresh.index(i) if i in fresh else places[0] for i in range(len(schema.returns)))
    twin = getattr(torch.ops.plumbline, name).default
    rule_as_of(twin, operator)
    return Twin(twin, frozenset(), places, returned, len(results) == 1)


def _cloning_kernel(operator: OpOverload, written: tuple[int, ...], kept: list[int]) -> Callable[..., object]:
    names = [argument.name for argument in operator._schema.arguments]

    def run(*args: object, **kwargs: object) -> object:
        values, named = list(args), dict(kwargs)
        copies: list[object] = []
        for index in written:
            value = values[index] if index < len(values) else named.get(names[index])
            copy = _clone(value) if isinstance(value, torch.Tensor) else value
            copies.append(copy)
            if index < len(values):
                values[index] = copy
            else:
                named[names[index]] = copy
        result = operator(*values, **named)
        results = result if isinstance(result, (tuple, list)) else (result,)
        everything = [*(results[i] for i in kept), *copies]
        return everything[0] if len(everything) == 1 else tuple(everything)

    return run


def _clone(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the same strides, gaps included: random fills follow the order of memory."""
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)


def _arguments_text(schema: torch.FunctionSchema) -> str:
    """Return the text of a schema's arguments without its alias marks, as `Tensor(a!)`."""
    text = str(schema)
    inside = text[text.index("(") + 1 : text.rindex(") ->")]
    return re.sub(r"\([a-z]\w*!?(\|[a-z]\w*)*( -> [^)]*)?\)", "", inside)
