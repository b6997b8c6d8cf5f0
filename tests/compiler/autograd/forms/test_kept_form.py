"""Forms that come from disk: what they give, what lets a new one be made, and what is never kept."""

import itertools
import random

import pytest
import torch
from torch import nn

from plumbline.compiler.autograd.forms import form_place
from plumbline.compiler.autograd.forms.kept_form import constants_of_plain, plain_constants
from plumbline.compiler.base.events import GraphStored, forget_stage_times, recording, stage_times
from plumbline.compiler.lowering.registry import lowering_of, replace_lowering
from plumbline.compiler.stored.plain_data import NotPlain
from tests.support.kept_graphs import assert_same_outcome, compiled_anew, fresh, played

aten = torch.ops.aten


def grad(*shape):
    return torch.linspace(-1, 2, torch.Size(shape).numel()).reshape(shape).requires_grad_()


def plain(*shape):
    return grad(*shape).detach()


def two_results(x, w):
    y = torch.nn.functional.gelu(x @ w)
    return y.sin(), (y * 2).view(-1), x


def writes(x, y):
    x.mul_(2)
    y[0] = 3.0
    return x + y, x


def holds_numbers(x):
    return x * torch.tensor([2.0, 3.0, 4.0]) + torch.tensor(1, dtype=torch.int64)


def draws(x):
    return torch.nn.functional.dropout(x, 0.5, True) + torch.rand_like(x)


def views(x):
    return x.t(), x[1:], x.detach(), x.unsqueeze(0).expand(2, -1, -1), None, 3


def no_gradient(x):
    with torch.no_grad():
        y = x.exp()
    return y + x


def statistics(x):
    layer = nn.functional.batch_norm(x, RUNNING[0], RUNNING[1], training=True)
    return layer.relu()


def of_many_kinds(x):
    return x.sort()[1], x.to(torch.bfloat16), torch.complex(x, x), x > 0, x.sum(), x.new_zeros(0)


RUNNING = [torch.zeros(3), torch.ones(3)]

PROGRAMS = {
    "two results": (two_results, lambda: (grad(3, 4), grad(4, 2))),
    "without gradients": (two_results, lambda: (plain(3, 4), plain(4, 2))),
    "writes": (writes, lambda: (plain(3, 3), plain(3, 3))),
    "numbers of its own": (holds_numbers, lambda: (grad(2, 3),)),
    "random numbers": (draws, lambda: (grad(4, 4),)),
    "views": (views, lambda: (grad(3, 3),)),
    "no gradient inside": (no_gradient, lambda: (grad(3, 3),)),
    "running statistics": (statistics, lambda: (grad(4, 3, 2),)),
    "strides": (two_results, lambda: (plain(4, 3).t().requires_grad_(), grad(4, 2))),
    "bfloat16": (two_results, lambda: (plain(3, 4).bfloat16().requires_grad_(), plain(4, 2).bfloat16())),
    "many kinds": (of_many_kinds, lambda: (grad(3, 3),)),
}


@pytest.mark.parametrize(
    ("name", "dynamic"), [*((name, False) for name in PROGRAMS), ("two results", True), ("views", True)]
)
def test_a_form_from_disk_gives_what_eager_gives(name, dynamic, tmp_path):
    program, make = PROGRAMS[name]

    def outcome(run):
        RUNNING[:] = [torch.zeros(3), torch.ones(3)]
        return run(), [value.clone() for value in RUNNING]

    expected, statistics = outcome(lambda: played(program, make()))
    traced = []
    for _ in range(2):
        actual, others = outcome(lambda: compiled_anew(program, make, tmp_path, dynamic_shapes=dynamic or None))
        assert_same_outcome(actual, expected)
        torch.testing.assert_close(others, statistics)
        traced.append(actual.traced)
    assert traced == [True, False]


def test_layers_from_disk_train_alike(tmp_path):
    def losses(compiled):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = fresh(model, tmp_path) if compiled else model
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = run(plain(5, 4)).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    expected = losses(False)
    for traced in (True, False):
        forget_stage_times()
        assert losses(True) == pytest.approx(expected, rel=1e-5)
        assert ("joint" in stage_times()) is traced


