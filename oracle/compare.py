"""Two outcomes of one call held against each other: structure, sharing, metadata, state, exceptions.

Values are not decided here: every pair of tensors of equal form is handed on, with the aspect it belongs to.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy
import torch

from .compare_exceptions import exception_finding
from .record import Node, RunOutcome, TensorRecord
from .verdict import Finding, VerdictKind

FLOAT_SLACK = 1e-5
"""Relative slack for Python floats, which come from `.item()` and carry no reference; far below any real defect."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two tensors of equal shape and dtype whose values are still to be judged."""

    aspect: str
    path: str
    eager: torch.Tensor
    actual: torch.Tensor


@dataclass(frozen=True, slots=True)
class Comparison:
    """Findings about everything but values, and the pairs whose values are open."""

    findings: tuple[Finding, ...]
    pairs: tuple[Pair, ...]


def compare(eager: RunOutcome, actual: RunOutcome, *, compare_random: bool = True) -> Comparison:
    """Compare two outcomes of the same call from the same state."""
    comparer = _Comparer()
    if eager.error is not None or actual.error is not None:
        comparer.findings.extend(exception_finding(eager.error, actual.error))
    elif eager.output is not None and actual.output is not None:
        comparer.node("values", eager.output, actual.output)
    comparer.state(eager.changed, actual.changed)
    comparer.names(eager.bindings, actual.bindings)
    if eager.modes != actual.modes:
        sentence = f"torch's modes end as {actual.modes}, eager's as {eager.modes}"
        comparer.wrong("python", "torch modes", sentence)
    if compare_random:
        for generator in eager.random.differences(actual.random):
            comparer.wrong("rng", generator, "stands elsewhere after the call than after eager's")
    return Comparison(tuple(comparer.findings), tuple(comparer.pairs))


