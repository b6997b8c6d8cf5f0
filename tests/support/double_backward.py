"""Gradients of gradients through compiled code against eager's, for torch's table of operators.

`python tests/support/double_backward.py` goes through all of them, in about two minutes; the tests take a slice.
"""

import functools
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

import plumbline
from plumbline.compiler.base.nested import leaves
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS, inlined

EQUAL, NOTHING, REFUSED = "equal", "no second gradient", "eager refuses"


def candidates() -> list[str]:
    """Return the operators that have gradients of gradients in float64."""
    return [
        name
        for name, info in OPERATORS.items()
        if info.supports_autograd and info.supports_gradgrad and torch.float64 in info.dtypes and name[0] != "_"
    ]


def _squares(tensors: list[torch.Tensor]) -> torch.Tensor:
    return sum((value.abs() if value.is_complex() else value).pow(2).sum() for value in tensors)  # type: ignore[return-value]  # not empty


def _twice(run: Callable[..., Any], sample: Any) -> tuple[torch.Tensor | None, ...] | None:
    """Return the gradients of the squares of the gradients of the squares of the results; None: there are none."""
    torch.manual_seed(0)
    given = [each for each in leaves((sample.input, sample.args, sample.kwargs)) if isinstance(each, torch.Tensor)]
    inputs = [tensor for tensor in given if tensor.requires_grad]
    results = leaves(run(sample.input, *sample.args, **sample.kwargs))
    ends = [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
    if not ends or not inputs:
        return None
    first = torch.autograd.grad(_squares(ends), inputs, create_graph=True, allow_unused=True)
    again = [gradient for gradient in first if gradient is not None and gradient.requires_grad]
    return torch.autograd.grad(_squares(again), inputs, allow_unused=True) if again else None


def outcome(name: str, backend: str) -> str:
    """Return what the first sample of an operator does: EQUAL, NOTHING, REFUSED, or the difference in words."""
    info = OPERATORS[name]
    sample = next(iter(info.sample_inputs("cpu", torch.float64, requires_grad=True)))
    finish = sample.output_process_fn_grad or (lambda value: value)

    operator, finish = inlined(info.op), inlined(finish)  # which compilers would leave to plain Python

    def program(*args: Any, **kwargs: Any) -> Any:
        return finish(operator(*args, **kwargs))

    plumbline.reset()
    try:
        expected = _twice(program, sample)
    except Exception:
        return REFUSED
    try:
        found = _twice(plumbline.compile(program, backend=backend), sample)
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    if expected is None or found is None:
        return NOTHING if expected is found else "a second gradient in one of the two"
    close = functools.partial(torch.allclose, rtol=1e-9, atol=1e-9, equal_nan=True)
    pairs = zip(expected, found, strict=True)
    same = all((a is None) == (b is None) and (a is None or b is None or close(a, b)) for a, b in pairs)
    return EQUAL if same else "other second gradients"


def main() -> int:
    """Print each operator that differs, and the counts; the exit status tells whether any does."""
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for name in candidates():
        what = outcome(name, "aot_eager")
        counts[what if what in (EQUAL, NOTHING, REFUSED) else "different"] += 1
        if what not in (EQUAL, NOTHING, REFUSED):
            print(f"{name}: {what}")
    print(", ".join(f"{what}: {count}" for what, count in counts.items()))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
