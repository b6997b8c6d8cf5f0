"""Monte-Carlo arithmetic: how much noise one operator adds to one lane.

Every rounding is simulated by a random relative perturbation of each element (Parker 1997); sums add a term that
grows with their length, because any order of summation is legitimate.
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import DispatchMode

from .operator_facts import OperatorFacts, facts_of
from .running_sums import running_sum_error

INTERNAL = 2.0**-24  # kernels of low-precision tensors compute in float32
DOUBLE = 2.0**-53
# A lane with this much more noise than a replica shows what rounding can flip although eight replicas did not;
# the element test allows the same 8 units (noise_units.ELEMENT).
WIDE = 8.0
_GRID_BITS = 24  # float32 holds integers to 2^24: sums below it are exact in any order
_SIXTEENTHS = 16.0
_DRAWN = 1 << 17
INTEGRAL = frozenset({torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8})
_FOURIER = frozenset("_fft_r2c _fft_c2r _fft_c2c".split())

Scale = float | tuple[float, ...]
"""How much noise: one amount, or one for each lane along the first dimension."""


def unit_roundoff(dtype: torch.dtype) -> float:
    """Return u, the largest relative error of rounding to a floating or complex dtype."""
    return float(torch.finfo(dtype).eps) / 2


def internal_roundoff(dtypes: list[torch.dtype]) -> float:
    """Return the roundoff inside a kernel on such tensors: that of float32, of float64 when one is float64."""
    return DOUBLE if any(d in (torch.float64, torch.complex128) for d in dtypes) else INTERNAL


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors of an argument tree (lists, tuples, dicts), in order."""
    found: list[Tensor] = []
    _collect_tensors((value,), found)
    return found


def _collect_tensors(values: Iterable[Any], found: list[Tensor]) -> None:
    """Add the tensors to `found`; every operator in a lane is asked for its tensors several times."""
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            _collect_tensors(value, found)
        elif isinstance(value, dict):
            _collect_tensors(value.values(), found)


def map_tensors(value: Any, change: Any) -> Any:
    """Return an argument tree with `change` applied to every tensor in it."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)([map_tensors(item, change) for item in value]) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    return value


@lru_cache(maxsize=4)
def _drawn(seed: int, device: torch.device) -> Tensor:
    """Return float64 draws, uniform in [-1, 1], of which small tensors take a stretch."""
    generator = torch.Generator(device).manual_seed(seed)
    return torch.empty(_DRAWN, dtype=torch.float64, device=device).uniform_(-1, 1, generator=generator)


@lru_cache(maxsize=24)
def _factors(seed: int, device: torch.device, scale: float) -> Tensor:
    """Return 1 + scale * xi for these draws."""
    return _drawn(seed, device) * scale + 1


class NoiseSource:
    """Uniform noise from generators of the oracle's own, one a device; the user's are never consumed.

    Small tensors take a stretch of draws that were made once, from a place that is drawn: most tensors are small, and
    drawing anew would cost more than the operators.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._places = random.Random(seed)
        self._generators: dict[torch.device, torch.Generator] = {}

    def uniform(self, shape: Sequence[int], device: torch.device) -> Tensor:
        """Return float64 draws, uniform in [-1, 1]; they are not to be written to."""
        place = self._place(shape)
        if place is not None:
            return _drawn(self._seed, device)[place].view(shape)
        generator = self._generators.get(device)
        if generator is None:
            generator = self._generators[device] = torch.Generator(device).manual_seed(self._seed)
        return torch.empty(shape, dtype=torch.float64, device=device).uniform_(-1, 1, generator=generator)

    def _place(self, shape: Sequence[int]) -> slice | None:
        count = math.prod(shape)
        if count > _DRAWN // 2:
            return None
        first = int(self._places.random() * (_DRAWN - count))
        return slice(first, first + count)

    def perturb(self, value: Tensor, scale: Scale) -> Tensor:
        """Return value * (1 + scale * xi)."""
        if not value.is_floating_point():
            if not value.is_complex():
                return value
            return torch.view_as_complex(self.perturb(torch.view_as_real(value.resolve_conj()).contiguous(), scale))
        shape: Sequence[int] = value.shape
        if isinstance(scale, tuple):
            shape = (max(value.shape[0], len(scale)), *value.shape[1:])
            if scale.count(scale[0]) < len(scale):
                return self.uniform(shape, value.device).mul(_along_first(scale, value)).add_(1).mul_(value)
            scale = scale[0]
        place = self._place(shape)
        if place is not None:
            return _factors(self._seed, value.device, scale)[place].view(shape) * value
        return self.uniform(shape, value.device).mul(scale).add_(1).mul_(value)

    def add(self, value: Tensor, magnitude: Tensor, scale: Scale) -> Tensor:
        """Return value + scale * magnitude * xi."""
        if value.is_complex():
            pairs = torch.view_as_real(value.resolve_conj()).contiguous()
            return torch.view_as_complex(self.add(pairs, magnitude.unsqueeze(-1), scale))
        noise = self.uniform(value.shape, value.device).mul(_along_first(scale, value)).mul_(magnitude)
        return noise.add_(value)


