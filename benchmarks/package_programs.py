"""The shapes of code that real packages are made of, as rows for `packages_against_stock.py`."""

import collections
import dataclasses
import functools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

Compiler = Callable[[Any], Any]
Run = Callable[[Compiler], Iterator[Any]]


@dataclass(frozen=True)
class Row:
    """A program: run gives the result of each of its calls. package: what it imports, empty for torch alone."""

    name: str
    run: Run
    package: str = ""


_ROWS: list[Row] = []


def _row(name: str, package: str = "") -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        _ROWS.append(Row(name, run, package))
        return run

    return register


def _calls(name: str, function: Callable[..., Any], *calls: tuple[Any, ...], package: str = "") -> None:
    def run(compiler: Compiler) -> Iterator[Any]:
        compiled = compiler(function)
        for arguments in calls:
            yield compiled(*arguments)

    _ROWS.append(Row(name, run, package))


X = torch.arange(12.0).reshape(3, 4) / 7 - 0.5


@_row("einops: rearrange, reduce, repeat", "einops")
def _einops(compiler: Compiler) -> Iterator[Any]:
    import einops
    import einops._backends
    import einops.einops

    def program(x: torch.Tensor) -> torch.Tensor:
        y = einops.rearrange(x, "(a b) c -> b a c", a=1)
        z = einops.repeat(einops.reduce(y, "b a c -> b c", "mean"), "b c -> b c r", r=2)
        return z.sin()

    einops.einops._prepare_transformation_recipe.cache_clear()
    einops.einops._reconstruct_from_shape.cache_clear()
    einops._backends._type2backend.clear()
    compiled = compiler(program)
    yield compiled(X)
    yield compiled(X)


@_row("einops: warm", "einops")
def _einops_warm(compiler: Compiler) -> Iterator[Any]:
    import einops

    def program(x: torch.Tensor) -> torch.Tensor:
        return einops.rearrange(x, "a b -> (b a)").sin()

    program(X)
    yield compiler(program)(X)


@_row("einops: layers, einsum, pack, unpack", "einops")
def _einops_layers(compiler: Compiler) -> Iterator[Any]:
    import einops
    from einops.layers.torch import Rearrange

    layer = Rearrange("a b -> b a")

    def program(x: torch.Tensor) -> torch.Tensor:
        y = einops.einsum(layer(x), x, "b a, a c -> b c")
        packed, shapes = einops.pack([y, y], "* c")
        first, second = einops.unpack(packed, shapes, "* c")
        return first + second

    yield compiler(program)(X)


class Block(nn.Module):
    """One of several equal blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x and more."""
        return x + self.linear(x).relu()


