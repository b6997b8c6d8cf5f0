"""Laws that eager itself must keep: two ways to compute one thing agree; the oracle compares them.

vmap is a loop and a stack; the reverse and the forward Jacobian are equal; <J v, w> is <v, transpose(J) w> in float64.
A broken law is a fault of torch's eager mode, or of the law where a program is not differentiable.
"""

from dataclasses import replace
from typing import Any

import torch

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..findings import is_finding
from ..generated_source import functions_of
from .programs import TransformLevel, TransformProgram

# A loop and a stack may lay their result out otherwise than vmap does; only values are the law.
OPTIONS = JudgeOptions(gradients=False, ignore=frozenset({"metadata", "aliasing", "mutations"}))
DOT_TOLERANCE = 1e-9  # of the sum of absolute products; float64 rounding over a few thousand terms stays below


def broken_law(program: TransformProgram) -> Verdict | None:
    """Return the verdict on the first law that eager breaks for the outermost transform, None when all hold."""
    if not program.nest:
        return None
    level = program.nest[-1]
    if level.transform == "vmap":
        return _judged(program, level, "vmap is a loop and a stack", _looped)
    if level.transform in ("jacrev", "jacfwd") and smooth(program):
        return _judged(program, level, "jacrev is jacfwd", _other_mode)
    if level.transform in ("vjp", "jvp") and smooth(program):
        return _dot_test(program)
    return None


NOT_SMOOTH = frozenset(
    "abs sign floor ceil round trunc relu hardtanh leaky_relu clamp nan_to_num maximum minimum fmod remainder "
    "floor_divide where where_positive amax amin max prod cumprod norm sort relu_ clamp_ gather_max sqrt rsqrt log1p "
    "pow hypot var".split()
)
"""Operators with points where a derivative is a convention; the two modes may choose differently there."""


def smooth(program: TransformProgram) -> bool:
    """Return whether every operator is differentiable everywhere and inputs stay in ordinary numbers."""
    ordinary = all(spec.values in ("normal", "positive") and spec.dtype in ("float32", "float64")
                   for spec in program.inputs if spec.is_float)  # fmt: skip
    return ordinary and not any(step.operator in NOT_SMOOTH for step in program.steps)


def _judged(program: TransformProgram, level: TransformLevel, law: str, other_way: Any) -> Verdict | None:
    namespace = functions_of(program.source())
    target = namespace[program.entry]
    args = tuple(arg.detach() for arg in program.arguments())
    other = other_way(namespace, program, level)
    roots = {**call_roots(target, "function", args, {}), "other": other}
    verdict = judge_call(target, other, args, {}, OPTIONS, roots).verdict
    if verdict.kind is VerdictKind.JUDGE_FAILED:
        return verdict
    if not is_finding(verdict):
        return None
    finding = Finding(VerdictKind.WRONG, "law", "eager", f"breaks the law that {law}: {verdict.sentence}")
    return Verdict(VerdictKind.WRONG, f"eager {finding.sentence}", (finding,))


def _looped(namespace: dict[str, Any], program: TransformProgram, level: TransformLevel) -> Any:
    below = namespace[f"f{len(program.nest) - 1}"]

    def loop(*args: torch.Tensor) -> Any:
        sizes = [arg.shape[dim] for arg, dim in zip(args, level.in_dims, strict=True) if dim is not None]
        parts = []
        for index in range(sizes[0]):
            one = [arg if dim is None else arg.select(dim, index) for arg, dim in zip(args, level.in_dims, strict=True)]
            parts.append(below(*one))
        return _stacked(parts, level.out_dim)

    return loop


def _stacked(parts: list[Any], dim: int) -> Any:
    first = parts[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(parts, dim)
    if isinstance(first, dict):
        return {key: _stacked([part[key] for part in parts], dim) for key in first}
    return type(first)(_stacked([part[index] for part in parts], dim) for index in range(len(first)))


def _other_mode(namespace: dict[str, Any], program: TransformProgram, level: TransformLevel) -> Any:
    del namespace
    mode = "jacfwd" if level.transform == "jacrev" else "jacrev"
    twin = replace(program, nest=(*program.nest[:-1], replace(level, transform=mode)))
    return functions_of(twin.source())[twin.entry]


def _dot_test(program: TransformProgram) -> Verdict | None:
    """Compare <J v, w> with <v, transpose(J) w> in float64 for the function under the outermost vjp or jvp."""
    level = program.nest[-1]
    source = program.source()
    below = functions_of(source.replace("torch.float32", "torch.float64"))[f"f{len(program.nest) - 1}"]
    args = [arg.detach().double() if arg.is_floating_point() else arg for arg in program.arguments()]
    args = args[: level.arguments]

    def of_one(x: torch.Tensor) -> torch.Tensor:
        arguments = [*args[: level.argument], x, *args[level.argument + 1 :]]
        output: torch.Tensor = eval(f"below(*arguments){level.access}", {"below": below, "arguments": arguments})
        return output

    generator = torch.Generator().manual_seed(0)
    at = args[level.argument]
    try:
        tangent = torch.randn(at.shape, dtype=at.dtype, generator=generator)
        output, forward = torch.func.jvp(of_one, (at,), (tangent,))[:2]
        cotangent = torch.randn(output.shape, dtype=output.dtype, generator=generator)
        backward = torch.func.vjp(of_one, at)[1](cotangent)[0]
    except (RuntimeError, TypeError, NotImplementedError):
        return None  # the program refuses one of the modes; the judge has compared that already
    left, right = forward * cotangent, tangent * backward
    size = float(left.abs().sum() + right.abs().sum())
    apart = float((left.sum() - right.sum()).abs())
    if output.dtype is not torch.float64 or not size < 1e12 or apart <= DOT_TOLERANCE * size + 1e-300:
        return None
    sentence = f"breaks <Jv, w> = <v, transpose(J)w>: {float(left.sum())!r} and {float(right.sum())!r} in float64"
    return Verdict(VerdictKind.WRONG, f"eager {sentence}", (Finding(VerdictKind.WRONG, "law", "eager", sentence),))