def times(scale: Scale, factor: float) -> Scale:
    """Return so many times as much noise."""
    return tuple([each * factor for each in scale]) if isinstance(scale, tuple) else scale * factor


def _along_first(scale: Scale, value: Tensor) -> Tensor | float:
    """Return a scale that broadcasts along the first dimension of `value`; one amount is a number."""
    if not isinstance(scale, tuple):
        return scale
    if scale.count(scale[0]) == len(scale):
        return scale[0]
    return torch.tensor(scale, dtype=torch.float64, device=value.device).view(-1, *[1] * (value.dim() - 1))


def on_grid(value: Tensor) -> Tensor:
    """Return where a value is an integer, or a multiple of 1/16, that float32 sums without rounding."""
    if not value.is_floating_point():
        return torch.ones_like(value, dtype=torch.bool)
    scaled = value * _SIXTEENTHS
    return (scaled == scaled.round()) & (scaled.abs() <= 2.0**_GRID_BITS)


def _terms(args: Any, outputs: list[Tensor]) -> list[Tensor]:
    """Return what a sum of numbers adds: floats, or whole numbers where they are all there is; others are places."""
    tensors = tensors_in(args)
    floats = [t for t in tensors if t.is_floating_point()]
    return floats or [t for t in tensors if t.dtype in INTEGRAL and any(o.is_floating_point() for o in outputs)]


def grid_everywhere(facts: OperatorFacts, args: Any, outputs: list[Tensor]) -> bool:
    """Return whether a sum's terms all lie on the grid and stay small, so that no order of summation rounds."""
    floats = [t.double() if t.dtype in INTEGRAL else t for t in _terms(args, outputs)]
    if not floats or any(t.is_complex() or not t.numel() for t in [*floats, *outputs]):
        return False
    if not all(bool(on_grid(t).all()) for t in [*floats, *outputs]):
        return False
    bound = max(_lengths(facts.name, args, outputs))
    for tensor in floats:
        bound *= max(1.0, float(tensor.abs().max()))
    return bound * _SIXTEENTHS**2 <= 2.0**_GRID_BITS


def accumulation(
    operator: Any, facts: OperatorFacts, args: Any, kwargs: Any, outputs: list[Tensor]
) -> list[Tensor] | None:
    """Return for each output 0.5 * sqrt(K) * sqrt(sum of squared terms): times u, the rounding of a sum of K terms.

    args: the operator's arguments in one lane.  The squares are summed by the operator itself.
    """
    if any(t.dtype in INTEGRAL for t in _terms(args, outputs)):  # they are converted before they are added
        args = map_tensors(args, torch.Tensor.double)
    squared = [_squared_scalar(value) for value in map_tensors(args, _square)]
    named = {key: _squared_scalar(value, key) for key, value in map_tensors(kwargs, _square).items()}
    variances = tensors_in(operator(*squared, **named))
    lengths = _lengths(facts.name, args, outputs)
    return [
        variance.clamp(min=0).sqrt_().mul_(0.5 * length**0.5) if variance.is_floating_point() else variance
        for variance, length in zip(variances, lengths, strict=True)
    ]


def _squared_scalar(value: Any, key: str = "") -> Any:
    """Return factors of a sum squared in size; a complex dtype becomes that of its squares."""
    if key in ("alpha", "beta"):
        return abs(value) ** 2
    return torch.float64 if isinstance(value, torch.dtype) and value.is_complex else value


def _square(value: Tensor) -> Tensor:
    if value.is_complex():
        return value.real * value.real + value.imag * value.imag
    return value * value if value.is_floating_point() else value


def _lengths(name: str, args: Any, outputs: list[Tensor]) -> list[float]:
    """Return the number of terms that each output sums; 1 where the operator divides by it."""
    tensors = tensors_in(args)
    ones = [1.0] * len(outputs)
    if "mean" in name or "avg" in name or "bilinear" in name or "linear1d" in name:
        return ones
    if name in ("mm", "bmm", "mv", "dot", "vdot", "linear", "matmul"):
        return [float(tensors[0].shape[-1])]
    if name in ("addmm", "addmv", "baddbmm", "addbmm"):
        return [float(tensors[1].shape[-1])]
    if name == "convolution":
        return [tensors[1].numel() / max(1, tensors[1].shape[0])]
    if name == "convolution_backward":
        grad, _, weight = tensors[:3]
        per_channel = grad.numel() / max(1, grad.shape[1])
        return [weight.numel() / max(1, weight.shape[1]), per_channel, per_channel][: len(outputs)]
    if name == "cumsum":
        return [float(tensors[0].shape[args[1]]) if tensors[0].dim() else 1.0]
    largest = max((t.numel() for t in tensors), default=1)
    return [max(1.0, largest / max(1, out.numel())) for out in outputs]


