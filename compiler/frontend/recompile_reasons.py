"""Why a call fitted no specialisation: the guard that failed, what it wanted and what there is, in words."""

import re
from collections.abc import Callable
from types import CodeType

import torch

from ..values.guard import (
    Answer,
    Guard,
    Kind,
    Member,
    TensorFacts,
    code_words,
    look_up,
    member_found,
    sharing_words,
    storage_pattern,
)
from ..values.source import Source, shortened
from .residual import Names


def failing_guard(
    guards: tuple[Guard, ...], parameters: list[str], args: tuple[object, ...]
) -> tuple[Guard | None, str, str]:
    """Return the first guard that the arguments fail, what it wants and what was found; (None, "", "") if none."""
    for guard in guards:
        try:
            held, value, others = _evaluated(guard, parameters, args)
        except Exception as error:
            return guard, expected_words(guard), f"{type(error).__name__}: {error}"
        if not held:
            return guard, expected_words(guard), found_words(guard, value, others)
    return None, "", ""


def fetched(source: Source, parameters: list[str], args: tuple[object, ...]) -> object:
    """Return what a source gives for these arguments; None if it cannot be reached."""
    names, lines = Names(), list[str]()
    name = names.fetch(source, lines)
    place = dict(names.constants) | dict(zip(parameters, args, strict=True))
    try:
        exec("\n".join(lines), place)
    except Exception:
        return None
    return place.get(name)


def _evaluated(
    guard: Guard, parameters: list[str], args: tuple[object, ...]
) -> tuple[bool, object, tuple[object, ...]]:
    names, lines = Names(), list[str]()
    value = names.fetch(guard.source, lines) if guard.source is not None else ""
    others = tuple(names.fetch(other, lines) for other in guard.others)
    check = guard.check(value, others, names.inject)
    place = dict(names.constants) | dict(zip(parameters, args, strict=True))
    exec("\n".join(lines), place)
    return bool(eval(check, place)), place.get(value), tuple(place[other] for other in others)


def expected_words(guard: Guard) -> str:
    """Return what a guard wants."""
    rule = _EXPECTED.get(guard.kind)
    return rule(guard) if rule is not None else shortened(guard.expected)


def found_words(guard: Guard, value: object, others: tuple[object, ...]) -> str:
    """Return what there is instead, in the form of what is wanted."""
    rule = _FOUND.get(guard.kind)
    found = rule(guard, value, others) if rule is not None else shortened(value)
    return found if found != expected_words(guard) else f"another {found}"


def _tensor_found(guard: Guard, value: object, _: tuple[object, ...]) -> str:
    wanted = guard.expected
    assert isinstance(wanted, TensorFacts)
    if not isinstance(value, torch.Tensor):
        return f"{type(value).__qualname__} {shortened(value)}" if value is not None else "None"
    strides = tuple(value.stride()) if value.layout is torch.strided else None
    bits = (value.is_conj(), value.is_neg(), value.is_inference())
    found = TensorFacts(
        type(value), value.dtype, value.device, tuple(value.shape), strides, value.requires_grad, bits, value.is_leaf
    )
    differing = [word for word, field in _QUIET_FIELDS if getattr(found, field) != getattr(wanted, field)]
    if found.stride != wanted.stride and wanted.stride is not None and None not in wanted.stride:
        differing.append(f"strides {found.stride} instead of {wanted.stride}")
    alike = str(found) == str(wanted)
    return f"{found} with {' and '.join(differing)}" if alike and differing else str(found)


_QUIET_FIELDS = (
    ("other conjugate, negative or inference bits", "bits"),
    ("another place in the autograd graph", "leaf"),
)


def _sizes_found(guard: Guard, value: object, others: tuple[object, ...]) -> str:
    """Return the values of the sizes and numbers that a condition is made of."""
    sources = [guard.source, *guard.others]
    objects = [value, *others]
    found: dict[str, str] = {}
    for number, suffix in re.findall(r"\{(\d+)\}((?:\.\w+(?:\(\))?(?:\[\d+\])?)*)", str(guard.expected)):
        source, held = sources[int(number)], objects[int(number)]
        if source is not None:
            found[f"{source.words()}{suffix}"] = shortened(eval(f"held{suffix}", {"held": held}))
    return ", ".join(f"{name} = {text}" for name, text in found.items())


def _state_found(guard: Guard, _: object, __: tuple[object, ...]) -> str:
    assert isinstance(guard.expected, tuple)
    return str(guard.expected[0]())


