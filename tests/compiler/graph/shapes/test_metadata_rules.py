"""Every rule about the metadata of results, against the kernels, with sizes known and with symbols for them."""

import itertools
import logging
from collections.abc import Iterator

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from plumbline.compiler.base.dense_order import dense_order
from plumbline.compiler.base.fake_mode_start import make_fake
from plumbline.compiler.base.symbol_facts import (
    hint_value,
    make_shape_environment,
    make_symbolic_fake,
    size_conditions,
)
from plumbline.compiler.base.torch_facts import DispatchMode, WatchedFakeMode
from plumbline.compiler.graph.dynamic_sizes import is_symbolic
from plumbline.compiler.graph.shapes.metadata_rules import MetadataRules, rule_of
from plumbline.compiler.graph.shapes.shape_rules import corrected
from plumbline.compiler.graph.shapes.sized_call import RULES
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS

aten = torch.ops.aten
RESIZING = ("upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")


def hints(numbers) -> list[int]:
    return [int(hint_value(one)) if is_symbolic(one) else one for one in numbers]


def metadata(result, args) -> list:
    """Return what is promised of each part: dtype, sizes, strides, offset, and which argument it is a view of."""
    memory = {a.untyped_storage()._cdata: n for n, a in enumerate(args) if isinstance(a, torch.Tensor)}
    return [
        part
        if not isinstance(part, torch.Tensor)
        else (
            part.dtype,
            hints(part.shape),
            hints(part.stride()),
            hints([part.storage_offset()]),
            memory.get(part.untyped_storage()._cdata),
        )
        for part in tree_leaves(result)
    ]


class Watch(DispatchMode):
    """Asks the rules about every call that the kernels run."""

    def __init__(self, symbolic: bool) -> None:
        super().__init__()
        self.symbolic = symbolic
        self.decided: dict = {}
        self.wrong: list[str] = []
        self.seen: set = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        rule = rule_of(func)
        found = None
        if rule is not None and self.is_new(func, args, kwargs):
            try:
                found = self.ask(func, args, kwargs)
            except Exception as error:  # or it would pass for an error of the sample's
                self.wrong.append(f"the rule of {func} raises {error!r}")
        result = func(*args, **kwargs)
        if found is not None:
            self.decided[func] = self.decided.get(func, 0) + 1
            if found != metadata(result, args):
                given = [(a.shape, a.stride()) if isinstance(a, torch.Tensor) else a for a in args]
                self.wrong.append(f"{func} {given} {kwargs}: {found}, but the kernel gives {metadata(result, args)}")
        return result

    def is_new(self, func, args, kwargs) -> bool:
        key = (func, str([self.key(a) for a in (*args, *kwargs.values())]))
        new = key not in self.seen
        self.seen.add(key)
        return new

    def key(self, value) -> object:
        if isinstance(value, torch.Tensor):
            return value.dtype, value.shape, value.stride(), value.storage_offset()
        return value

    def ask(self, func, args, kwargs) -> list | None:
        environment = make_shape_environment() if self.symbolic else None
        mode = WatchedFakeMode(shape_env=environment)
        rules = MetadataRules()

        def fake(value):
            if not isinstance(value, torch.Tensor):
                return value
            order = dense_order(value.shape, value.stride())
            varying = frozenset(n for n, size in enumerate(value.shape) if size > 1)
            if not self.symbolic or order is None or not varying or value.storage_offset():
                return make_fake(mode, value)
            return make_symbolic_fake(mode, value.detach(), varying, order)

        if any(t.layout is not torch.strided or t.is_conj() for t in tree_leaves((args, kwargs)) if torch.is_tensor(t)):
            return None
        with torch.utils._python_dispatch._disable_current_modes():
            fakes, named = tree_map(fake, (list(args), dict(kwargs)))
            make_equal([size for fake in fakes if isinstance(fake, torch.Tensor) for size in fake.shape])
            guards = 0 if environment is None else len(environment.guards) + (func is aten.unbind.int)  # how many
            result = rules(mode, func, fakes, named)
            if result is NotImplemented:
                return None
            assert environment is None or len(environment.guards) <= guards, f"{func} assumes something of sizes"
            with mode:
                result = corrected(func, fakes, kwargs, result)
            return metadata(result, fakes)


def make_equal(sizes: list) -> None:
    """Let sizes that are equal now be equal always, as a program that runs has shown."""
    for one, other in itertools.pairwise(sorted(filter(is_symbolic, sizes), key=hint_value)):
        assert hint_value(one) != hint_value(other) or one == other