class _Comparer:
    """Collects differences; a class because identities and storages are matched across the whole outcome."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.pairs: list[Pair] = []
        self.objects: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.owners: dict[int, str] = {}
        self.paths_of_storages: dict[int, str] = {}

    def wrong(self, aspect: str, where: str, sentence: str) -> None:
        self.findings.append(Finding(VerdictKind.WRONG, aspect, where, sentence))

    def node(self, aspect: str, eager: Node, actual: Node) -> None:
        structure = "python" if aspect != "values" else "values"
        if eager.kind != actual.kind or (eager.type_name != actual.type_name and eager.kind != "tensor"):
            self.wrong(structure, eager.path, f"is {_article(actual)}, eager gives {_article(eager)}")
            return
        if eager.kind == "atom":
            self.atom(structure, eager, actual)
            return
        self.identity(eager, actual)
        if eager.kind == "tensor":
            self.tensor(aspect, eager.path, eager.value, actual.value, both_again=eager.again and actual.again)
        elif eager.kind in ("array", "buffer"):
            if eager.value is not None and actual.value is not None:
                self.array(aspect, eager.path, eager.value, actual.value)
        else:
            self.children(aspect, eager, actual)

    def children(self, aspect: str, eager: Node, actual: Node) -> None:
        missing = [name for name in eager.children if name not in actual.children]
        extra = [name for name in actual.children if name not in eager.children]
        for name in missing:
            self.wrong("python", name, "is missing; eager has it")
        for name in extra:
            self.wrong("python", name, "is there; eager does not have it")
        if not missing and not extra and list(eager.children) != list(actual.children):
            self.wrong("python", eager.path, "has its items in another order than eager's")
        for name in (name for name in eager.children if name in actual.children):  # in eager's order, always
            self.node(aspect, eager.children[name], actual.children[name])

    def atom(self, aspect: str, eager: Node, actual: Node) -> None:
        mine, theirs = eager.value, actual.value
        if isinstance(mine, (float, numpy.floating)):
            close = math.isclose(mine, theirs, rel_tol=FLOAT_SLACK)
            if mine == theirs or (math.isnan(mine) and math.isnan(theirs)):
                return
            sentence = f"is {theirs!r}, eager gives {mine!r}"
            kind = VerdictKind.NO_REFERENCE if close else VerdictKind.WRONG
            self.findings.append(Finding(kind, aspect, eager.path, sentence))
        elif not _equal_atoms(mine, theirs):
            self.wrong(aspect, eager.path, f"is {theirs!r}, eager gives {mine!r}")

    def identity(self, eager: Node, actual: Node) -> None:
        """Objects that existed before must be the same ones; new ones must be shared alike."""
        if eager.identity is None or actual.identity is None or eager.kind in ("tensor", "tuple", "opaque"):
            return
        if (eager.identity < 0) != (actual.identity < 0) or (eager.identity < 0 and eager.identity != actual.identity):
            self.wrong("python", eager.path, "is another object than the one eager leaves there")
        elif eager.identity >= 0 and self.objects.setdefault(eager.identity, actual.identity) != actual.identity:
            self.wrong("python", eager.path, "is not the object that eager shares here")

    def tensor(
        self, aspect: str, path: str, eager: TensorRecord, actual: TensorRecord, *, both_again: bool = False
    ) -> None:
        for what, mine, theirs in _metadata(eager, actual):
            self.wrong("metadata", path, f"{what} is {theirs}, eager's is {mine}")
        self.sharing(path, eager, actual)
        if eager.shape == actual.shape and eager.dtype == actual.dtype and not both_again:
            self.pairs.append(Pair(aspect, path, eager.value, actual.value))

    def sharing(self, path: str, eager: TensorRecord, actual: TensorRecord) -> None:
        mine, theirs = eager.storage, actual.storage
        if mine is None or theirs is None:
            return
        before = self.owners.get(mine, "memory of its own") if mine >= 0 else "memory that existed before the call"
        if (mine < 0 or theirs < 0) and mine != theirs:
            whose = "memory that existed before the call" if theirs < 0 else "fresh memory"
            eagers = "that memory of the caller's" if mine < 0 else before
            self.wrong("aliasing", path, f"lives in {whose}, eager's lives in {eagers}")
        elif mine >= 0:
            partner = self.storages.setdefault(mine, theirs)
            owner = self.owners.setdefault(mine, path)
            holder = self.paths_of_storages.setdefault(theirs, path)
            if partner != theirs:
                self.wrong("aliasing", path, f"does not share memory with {owner}, eager's does")
            elif holder != owner and holder != path:
                self.wrong("aliasing", path, f"shares memory with {holder}, eager's does not")
        elif mine < 0 and eager.offset != actual.offset and eager.shape == actual.shape:
            sentence = f"views the shared memory from element {actual.offset}, eager's from {eager.offset}"
            self.wrong("aliasing", path, sentence)

    def array(self, aspect: str, path: str, eager: numpy.ndarray, actual: numpy.ndarray) -> None:
        if eager.shape != actual.shape or eager.dtype != actual.dtype:
            sentence = f"is {actual.dtype}{list(actual.shape)}, eager gives {eager.dtype}{list(eager.shape)}"
            self.wrong("metadata", path, sentence)
            return
        try:
            self.pairs.append(Pair(aspect, path, torch.from_numpy(eager.copy()), torch.from_numpy(actual.copy())))
        except TypeError:  # strings and objects have no tensor
            if not (eager == actual).all():
                self.wrong(aspect, path, "holds other items than eager's")

    def state(self, eager: Mapping[str, Node], actual: Mapping[str, Node]) -> None:
        for path in dict.fromkeys([*eager, *actual]):
            mine, theirs = eager.get(path), actual.get(path)
            node = mine or theirs
            assert node is not None
            aspect = "mutations" if node.kind in ("tensor", "array", "buffer") else "python"
            if mine is None:
                self.wrong(aspect, path, "was changed by the compiled run; eager leaves it alone")
            elif theirs is None:
                self.wrong(aspect, path, "was left alone by the compiled run; eager changes it")
            else:
                self.node(aspect, mine, theirs)

    def names(self, eager: Mapping[str, Node], actual: Mapping[str, Node]) -> None:
        for path in sorted(eager.keys() | actual.keys()):
            if path not in actual:
                self.wrong("python", path, "was left alone by the compiled run; eager rebinds it")
            elif path not in eager:
                self.wrong("python", path, "was rebound by the compiled run; eager leaves it alone")
            else:
                self.node("python", eager[path], actual[path])


def _metadata(eager: TensorRecord, actual: TensorRecord) -> Iterator[tuple[str, object, object]]:
    facts = ("dtype", "device", "shape", "requires_grad", "type_name")
    for name in facts:
        mine, theirs = getattr(eager, name), getattr(actual, name)
        if mine != theirs:
            yield name.replace("type_name", "class"), mine, theirs
    if eager.shape == actual.shape and eager.value.numel() and strides_that_count(eager) != strides_that_count(actual):
        yield "stride", eager.stride, actual.stride


def strides_that_count(record: TensorRecord) -> tuple[int, ...]:
    """Return the strides of dimensions longer than one; the others are never used to address memory."""
    return tuple(stride for size, stride in zip(record.shape, record.stride, strict=False) if size > 1)


def _article(node: Node) -> str:
    kind = node.type_name.removeprefix("builtins.")
    return f"{node.value!r} ({kind})" if node.kind == "atom" else f"a {kind}"


def _equal_atoms(mine: object, theirs: object) -> bool:
    if type(mine) is not type(theirs):
        return False
    try:
        return bool(mine == theirs) or mine is theirs or (mine != mine and theirs != theirs)
    except (RuntimeError, TypeError, ValueError):  # a user's own `__eq__`
        return False