class SumErrors:
    """What sums lose by their order, found in the first lane of a call and used in the others.

    Lanes of one call differ by roundings, and so does what their sums lose: finding it anew in every lane would cost
    more than the lane itself.
    """

    def __init__(self) -> None:
        self._found: list[tuple[Any, list[Tensor | None]]] = []
        self._place = 0

    def next_lane(self) -> None:
        """Begin another lane: the operators of the call come again, in the same order."""
        self._place = 0

    def of(self, operator: Any, outputs: list[Tensor], find: Callable[[], list[Tensor | None]]) -> list[Tensor | None]:
        """Return the error of each output of the next operator; where nothing fits, what `find` returns."""
        place = self._place
        self._place += 1
        if place < len(self._found) and self._fits(place, operator, outputs):
            return self._found[place][1]
        errors = find()
        if place == len(self._found) and all(e is None or bool(torch.isfinite(e).all()) for e in errors):
            self._found.append((operator, errors))
        return errors

    def _fits(self, place: int, operator: Any, outputs: list[Tensor]) -> bool:
        known, errors = self._found[place]
        return known is operator and all(
            e is None or e.shape == out.shape for e, out in zip(errors, outputs, strict=True)
        )


class NoisyArithmetic(DispatchMode):
    """Runs the operators of a decomposition with noise in each, so that cancellation inside a composite shows.

    scale: the internal roundoff times the lane's amplification.  sums: shared by the lanes of a call.
    """

    def __init__(self, source: NoiseSource, scale: Scale, sums: SumErrors | None = None) -> None:
        super().__init__()
        self.source = source
        self.scale = scale
        self.sums = sums or SumErrors()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        facts = facts_of(func)
        kwargs = kwargs or {}
        if facts.decomposition is not None:
            with self:
                return facts.decomposition(*args, **kwargs)
        if func.is_view or facts.moving or facts.jumping or facts.fixed or facts.written or facts.random:
            return func(*args, **kwargs)
        return noisy_call(func, facts, args, kwargs, self.source, self.scale, self.scale, self.sums)


def noisy_call(
    operator: Any,
    facts: OperatorFacts,
    args: Any,
    kwargs: Any,
    source: NoiseSource,
    inner: Scale,
    outer: Scale,
    sums: SumErrors,
) -> Any:
    """Return the operator's result with input noise `inner`, output noise `outer` and its accumulation term."""

    def perturbed(value: Tensor) -> Tensor:
        return source.perturb(value, inner) if value.dim() or not isinstance(inner, tuple) else value

    result = operator(*map_tensors(args, perturbed), **map_tensors(kwargs, perturbed))
    outputs = tensors_in(result)
    magnitudes: list[Tensor | None] = [None] * len(outputs)
    if facts.summing and any(t.is_floating_point() or t.is_complex() for t in outputs):
        # A float32 loop says nothing about float64 sums.
        in_loops = _largest(inner) > DOUBLE
        magnitudes = sums.of(operator, outputs, lambda: _sum_errors(operator, facts, args, kwargs, outputs, in_loops))
    elif facts.name in _FOURIER and _largest(inner) <= DOUBLE:
        # Noise in the arguments is no larger than the last bit of the sums that would carry it on.
        magnitudes = [_fourier_error(args[0], args[1], args[2], outputs[0])]
    noisy_outputs = iter(
        _with_output_noise(out, source, inner, outer, magnitude)
        for out, magnitude in zip(outputs, magnitudes, strict=True)
    )
    return map_tensors(result, lambda _: next(noisy_outputs))


def _largest(scale: Scale) -> float:
    return max(scale) if isinstance(scale, tuple) else scale


def _fourier_error(value: Tensor, dimensions: Sequence[int], normalization: int, output: Tensor) -> Tensor:
    """Return what a Fourier transform rounds, over u: at most so much of all its terms in each of its steps.

    The same for every place of the result: that is what cancels to nothing there.
    """
    if not dimensions or not value.numel():
        return torch.zeros((), dtype=torch.float64, device=value.device)
    count = math.prod(max(value.shape[d], output.shape[d]) for d in dimensions)
    squares: Tensor = value.abs().square().sum(list(dimensions), keepdim=True)
    norm = (1.0, count**-0.5, 1.0 / count)[normalization]
    return squares.sqrt_().mul_(norm * 0.5 * math.log2(count + 1) ** 0.5)


def _sum_errors(
    operator: Any, facts: OperatorFacts, args: Any, kwargs: Any, outputs: list[Tensor], in_loops: bool
) -> list[Tensor | None]:
    found = accumulation(operator, facts, args, kwargs, outputs)
    magnitudes: list[Tensor | None] = [None] * len(outputs) if found is None else [*found]
    loop = running_sum_error(facts, args, outputs) if in_loops else None
    return [m if m is None or loop is None else torch.hypot(m, loop / INTERNAL) for m in magnitudes]


def _with_output_noise(
    value: Tensor, source: NoiseSource, inner: Scale, outer: Scale, magnitude: Tensor | None
) -> Tensor:
    if not (value.is_floating_point() or value.is_complex()) or (isinstance(outer, tuple) and not value.dim()):
        return value
    value = source.perturb(value, outer)
    return value if magnitude is None else source.add(value, magnitude, inner)