def layouts(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x
    if x.dim() > 1:
        yield x.transpose(0, -1).contiguous().transpose(0, -1)
        yield x[:1].expand_as(x)
    if x.dim() == 4:
        yield x.contiguous(memory_format=torch.channels_last)


def run_samples(watch: Watch, operators, dtype: torch.dtype = torch.float32, samples: int = 1) -> None:
    """Run operators forward and backward; all of them, with four dtypes and eight samples, take ten minutes."""
    for info in operators:
        if dtype not in info.supported_dtypes("cpu") or info.name.startswith("jiterator"):
            continue
        torch.manual_seed(0)
        gradients = dtype.is_floating_point and info.supports_autograd
        for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), samples):
            if not isinstance(sample.input, torch.Tensor) or sample.input.layout is not torch.strided:
                continue
            for x in layouts(sample.input):
                x = x.detach().requires_grad_(gradients)
                with watch:
                    try:
                        result = info.op(x, *sample.args, **sample.kwargs)
                        outputs = [t for t in tree_leaves(result) if torch.is_tensor(t) and t.requires_grad]
                        if outputs:
                            torch.autograd.grad([t.abs().sum() for t in outputs], [x], allow_unused=True)
                    except (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError):
                        pass


def run_each_rule(watch: Watch) -> None:
    """Call what torch's samples do not come to, for they are larger or take other ways."""
    x, y = torch.randn(4, 6, dtype=torch.float32), torch.randn(4, 6)
    one = torch.tensor(1.0)
    with watch, torch.no_grad():
        for call in (
            lambda: aten.full_like.default(x, 2.0),
            lambda: aten.empty_strided.default([3, 4], [1, 3], dtype=torch.int32, device="cpu"),
            lambda: aten.empty.memory_format([3, 4], dtype=torch.int32, device="cpu"),
            lambda: aten.zeros.default([3, 4], device="cpu"),
            lambda: aten.ones.default([3, 1, 4], dtype=torch.bool, device="cpu"),
            lambda: aten.new_empty.default(x.t(), [3, 4]),
            lambda: aten.new_zeros.default(x.long(), [3, 4]),
            lambda: aten.new_ones.default(x, [3, 4], dtype=torch.float64),
            lambda: aten.new_full.default(x, [3, 4], 2),
            lambda: aten.clone.default(x.t(), memory_format=torch.contiguous_format),
            lambda: aten.cat.default([x, y, x[:2]]),
            lambda: aten.cat.default([x, y], -1),
            lambda: aten.embedding.default(x, torch.tensor([[1, 0, 3]])),
            lambda: aten.split.Tensor(x, 4, 1),
            lambda: aten.split_with_sizes.default(x.t(), [1, 3], -1),
            lambda: aten.view.default(torch.randn(3, 4, 5, 2).transpose(1, 2), [3, 5, 2, 2, -1]),
            lambda: aten.view.default(torch.randn(5, 3, 4, 2).permute(1, 2, 0, 3), [12, 1, 5, 2]),
            lambda: aten.view.default(torch.randn(5, 3, 4).permute(1, 2, 0), [1, 2, 6, 1, 5]),
            lambda: aten.zeros_like.default(x.t(), dtype=torch.int64),
            lambda: aten.ones_like.default(x.t(), memory_format=torch.contiguous_format),
            lambda: aten.empty_like.default(x),
            lambda: aten.masked_fill.Tensor(x, x > 0, one),
            lambda: aten.masked_fill.Scalar(x, x[:1] > 0, 2),
            lambda: aten.masked_fill.Scalar(x[:1], x > 0, 2),
            lambda: aten.all.dim(x > 0, 1, True),
            lambda: aten.prod.dim_int(x, 0),
            lambda: aten.prod.default(x),
            lambda: aten._softmax_backward_data.default(x, y, 1, torch.float32),
            lambda: aten._log_softmax_backward_data.default(x, y, -1, torch.float32),
            lambda: aten._log_softmax.default(x, 0, False),
            lambda: aten._unsafe_view.default(x, [3, 8]),
            lambda: aten.view.default(x, [-1, 3]),
            lambda: aten.alias.default(x[1:].t()),
            lambda: aten.squeeze.dim(x[:, :1], 1),
            lambda: aten.squeeze.dim(x, 1),
            lambda: aten.select.int(x, 1, -2),
            lambda: [aten.unbind.int(x.t(), -1), aten.unbind.int(x[:0], 1), aten.unbind.int(x[:0])],
            lambda: aten.expand.default(x[:1], [5, 4, 6]),
            lambda: aten.expand.default(x, [5, -1, 6]),
            lambda: aten.unsqueeze.default(x.t(), 1),
            lambda: aten.bmm.default(x[None], y.t()[None]),
            lambda: aten.addmm.default(y[0, :4], x, y.t()),
            lambda: [getattr(aten, name).default(x, [1], True) for name in ("amax", "amin")],
            lambda: [getattr(aten, name).default(x, 0) for name in ("argmax", "argmin")],
            lambda: [getattr(aten, name).default(x) for name in ("max", "min", "sum", "mean")],
            lambda: [getattr(aten, name).correction(x, [0], correction=1) for name in ("var", "std")],
            lambda: [getattr(aten, name).default(x, 1) for name in ("cumsum", "cumprod", "logcumsumexp")],
            lambda: [getattr(aten, name).default(x, -1, False) for name in ("_softmax", "_log_softmax")],
            lambda: [getattr(aten, name).default(x, [1]) for name in ("logsumexp", "flip")],
            lambda: [aten.any.dim(x > 0, 0), aten.sum.dim_IntList(x, [-1]), aten.mean.dim(x, None)],
            lambda: [aten.tril.default(x), aten.triu.default(x), aten._to_copy.default(x.t(), dtype=torch.int64)],
            lambda: [aten.detach.default(x), aten.permute.default(x, [1, 0]), aten.transpose.int(x, 0, -1)],
            lambda: [aten.mm.default(x, y.t()), aten.native_layer_norm.default(x, [6], x[0], None, 1e-5)],
            lambda: aten.native_layer_norm_backward.default(
                x, y, [6], x[:, :1].clone(), y[:, :1].clone(), x[0].clone(), y[0].clone(), [True, False, True]
            ),
        ):
            call()
        for order, (count, channels) in itertools.product(
            (torch.contiguous_format, torch.channels_last), ((2, 3), (1, 3), (2, 1), (1, 1))
        ):
            image, gradient = (torch.randn(count, channels, size, 5).contiguous(memory_format=order) for size in (4, 8))
            for name in RESIZING:
                getattr(aten, name).default(image, [8, 5], False)
                getattr(aten, f"{name}_backward").default(gradient, [8, 5], [count, channels, 4, 5], False)
        for order in (torch.contiguous_format, torch.channels_last_3d):
            volume, gradient = (torch.randn(2, 3, size, 5, 6).contiguous(memory_format=order) for size in (4, 8))
            aten.upsample_trilinear3d.default(volume, [8, 5, 6], False)
            aten.upsample_trilinear3d_backward.default(gradient, [8, 5, 6], [2, 3, 4, 5, 6], False)
        for kernel in (aten.upsample_nearest1d_backward, aten._upsample_nearest_exact1d_backward):
            kernel.default(torch.randn(2, 3, 8), [8], [2, 3, 4])
        aten.upsample_linear1d_backward.default(torch.randn(2, 3, 8), [8], [2, 3, 4], False)
        for kernel in (aten.upsample_nearest3d_backward, aten._upsample_nearest_exact3d_backward):
            kernel.default(torch.randn(2, 3, 8, 6, 7), [8, 6, 7], [2, 3, 4, 5, 4])


