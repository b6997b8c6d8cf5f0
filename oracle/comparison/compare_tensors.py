"""Tensors and arrays compared by everything but their values: metadata, shared memory, gradients of a leaf.

Pairs of equal form are passed on with the aspect their values belong to.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy
import torch

from ..numeric.bits import zero_sign_differences
from ..state.tensor_records import TensorRecord
from .matching import AFTER_ALL, Difference, Match, MatchedOutcomes


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two tensors of equal shape and dtype whose values are still to be judged."""

    aspect: str
    path: str
    eager: torch.Tensor
    actual: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class GradientPair:
    """The gradients of one leaf for one cotangent; None where the backward gave none.

    layouts: of both, where one is sparse: numbers are compared as dense ones.  alone: of one output alone.
    shares: the leaf whose gradient has the same memory in the compiled run, and not in
    eager's; "" for none.
    """

    leaf: str
    eager: torch.Tensor | None
    actual: torch.Tensor | None
    alone: bool = False
    shares: str = ""
    layouts: tuple[str, str] = ("", "")

    def is_filled(self) -> bool:
        """Return whether there are zeros for none: one compiled backward serves all outputs."""
        return self.alone and self.eager is None and self.actual is not None and not bool(self.actual.any())

    def same_form(self) -> Pair | None:
        """Return the pair to be judged by value, None when one is missing or they differ in shape or dtype."""
        eager, actual = self.eager, self.actual
        if eager is None or actual is None or eager.shape != actual.shape or eager.dtype != actual.dtype:
            return None
        return Pair("gradients", self.leaf, eager, actual)


def value_pairs(outcomes: MatchedOutcomes) -> Iterator[Pair]:
    """Yield every two tensors or arrays of one place and form, in order; each tensor once."""
    for match in outcomes.matches:
        records = _tensors(match)
        if records is not None:
            eager, actual = records
            again = match.eager is not None and match.actual is not None and match.eager.again and match.actual.again
            same_form = eager.shape == actual.shape and eager.dtype == actual.dtype
            if same_form and eager.value.shape == actual.value.shape and not again:  # one without numbers has no value
                yield Pair(match.part, match.path, eager.value, actual.value)
                if eager.tangent is not None and actual.tangent is not None:
                    yield Pair(match.part, f"tangent of {match.path}", eager.tangent, actual.tangent)
            continue
        arrays = _arrays(match)
        if arrays is not None and arrays[0].shape == arrays[1].shape and arrays[0].dtype == arrays[1].dtype:
            eager_values, actual_values = (as_tensor(array) for array in arrays)
            if eager_values is not None and actual_values is not None:
                yield Pair(match.part, match.path, eager_values, actual_values)


def metadata_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield differences of dtype, device, shape, strides, requires_grad and class."""
    for match in outcomes.matches:
        records, arrays = _tensors(match), _arrays(match)
        if records is not None:
            for what, eager_has, actual_has in _metadata(*records):
                sentence = f"{what} is {actual_has}, eager's is {eager_has}"
                yield Difference(match.position, match.path, sentence)
        elif arrays is not None:
            eager, actual = arrays
            if eager.shape != actual.shape or eager.dtype != actual.dtype:
                sentence = f"is {actual.dtype}{list(actual.shape)}, eager gives {eager.dtype}{list(eager.shape)}"
                yield Difference(match.position, match.path, sentence)


def sharing_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield tensors that share memory with other tensors than eager's do."""
    sharing = _Sharing({}, {}, {})
    for match in outcomes.matches:
        records = _tensors(match)
        sentence = sharing.difference(match.path, *records) if records is not None else None
        if sentence is not None:
            yield Difference(match.position, match.path, sentence)


