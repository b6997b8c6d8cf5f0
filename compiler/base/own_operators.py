"""Operators of ours, which torch finds as `torch.ops.plumbline.<name>`; torch leaves the registration untyped."""

from collections.abc import Callable, Sequence

import torch

from .torch_facts import OpOverload

_LIBRARY = torch.library.Library("plumbline", "FRAGMENT")  # type: ignore[no-untyped-call]  # untyped in torch


def define(schema: str, tags: Sequence[torch.Tag] = ()) -> None:
    """Add an operator, given its name and schema: `one_hot(Tensor self, SymInt num_classes) -> Tensor`."""
    _LIBRARY.define(schema, tags=tuple(tags))  # type: ignore[no-untyped-call]  # untyped in torch


def implement(name: str, kernel: Callable[..., object], key: str) -> None:
    """Register what an operator does at a dispatch key: `CPU`, `Meta`, `CompositeExplicitAutograd`."""
    _LIBRARY.impl(name, kernel, key)  # type: ignore[no-untyped-call]  # untyped in torch


def implement_fake(name: str, rule: Callable[..., object]) -> None:
    """Register what an operator gives on fake tensors."""
    torch.library.register_fake(f"plumbline::{name}", rule, lib=_LIBRARY)


def implement_batched(operator: OpOverload, rule: Callable[..., tuple[object, object]]) -> None:
    """Register what an operator does under vmap; rule: as `torch.library.register_vmap` takes it."""
    torch.library.register_vmap(operator, rule, lib=_LIBRARY)
