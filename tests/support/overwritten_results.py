"""Gradients after a write to a result, through compiled code against eager's, for torch's table of operators.

Autograd raises where the operator's formula reads the overwritten result, and nowhere else.
`python tests/support/overwritten_results.py` goes through all of them, in a few minutes; the tests take a slice.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

import plumbline
from plumbline.compiler.base.nested import leaves
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS, inlined

EQUAL, RAISED, NOTHING = "equal", "both raise", "no gradient"

_SAVED_UNREAD = "eager saves the result and raises, although no gradient asked for here reads it; ours is right"
KNOWN = {
    "unsafe_chunk": "capture gives views where eager's results are none for autograd, so that a write is refused",
    "unsafe_split": "as unsafe_chunk",
    "nn.functional.hardsigmoid": "eager rounds 1/6 to float32 in its backward for float64; inductor's does not",
    "native_group_norm": "the statistics, which eager's backward reads, are computed again under inductor",
    **dict.fromkeys(("sgn", "index_reduce.mean", "scatter_reduce.sum", "scatter_reduce.mean"), _SAVED_UNREAD),
    **dict.fromkeys(("prod", "linalg.det", "linalg.slogdet", "linalg.eigvalsh", "linalg.svdvals"), _SAVED_UNREAD),
    **dict.fromkeys(("linalg.tensorinv", "linalg.tensorsolve"), _SAVED_UNREAD),
}
"""Operators that differ from eager, with the reason."""


def candidates() -> list[str]:
    """Return the operators that have gradients in float64."""
    return [
        name
        for name, info in OPERATORS.items()
        if info.supports_autograd and torch.float64 in info.dtypes and name[0] != "_"
    ]


def _gradients(run: Callable[..., Any], sample: Any) -> tuple[torch.Tensor | None, ...] | str:
    """Return the gradients of the results' sum after each result was written to, or the error's kind."""
    torch.manual_seed(0)
    given = [each for each in leaves((sample.input, sample.args, sample.kwargs)) if isinstance(each, torch.Tensor)]
    inputs = [tensor for tensor in given if tensor.requires_grad]
    results = leaves(run(sample.input, *sample.args, **sample.kwargs))
    ends = [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
    if not ends or not inputs:
        return NOTHING
    try:
        with torch.no_grad():
            for each in {id(end): end for end in ends}.values():
                each.add_(1)
        total: Any = sum((end.abs() if end.is_complex() else end).sum() for end in ends)
        return torch.autograd.grad(total, inputs, allow_unused=True)
    except RuntimeError as error:
        return str(error).partition(":")[0]


def outcome(name: str, backend: str) -> str:
    """Return what the first sample of an operator does: EQUAL, RAISED, NOTHING, or the difference in words."""
    info = OPERATORS[name]

    def sample() -> Any:
        torch.manual_seed(1)
        return next(iter(info.sample_inputs("cpu", torch.float64, requires_grad=True)))

    finish = sample().output_process_fn_grad or (lambda value: value)

    operator, finish = inlined(info.op), inlined(finish)  # which compilers would leave to plain Python

    def program(*args: Any, **kwargs: Any) -> Any:
        return finish(operator(*args, **kwargs))

    plumbline.reset()
    expected = _gradients(program, sample())
    found = _gradients(plumbline.compile(program, backend=backend), sample())
    if isinstance(expected, str) or isinstance(found, str):
        if expected == found:
            return NOTHING if found == NOTHING else RAISED
        return f"gradients; eager: {expected}" if isinstance(expected, str) else f"{found}; eager: gradients"
    return EQUAL if all(map(_alike, expected, found)) else "other gradients"


def _alike(expected: torch.Tensor | None, found: torch.Tensor | None) -> bool:
    if expected is None or found is None:
        return expected is found
    return torch.allclose(expected.to_dense(), found.to_dense(), rtol=1e-9, atol=1e-9, equal_nan=True)


def main() -> int:
    """Print each operator that differs, and the counts; the exit status tells whether any does."""
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for name in candidates():
        for backend in ("aot_eager", "inductor"):
            try:
                what = outcome(name, backend)
            except Exception as error:
                what = f"{type(error).__name__}: {error}".partition("\n")[0]
            if what in (EQUAL, RAISED, NOTHING):
                counts[what] += 1
            elif name in KNOWN:
                counts["known"] += 1
            else:
                counts["different"] += 1
                print(f"{name} {backend}: {what}", flush=True)
    print(", ".join(f"{what}: {count}" for what, count in counts.items()))
    return int(counts["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
