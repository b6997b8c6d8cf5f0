"""The `backward` of an autograd function runs after the forward: it reads what the program has by then, and writes."""

import types

import pytest
import torch
from torch.autograd import Function

import plumbline
from plumbline.compiler.base.errors import Unsupported

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
FACTOR = 1.0
STATE = types.SimpleNamespace()
LITERAL = torch.full((2,), 3.0)


def reset():
    STATE.written, STATE.table, STATE.items = torch.zeros(2), {"a": 1.0}, [1.0]
    STATE.factor, STATE.layer, STATE.scale = 1.0, torch.nn.BatchNorm1d(2), torch.full((2,), 3.0)
    Reversed.factor = 1.0


def function(backward, forward=lambda ctx, x: x * 1):
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class Reversed(Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -Reversed.factor * gradient


def table_on_ctx(ctx, x):
    ctx.table = STATE.table
    return x * 1


def layer_on_ctx(ctx, x):
    ctx.layer = STATE.layer
    return x * 1


def tensor_on_ctx(ctx, x):
    ctx.kept = STATE.written
    return x * 1


def counter_on_ctx(ctx, x):
    ctx.count, ctx.seen = 0, []
    return x * 2


def counted(ctx, gradient):
    ctx.count += 1
    return gradient * ctx.count


def listed(ctx, gradient):
    ctx.seen.append(1)
    return gradient * len(ctx.seen)


def adds_to(tensor):
    def backward(ctx, gradient):
        tensor().add_(gradient)
        return gradient

    return backward


FUNCTIONS = {
    "attribute of a class": Reversed,
    "attribute": function(lambda ctx, gradient: gradient * STATE.factor),
    "item": function(lambda ctx, gradient: gradient * STATE.table["a"]),
    "items": function(lambda ctx, gradient: gradient * sum(STATE.items)),
    "mode of a layer": function(lambda ctx, gradient: gradient * 2 if STATE.layer.training else gradient),
    "buffer": function(lambda ctx, gradient: gradient * STATE.layer.running_var),
    "tensor": function(lambda ctx, gradient: gradient * STATE.scale, lambda ctx, x: x * STATE.scale),
    "global tensor": function(lambda ctx, gradient: gradient * LITERAL),
    "literal": function(lambda ctx, gradient: gradient * torch.tensor(2.0)),
    "literals": function(lambda ctx, gradient: torch.where(gradient > 0, gradient.new_tensor(2.0), torch.tensor(0.0))),
    "table on ctx": function(lambda ctx, gradient: gradient * ctx.table["a"], table_on_ctx),
    "layer on ctx": function(lambda ctx, gradient: gradient * 2 if ctx.layer.training else gradient, layer_on_ctx),
    "counter on ctx": function(counted, counter_on_ctx),
    "list on ctx": function(listed, counter_on_ctx),
    "write": function(adds_to(lambda: STATE.written)),
    "write to what ctx holds": function(lambda ctx, gradient: (ctx.kept.add_(gradient), gradient)[1], tensor_on_ctx),
    "write to the gradient": function(lambda ctx, gradient: gradient.mul_(2)),
}


def change(turn):
    STATE.factor, Reversed.factor = 2.0 + turn, 2.0 + turn
    STATE.table["a"] = 5.0 + turn
    STATE.items.append(2.0)
    STATE.layer.train(not STATE.layer.training)
    with torch.no_grad():
        STATE.layer.running_var.add_(1)
        STATE.scale.mul_(2)


def outcome(function, compiled, *, between):
    reset()
    seen = []
    for turn in range(3):
        leaf, given = torch.ones(2, requires_grad=True), torch.ones(2)
        if not between:
            change(turn)
        result = compiled(leaf)
        if between:
            change(turn)
        result.backward(given, retain_graph=True)
        result.backward(given)
        seen.append((result.tolist(), leaf.grad.tolist(), given.tolist(), STATE.written.tolist()))
    return seen


@BACKENDS
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_in_eager(name, between, backend):
    kind = FUNCTIONS[name]
    compiled = plumbline.compile(lambda x: kind.apply(x), backend=backend)
    assert outcome(kind, compiled, between=between) == outcome(kind, kind.apply, between=between)


class OfAGlobal(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * FACTOR


@BACKENDS
def test_a_constant_of_the_module_that_changes_between_calls(backend):
    compiled = plumbline.compile(lambda x: OfAGlobal.apply(x).sum(), backend=backend, fullgraph=True)
    try:
        for factor in (1.0, 3.0, 5.0, 7.0):
            globals()["FACTOR"] = factor
            leaf = torch.ones(2, requires_grad=True)
            compiled(leaf).backward()
            assert leaf.grad.tolist() == [factor] * 2
    finally:
        globals()["FACTOR"] = 1.0


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_constant_that_changes_before_the_backward_is_said(backend):
    result = plumbline.compile(lambda x: OfAGlobal.apply(x).sum(), backend=backend)(torch.ones(2, requires_grad=True))
    globals()["FACTOR"] = 9.0
    try:
        with pytest.raises(Unsupported, match="'FACTOR', which the backward of an autograd function reads"):
            result.backward()
    finally:
        globals()["FACTOR"] = 1.0


BUFFER = torch.zeros(2)


def counts(gradient):
    BUFFER.add_(gradient)


def doubles(gradient):
    return gradient * torch.tensor(2.0)


def hooked_by_one_from_outside(x):
    made = x * 2
    made.register_hook(counts)
    return made * 3


def hooked_by_one_from_inside(x):
    made = x * 2
    made.register_hook(lambda gradient: (BUFFER.add_(gradient), None)[1])
    return made * 3


def hooked_with_a_literal(x):
    made = x * 2
    made.register_hook(doubles)
    return made * 3


@BACKENDS
@pytest.mark.parametrize("program", [hooked_by_one_from_outside, hooked_by_one_from_inside, hooked_with_a_literal])
def test_hooks_that_write_outside(program, backend):
    def seen(run):
        BUFFER.zero_()
        found = []
        for _ in range(3):
            leaf = torch.ones(2, requires_grad=True)
            run(leaf).sum().backward()
            found.append((leaf.grad.tolist(), BUFFER.tolist()))
        return found

    assert seen(plumbline.compile(program, backend=backend)) == seen(program)