def identity_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield tensors in the output that are the caller's own objects, or come twice, on one side only."""
    for match in outcomes.matches:
        if (
            match.part == "values"
            and _tensors(match) is not None
            and match.eager is not None
            and match.actual is not None
        ):
            expected, identity = match.eager.identity or 0, match.actual.identity or 0
            if min(expected, identity) < 0 and expected != identity:
                words = [
                    "a new tensor" if number >= 0 else "the caller's own tensor" for number in (identity, expected)
                ]
                yield Difference(match.position, match.path, f"is {words[0]}, eager's is {words[1]}")
            elif match.eager.again != match.actual.again:
                words = [
                    "a tensor that was returned before" if node.again else "another tensor"
                    for node in (match.actual, match.eager)
                ]
                yield Difference(match.position, match.path, f"is {words[0]}, eager's is {words[1]}")


def placement_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield new tensors that start elsewhere in their memory than eager's, or keep another amount of it alive."""
    for match in outcomes.matches:
        records = _tensors(match)
        if (
            records is None
            or min(record.storage or 0 for record in records) < 0
            or None in (r.storage for r in records)
        ):
            continue
        eager, actual = records
        if eager.shape == actual.shape and (eager.offset, eager.memory) != (actual.offset, actual.memory):
            places = [f"element {one.offset} of {one.memory} bytes" for one in (actual, eager)]
            yield Difference(match.position, match.path, f"starts at {places[0]}, eager's at {places[1]}")


def order_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield arrays whose items lie in another order in memory than those of eager's."""
    for match in outcomes.matches:
        arrays = _arrays(match)
        if arrays is not None and arrays[0].shape == arrays[1].shape and arrays[0].dtype == arrays[1].dtype:
            eager, actual = arrays
            if eager.size and _long_strides(eager) != _long_strides(actual):
                yield Difference(match.position, match.path, f"strides are {actual.strides}, eager's {eager.strides}")


def _long_strides(array: numpy.ndarray) -> tuple[int, ...]:
    return tuple(stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1)


def version_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield tensors that the compiled run writes to without autograd's notice: a backward will not refuse them."""
    for path in sorted(outcomes.actual.uncounted - outcomes.eager.uncounted):
        if path in outcomes.eager.changed:
            yield Difference(AFTER_ALL, path, "is written to, and its version is not counted up; eager's is")


def gradient_differences(pair: GradientPair) -> Iterator[str]:
    """Yield why two gradients cannot be compared by value: one is None, or they differ in shape or dtype."""
    eager, actual = pair.eager, pair.actual
    if eager is None or actual is None:
        if eager is not actual and not pair.is_filled():
            words = ["None" if gradient is None else "a tensor" for gradient in (actual, eager)]
            yield f"is {words[0]}, eager's is {words[1]}"
    elif pair.layouts[0] != pair.layouts[1]:
        eager_has, actual_has = (layout or "torch.strided" for layout in pair.layouts)
        yield f"layout is {actual_has}, eager's is {eager_has}"
    elif pair.same_form() is None:
        yield f"is {actual.dtype}{list(actual.shape)}, eager's is {eager.dtype}{list(eager.shape)}"


def filled_gradient_sentences(pair: GradientPair) -> Iterator[str]:
    """Yield that a gradient is zeros where eager has none, for an output used alone."""
    if pair.is_filled():
        yield "is zeros, eager's is None"


def gradient_stride_differences(pair: GradientPair) -> Iterator[str]:
    """Yield a difference of strides between two gradients of equal form."""
    same = pair.same_form()
    if same is not None and same.eager.numel() > 1 and same.eager.stride() != same.actual.stride():
        yield f"stride is {tuple(same.actual.stride())}, eager's is {tuple(same.eager.stride())}"


def gradient_memory_sentences(pair: GradientPair) -> Iterator[str]:
    """Yield that a gradient is in the memory of another leaf's, where eager's is in its own."""
    if pair.shares:
        yield f"shares memory with the gradient of {pair.shares}, eager's does not"


def zero_sign_sentences(pair: Pair) -> Iterator[str]:
    """Yield how many zeros of a tensor, equal in value to eager's, have the other sign."""
    count = zero_sign_differences(pair.actual, pair.eager)
    yield f"has {count} zeros of the other sign than eager's"