def test_other_sizes_than_the_form_was_made_for_are_compiled_anew(tmp_path):
    def program(x):
        return (x.softmax(1) * x.shape[0]).sum(0), x.reshape(-1)

    for _ in range(2):
        run = fresh(program, tmp_path, dynamic_shapes=True)
        for size in (3, 7, 2, 1, 0, 40):
            assert_same_outcome(played(run, (grad(size, 5),)), played(program, (grad(size, 5),)))


def test_gradients_of_some_results_come_from_disk_and_others_are_cut_or_traced(tmp_path):
    def program(x):
        y = x.exp()
        return y.sin(), y.cos() * x

    def gradients(run):
        x = grad(3)
        first, second = run(x)
        alone = torch.autograd.grad(second.sum(), x, retain_graph=True)[0]
        both = torch.autograd.grad(first.sum() + second.sum(), x, retain_graph=True)[0]
        return alone, both, torch.autograd.grad(first.sum(), x)[0]

    expected = gradients(program)
    for traces in (1, 0):
        forget_stage_times()
        run = fresh(program, tmp_path)
        torch.testing.assert_close(gradients(run), expected)
        assert len(stage_times().get("joint", ())) == traces
    removed = 0
    for path in tmp_path.rglob("*.graph"):
        if b"KeptBackward" in path.read_bytes():
            path.unlink()
            removed += 1
    assert removed == 3
    forget_stage_times()
    run = fresh(program, tmp_path)
    torch.testing.assert_close(gradients(run), expected)
    assert len(stage_times()["joint"]) == 3


