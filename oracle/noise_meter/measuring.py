"""`measure_noise`: run a program once, and say how many digits its outputs keep and which lines lose the others."""

import linecache
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..noise.monte_carlo import unit_roundoff
from ..noise.shadow import is_plain
from ..user_overrides import with_overrides, without_overrides
from .noise_flow import Flow, flows_of
from .noise_report import CoursePoint, LineNoise, NoiseReport, OutputNoise
from .recorded_run import RecordedRun, WrittenTensor, difference, share
from .user_sites import UserSite
from .value_pairs import PairStorage, StoragePlace

_LISTENERS: list[list[NoiseReport]] = []


@contextmanager
def reports_of_block() -> Iterator[list[NoiseReport]]:
    """Collect the reports of all measurements in the block, in the order in which they end."""
    reports: list[NoiseReport] = []
    _LISTENERS.append(reports)
    try:
        yield reports
    finally:
        _LISTENERS[:] = [each for each in _LISTENERS if each is not reports]


@dataclass(frozen=True, slots=True)
class NoiseMeter:
    """Options of a measurement; `NoiseMeter(gradients=True).measure(fn, *args)`.

    gradients: take gradients of the sum of all differentiable outputs, and measure those, too.
    traced: at most so many outputs, the worst ones, are followed back to the lines of the program.
    """

    gradients: bool = False
    traced: int = 8

    def measure(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> NoiseReport:
        """Run `fn(*args, **kwargs)` once and return its noise; raises what it raises."""
        with without_overrides():
            report = self._measured(fn, args, kwargs)
        for reports in _LISTENERS:
            reports.append(report)
        return report

    def _measured(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoiseReport:
        leaves = dict(_leaves_of(fn, args, kwargs))
        with RecordedRun() as run, with_overrides():
            result = fn(*args, **kwargs)
            with without_overrides():
                outputs = dict(float_tensors(result, "output"))
            if self.gradients:
                outputs |= _gradients(outputs, leaves)
        for path, leaf in leaves.items():  # a backward of the program's own
            if leaf.grad is not None and run.pair_of(leaf.grad)[0] is not None:
                outputs.setdefault(f"gradient of {path}", leaf.grad)
        with run.aside():
            return self.report(_name(fn), run, outputs, result)

    def report(self, name: str, run: RecordedRun, outputs: dict[str, Tensor], result: Any) -> NoiseReport:
        """Return the noise of some tensors of a run that has ended."""
        measured: list[tuple[OutputNoise, PairStorage | None, StoragePlace, Tensor]] = []
        for path, tensor in outputs.items():
            if is_plain(tensor):
                storage, place, computed, exact = run.pair_of(tensor)
                measured.append((_output(path, tensor, computed, exact), storage, place, difference(computed, exact)))
        worst = sorted(range(len(measured)), key=lambda n: measured[n][0].digits - measured[n][0].digits_of_dtype)
        traced = set(worst[: self.traced])
        calls = Counter(call.site for call in run.tape)
        found = []
        for number, (output, storage, place, error) in enumerate(measured):
            if number in traced:
                flows = flows_of(run.tape, storage, place, error)
                explained = sum(flow.rounding for flow in flows) if flows else 1.0
                if output.not_finite:
                    flows += [Flow(call, 0.0, 0.0, 0.0, True, n) for n, call in enumerate(run.tape) if call.overflows]
                lines = tuple(sorted(_lines(flows, calls), key=_weight))
                output = replace(output, lines=lines, course=tuple(_course(flows)), explained=explained)
            found.append(output)
        return NoiseReport(name, tuple(found), tuple(run.untrusted), result)


def measure_noise(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> NoiseReport:
    """Run `fn(*args, **kwargs)` once and return how many digits each output keeps, and which lines lose the others.

    The program runs as it always does.  Beside each operator two float64 evaluations measure what it rounds and what
    it makes of the errors of its operands; the result is exact to the square of the rounding error.  Outputs are the
    floating-point tensors of the result, and gradients that the program itself writes to `.grad`.
    Take `NoiseMeter` for gradients of a program that takes none.

    >>> import torch
    >>> from plumbline.oracle import measure_noise
    >>> report = measure_noise(lambda x: 1 - x.cos(), torch.tensor([1e-3]))
    >>> round(report.outputs[0].digits)
    1
    """
    return NoiseMeter().measure(fn, *args, **kwargs)


def _name(fn: Any) -> str:
    if isinstance(fn, nn.Module):
        return type(fn).__name__
    return str(getattr(fn, "__qualname__", type(fn).__name__)).rpartition("<locals>.")[2]


def float_tensors(value: Any, path: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of floating-point numbers in nested containers, each with its path."""
    if isinstance(value, Tensor):
        if value.is_floating_point() or value.is_complex():
            yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from float_tensors(item, f"{path}[{key!r}]")
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value, strict=True):
            yield from float_tensors(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from float_tensors(item, f"{path}[{index}]")
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from float_tensors(getattr(value, name, None), f"{path}.{name}")


def _leaves_of(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield what gradients are taken by: parameters of modules that the function has, arguments that require them."""
    owners = [fn, getattr(fn, "__self__", None), *args, *kwargs.values()]
    for owner in owners:
        if isinstance(owner, nn.Module):
            yield from ((name, parameter) for name, parameter in owner.named_parameters() if parameter.requires_grad)
    for prefix, module in _modules_around(fn):
        yield from ((f"{prefix}.{name}", each) for name, each in module.named_parameters() if each.requires_grad)
    for path, tensor in [*float_tensors(list(args), "argument"), *float_tensors(kwargs, "argument")]:
        if tensor.requires_grad:
            yield path, tensor


def _modules_around(fn: Any) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules that a function finds in its surroundings, each with the name that it has there."""
    code, cells = getattr(fn, "__code__", None), getattr(fn, "__closure__", None) or ()
    if code is None:
        return
    for name, cell in zip(code.co_freevars, cells, strict=False):
        with suppress(ValueError):  # a cell that is still empty
            if isinstance(cell.cell_contents, nn.Module):
                yield name, cell.cell_contents
    around = getattr(fn, "__globals__", {})
    yield from ((name, around[name]) for name in code.co_names if isinstance(around.get(name), nn.Module))


def _gradients(outputs: dict[str, Tensor], leaves: dict[str, Tensor]) -> dict[str, Tensor]:
    heads = [tensor for tensor in outputs.values() if tensor.requires_grad]
    if not heads:
        return {}
    known = {id(leaf) for leaf in leaves.values()}
    others = {f"leaf {n}": leaf for n, leaf in enumerate(_reached(heads)) if id(leaf) not in known}
    leaves = leaves | others
    ones = [torch.ones_like(head) for head in heads]
    found = torch.autograd.grad(heads, list(leaves.values()), ones, allow_unused=True, retain_graph=True)
    return {f"gradient of {path}": g for path, g in zip(leaves, found, strict=True) if g is not None}


def _reached(heads: list[Tensor]) -> Iterator[Tensor]:
    """Yield the leaves of a history."""
    seen: set[Any] = set()
    waiting: list[Any] = [head.grad_fn for head in heads if head.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        waiting.extend(each for each, _ in node.next_functions if each is not None)


def digits_of(error: float, dtype: torch.dtype) -> float:
    """Return the decimal digits that a relative error leaves, no more than the dtype has and no fewer than none."""
    full = -math.log10(unit_roundoff(dtype))
    return full if error <= 0 else min(full, max(0.0, -math.log10(error)))


def _output(path: str, tensor: Tensor, computed: Tensor, exact: Tensor) -> OutputNoise:
    dtype, shape = tensor.dtype, tuple(tensor.shape)
    if computed.is_complex():
        computed, exact = (torch.view_as_real(value.resolve_conj()) for value in (computed, exact))
    error = difference(computed, exact)
    fine = torch.isfinite(exact)
    not_finite = int((fine & ~torch.isfinite(computed)).sum())
    size = torch.where(fine, exact.abs(), torch.zeros_like(exact))
    relative = (
        share(float(torch.linalg.vector_norm(error)), float(torch.linalg.vector_norm(size))) if size.numel() else 0
    )
    full = digits_of(0.0, dtype)
    units, worst = 0.0, None
    if error.numel() and bool(error.any()):
        larger = torch.maximum(size, torch.where(fine, computed.abs(), size).nan_to_num(posinf=0.0))
        unit = (2 * unit_roundoff(dtype) * larger).clamp(min=2 * unit_roundoff(dtype) * torch.finfo(dtype).tiny)
        ratio = error.abs() / unit
        worst = tuple(map(int, torch.unravel_index(ratio.argmax(), ratio.shape)))
        units = float(ratio[worst])
    digits = 0.0 if not_finite else digits_of(relative, dtype)
    got, wanted = (None, None) if worst is None else (float(computed[worst]), float(exact[worst]))
    name = str(dtype).removeprefix("torch.")
    return OutputNoise(
        path, name, shape, digits, full, float(relative), units, worst, got, wanted, not_finite, (), (), None
    )


def _weight(line: LineNoise) -> tuple[float, float, float]:
    """Order lines by overflows, then by lost digits of what reaches the output, then by what they introduce."""
    matters = min(1.0, abs(line.passing))
    return -line.overflows, -round(line.lost * matters, 1), -line.weight


def _lines(flows: list[Flow], calls: Counter[UserSite]) -> Iterator[LineNoise]:
    by_site: dict[UserSite, list[Flow]] = {}
    for flow in flows:
        by_site.setdefault(flow.call.site, []).append(flow)
    total = sum(abs(sum(flow.introduced for flow in group)) for group in by_site.values())
    for site, group in by_site.items():
        yield _line(site, group, calls[site], total)


def _line(site: UserSite, group: list[Flow], calls: int, total: float) -> LineNoise:
    steps = [(_step(flow, outcome), flow) for flow in group for outcome in flow.call.outcomes if outcome is not None]
    (before, after, amplification), _ = max(steps, key=lambda step: step[0][0] - step[0][1])
    loudest = max((step for step in steps if abs(step[1].passing) >= 0.01), key=lambda step: step[0][2], default=None)
    names = dict.fromkeys(flow.call.call.facts.name.lstrip("_") for flow in group)
    rounded = [
        outcome.rounded / (2 * unit_roundoff(outcome.dtype))
        for flow in group
        for outcome in flow.call.outcomes
        if outcome is not None and outcome.rounding is not None and math.isfinite(outcome.rounded)
    ]
    passing = max((flow.passing for flow in group), key=abs)
    return LineNoise(
        file=site.file,
        line=site.line,
        function=site.function,
        source=linecache.getline(site.file, site.line).strip() if site.line else "",
        module=site.module,
        backward=site.backward,
        operators=tuple(names),
        calls=calls,
        introduced=sum(flow.introduced for flow in group),
        weight=abs(sum(flow.introduced for flow in group)) / total if total else 0.0,
        passing=passing,
        digits_before=before,
        digits_after=after,
        amplification=amplification if loudest is None else loudest[0][2],
        roundings=max(rounded, default=0.0),
        overflows=sum(call.overflows for call in {id(flow.call): flow.call for flow in group}.values()),
        first=group[0].number,
        jumps=sum(flow.introduced - flow.rounding for flow in group),
    )


def _course(flows: list[Flow]) -> Iterator[CoursePoint]:
    """Yield the operators that noise passes through, with the digits of their least exact result of floats."""
    for flow in flows:
        digits = [
            digits_of(each.relative, each.dtype)
            for each in flow.call.outcomes
            if each is not None and (each.exact.is_floating_point() or each.exact.is_complex())
        ]
        if digits:
            yield CoursePoint(flow.number, flow.call.site.line, min(digits), flow.passing)


def _step(flow: Flow, outcome: WrittenTensor) -> tuple[float, float, float]:
    """Return digits before and after one result was computed, and how many times the relative error has grown."""
    if not (outcome.exact.is_floating_point() or outcome.exact.is_complex()):
        return 0.0, 0.0, 1.0
    before = digits_of(flow.call.before, outcome.dtype)
    after = 0.0 if flow.call.overflows else digits_of(outcome.relative, outcome.dtype)
    growth = outcome.carried / flow.call.before if flow.call.before else 1.0
    return before, after, growth
