"""Shadow execution: an ordinary eager run, followed operator by operator in float64 lanes.

The real operators run as usual and drive Python; for every storage they touch, lanes hold what exact, noisy and
declared-dtype arithmetic would have written there.
"""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import (
    DispatchMode,
    has_own_dispatch,
    is_operator,
    storage_key,
    without_torch_function,
)

from .consistency import inconsistency
from .draws import substitute
from .lane_evaluation import LaneCall, LanePlan, evaluate
from .lanes import Lanes
from .monte_carlo import NoiseSource, map_tensors, tensors_in
from .operator_facts import OperatorFacts, facts_of
from .plain_form import plain_form
from .scalar_rounding import decide_scalars, needs_decision
from .shadow_memory import LivingShadows, ShadowStorage, wide_dtype, write_rows


class ShadowRun(DispatchMode):
    """Follow eager code in lanes: `with ShadowRun(replicas=8) as run: y = f(x)`, then `run.lanes_of(y)`.

    exact: keep the float64 lane.  replicas: number of Monte-Carlo-arithmetic lanes.
    rounded: number of declared-dtype lanes; as many wide replicas come with them, unless they are stepped instead:
    a third of all results goes to each neighbour.  seed: of the noise.
    untrusted: operators that could not be evaluated in lanes (eager's result is used instead), one reason each.
    diagnose: also compare every operator with float64 on eager's own inputs.
    suspects: operators whose float64 evaluation is not eager's function, when diagnosing.
    unstable_control_flow: an integer or boolean that Python saw differs between eager and a lane.
    The user's generators advance exactly as without the run.
    """

    supports_higher_order_operators = True

    def __init__(
        self,
        *,
        exact: bool = True,
        replicas: int = 0,
        rounded: int = 0,
        stepped: bool = False,
        seed: int = 0,
        diagnose: bool = False,
    ) -> None:
        super().__init__()
        self.plan = LanePlan(int(exact), replicas, 0 if stepped else rounded, rounded, stepped)
        self.untrusted: list[str] = []
        self.suspects: list[str] = []
        self._diagnose = diagnose
        self.unstable_control_flow = False
        self._noise = NoiseSource(seed)
        self._living: LivingShadows[Any] = LivingShadows()  # a subclass has shadows of its own

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(has_own_dispatch(kind) for kind in types):
            return NotImplemented  # the subclass unwraps itself; its inner operators arrive here afterwards
        if not is_operator(func):
            result = func(*args, **kwargs)
            self._distrust(f"{func}: a higher-order operator runs unobserved")
            return result
        if func.is_view:
            return func(*args, **kwargs)
        facts = facts_of(func).of_call(args, kwargs)
        call = FollowedCall(func, facts, args, kwargs, tensors_in((args, kwargs)))
        if facts.written:
            with self._apart():
                before = self._prepared(call)
            result = func(*args, **kwargs)
            with self._apart():
                self._follow(call, before, result)
        else:  # the arguments are the same afterwards
            result = func(*args, **kwargs)
            with self._apart():
                self._follow(call, self._prepared(call), result)
        return result

    def _prepared(self, call: "FollowedCall") -> Any:
        """Return what `_prepare` does; a failure in the shadow must not disturb the real run."""
        try:
            return self._prepare(call)
        except Exception as error:
            self._distrust(f"{call.operator}: {type(error).__name__} in its shadow: {error}")
            return None

    def lanes_of(self, tensor: Tensor) -> Lanes:
        """Return the lanes of a tensor of the run, gradients included; inside and after the with-block."""
        plan = self.plan
        with self._apart():
            rows = self._view(tensor) if is_plain(tensor) and self._living.find(tensor) is not None else None
            known = rows is not None
            if rows is None:
                value = plain_form(tensor)
                if is_plain(value):
                    value = self._view(value)[0] if has_no_memory(value) else value.to(wide_dtype(value.dtype))
                rows = value.unsqueeze(0).expand(plan.count, *value.shape)
            return self._sorted(rows.clone(), known=known)

    def _sorted(self, rows: Tensor, *, known: bool) -> Lanes:
        """Return the rows of a tensor as the lanes they are."""
        plan = self.plan
        first, second = plan.exact + plan.replicas, plan.exact + plan.replicas + plan.wide
        return Lanes(
            exact=rows[0] if plan.exact else None,
            replicas=rows[plan.exact : first] if plan.replicas else None,
            wide=rows[first:second] if plan.wide else None,
            rounded=rows[second:] if plan.rounded else None,
            known=known,
        )

    def _apart(self) -> contextlib.AbstractContextManager[None]:
        """Hide the work on lanes: no gradient, no warning, no user mode, float64 as default dtype."""
        return self._hidden()

    @contextlib.contextmanager
    def _hidden(self) -> Iterator[None]:
        default = torch.get_default_dtype()
        with (
            warnings.catch_warnings(),
            without_torch_function(),
            torch.inference_mode(False),
            torch.no_grad(),
        ):
            warnings.simplefilter("ignore")
            torch.set_default_dtype(torch.float64)
            try:
                yield
            finally:
                torch.set_default_dtype(default)

    def _prepare(self, call: "FollowedCall") -> "ArgumentsBefore | None":
        """Return the arguments as lanes see them before the operator overwrites any; None when a tensor is opaque."""
        if not all(map(is_plain, call.tensors)):
            return None
        args, kwargs, facts = call.args, call.kwargs, call.facts
        lane_args = tuple(map(self._in_lanes, args))
        lane_kwargs = {key: self._in_lanes(value) for key, value in kwargs.items()}
        real_args, real_kwargs = args, kwargs
        if facts.written and (
            facts.random or self._diagnose or needs_decision(facts, args, kwargs, call.tensors) is not None
        ):
            real_args, real_kwargs = map_tensors(args, torch.clone), map_tensors(kwargs, torch.clone)
        return ArgumentsBefore(lane_args, lane_kwargs, real_args, real_kwargs)

    def _in_lanes(self, value: Any) -> Any:
        return self._view(value) if isinstance(value, Tensor) else map_tensors(_wide(value), self._view)

    def _storage(self, tensor: Tensor) -> ShadowStorage:
        storage = self._living.find(tensor)
        if storage is None:
            storage = ShadowStorage.of(tensor, self.plan.count)
            self._living.add(tensor, storage, storage.lanes.nbytes)
        return storage

    def _view(self, tensor: Tensor) -> Tensor:
        """Return [L, *shape], the lanes of a tensor; for a view of another dtype, its own values."""
        if has_no_memory(tensor):
            return tensor.new_zeros((self.plan.count, *tensor.shape), dtype=wide_dtype(tensor.dtype))
        storage = self._storage(tensor)
        storage.synchronise(tensor)
        rows = storage.view(tensor)
        if rows is None:
            value = tensor.detach().to(wide_dtype(tensor.dtype))
            rows = value.unsqueeze(0).expand(self.plan.count, *value.shape)
        return rows

    def _follow(self, call: "FollowedCall", before: "ArgumentsBefore | None", result: Any) -> None:
        results = tensors_in(result)
        everything = (*call.tensors, *results)
        if everything and all(tensor.device.type == "meta" for tensor in everything):
            return  # a question about sizes: torch asks it for zeros that are stored nowhere
        if before is None or not all(map(is_plain, results)):
            self._distrust(f"{call.operator}: a sparse, quantised or opaque tensor")
            self._forget([*results, *call.written()])
            return
        outputs = self._outputs(call, results)
        if not outputs and not results:
            self._observe_python(call, result)
            return
        if not outputs:
            return
        try:
            values = self._values(call, before, outputs)
        except Exception as error:  # an error in a lane must not disturb the real run
            if "a lane has shape" in str(error):
                self.unstable_control_flow = True
            name, lines = type(error).__name__, str(error).splitlines()
            self._distrust(f"{call.operator}: {name} in a float64 lane: {lines[0:1]}")
            values = None
        for index, real in enumerate(outputs):
            self._store(real, values[index] if values is not None and index < len(values) else None)

    def _outputs(self, call: "FollowedCall", results: list[Tensor]) -> list[Tensor]:
        """Return what the call produced: fresh results, then written arguments; no results that alias an argument."""
        keys = set(map(storage_key, call.tensors))
        return [t for t in results if storage_key(t) not in keys] + call.written()

    def _values(
        self, observed: "FollowedCall", before: "ArgumentsBefore", outputs: list[Tensor]
    ) -> list[Tensor] | None:
        """Return the lanes of every output, None when every lane takes eager's values."""
        func, facts, args, kwargs = observed.operator, observed.facts, before.args, before.kwargs
        if facts.name == "nextafter" and not facts.written:
            return [_stepped(before, *outputs)]
        if facts.fixed:
            return None
        if facts.foreign:
            self._distrust(f"{func}: a custom operator cannot run in float64 lanes")
            return None
        if facts.draws(args, kwargs):
            lanes = [self._exact_rows(t) for t in outputs]
            drawn = substitute(facts.name, before.lane_args, args, lanes, written=bool(facts.written))
            if drawn is None:
                self._distrust(f"{func}: its draw cannot be repeated in the lanes")
            return drawn
        if not observed.tensors and facts.name not in ("arange", "linspace", "logspace"):
            return None
        floats = [t.dtype for t in (*observed.tensors, *outputs) if t.is_floating_point() or t.is_complex()]
        call = LaneCall(func, facts, before.lane_args, before.lane_kwargs, floats, outputs)
        dtype = needs_decision(facts, args, kwargs, observed.tensors)
        if dtype is not None:
            call = decide_scalars(call, widened(args), widened(kwargs), dtype)
        if self._diagnose:
            departs = inconsistency(call, widened(args), widened(kwargs))
            if departs is not None:
                self.suspects.append(f"{func}: its float64 evaluation is not the same function ({departs})")
        return self._evaluate(call)

    def _evaluate(self, call: LaneCall) -> list[Tensor]:
        return evaluate(call, self.plan, self._noise)

    def _exact_rows(self, real: Tensor) -> Tensor:
        return real.detach().to(wide_dtype(real.dtype)).unsqueeze(0).repeat(self.plan.count, *[1] * real.dim())

    def _store(self, real: Tensor, lanes: Tensor | None) -> None:
        if has_no_memory(real):
            return
        storage = self._storage(real)
        if lanes is None:
            storage.synchronise(real)
            return
        rows = storage.view(real)
        if rows is None:  # a write through a view of another dtype: only the bytes are known
            storage.synchronise(real)
            return
        write_rows(rows, lanes)
        storage.acknowledge(real)

    def _forget(self, tensors: list[Tensor]) -> None:
        """Take eager's bytes for the results of an operator that was not followed."""
        for tensor in tensors:
            if is_plain(tensor):
                self._store(tensor, None)

    def _observe_python(self, call: "FollowedCall", result: Any) -> None:
        """Note when lanes disagree on an integer or boolean that Python reads: rounding decides the control flow."""
        if call.facts.name == "_local_scalar_dense" and not isinstance(result, (float, complex)):
            rows = self._view(call.args[0])[: self.plan.exact + self.plan.replicas]
            self.unstable_control_flow |= bool((rows != result).any())
        elif call.facts.name == "equal":
            left, right = self._view(call.args[0]), self._view(call.args[1])
            judged = self.plan.exact + self.plan.replicas
            answers = [torch.equal(left[i], right[i]) for i in range(judged)]
            self.unstable_control_flow |= any(answer != result for answer in answers)

    def _distrust(self, reason: str) -> None:
        if reason not in self.untrusted:
            self.untrusted.append(reason)