def _member_found(guard: Guard, value: object, _: tuple[object, ...]) -> str:
    member = guard.expected
    assert isinstance(member, Member)
    assert isinstance(value, type)
    return shortened(member_found(look_up(value, member.name, member.after)[1]))


def _answer_found(guard: Guard, value: object, _: tuple[object, ...]) -> str:
    answer = guard.expected
    assert isinstance(answer, Answer)
    assert callable(value)
    return shortened(value(*answer.args, **answer.kwargs))


def _full_items(guard: Guard, value: object, _: tuple[object, ...]) -> str:
    assert isinstance(guard.expected, tuple)
    assert isinstance(value, dict)
    return f"something under {', '.join(name for name in guard.expected if value[name])}"


def _shared(guard: Guard, _: object, others: tuple[object, ...]) -> str:
    tensors = [other for other in others if isinstance(other, torch.Tensor)]
    return sharing_words(storage_pattern(*tensors), [other.words() for other in guard.others])


def _one_object(guard: Guard, _: object, others: tuple[object, ...]) -> str:
    first: dict[int, str] = {}
    for source, other in zip(guard.others, others, strict=True):
        if id(other) in first:
            return f"{first[id(other)]} and {source.words()} are one object"
        first[id(other)] = source.words()
    return "distinct objects"


def _code_found(_: Guard, value: object, __: tuple[object, ...]) -> str:
    code = getattr(value, "__code__", None)
    return code_words(code) if isinstance(code, CodeType) else shortened(value)


_EXPECTED: dict[Kind, Callable[[Guard], str]] = {
    Kind.TYPE: lambda guard: getattr(guard.expected, "__qualname__", str(guard.expected)),
    Kind.TENSOR: lambda guard: str(guard.expected),
    Kind.KEYS: lambda guard: shortened(list(guard.expected)),  # type: ignore[call-overload]  # a tuple
    Kind.HAS_KEY: lambda guard: "present",
    Kind.LACKS_KEY: lambda guard: "absent",
    Kind.HAS_ATTRIBUTE: lambda guard: "present",
    Kind.LACKS_ATTRIBUTE: lambda guard: "absent",
    Kind.EMPTY_ITEMS: lambda guard: "nothing",
    Kind.MEMBERS: lambda guard: _members(guard.expected),
    Kind.MEMBER: lambda guard: shortened(guard.expected.found),  # type: ignore[attr-defined]  # a Member
    Kind.ANSWER: lambda guard: shortened(guard.expected.given),  # type: ignore[attr-defined]  # an Answer
    Kind.CODE: lambda guard: code_words(guard.expected),
    Kind.SAME_AS: lambda guard: "the same object",
    Kind.DISTINCT: lambda guard: "distinct objects",
    Kind.STORAGES: lambda guard: sharing_words(guard.expected, [other.words() for other in guard.others]),
    Kind.STATE: lambda guard: str(guard.expected[1]),  # type: ignore[index]  # (question, answer)
    Kind.EXPRESSION: lambda guard: "true",
}
_Found = Callable[[Guard, object, tuple[object, ...]], str]
_FOUND: dict[Kind, _Found] = {
    Kind.TYPE: lambda guard, value, _: type(value).__qualname__,
    Kind.TENSOR: _tensor_found,
    Kind.LENGTH: lambda guard, value, _: str(len(value)),  # type: ignore[arg-type]  # something with a length
    Kind.KEYS: lambda guard, value, _: shortened(list(value)),  # type: ignore[call-overload]  # a mapping
    Kind.HAS_KEY: lambda guard, value, _: "absent",
    Kind.LACKS_KEY: lambda guard, value, _: "present",
    Kind.HAS_ATTRIBUTE: lambda guard, value, _: "absent",
    Kind.LACKS_ATTRIBUTE: lambda guard, value, _: "present",
    Kind.EMPTY_ITEMS: _full_items,
    Kind.MEMBERS: lambda guard, value, _: _members(value),
    Kind.TRUTH: lambda guard, value, _: str(bool(value)),
    Kind.MEMBER: _member_found,
    Kind.ANSWER: _answer_found,
    Kind.CODE: _code_found,
    Kind.SAME_AS: lambda guard, value, _: "another object",
    Kind.DISTINCT: _one_object,
    Kind.STORAGES: _shared,
    Kind.STATE: _state_found,
    Kind.EXPRESSION: _sizes_found,
}


def _members(value: object) -> str:
    return shortened(sorted(value, key=repr)) if isinstance(value, set | frozenset) else shortened(value)
