"""Random frames of nested objects, guards that hold on them, and changes to anything reachable."""

import collections
import math
import types
from collections.abc import Callable

import torch
from hypothesis import strategies as st

from plumbline.compiler.values.guard import (
    Answer,
    Guard,
    GuardKind,
    Member,
    TensorFacts,
    look_up,
    member_found,
    storage_pattern,
)
from plumbline.compiler.values.source import Argument, Attribute, BaseItem, Injected, Item, ListedItem, Source


class Plain:
    """An object with a namespace."""


class Chatty:
    """An object whose attribute look-up runs user code."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class Upper:
    """A class whose members change."""

    a: object = 1
    b = property(lambda self: 2)


class Lower(Upper):
    """One that inherits them."""


def give(value: object) -> object:
    """Answer by what a class has now."""
    return (Upper.__dict__.get("a"), value)[1 if value else 0]


class OwnDict(dict[object, object]):
    """A dict whose item access is its own."""

    def __getitem__(self, key: object) -> object:
        return "own"


def first(value: int = 1) -> int:
    """Be a function."""
    return value


def second(value: int = 1) -> int:
    """Be another function of the same form."""
    return value + 1


def _inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.zeros(2, 3)


TENSORS: tuple[Callable[[], torch.Tensor], ...] = (
    lambda: torch.zeros(2, 3),
    lambda: torch.zeros(3, 2).t(),
    lambda: torch.zeros(2, 4)[:, :3],
    lambda: torch.zeros(3),
    lambda: torch.zeros(()),
    lambda: torch.zeros(2, 3, dtype=torch.float64),
    lambda: torch.zeros(2, 3, dtype=torch.int64),
    lambda: torch.zeros(2, 3, dtype=torch.complex64),
    lambda: torch.zeros(2, 3, dtype=torch.complex64).conj(),
    lambda: torch.zeros(2, 3, dtype=torch.complex64).conj().imag,
    lambda: torch.zeros(2, 3, requires_grad=True),
    lambda: torch.zeros(2, 3, requires_grad=True) * 2,
    lambda: torch.nn.Parameter(torch.zeros(2, 3)),
    lambda: torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False),
    lambda: torch.zeros(2, 3, device="meta"),
    lambda: torch.zeros(0, 3),
    _inference,
)

tensors = st.sampled_from(TENSORS).map(lambda make: make())
literals = st.one_of(
    st.sampled_from([0, 1, True, False, None, 0.0, -0.0, 1.0, math.nan, math.inf, 1j, "", "a", "weight", b"a", ...]),
    st.sampled_from([range(3), slice(1, 2), torch.device("cpu"), torch.float32, 10**30, first, second, Plain]),
)
keys = st.sampled_from(["weight", "bias", "a", "b", 0, 1, (1, 2), None])
names = st.sampled_from(["weight", "bias", "a", "b"])


def _object(kind: type, fields: dict[str, object]) -> object:
    made = kind()
    made.__dict__.update(fields)
    return made


def _module(fields: list[object], training: bool) -> torch.nn.Module:
    made = torch.nn.Linear(2, 3).train(training)
    made.__dict__["extra"] = fields
    return made


def _containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    few = st.lists(inner, max_size=3)
    return st.one_of(
        few,
        few.map(tuple),
        few.map(collections.deque),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict),
        st.dictionaries(keys, inner, max_size=3).map(OwnDict),
        st.dictionaries(keys, inner, max_size=3).map(types.MappingProxyType),
        st.builds(_object, st.sampled_from([Plain, Chatty]), st.dictionaries(names, inner, max_size=4)),
        st.builds(_module, few, st.booleans()),
        inner.map(types.CellType),
        st.builds(types.CellType),
        st.sets(st.integers(0, 3)),
    )


Draw = Callable[[st.SearchStrategy[object]], object]
values = st.recursive(st.one_of(tensors, literals), _containers, max_leaves=8)


def children(value: object, source: Source) -> list[tuple[Source, object]]:
    """Return what can be fetched from a value in one step."""
    if type(value) in (dict, collections.OrderedDict, types.MappingProxyType):
        return [(Item(source, key), item) for key, item in value.items()]  # type: ignore[attr-defined]  # a mapping
    if type(value) is OwnDict:
        return [(BaseItem(source, dict, key), dict.__getitem__(value, key)) for key in dict.keys(value)]
    if isinstance(value, (list, tuple, collections.deque)):
        return [(Item(source, place), item) for place, item in enumerate(value)]
    if isinstance(value, set):
        return [(ListedItem(source, place), item) for place, item in enumerate(value)]
    if isinstance(value, (Plain, Chatty, torch.nn.Module)):
        return [(Attribute(source, "__dict__"), value.__dict__)]
    if isinstance(value, types.CellType):
        return [(Attribute(source, "cell_contents"), value.cell_contents)] if holds(value) else []
    return []


def holds(cell: types.CellType) -> bool:
    """Return whether a cell has a content."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def reachable(value: object, source: Source, depth: int = 5) -> list[tuple[Source, object]]:
    """Return every (source, value) below a value, parents before children."""
    found = [(source, value)]
    for inner, item in children(value, source) if depth else []:
        found += reachable(item, inner, depth - 1)
    return found


def facts_of(value: torch.Tensor, free: int | None = None) -> TensorFacts:
    """Return a tensor's facts; free: a dimension whose size may vary."""
    shape = tuple(None if place == free else size for place, size in enumerate(value.shape))
    stride = (None,) * value.dim() if free is not None else tuple(value.stride())
    bits = (value.is_conj(), value.is_neg(), value.is_inference())
    return TensorFacts(type(value), value.dtype, value.device, shape, stride, value.requires_grad, bits, value.is_leaf)


