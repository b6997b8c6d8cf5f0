"""Known faults for fuzzers: wrong rules of operators for programs with transforms, ignored guards for histories."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from plumbline.oracle.harness.compilers import CompileRequest, CompileStatistics
from support.planted_compilers import PlantedCandidate, PlantedCompiler

Wrong = Callable[..., Any]  # (right, *args, **kwargs) -> result
FAULTS: dict[str, tuple[tuple[str, ...], Wrong]] = {}
"""Name of a fault -> the operators it replaces (by `__name__`), and what it does."""

functorch = torch._C._functorch


def fault(*operators: str) -> Callable[[Wrong], Wrong]:
    def register(wrong: Wrong) -> Wrong:
        FAULTS[wrong.__name__] = (operators, wrong)
        return wrong

    return register


class FaultMode(torch.overrides.TorchFunctionMode):
    """Replaces operators by their wrong forms wherever a program calls them."""

    def __init__(self, operators: tuple[str, ...], wrong: Wrong) -> None:
        super().__init__()
        self.operators, self.wrong = operators, wrong

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") not in self.operators or not args or not hasattr(args[0], "dim"):
            return func(*args, **(kwargs or {}))
        return self.wrong(func, *args, **(kwargs or {}))


def faulty_compiler(name: str) -> PlantedCompiler:
    operators, wrong = FAULTS[name]
    return PlantedCompiler(lambda: FaultMode(operators, wrong))


def batched(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and functorch.is_batchedtensor(tensor)


def with_gradient_of(value: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return `value` whose derivatives are those of `other`."""
    return value.detach() + (other - other.detach())


# -- wrong vmap rules --------------------------------------------------------------------------------------------------


@fault("sum", "mean", "softmax", "log_softmax", "cumsum")
def vmap_counts_dims_with_the_batch(right, x, *args, dim=None, **kwargs):
    if batched(x) and dim is not None and dim >= 0 and x.dim() > 1:
        dim = (dim + 1) % x.dim()
    return right(x, *args, **kwargs) if dim is None else right(x, *args, dim=dim, **kwargs)


@fault("transpose")
def vmap_transpose_does_nothing(right, x, first, second):
    return x if batched(x) and x.shape[first] == x.shape[second] else right(x, first, second)


@fault("where")
def vmap_where_swaps(right, condition, x, y):
    return right(condition, y, x) if batched(condition) else right(condition, x, y)


@fault("matmul")
def vmap_matmul_is_zero(right, x, y):
    return right(x, y) * 0 if batched(x) and not batched(y) else right(x, y)


@fault("sin", "cos", "exp", "tanh")
def vmap_takes_the_first_sample_for_all(right, x):
    if not batched(x):
        return right(x)
    level, place = functorch.maybe_get_level(x), functorch.maybe_get_bdim(x)
    plain = functorch.get_unwrapped(x)
    same = right(plain).select(place, 0).unsqueeze(place).expand(plain.shape)
    return functorch._add_batch_dim(same, place, level)


@fault("flip", "roll")
def vmap_moves_the_other_way(right, x, *args):
    return x if batched(x) else right(x, *args)


# -- wrong derivatives -------------------------------------------------------------------------------------------------


@fault("tanh")
def tanh_backward_uses_the_input(right, x):
    return with_gradient_of(right(x), x - x**3 / 3)


@fault("softmax", "log_softmax")
def softmax_backward_is_zero(right, x, **kwargs):
    return right(x, **kwargs).detach()


@fault("logsumexp")
def logsumexp_backward_is_half(right, x, **kwargs):
    value = right(x, **kwargs)
    return with_gradient_of(value, value * 0.5)


@fault("mul")
def mul_forgets_the_second_gradient(right, x, y):
    return right(x, y.detach() if isinstance(y, torch.Tensor) else y)


@fault("div")
def div_forgets_the_sign(right, x, y, **kwargs):
    return with_gradient_of(right(x, y, **kwargs), right(x, y.detach(), **kwargs) + right(x.detach(), y, **kwargs) * -1)


@fault("amax", "amin")
def ties_give_all_gradient_to_each(right, x, *, dim, keepdim):
    value = right(x, dim=dim, keepdim=keepdim)
    full = value if keepdim else value.unsqueeze(dim)
    spread = (x * (x == full)).sum(dim=dim, keepdim=keepdim)
    return with_gradient_of(value, spread)


@fault("sqrt", "rsqrt", "log1p")
def derivative_is_cut_off(right, x):
    return right(x).detach()


@fault("cumsum", "cumprod")
def scan_backward_forgets_the_order(right, x, *, dim):
    return with_gradient_of(right(x, dim=dim), x)


# -- wrong values ------------------------------------------------------------------------------------------------------


@fault("relu")
def relu_swallows_nan(right, x):
    return torch.where(x > 0, x, torch.zeros_like(x))


@fault("clamp")
def clamp_swallows_nan(right, x, *bounds):
    return right(torch.nan_to_num(x, nan=0.0), *bounds)


@fault("div")
def floor_division_truncates(right, x, y, *, rounding_mode=None):
    return right(x, y, rounding_mode="trunc" if rounding_mode else None)


@fault("remainder")
def remainder_takes_the_dividends_sign(right, x, y):
    return torch.fmod(x, y)


