"""The aspects of a call that are judged, each by its name."""

# What of a call is judged; `--compile-ignore` takes these names.
ASPECTS = (
    "values",  # outputs
    "gradients",  # of every differentiable leaf, None apart from zero
    "mutations",  # tensors the caller can reach, after the call
    "aliasing",  # who shares memory with whom
    "metadata",  # shape, dtype, device, strides, requires_grad
    "exceptions",  # class and phase
    "rng",  # generator states after the call
    "python",  # attributes, containers, cells, globals, class attributes
    "gradient-strides",  # reported only
    "zero-sign",  # reported only
)
REPORTED_ONLY = frozenset({"gradient-strides", "zero-sign"})
