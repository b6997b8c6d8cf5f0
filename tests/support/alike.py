"""Hold a compiled call against eager in every respect that a caller can see."""

import torch


def tensors_in(values):
    return [value for value in values if isinstance(value, torch.Tensor)]


def storage(tensor):
    return tensor.untyped_storage().data_ptr() if tensor.untyped_storage().nbytes() else id(tensor)


def alias_partition(tensors):
    """Return for each tensor the first one that is the same object, and the first that shares its memory."""
    objects, memories = [id(t) for t in tensors], [storage(t) for t in tensors]
    return [(objects.index(id(t)), memories.index(storage(t))) for t in tensors]


def describe(tensor):
    strides = tuple(s for size, s in zip(tensor.shape, tensor.stride(), strict=True) if size > 1)
    try:
        leaf = tensor.is_leaf
    except RuntimeError as error:  # eager says so of some views made without grad mode
        leaf = str(error)
    return tensor.dtype, tuple(tensor.shape), strides if tensor.numel() else (), tensor.requires_grad, leaf


def bits(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.clone(memory_format=torch.contiguous_format).reshape(-1).clone().view(torch.uint8)


def run(call, inputs, cotangents=None, chosen=None):
    """Return everything that can be seen of one call: outputs, inputs afterwards, aliases, gradients, generator."""
    leaves = _leaves(inputs)
    torch.manual_seed(7)
    try:
        outputs = call(*inputs)
    except Exception as error:  # the kind of error is part of what is compared
        return {"raises": type(error).__name__}
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    seen = tensors_in(outputs)
    found = {
        "constants": [value for value in outputs if not isinstance(value, torch.Tensor)],
        "types": [describe(t) for t in seen],
        "inputs": [describe(t) for t in inputs],
        "aliases": alias_partition([*inputs, *seen]),
        "values": [bits(t) for t in [*seen, *inputs]],
        "generator": torch.get_rng_state(),
    }
    if cotangents is not None:
        found |= _gradients(seen, leaves, cotangents, chosen)
    return found


def _leaves(inputs):
    found = []
    for tensor in inputs:
        pending = [tensor.grad_fn] if tensor.grad_fn is not None else []
        if tensor.requires_grad and tensor.is_leaf:
            found.append(tensor)
        while pending:
            node = pending.pop()
            if hasattr(node, "variable"):
                found.append(node.variable)
            pending.extend(source for source, _ in node.next_functions if source is not None)
    return list({id(t): t for t in found}.values())


def _gradients(outputs, leaves, seed, chosen):
    roots = [t for t in {id(t): t for t in outputs}.values() if t.requires_grad]
    if chosen is not None:
        roots = roots[chosen : chosen + 1]
    if not roots or not leaves:
        return {"gradients": []}
    generator = torch.Generator().manual_seed(seed)
    cotangents = [torch.randn(t.shape, generator=generator).to(t.dtype) for t in roots]
    try:
        gradients = torch.autograd.grad(roots, leaves, cotangents, allow_unused=True)
    except RuntimeError as error:
        return {"gradient raises": str(error).split(":")[0][:40]}
    return {
        "gradients": [None if g is None else bits(g) for g in gradients],
        "gradient values": gradients,
        "gradient types": [None if g is None else (g.dtype, tuple(g.shape)) for g in gradients],
    }


def differences(mine, eager, *, rounding=0.0):
    """Return the names of what differs, with both sides; empty when nothing does.

    rounding: how far gradients may be apart, for programs whose contributions are summed in another order.
    """
    found = []
    names = (set(mine) | set(eager)) - {"gradient values"}
    if rounding and "gradient values" in mine and "gradient values" in eager:
        names -= {"gradients"}
        values = mine["gradient values"], eager["gradient values"]
        torch.testing.assert_close(*values, rtol=rounding, atol=rounding, equal_nan=True)
    for name in sorted(names):
        a, b = mine.get(name), eager.get(name)
        if not _equal(a, b):
            found.append(f"{name}: compiled {_short(a)}, eager {_short(b)}")
    return found


def _short(value):
    """Leave the bytes of values out of a message."""
    if isinstance(value, torch.Tensor):
        return f"<{value.numel()} bytes>"
    return [_short(part) for part in value] if isinstance(value, (list, tuple)) else value


def _equal(a, b):
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    return a == b