@pytest.mark.parametrize("symbolic", [False, True])
def test_rules_give_what_kernels_give(symbolic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "handlers", [])  # pytest's; they cost half of the time
    watch = Watch(symbolic)
    run_each_rule(watch)
    decided = set(watch.decided)
    run_samples(watch, [*OPERATORS.values()][symbolic::2])
    assert not watch.wrong, "\n".join(watch.wrong[:20])
    if not symbolic:  # sizes that are asked for by number are not decided where they are symbols
        assert {str(target) for target in set(RULES) - decided} == set()


REQUESTS = {
    "view all": (aten.view.default, lambda x: [x.shape[0] * x.shape[1], x.shape[2]]),
    "view open": (aten.view.default, lambda x: [-1, x.shape[2]]),
    "view split": (aten.view.default, lambda x: [x.shape[0], 1, -1]),
    "expand in front": (aten.expand.default, lambda x: [x.shape[2], *x.shape]),
    "expand kept": (aten.expand.default, lambda x: [3, -1, x.shape[1], -1]),
}


@pytest.mark.parametrize(("target", "sizes"), REQUESTS.values(), ids=REQUESTS)
def test_sizes_that_are_asked_for_by_symbols(target, sizes) -> None:
    environment = make_shape_environment()
    mode = WatchedFakeMode(shape_env=environment)
    x = make_symbolic_fake(mode, torch.randn(4, 6, 8), frozenset({0, 1}), (0, 1, 2))
    given = MetadataRules()(mode, target, (x, sizes(x)), {})
    with mode:
        expected = target(x, sizes(x))
    assert metadata(given, [x]) == metadata(expected, [x])
    assert [*map(str, given.shape)] == [*map(str, expected.shape)]
    assert [*map(str, given.stride())] == [*map(str, expected.stride())]