def test_gradients_are_differentiated_again(tmp_path):
    def second(run):
        x = grad(4)
        (first,) = torch.autograd.grad(run(x), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    def program(x):
        return (x.sin() * x).sum()

    for _ in range(2):
        run = fresh(program, tmp_path)
        torch.testing.assert_close(second(run), second(program))


def test_an_index_out_of_range_is_eagers_error_from_disk_too(tmp_path):
    def program(x, index):
        return x[index] + 1

    for _ in range(2):
        compiled_anew(program, lambda: (plain(4), torch.tensor([1, 3])), tmp_path)
        run = fresh(program, tmp_path)
        run(plain(4), torch.tensor([0, 1]))
        with pytest.raises(IndexError, match="out of"):
            run(plain(4), torch.tensor([0, 9]))


# -- what lets a new form be made ----------------------------------------------------------------------------------


def base(x, y):
    return torch.nn.functional.softplus(x * 2.0 + y, beta=1.0).sum(0)


INPUTS = (lambda: (grad(3, 4), plain(3, 4)),)


def _closure(number):
    return lambda x, y: torch.nn.functional.softplus(x * number + y, beta=1.0).sum(0)


OTHER_PROGRAMS = {
    "a constant": _closure(3.0),
    "the sign of a zero": _closure(-0.0),
    "a constant of another type": _closure(2),
    "an attribute": lambda x, y: torch.nn.functional.softplus(x * 2.0 + y, beta=2.0).sum(0),
    "a dimension": lambda x, y: torch.nn.functional.softplus(x * 2.0 + y, beta=1.0).sum(1),
    "an operator": lambda x, y: torch.nn.functional.softplus(x * 2.0 - y, beta=1.0).sum(0),
    "the order of operands": lambda x, y: torch.nn.functional.softplus(y * 2.0 + x, beta=1.0).sum(0),
    "one result more": lambda x, y: (torch.nn.functional.softplus(x * 2.0 + y, beta=1.0).sum(0), x * 2.0),
}
OTHER_INPUTS = {
    "a shape": lambda: (grad(3, 5), plain(3, 5)),
    "a broadcast": lambda: (grad(3, 4), plain(4)),
    "a stride": lambda: (plain(4, 3).t().requires_grad_(), plain(3, 4)),
    "a dtype": lambda: (plain(3, 4).double().requires_grad_(), plain(3, 4)),
    "no gradient": lambda: (plain(3, 4), plain(3, 4)),
    "two gradients": lambda: (grad(3, 4), grad(3, 4)),
    "a parameter": lambda: (nn.Parameter(plain(3, 4)), plain(3, 4)),
    "no leaf": lambda: (grad(3, 4) * 1, plain(3, 4)),
    "one tensor twice": lambda: (lambda x: (x, x))(grad(3, 4)),
}
OTHER_OPTIONS = {"fuse": False, "threads": 1, "save_budget": 0.5, "recompile_limit": 9}


@pytest.fixture
def kept(tmp_path):
    """Give a cache that holds `base`, and a form of it that has been found there."""
    assert [compiled_anew(base, INPUTS[0], tmp_path).traced for _ in range(2)] == [True, False]
    return tmp_path


@pytest.mark.parametrize("name", OTHER_PROGRAMS)
def test_another_program_is_made_anew(name, kept):
    actual = compiled_anew(OTHER_PROGRAMS[name], INPUTS[0], kept)
    assert actual.traced
    assert_same_outcome(actual, played(OTHER_PROGRAMS[name], INPUTS[0]()))


@pytest.mark.parametrize("name", OTHER_INPUTS)
def test_other_inputs_are_made_anew(name, kept):
    actual = compiled_anew(base, OTHER_INPUTS[name], kept)
    assert actual.traced
    assert_same_outcome(actual, played(base, OTHER_INPUTS[name]()))


@pytest.mark.parametrize("name", OTHER_OPTIONS)
def test_other_options_are_made_anew(name, kept):
    assert compiled_anew(base, INPUTS[0], kept, **{name: OTHER_OPTIONS[name]}).traced


def _autocast():
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.parametrize("state", [torch.no_grad, torch.inference_mode, _autocast])
def test_another_state_is_made_anew(state, kept):
    def program(x, y):
        return x @ y.t()

    make = INPUTS[0]
    assert [compiled_anew(program, make, kept).traced for _ in range(2)] == [True, False]
    for traced in (True, False):
        with state():
            actual, expected = compiled_anew(program, make, kept), played(program, make())
        assert actual.traced is traced
        assert_same_outcome(actual, expected)


def test_another_process_is_made_anew(kept, monkeypatch):
    monkeypatch.setattr(form_place, "process_facts", lambda: ("another process",))
    assert compiled_anew(base, INPUTS[0], kept).traced


def test_a_planted_lowering_is_neither_kept_nor_hidden_by_what_is(kept):
    def wrong(call):
        return call.pointwise(lambda builder, x: builder.constant(7.0, torch.float32), "self")

    def program(x):
        return x.sin()

    def make():
        return (plain(3),)

    assert lowering_of(aten.sin.default) is not None
    with replace_lowering(aten.sin.default, wrong):
        assert torch.equal(compiled_anew(program, make, kept).results[0], torch.full((3,), 7.0))
    for traced in (True, False):
        actual = compiled_anew(program, make, kept)
        assert_same_outcome(actual, played(program, make()))
        assert actual.traced is traced
    with replace_lowering(aten.sin.default, wrong):
        assert torch.equal(compiled_anew(program, make, kept).results[0], torch.full((3,), 7.0))


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_entries_that_are_damaged_are_not_there(damage, kept):
    for path in kept.rglob("*.graph"):
        path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
    for traced in (True, False):
        actual = compiled_anew(base, INPUTS[0], kept)
        assert actual.traced is traced
        assert_same_outcome(actual, played(base, INPUTS[0]()))


def test_an_entry_that_cannot_be_read_back_is_not_there(kept, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("plumbline.compiler.stored_code.built_segments", _raises)
        actual = compiled_anew(base, INPUTS[0], kept)
    assert actual.traced
    assert_same_outcome(actual, played(base, INPUTS[0]()))


def _raises(*args):
    raise KeyError("an entry of an odd kind")


def test_a_library_that_is_gone_is_built_again(kept):
    for path in kept.rglob("*.so"):
        path.unlink()
    actual = compiled_anew(base, INPUTS[0], kept)
    assert not actual.traced
    assert_same_outcome(actual, played(base, INPUTS[0]()))


# -- what is never kept, or not looked for -------------------------------------------------------------------------


def _stored(run, *inputs):
    with recording() as events:
        run(*inputs)
    return [(event.part, event.outcome, event.why) for event in events if isinstance(event, GraphStored)]


def test_who_listens_sees_every_stage_and_what_becomes_of_the_graph(kept):
    with recording() as events:
        assert compiled_anew(base, INPUTS[0], kept).traced
    assert [event.outcome for event in events if isinstance(event, GraphStored)] == ["kept", "kept"]


@pytest.mark.parametrize(
    "options", [{"verify": True}, {"bisect": "list"}, {"disk_cache": False}, {"graph_cache": False}]
)
def test_options_that_want_every_stage_switch_it_off(options, kept):
    for _ in range(2):
        assert compiled_anew(base, INPUTS[0], kept, **options).traced


def test_an_operator_of_the_programs_own_is_not_kept(tmp_path):
    with torch.library._scoped_library("test_kept_form", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.impl("twice", lambda x: torch.empty_like(x), "Meta")
        found = _stored(fresh(lambda x: torch.ops.test_kept_form.twice.default(x) + 1, tmp_path), plain(3))
    assert found[0][:2] == ("graph", "not kept")
    assert "test_kept_form" in found[0][2]
    assert not list(tmp_path.rglob("*.graph"))


def test_tensors_that_a_graph_holds_come_back_or_are_refused():
    kept = [torch.tensor(2.5), torch.arange(6).reshape(2, 3).t(), torch.tensor([True]), torch.zeros(0, 3)]
    for one, other in zip(kept, constants_of_plain(plain_constants(kept)), strict=True):
        assert (one.dtype, one.stride()) == (other.dtype, other.stride())
        assert torch.equal(one, other)
    for refused in (torch.zeros(1 << 16), torch.zeros(1).expand(3), torch.zeros(2, device="meta"), grad(2)):
        with pytest.raises(NotPlain):
            plain_constants([refused])


# -- pairs of programs that are almost the same --------------------------------------------------------------------

CHOICES = {
    "factor": (2.0, 2, -2.0, 0.5, float("inf")),
    "axis": (0, 1, -1),
    "keep": (False, True),
    "power": (2, 3, 2.0),
    "unary": (torch.sin, torch.cos, torch.abs, torch.Tensor.exp),
    "join": (torch.add, torch.sub, torch.mul, torch.maximum),
    "both": (False, True),
}
INPUT_CHOICES = {
    "rows": (3, 4),
    "dtype": (torch.float32, torch.float64),
    "transposed": (False, True),
    "needs": (False, True),
    "offset": (0, 1),
}


def _program(made):
    def program(x, y):
        z = made["join"](made["unary"](x) * made["factor"], y)
        result = (z ** made["power"]).sum(made["axis"], keepdim=made["keep"])
        return (result, z) if made["both"] else result

    return program


def _inputs(made):
    count = made["rows"] * 4 + made["offset"]
    x = torch.linspace(0.1, 1, count, dtype=made["dtype"])[made["offset"] :].reshape(made["rows"], 4)
    y = torch.linspace(1, 2, made["rows"] * 4, dtype=made["dtype"]).reshape(4, made["rows"]).t()
    x = x.t().contiguous().t() if made["transposed"] else x
    return x.clone(memory_format=torch.preserve_format).requires_grad_(made["needs"]), y


@pytest.mark.parametrize("seed", range(3))
def test_programs_that_are_almost_the_same_keep_their_answers(seed, tmp_path):
    draw = random.Random(seed)
    every = {**CHOICES, **INPUT_CHOICES}
    made = {name: draw.choice(values) for name, values in every.items()}
    variants = [made]
    for name in draw.sample(sorted(every), 4):
        variants.append({**made, name: draw.choice([value for value in every[name] if value is not made[name]])})
    for variant in [*variants, *variants]:
        program = _program(variant)
        actual = compiled_anew(program, lambda: _inputs(variant), tmp_path)  # noqa: B023 - called at once
        assert_same_outcome(actual, played(program, _inputs(variant)))
    assert not actual.traced


def test_sizes_in_any_order_keep_their_answers(tmp_path):
    def program(x, y):
        return x @ y if x.shape[0] != y.shape[1] else (x @ y).t() + x.shape[0]

    for sizes in itertools.permutations([(2, 3), (3, 3), (5, 2)]):
        run = fresh(program, tmp_path)
        for rows, columns in sizes:
            inputs = plain(rows, 4), plain(4, columns)
            assert_same_outcome(played(run, inputs), played(program, inputs))
