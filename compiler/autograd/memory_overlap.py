"""Where the elements of a strided tensor lie in memory, from sizes, strides and offset alone."""

import torch

from ..graph.dynamic_sizes import same_number

_COUNTED_ELEMENTS = 1 << 24  # larger memory is not marked place by place: it counts as overlapping


def is_dense(value: torch.Tensor) -> bool:
    """Return whether the elements fill their memory without gaps or overlaps, from its start."""
    if value.storage_offset() != 0:
        return False
    expected = 1
    for step, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size == 1:
            continue
        if step != expected:
            return False
        expected *= size
    return True


def overlaps_itself(value: torch.Tensor) -> bool:
    """Return whether two elements may share a place: sorted by stride, each dimension must step over the former."""
    reach = 0
    for step, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size == 0:
            return False
        if size == 1:
            continue
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def repeats(value: torch.Tensor) -> bool:
    """Return whether the tensor is expanded: a dimension of stride 0 has more than one element."""
    return any(step == 0 and size > 1 for step, size in zip(value.stride(), value.shape, strict=True))


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two views of one memory may share a place, the very same view excepted."""
    if same_places(a, b):
        return False
    (a_first, a_last), (b_first, b_last) = _interval(a), _interval(b)
    if a_last < b_first or b_last < a_first:
        return False
    end = max(a_last, b_last) // a.element_size() + 1
    if a.dtype != b.dtype or end > _COUNTED_ELEMENTS:
        return True
    places = torch.zeros(end, dtype=torch.bool, device="cpu")  # parts may interleave: the ends of a circular padding
    places.as_strided(a.shape, a.stride(), int(a.storage_offset())).fill_(True)
    return bool(places.as_strided(b.shape, b.stride(), int(b.storage_offset())).any())


def lies_within(part: torch.Tensor, whole: torch.Tensor) -> bool:
    """Return whether every place of one view is known to be a place of another of the same memory."""
    (first, last), (start, end) = _interval(part), _interval(whole)
    if part.numel() == 0 or same_places(part, whole):
        return True
    if first < start or last > end or part.dtype != whole.dtype or end // part.element_size() >= _COUNTED_ELEMENTS:
        return False
    places = torch.zeros(end // part.element_size() + 1, dtype=torch.bool, device="cpu")
    places.as_strided(whole.shape, whole.stride(), int(whole.storage_offset())).fill_(True)
    return bool(places.as_strided(part.shape, part.stride(), int(part.storage_offset())).all())


def same_places(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two views of one memory are the very same view."""
    return a.dtype == b.dtype and _geometry(a) == _geometry(b)


def _geometry(value: torch.Tensor) -> tuple[object, ...]:
    return value.storage_offset(), tuple(value.shape), value.stride()


def _interval(value: torch.Tensor) -> tuple[int, int]:
    """Return the first and last byte that the elements reach."""
    if value.numel() == 0:
        return 0, -1
    start = int(value.storage_offset())
    end = start + sum(int(step * (size - 1)) for step, size in zip(value.stride(), value.shape, strict=True))
    return start * value.element_size(), (end + 1) * value.element_size() - 1


def same_steps(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors of one shape have the same strides where these are used."""
    if first.numel() == 0:
        return True
    pairs = zip(first.shape, first.stride(), second.stride(), strict=True)
    return all(a == b for size, a, b in pairs if size != 1)


def same_unused_strides(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors of one shape have the same strides where nothing is read by them.

    That is in dimensions of size 1, and everywhere if there are no elements; a program can ask for them.
    """
    empty = first.numel() == 0
    parts = zip(first.shape, first.stride(), second.stride(), strict=True)
    return all(same_number(a, b) for size, a, b in parts if empty or (type(size) is int and size == 1))