def as_tensor(array: numpy.ndarray) -> torch.Tensor | None:
    """Return the values of an array as a tensor; None for strings and objects, which torch does not hold."""
    try:
        return torch.from_numpy(array.copy())
    except (TypeError, ValueError):  # texts, objects, structures; bytes in another machine's order
        return None


def _tensors(match: Match) -> tuple[TensorRecord, TensorRecord] | None:
    if match.kind != "tensor" or match.eager is None or match.actual is None:
        return None
    return match.eager.value, match.actual.value


def _arrays(match: Match) -> tuple[numpy.ndarray, numpy.ndarray] | None:
    if match.kind not in ("array", "buffer") or match.eager is None or match.actual is None:
        return None
    eager, actual = match.eager.value, match.actual.value
    return None if eager is None or actual is None else (eager, actual)


_METADATA = {
    "dtype": "dtype",
    "device": "device",
    "shape": "shape",
    "requires_grad": "requires_grad",
    "type_name": "class",
    "inference": "is_inference()",
}


def _metadata(eager: TensorRecord, actual: TensorRecord) -> Iterator[tuple[str, object, object]]:
    for name, words in _METADATA.items():
        eager_has, actual_has = getattr(eager, name), getattr(actual, name)
        if eager_has != actual_has:
            yield words, eager_has, actual_has
    if eager.history != actual.history and eager.requires_grad and actual.requires_grad:
        eager_has, actual_has = ("a step of the graph" if one.history else "None" for one in (eager, actual))
        yield "grad_fn", eager_has, actual_has
    if eager.lazy != actual.lazy:
        yield "what is still to be done to its numbers", f"{eager.lazy}", f"{actual.lazy}"
    for words in dict.fromkeys([*eager.facts, *actual.facts]):
        eager_has, actual_has = eager.facts.get(words, "nothing"), actual.facts.get(words, "nothing")
        if eager_has != actual_has:
            yield words, eager_has, actual_has
    if (eager.tangent is None) != (actual.tangent is None):
        eager_has, actual_has = ("missing" if one.tangent is None else "a tensor" for one in (eager, actual))
        yield "tangent", eager_has, actual_has
    if eager.shape == actual.shape and eager.value.numel() and effective_strides(eager) != effective_strides(actual):
        yield "stride", eager.stride, actual.stride


def effective_strides(record: TensorRecord) -> tuple[int, ...]:
    """Return the strides of dimensions longer than one; the others are never used to address memory."""
    return tuple(stride for size, stride in zip(record.shape, record.stride, strict=False) if size > 1)


@dataclass(frozen=True, slots=True)
class _Sharing:
    """Which storage of the compiled run corresponds to which of eager's, among those visited so far.

    storages: eager's -> the compiled run's.  owners: eager's -> path of its first tensor.  holders: the compiled
    run's -> path of its first tensor.
    """

    storages: dict[int, int]
    owners: dict[int, str]
    holders: dict[int, str]

    def difference(self, path: str, eager: TensorRecord, actual: TensorRecord) -> str | None:
        """Visit one pair of tensors and return how their sharing differs, None when it does not."""
        expected, storage = eager.storage, actual.storage
        if expected is None or storage is None:
            return None
        if (expected < 0 or storage < 0) and expected != storage:
            eager_memory = self.owners.get(expected, "memory of its own") if expected >= 0 else "the caller's memory"
            memory = "memory that existed before the call" if storage < 0 else "fresh memory"
            return f"is in {memory}, eager's is in {eager_memory}"
        if expected >= 0:
            partner = self.storages.setdefault(expected, storage)
            owner = self.owners.setdefault(expected, path)
            holder = self.holders.setdefault(storage, path)
            if partner != storage:
                return f"does not share memory with {owner}, eager's does"
            return f"shares memory with {holder}, eager's does not" if holder not in (owner, path) else None
        if eager.offset != actual.offset and eager.shape == actual.shape:
            return f"views the shared memory from element {actual.offset}, eager's from {eager.offset}"
        return None
