"""Where DistributedDataParallel starts to send gradients: the buckets that it fills, told before a backward runs.

DDP gathers gradients in buckets of a number of bytes and sends each when its last gradient is there. After the first
backward it fills them in the order in which gradients came; where it looks for unused parameters, in the order of
registration, from the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from ...base.torch_facts import active_distributed_wrapper, first_bucket_bytes
from ...graph.node_values import outputs
from ..joint import Traced


@dataclass(frozen=True, slots=True)
class BucketCaps:
    """How full buckets get. limits: bytes, by number of bucket, the last for all others.

    by_registration: buckets are filled in the order of registration, not in that of arrival.
    """

    limits: tuple[int, ...]
    by_registration: bool


@dataclass(frozen=True, slots=True)
class ExpectedGradient:
    """A gradient that goes into a bucket.

    output: its place among the outputs of backward.  place: when the engine has found it.  registered: the place of its
    parameter in the wrapped module.  size: in bytes.  kind: gradients of one kind share buckets.
    """

    output: int
    place: int
    registered: int
    size: int
    kind: tuple[torch.dtype, torch.device]


def current_caps() -> BucketCaps | None:
    """Return how the wrapper around the running forward fills its buckets; None outside of one."""
    wrapper = active_distributed_wrapper()
    if wrapper is None:
        return None
    cap = int(wrapper.bucket_bytes_cap)
    by_default = bool(getattr(wrapper, "bucket_bytes_cap_default", False))
    limits = (first_bucket_bytes(), cap) if by_default else (cap,)
    listed = tuple(getattr(wrapper, "bucket_bytes_cap_list", ()))
    unordered = bool(wrapper.find_unused_parameters) and not wrapper.static_graph
    return BucketCaps(listed or limits, unordered)


def registered_parameters() -> Mapping[int, int]:
    """Return the place in the wrapped module of each parameter that the current wrapper sends, by its identity."""
    wrapper = active_distributed_wrapper()
    if wrapper is None:
        return {}
    named: Iterable[tuple[str, torch.nn.Parameter]] = wrapper.module.named_parameters()
    ignored = frozenset(wrapper.parameters_to_ignore)
    sent = (value for name, value in named if name not in ignored and value.requires_grad)
    return {id(value): place for place, value in enumerate(sent)}


def expected_buckets(
    traced: Traced, backward: fx.GraphModule, caps: BucketCaps, arguments: Sequence[object]
) -> list[list[int]]:
    """Return which outputs of a backward graph, by place, share a bucket; arguments: those of the call."""
    order = {number: place for place, number in enumerate(traced.arrival)}
    registered = registered_parameters()
    gradients = []
    for place, (number, part) in enumerate(zip(traced.gradients_of, outputs(backward.graph), strict=True)):
        value = arguments[traced.signature.inputs[number]]
        if isinstance(part, fx.Node) and isinstance(value, torch.Tensor) and id(value) in registered:
            kind, size = (value.dtype, value.device), value.numel() * value.element_size()
            gradients.append(ExpectedGradient(place, order[number], registered[id(value)], size, kind))
    return buckets_of(gradients, caps)


def buckets_of(gradients: Sequence[ExpectedGradient], caps: BucketCaps) -> list[list[int]]:
    """Return which outputs share a bucket, the bucket that is sent first first."""

    def key(one: ExpectedGradient) -> int:
        return one.registered if caps.by_registration else one.place

    filling: dict[object, list[ExpectedGradient]] = {}
    closed: dict[object, int] = {}
    full: list[list[ExpectedGradient]] = []
    for one in sorted(gradients, key=key):
        bucket = filling.setdefault(one.kind, [])
        bucket.append(one)
        limit = caps.limits[min(closed.get(one.kind, 0), len(caps.limits) - 1)]
        if sum(member.size for member in bucket) >= limit:
            full.append(filling.pop(one.kind))
            closed[one.kind] = closed.get(one.kind, 0) + 1
    full += filling.values()
    ordered = [[one.output for one in bucket] for bucket in full]
    return ordered[::-1] if caps.by_registration else ordered