@dataclass(slots=True, eq=False)
class FollowedCall:
    """An operator's call as eager makes it.  tensors: all of its arguments'."""

    operator: Any
    facts: OperatorFacts
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[Tensor]

    def written(self) -> list[Tensor]:
        """Return the tensors among the arguments that the operator writes."""
        tensors: list[Tensor] = []
        for place in self.facts.written:
            if isinstance(place, int):
                tensors += tensors_in(self.args[place]) if place < len(self.args) else []
            else:
                tensors += tensors_in(self.kwargs.get(place))
        return tensors


@dataclass(frozen=True, slots=True)
class ArgumentsBefore:
    """An operator's arguments before it ran: in the lanes, and eager's own (copied where it may overwrite them)."""

    lane_args: Any
    lane_kwargs: Any
    args: Any
    kwargs: Any


def _stepped(before: ArgumentsBefore, real: Tensor) -> Tensor:
    """Return the lanes of `nextafter`: eager's step to the neighbour in the declared dtype, from where each lane is.

    The neighbour in float64 is another number; eager's bytes in every lane would lose the noise of the argument.
    """
    lanes, start = before.lane_args[0], before.args[0].to(wide_dtype(real.dtype))
    exact = real.detach().to(wide_dtype(real.dtype))
    missing = real.dim() + 1 - lanes.dim()
    rows = lanes.reshape(lanes.shape[0], *[1] * missing, *lanes.shape[1:])
    return torch.where(torch.isfinite(exact) & torch.isfinite(start), rows + (exact - start), exact)


def is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is strided memory of plain numbers, which lanes can follow."""
    return tensor.layout == torch.strided and not tensor.is_quantized and tensor.device.type != "meta"


def has_no_memory(tensor: Tensor) -> bool:
    """Return whether a tensor means zeros without storing them; autograd creates such gradients."""
    storage = tensor.untyped_storage()
    try:
        return storage.nbytes() > 0 and storage.data_ptr() == 0
    except RuntimeError:  # torch gives no address for memory that does not exist
        return True


def widened(values: Any) -> Any:
    """Return arguments with floating dtypes widened, as lanes take them."""
    if isinstance(values, dict):
        return {key: widened(value) for key, value in values.items()}
    if isinstance(values, (tuple, list)):
        return tuple(map(_wide, values))
    return _wide(values)


def _wide(value: Any) -> Any:
    return wide_dtype(value) if isinstance(value, torch.dtype) else value