@_row("six compiled blocks")
def _six_blocks(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    blocks = [compiler(Block()) for _ in range(6)]
    x = X
    for block in blocks:
        x = block(x)
    yield x


@_row("compile(f)(x) in a loop")
def _compile_in_a_loop(compiler: Compiler) -> Iterator[Any]:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    for _ in range(4):
        yield compiler(program)(X)


@_row("compiled.forward(x)")
def _forward_of_compiled(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    yield compiler(Block()).forward(X)


_calls("np.int64 arguments", lambda x, n: x * n + 1, *((X, np.int64(n)) for n in (2, 3, 5, 7)))
_calls("np.float64 arguments", lambda x, n: x * n + 1, *((X, np.float64(n)) for n in (2.5, 3.5, 5.5, 7.5)))
_calls("np.float32 arguments", lambda x, n: x * n + 1, *((X, np.float32(n)) for n in (2.5, 3.5, 5.5, 7.5)))
_calls("np.bool arguments", lambda x, n: x + 1 if n else x - 1, (X, np.bool_(True)), (X, np.bool_(False)))


@_row("LazyLinear")
def _lazy_linear(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    compiled = compiler(nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(3)))
    yield compiled(X)
    yield compiled(X)


@_row("LazyConv, LazyBatchNorm")
def _lazy_conv(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    compiled = compiler(nn.Sequential(nn.LazyConv1d(4, 3), nn.LazyBatchNorm1d(), nn.ReLU()))
    yield compiled(torch.ones(2, 3, 8))
    yield compiled(torch.ones(2, 3, 8))


def _masked(x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        torch.masked.sum(x, 1, mask=mask),
        torch.masked.softmax(x, 1, mask=mask),
        torch.masked.mean(x, 1, mask=mask),
        torch.masked.amax(x, 1, mask=mask),
        torch.masked.var(x, 1, mask=mask),
    )


_calls("torch.masked", _masked, (X, X > 0))


@_row("packed sequences")
def _packed(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    lstm = nn.LSTM(4, 5, batch_first=True)

    def program(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, _ = lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return padded.relu()

    yield compiler(program)(torch.ones(3, 6, 4), torch.tensor([6, 4, 2]))


def _asks(x: torch.Tensor) -> torch.Tensor:
    if torch.jit.is_scripting() or torch.jit.is_tracing() or torch.onnx.is_in_onnx_export():
        return x
    if torch.fx._symbolic_trace.is_fx_tracing() or torch.fx._symbolic_trace.is_fx_symbolic_tracing():
        return x
    return x.sin()


_calls("is_fx_tracing, is_in_onnx_export, is_scripting", _asks, (X,))
_calls("min(tensor, 0), max(tensor, number)", lambda x: min(x.sum(), 0) + max(x.sum(), 1.5), (X,))
_calls("min(tensor, tensor)", lambda x: min(x.sum(), x.mean()) + max([x.sum(), x.mean()]), (X,))
_calls("Tensor.__rsub__ by name", lambda x: torch.Tensor.__rsub__(x, 1) + x.__rsub__(2), (X,))
_calls(
    "operators by name",
    lambda x: x.__radd__(1) + x.__rmul__(2) + x.__rpow__(2) + x.__rtruediv__(1.0) + torch.Tensor.__rpow__(x, 2),
    (X,),
)


class Scaled(torch.autograd.Function):
    """Multiplies by a number, backward too."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, modules: Any) -> torch.Tensor:
        """Return what the modules give."""
        ctx.save_for_backward(x)
        for module in modules if isinstance(modules, list) else [modules]:
            x = module(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Return the gradient."""
        return grad * 2 * ctx.saved_tensors[0], None


@_row("autograd.Function with a module")
def _function_module(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    linear = nn.Linear(4, 4)
    yield compiler(lambda x: Scaled.apply(x, linear))(X.clone().requires_grad_())


@_row("autograd.Function with a list of modules")
def _function_modules(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    linears = [nn.Linear(4, 4), nn.ReLU()]
    yield compiler(lambda x: Scaled.apply(x, linears))(X.clone().requires_grad_())


class Doubled(torch.autograd.Function):
    """Doubles."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Return twice x."""
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Return the gradient."""
        return grad * 2


_calls("autograd.Function instance", lambda x: Doubled().apply(x) + 1, (X,))


@_row("id() of modules as keys")
def _ids(compiler: Compiler) -> Iterator[Any]:
    first, second = nn.ReLU(), nn.Tanh()
    table = {id(first): 1.0, id(second): 2.0}

    def program(x: torch.Tensor) -> torch.Tensor:
        return first(x) * table[id(first)] + second(x) * table[id(second)]

    yield compiler(program)(X)


@_row("modules as keys, identity sets")
def _keys(compiler: Compiler) -> Iterator[Any]:
    first, second = nn.ReLU(), nn.Tanh()
    table = {first: 1.0, second: 2.0}
    seen = {id(first)}

    def program(x: torch.Tensor) -> torch.Tensor:
        known = set(seen)
        known.add(id(second))
        return first(x) * table[first] + second(x) * table[second] + len(known)

    yield compiler(program)(X)


def _profiled(x: torch.Tensor) -> torch.Tensor:
    with torch.profiler.record_function("part"):
        y = x.sin()
    with torch.autograd.profiler.record_function("other", "words"):
        return y + 1


_calls("record_function blocks", _profiled, (X,))


def _under_profile(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    with torch.profiler.profile() as prof:
        y = y.sin()
        prof.step()
    return y + 2


_calls("a profile block", _under_profile, (X,))


@_row("random")
def _random(compiler: Compiler) -> Iterator[Any]:
    def program(x: torch.Tensor) -> torch.Tensor:
        if random.random() < 2:
            x = x + random.uniform(0, 1)
        return x * random.randint(1, 5) + random.choice([1, 2, 3])

    random.seed(0)
    compiled = compiler(program)
    for _ in range(3):
        yield compiled(X)


@_row("random.Random instance")
def _random_instance(compiler: Compiler) -> Iterator[Any]:
    generator = random.Random(3)
    compiled = compiler(lambda x: x + generator.random())
    for _ in range(3):
        yield compiled(X)


@_row("fx.GraphModule")
def _graph_module(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    traced = torch.fx.symbolic_trace(nn.Sequential(Block(), nn.Linear(4, 2)))
    yield compiler(traced)(X)
    yield compiler(lambda x: traced(x) + 1)(X)


@_row("torch.export module")
def _exported(compiler: Compiler) -> Iterator[Any]:
    torch.manual_seed(1)
    program = torch.export.export(Block(), (X,))
    yield compiler(program.module())(X)


class Marked(torch.Tensor):
    """A subclass that adds a method."""

    def doubled(self) -> torch.Tensor:
        """Return twice itself."""
        return self * 2


class Named(torch.Tensor):
    """A subclass with __torch_function__ that counts nothing but goes through."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function on plain tensors."""
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Wrapper:
    """Holds a tensor and takes part in torch functions, as kornia's boxes do."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function on the data."""
        args = tuple(arg.data if isinstance(arg, Wrapper) else arg for arg in args)
        return Wrapper(func(*args, **(kwargs or {})))


@_row("subclass without rules, made inside")
def _subclass_inside(compiler: Compiler) -> Iterator[Any]:
    yield compiler(lambda x: x.as_subclass(Marked).doubled() + 1)(X).as_subclass(torch.Tensor)


@_row("subclass without rules, given")
def _subclass_given(compiler: Compiler) -> Iterator[Any]:
    yield compiler(lambda x: x.doubled() + 1)(X.as_subclass(Marked)).as_subclass(torch.Tensor)


@_row("subclass with __torch_function__")
def _subclass_function(compiler: Compiler) -> Iterator[Any]:
    yield compiler(lambda x: torch.sin(x) + 1)(X.as_subclass(Named))


@_row("__torch_function__ of a plain class")
def _wrapper(compiler: Compiler) -> Iterator[Any]:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(Wrapper(x)).data + 1

    yield compiler(program)(X)
    yield compiler(lambda w: torch.add(torch.sin(w), 1).data)(Wrapper(X))


class Negating(torch.overrides.TorchFunctionMode):
    """Replaces sine by cosine."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function, or cosine for sine."""
        return (torch.cos if func is torch.sin else func)(*args, **(kwargs or {}))


def _under_mode(x: torch.Tensor) -> torch.Tensor:
    with Negating():
        return torch.sin(x) + 1


_calls("__torch_function__ mode inside", _under_mode, (X,))


@_row("__torch_function__ mode outside")
def _mode_outside(compiler: Compiler) -> Iterator[Any]:
    compiled = compiler(lambda x: torch.sin(x) + 1)
    with Negating():
        yield compiled(X)


@_row("MaskedTensor")
def _masked_tensor(compiler: Compiler) -> Iterator[Any]:
    from torch.masked import masked_tensor

    given = masked_tensor(X, X > 0)
    yield compiler(lambda m: (m * 2).get_data())(given)


@_row("tensordict", "tensordict")
def _tensordict(compiler: Compiler) -> Iterator[Any]:
    from tensordict import TensorDict

    def program(td: Any) -> Any:
        td = td + 1
        return td["a"].sin() + td["nested", "b"]

    given = TensorDict({"a": X, "nested": {"b": X + 1}}, batch_size=[3])
    yield compiler(program)(given)


@_row("tensordict: made inside", "tensordict")
def _tensordict_inside(compiler: Compiler) -> Iterator[Any]:
    from tensordict import TensorDict

    def program(x: torch.Tensor) -> Any:
        td = TensorDict({"a": x}, batch_size=[3])
        td["b"] = td["a"].sin()
        return td["b"] + td["a"]

    yield compiler(program)(X)


@_row("kornia: functions", "kornia")
def _kornia(compiler: Compiler) -> Iterator[Any]:
    import kornia

    image = torch.linspace(0, 1, 3 * 8 * 8).reshape(1, 3, 8, 8)

    def program(x: torch.Tensor) -> torch.Tensor:
        gray = kornia.color.rgb_to_grayscale(x)
        return kornia.filters.gaussian_blur2d(gray, (3, 3), (1.5, 1.5))

    yield compiler(program)(image)


@_row("kornia: boxes", "kornia")
def _kornia_boxes(compiler: Compiler) -> Iterator[Any]:
    from kornia.geometry.boxes import Boxes

    given = torch.tensor([[[1.0, 1.0], [4.0, 1.0], [4.0, 5.0], [1.0, 5.0]]])

    def program(points: torch.Tensor) -> torch.Tensor:
        boxes = Boxes(points)
        return boxes.to_tensor("xyxy") * 2

    yield compiler(program)(given)


@_row("jaxtyping, beartype", "jaxtyping")
def _jaxtyping(compiler: Compiler) -> Iterator[Any]:
    import beartype
    import jaxtyping

    @jaxtyping.jaxtyped(typechecker=beartype.beartype)
    def program(x: jaxtyping.Float[torch.Tensor, "a b"]) -> jaxtyping.Float[torch.Tensor, "b a"]:  # noqa: F722 - axes by name
        return x.sin().transpose(0, 1)

    yield compiler(program)(X)
    yield compiler(lambda x: program(x) + 1)(X)


@_row("beartype", "beartype")
def _beartype(compiler: Compiler) -> Iterator[Any]:
    import beartype

    @beartype.beartype
    def program(x: torch.Tensor, factors: list[float], name: str | None = None) -> torch.Tensor:
        return x.sin() * factors[0]

    yield compiler(program)(X, [2.0, 3.0])


@_row("typeguard", "typeguard")
def _typeguard(compiler: Compiler) -> Iterator[Any]:
    import typeguard

    @typeguard.typechecked
    def program(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x.sin() * factor

    yield compiler(program)(X, 2.0)


@dataclasses.dataclass
class Output(collections.OrderedDict):  # type: ignore[type-arg]  # as transformers does it
    """A dataclass."""

    first: torch.Tensor
    second: torch.Tensor | None = None


def _made_classes(x: torch.Tensor) -> Any:
    made = dataclasses.make_dataclass("Made", [("a", torch.Tensor), ("b", float, dataclasses.field(default=2.0))])
    pair = collections.namedtuple("pair", ["left", "right"])
    value = made(x)
    both = pair(value.a, value.b)
    return dataclasses.replace(value, b=3.0).b * both.left * both.right


_calls("dataclasses and named tuples made inside", _made_classes, (X,))


def _scalar_sizes(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    count = n.item()
    return x[:, :1] * count + torch.full((3, 4), count)


_calls("item() in arithmetic", _scalar_sizes, *((X, torch.tensor(n)) for n in (2, 3, 5)))


def _loop_on_data(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    found = []
    for position in range(ends.shape[0]):
        found.append(x * position)
        if (ends[: position + 1] == 1).all():
            break
    return torch.stack(found)


_calls("a loop that ends on data", _loop_on_data, (X, torch.tensor([1, 0, 0, 1] * 5)))


def _until_end(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    found = []
    for position in range(12):
        found.append(x * position)
        if position and bool(ends[position] > 0):
            break
    return torch.stack(found)


_calls("a loop that ends late on data", _until_end, (X, torch.tensor([0] * 11 + [1])))


def _optimizer(name: str, **settings: Any) -> None:
    @_row(f"{name}.step")
    def _step(compiler: Compiler) -> Iterator[Any]:
        torch.manual_seed(1)
        model = Block()
        optimizer = getattr(torch.optim, name)(model.parameters(), **settings)

        def step() -> None:
            optimizer.step()

        compiled = compiler(step)
        for _ in range(4):
            model(X).sum().backward()
            compiled()
        yield [parameter.detach().clone() for parameter in model.parameters()]


for _name in ("SGD", "Adam", "AdamW", "Adafactor", "ASGD", "RAdam", "NAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop"):
    _optimizer(_name, lr=0.01)


@functools.cache
def _cached(owner: object, name: str) -> float:
    return float(len(name))


class Owner:
    """An object that a cache goes by."""


class SubOwner(Owner):
    """Found by `__subclasses__`."""


_OWNER = Owner()
_calls("lru_cache over an object", lambda x: x * _cached(_OWNER, "abc"), (X,), (X,))
_calls("Class.__subclasses__()", lambda x: x * len(Owner.__subclasses__()), (X,), (X,))

ROWS: tuple[Row, ...] = tuple(_ROWS)
