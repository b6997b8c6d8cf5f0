import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.graph_printing import graph_text
from plumbline.compiler.graph.passes import SIMPLIFY, replace_pass, run_passes
from plumbline.compiler.graph.tracer import trace

aten = torch.ops.aten
CHECKED = Options(verify=True)


def targets(gm):
    return [node.target for node in gm.graph.nodes if node.op == "call_function"]


def simplified(function, *inputs):
    return run_passes(trace(function, inputs), SIMPLIFY, CHECKED, functional=False)


def test_equal_calls_are_shared():
    gm = simplified(lambda x: (x + 1) * (x + 1), torch.ones(3))
    assert targets(gm) == [aten.add.Tensor, aten.mul.Tensor]


def test_numbers_that_compare_equal_but_are_not_the_same_stay_apart():
    gm = simplified(lambda x: (x * 0.0) / (x * -0.0), torch.ones(3))
    assert targets(gm).count(aten.mul.Tensor) == 2


def test_two_outputs_never_become_one_tensor():
    x = torch.ones(3)
    first, second = interpret(simplified(lambda x: (x + 1, x + 1), x), (x,))
    assert first.data_ptr() != second.data_ptr()


def test_calls_are_not_shared_across_a_write():
    def f(x):
        y = x + 1
        before = y * 2
        y.add_(1)
        return before + y * 2

    gm = simplified(f, torch.ones(3))
    assert targets(gm).count(aten.mul.Tensor) == 2
    assert torch.equal(interpret(gm, (torch.ones(3),))[0], torch.full((3,), 10.0))


def test_a_value_that_is_written_is_not_shared():
    def f(x):
        a, b = x.clone(), x.clone()
        a.add_(1)
        return b * 1 + a * 0

    assert torch.equal(interpret(simplified(f, torch.ones(3)), (torch.ones(3),))[0], torch.ones(3))


def test_random_calls_stay_and_are_never_shared():
    def f(x):
        torch.rand(3)
        return torch.rand(3) + torch.rand(3) + x

    assert targets(simplified(f, torch.ones(3))).count(aten.rand.default) == 3


def test_dead_calls_go():
    def f(x):
        x.sin().cos()
        return x + 1

    assert targets(simplified(f, torch.ones(3))) == [aten.add.Tensor]


def test_scalar_constants_are_computed_once():
    gm = simplified(lambda x: x + torch.full((), 2.0).sqrt() * 3, torch.ones(3))
    assert targets(gm) == [aten.full.default, aten.add.Tensor]
    assert torch.equal(interpret(gm, (torch.ones(3),))[0], torch.ones(3) + torch.full((), 2.0).sqrt() * 3)


def test_a_pass_can_be_replaced_in_a_scope():
    def drop_everything_random(gm):
        for node in reversed(list(gm.graph.nodes)):
            if node.target is aten.rand.default and not node.users:
                gm.graph.erase_node(node)
        return gm

    def f(x):
        torch.ops.aten.rand([3])
        return x + 1

    with replace_pass("drop_dead_nodes", drop_everything_random):
        assert aten.rand.default not in targets(simplified(f, torch.ones(3)))
    assert aten.rand.default in targets(simplified(f, torch.ones(3)))
    with pytest.raises(UserError, match="no pass"), replace_pass("polish", drop_everything_random):
        pass


STEPS = {
    "sin": lambda v: v[-1].sin(),
    "twice": lambda v: v[-1] + v[-1],
    "mix": lambda v: v[-1] * v[0],
    "row": lambda v: v[-1][0].expand(3, 3),
    "turn": lambda v: v[-1].t(),
    "one": lambda v: v[-1] + torch.full((), 1.0),
    "again": lambda v: v[0].sin(),
    "write": lambda v: v[-1].clone().mul_(2),
    "late write": lambda v: (v[1].add_(1), v[1] * 1)[1],
    "draw": lambda v: v[-1] + torch.rand(3, 3),
    "detach": lambda v: v[-1].detach(),
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=10), st.sets(st.integers(0, 9), max_size=3))
def test_passes_keep_the_meaning_and_text_runs(steps, given_out):
    def program(x):
        values = [x, x * 0.5]
        for step in steps:
            values.append(STEPS[step](values))
        return [values[-1], *(values[2 + index] for index in sorted(given_out) if 2 + index < len(values))]

    x = torch.linspace(-1, 1, 9).view(3, 3)
    gm = trace(program, (x,))
    results = []
    for run in (
        program,
        lambda x: interpret(gm, (x,)),
        graph_text(gm).run(),
        lambda x: interpret(run_passes(gm, SIMPLIFY, CHECKED, functional=False), (x,)),
    ):
        torch.manual_seed(0)
        results.append([*run(x), torch.get_rng_state()])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_printing_then_tracing_gives_the_same_text():
    def f(x, w):
        return torch.nn.functional.layer_norm(x @ w, (3,)), x[:, 1:].to(torch.float64), x + float("inf")

    inputs = (torch.randn(2, 4), torch.randn(4, 3))
    first = graph_text(trace(f, inputs))
    second = graph_text(trace(first.run(), inputs))
    assert first.text == second.text