UNDECIDED = {
    "a size that may be 1 is expanded": (aten.expand.default, lambda x, y: (y[:, :1, :1], [4, x.shape[0] - 1, 8])),
    "an element that may not be there": (aten.select.int, lambda x, y: (x, 0, 2)),
    "a product of other symbols": (aten.view.default, lambda x, y: (x, [y.shape[0], -1])),
    "an operand with gaps": (aten.sum.dim_IntList, lambda x, y: (x[:, :, :4], [0])),
    "complex numbers, which may be conjugates": (aten.add.Tensor, lambda x, y: (x.to(torch.complex64), 1)),
    "tensors of other dtypes in a list": (aten.cat.default, lambda x, y: ([x, y],)),
}


@pytest.mark.parametrize(("target", "arguments"), UNDECIDED.values(), ids=UNDECIDED)
def test_what_takes_an_assumption_is_left_to_torch(target, arguments) -> None:
    mode = WatchedFakeMode(shape_env=make_shape_environment())
    x, y = (make_symbolic_fake(mode, torch.randn(4, 6, 8), frozenset({0, 1}), (0, 1, 2)) for _ in range(2))
    with mode:
        given = arguments(x, y)
    assert MetadataRules()(mode, target, given, {}) is NotImplemented


DEMANDED = {
    "a sum": (aten.add.Tensor, lambda x, y: (x, y)),
    "a sum with one that is broadcast": (aten.add.Tensor, lambda x, y: (x, y[0])),
    "a choice": (aten.where.self, lambda x, y: (x > 0, x, y)),
    "a product": (aten.mm.default, lambda x, y: (x[:, :, 0], y[:, :, 0].t())),
    "a sum with a product": (aten.addmm.default, lambda x, y: (x[0, 0, :1], x[:, :, 0], y[:, :, 0].t())),
}


@pytest.mark.parametrize(("target", "arguments"), DEMANDED.values(), ids=DEMANDED)
def test_sizes_that_have_to_be_equal_are_demanded_to_be(target, arguments) -> None:
    texts = []
    for rules in (MetadataRules(), None):
        environment = make_shape_environment()
        mode = WatchedFakeMode(shape_env=environment)
        x, y = (make_symbolic_fake(mode, torch.randn(4, 6, 8), frozenset({0, 1}), (0, 1, 2)) for _ in range(2))
        with mode:
            given = arguments(x, y)
            result = target(*given) if rules is None else rules(mode, target, given, {})
        assert isinstance(result, torch.Tensor)
        conditions = {frozenset(map(str, one.args)) for one in size_conditions(environment) if "Eq" in str(one)}
        texts.append((conditions, str(tuple(result.shape)), str(result.stride())))
    assert texts[0] == texts[1]
    assert texts[0][0]


def test_sizes_that_are_not_equal_are_torchs_to_refuse() -> None:
    mode = WatchedFakeMode(shape_env=make_shape_environment())
    x, y = (make_symbolic_fake(mode, torch.randn(n, 6), frozenset({0, 1}), (0, 1)) for n in (4, 5))
    with mode:
        assert MetadataRules()(mode, aten.add.Tensor, (x, y), {}) is NotImplemented


def test_copies_of_a_template_are_tensors_of_their_own() -> None:
    mode = WatchedFakeMode(shape_env=make_shape_environment())
    mode.rules = MetadataRules()
    x = make_symbolic_fake(mode, torch.randn(4, 6), frozenset({0, 1}), (0, 1))
    with mode:
        first, second = x + 1, x + 1
        first.add_(1)
        view = first.t()
    assert first.untyped_storage()._cdata != second.untyped_storage()._cdata == second.detach().untyped_storage()._cdata
    assert first.untyped_storage()._cdata == view.untyped_storage()._cdata
    assert (first._version, view._version, second._version) == (1, 1, 0)


def test_a_dtype_that_follows_the_default_follows_its_changes() -> None:
    mode = WatchedFakeMode()
    mode.rules = MetadataRules()
    x = make_fake(mode, torch.arange(4))
    with mode:
        assert (x / 2).dtype is torch.float32
        torch.set_default_dtype(torch.float64)
        try:
            assert (x / 2).dtype is torch.float64
        finally:
            torch.set_default_dtype(torch.float32)