@fault("sum", "mean")
def reduction_drops_the_tail(right, x, *args, dim=None, **kwargs):
    if dim is not None and x.dim() and x.shape[dim] > 8 and x.shape[dim] % 8 == 1:
        kept = x.narrow(dim, 0, x.shape[dim] - 1)
        return right(kept, *args, dim=dim, **kwargs)
    return right(x, *args, **kwargs) if dim is None else right(x, *args, dim=dim, **kwargs)


@fault("gelu")
def gelu_by_tanh(right, x):
    return right(x, approximate="tanh")


@fault("layer_norm")
def layer_norm_of_another_epsilon(right, x, shape):
    return right(x, shape, eps=1e-3)


@fault("var")
def variance_is_unbiased(right, x, *, dim, correction):
    return right(x, dim=dim, correction=1) if x.shape[dim] > 1 else right(x, dim=dim, correction=correction)


@fault("argmax")
def argmax_takes_the_last_of_equals(right, x, **kwargs):
    dim = kwargs["dim"]
    return x.shape[dim] - 1 - right(torch.flip(x, (dim,)), **kwargs)


@fault("round")
def round_half_goes_up(right, x):
    return torch.floor(x + 0.5)


@fault("logsumexp")
def logsumexp_overflows(right, x, *, dim):
    return torch.log(torch.exp(x).sum(dim=dim))


@fault("tril", "triu")
def triangle_is_off_by_one(right, x, offset):
    return right(x, offset + 1)


@fault("atan2", "hypot")
def operands_are_swapped(right, x, y):
    return right(y, x)


@fault("pow")
def power_of_two_is_a_sum(right, x, y):
    return torch.where(y == 2, x + x, right(x, y))


# -- wrong memory ------------------------------------------------------------------------------------------------------


@fault("add_", "mul_", "sub_")
def in_place_write_is_lost(right, x, y):
    right(x.clone(), y)
    return x


@fault("transpose", "permute")
def view_becomes_a_copy(right, x, *args):
    return right(x, *args).clone(memory_format=torch.contiguous_format)


@fault("contiguous")
def contiguous_does_nothing(right, x):
    return x


@fault("expand")
def expand_copies(right, x, *args):
    return right(x, *args).contiguous()


@fault("clone")
def clone_shares(right, x):
    return x.view_as(x)


# -- ignored guards ----------------------------------------------------------------------------------------------------

FROZEN_PLACES = (
    "SCALE",
    "ZERO",
    "MODE",
    "WEIGHT",
    "PARTS",
    "TAGS",
    "helper",
    "mark",
    "coded.__code__",
    "scaled.__defaults__",
    "shifted.__kwdefaults__",
    "closed.__closure__[0].cell_contents",
    "library.offset",
    "Thing.factor",
    "thing.gain",
    "thing.__class__",
    "Thing.method",
    "thing.config['depth']",
    "module.scale",
    "module.training",
    "module.weight",
)
FROZEN_ARGUMENTS = {"y": 2, "number": 3, "items": 4, "options": 5}


class FrozenCandidate(PlantedCandidate):
    """What one place of state held at the first call counts for ever: the specialisation without its guard."""

    def __init__(self, target: Callable[..., Any], place: str) -> None:
        super().__init__(target, self._frozen)
        self.place = place
        self.known: list[Any] = []

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        scope = {**self.target.__globals__}
        try:
            now = eval(self.place, scope)
        except (NameError, AttributeError):  # the scenario has no such place
            yield
            return
        self.known = self.known or [now]
        if self.known[0] is now:
            yield
            return
        self._put(self.known[0])
        try:
            yield
        finally:
            self._put(now)

    def _put(self, value: Any) -> None:
        self.target.__globals__["frozen_value"] = value
        exec(f"{self.place} = frozen_value", self.target.__globals__)
        del self.target.__globals__["frozen_value"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.place not in FROZEN_ARGUMENTS:
            return super().__call__(*args, **kwargs)
        position = FROZEN_ARGUMENTS[self.place]
        now = args[position]
        self.known = self.known or [type(now)(now) if isinstance(now, (list, dict)) else now]
        return self.target(*args[:position], self.known[0], *args[position + 1 :], **kwargs)


class FreezingCompiler(PlantedCompiler):
    """Ignores the guard on one place."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def compile(self, target: Any, backend: str, request: CompileRequest, *, rng: str) -> FrozenCandidate:
        return FrozenCandidate(target, self.place)


class CountingCandidate(PlantedCandidate):
    """Right answers, and a graph made whenever `changed` says so of the globals."""

    def __init__(self, target: Callable[..., Any], changed: Callable[[dict[str, Any], list[Any]], bool]) -> None:
        super().__init__(target, lambda: _nothing())
        self.changed, self.graphs, self.memory = changed, 0, []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.graphs += self.changed(self.target.__globals__, self.memory)
        return self.target(*args, **kwargs)

    def statistics(self) -> CompileStatistics:
        return CompileStatistics(graphs=self.graphs, ops=1)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


class CountingCompiler(PlantedCompiler):
    """Compiles as often as `changed` says."""

    def __init__(self, changed: Callable[[dict[str, Any], list[Any]], bool]) -> None:
        super().__init__()
        self.changed = changed

    def compile(self, target: Any, backend: str, request: CompileRequest, *, rng: str) -> CountingCandidate:
        return CountingCandidate(target, self.changed)