def guards_of(value: object, source: Source) -> list[Guard]:
    """Return guards that hold on the value."""
    made = [Guard(source, GuardKind.TYPE, type(value)), Guard(source, GuardKind.IDENTITY, value)]
    if isinstance(value, torch.Tensor):
        made += [Guard(source, GuardKind.TENSOR, facts_of(value, free)) for free in (None, 0)]
        return made
    made.append(Guard(source, GuardKind.HAS_ATTRIBUTE, "__class__"))
    made.append(Guard(source, GuardKind.LACKS_ATTRIBUTE, "_absent"))
    if type(value) in (int, float, complex, bool, str, bytes, type(None), range, slice, torch.device, type(...)):
        made.append(Guard(source, GuardKind.EQUALS, value))
    if isinstance(value, (str, list, tuple, dict, set, collections.deque, types.MappingProxyType)):
        made.append(Guard(source, GuardKind.LENGTH, len(value)))
        made.append(Guard(source, GuardKind.TRUTH, bool(value)))
    if isinstance(value, (dict, types.MappingProxyType)):
        made.append(Guard(source, GuardKind.KEYS, tuple(value)))
        made += [
            Guard(source, GuardKind.HAS_KEY if key in value else GuardKind.LACKS_KEY, key) for key in ("weight", 0, "c")
        ]
    if isinstance(value, set):
        made.append(Guard(source, GuardKind.MEMBERS, frozenset(value)))
    if isinstance(value, type):
        for name in ("a", "b", "weight", "__eq__"):
            made.append(Guard(source, GuardKind.MEMBER, Member(name, None, member_found(look_up(value, name)[1]))))
            behind = member_found(look_up(value, name, value)[1])
            made.append(Guard(source, GuardKind.MEMBER, Member(name, value, behind)))
    if value is give:
        made += [Guard(source, GuardKind.ANSWER, Answer((key,), {}, give(key))) for key in (0, 1.0)]
    if isinstance(value, types.FunctionType):
        made.append(Guard(source, GuardKind.CODE, value.__code__))
    if type(value) in (dict, collections.OrderedDict):
        empty = tuple(name for name in value if type(name) is str and _is_empty(value[name]))
        made += [Guard(source, GuardKind.EMPTY_ITEMS, empty)] if empty else []
    return made


def _is_empty(value: object) -> bool:
    return type(value) in (dict, list, collections.OrderedDict, type(None), bool) and not value


STATES = (
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.get_default_dtype,
    torch.are_deterministic_algorithms_enabled,
)


def relations(found: list[tuple[Source, object]]) -> list[Guard]:
    """Return guards between sources that hold."""
    made = [Guard(None, GuardKind.STATE, (function, function())) for function in STATES]
    for place, (source, value) in enumerate(found):
        made += [
            Guard(source, GuardKind.SAME_AS, None, None, (other,)) for other, same in found[:place] if same is value
        ]
    for count in (2, 3, len(found)):
        some = found[:count]
        if len({id(value) for _, value in some}) == len(some) > 1:
            made.append(Guard(None, GuardKind.DISTINCT, "distinct", None, tuple(source for source, _ in some)))
    some = [(source, value) for source, value in found if type(value) is torch.Tensor and value.device.type == "cpu"]
    if len(some) > 1:
        pattern = storage_pattern(*(value for _, value in some))
        made.append(Guard(None, GuardKind.STORAGES, pattern, None, tuple(source for source, _ in some)))
    return made


def change(draw: Draw, target: object) -> None:
    """Change a value in place, somehow; what cannot be changed stays."""
    new = draw(values)
    if isinstance(target, torch.Tensor):
        _change_tensor(draw, target)
    elif isinstance(target, list):
        target[:] = draw(st.sampled_from([target[::-1], [*target, new], target[1:], [new, *target[1:]]]))
    elif isinstance(target, dict):
        _change_dict(draw, target, new)
    elif isinstance(target, set):
        target ^= {draw(st.integers(0, 3))}
    elif isinstance(target, (Plain, Chatty, torch.nn.Module)):
        _change_dict(draw, target.__dict__, new)
    elif isinstance(target, types.CellType):
        target.cell_contents = new
    elif target is Lower or target is give:
        _change_class(draw, new)


def _change_class(draw: Draw, new: object) -> None:
    kind, name = draw(st.sampled_from([Upper, Lower])), draw(st.sampled_from(["a", "b", "weight", "__eq__"]))
    if name in vars(kind) and draw(st.booleans()):
        delattr(kind, name)
    elif name != "__eq__":
        setattr(kind, name, new)
    if "__eq__" not in vars(kind) and draw(st.booleans()):
        kind.__eq__ = object.__eq__


def _change_dict(draw: Draw, target: dict[object, object], new: object) -> None:
    known = list(target)
    if known and draw(st.booleans()):
        key = draw(st.sampled_from(known))
        moved = target.pop(key)
        if draw(st.booleans()):
            target[key] = draw(st.sampled_from([moved, new]))
    else:
        target[draw(keys)] = new


def _change_tensor(draw: Draw, target: torch.Tensor) -> None:
    what = draw(st.sampled_from(["requires_grad", "data", "resize", "nothing"]))
    try:
        if what == "requires_grad":
            target.requires_grad_(not target.requires_grad)
        elif what == "data":
            target.data = draw(tensors)
        elif what == "resize":
            target.resize_(4)
    except (RuntimeError, TypeError):
        return  # torch refuses this change of this tensor


def argument(position: int) -> Argument:
    """Return the source of an argument."""
    return Argument(f"_l{position}", f"x{position}")


def fixed(value: object) -> Injected:
    """Return the source of a known object."""
    return Injected(value)
