"""The FAQ on `torch.func`: its examples as printed, what it says is not supported, and the escape hatch."""

import importlib

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Artifact, Broke, Captured, RanEagerly, recording


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


@pytest.fixture(params=["eager", "aot_eager"])
def backend(request):
    return request.param


def in_one_graph(function, *args, backend="eager"):
    """Return the result of a compiled call, which has to be one graph, without breaks and without help from eager."""
    with recording() as events:
        result = plumbline.compile(function, backend=backend, fullgraph=True)(*args)
    assert sum(isinstance(event, Captured) for event in events) == 1
    assert not [event for event in events if isinstance(event, Broke | RanEagerly)]
    return result


def same(result, expected):
    torch.testing.assert_close(result, expected, rtol=0, atol=0)
    return True


def test_transform_of_a_compiled_function(backend):
    """A transform of `torch.func` can be applied to a function that is compiled."""

    @plumbline.compile(backend=backend)
    def f(x):
        return torch.sin(x)

    def g(x):
        return torch.func.grad(lambda x: f(x).sum())(x)

    x = torch.randn(2, 3)
    assert same(g(x), torch.cos(x))
    assert same(torch.vmap(f)(x), torch.sin(x))


def test_what_eager_refuses_is_refused_in_its_words(backend):
    """`torch.grad` does not exist, and the gradient of a sine of six numbers neither: errors are eager's."""

    def printed(x):
        return torch.grad(torch.sin)(x)

    def meant(x):
        return torch.func.grad(torch.sin)(x)

    for program in (printed, meant):
        errors = []
        for run in (program, plumbline.compile(program, backend=backend)):
            with pytest.raises((AttributeError, RuntimeError)) as caught:
                run(torch.randn(2, 3))
            errors.append((type(caught.value), str(caught.value)))
        assert errors[0] == errors[1]


def test_transform_inside_a_compiled_function(backend):
    """The transform inside the compiled function, which is the way to do it."""
    plumbline.config.capture_func_transforms = True

    def f(x):
        return torch.sin(x)

    def g(x):
        return torch.vmap(f)(x)

    x = torch.randn(2, 3)
    assert same(in_one_graph(g, x, backend=backend), torch.sin(x))


def test_grad_of_a_lambda_in_a_compiled_function(backend):
    """`torch.func.grad` inside a compiled function."""

    def wrapper_fn(x):
        return torch.func.grad(lambda x: x.sin().sum())(x)

    x = torch.randn(3, 3, 3)
    assert same(in_one_graph(wrapper_fn, x, backend=backend), x.cos())


def test_vmap_of_a_lambda_in_a_compiled_function(backend):
    """`torch.vmap` inside a compiled function."""

    def my_fn(x):
        return torch.vmap(lambda x: x.sum(1))(x)

    x = torch.randn(3, 3, 3)
    assert same(in_one_graph(my_fn, x, backend=backend), x.sum(2))


def test_without_capture_func_transforms_they_run_between_graphs():
    """The setting is off in the first edition: then a transform runs in eager, and the rest is compiled."""
    x = torch.randn(2, 3)

    def my_fn(x):
        return torch.vmap(torch.sin)(x + 1) * 2

    with plumbline.config.patch(capture_func_transforms=False), recording() as events:
        assert same(plumbline.compile(my_fn, backend="eager")(x), my_fn(x))
    assert [event.reason for event in events if isinstance(event, Broke)] == ["function-transform"]


# --- limitations of the first edition -----------------------------------------------------------------------------


def test_inputs_may_be_tuples_of_tensors(backend):
    """Inputs and outputs had to be tensors; a tuple of them is one graph here."""

    def fn(x):
        x1, x2 = x
        return x1 + x2, {"difference": x1 - x2}

    def my_fn(x):
        return torch.func.vmap(fn)(x)

    pair = torch.randn(3, 3, 3), torch.randn(3, 3, 3)
    assert same(in_one_graph(my_fn, pair, backend=backend), my_fn(pair))


def test_arguments_may_be_given_by_name(backend):
    """Keyword arguments were not supported; they are here."""

    def fn(x, y):
        return (x + y).sum()

    def my_fn(x, y):
        return torch.func.grad(fn)(x, y=y)

    x, y = torch.randn(3, 3), torch.randn(3, 3)
    assert same(in_one_graph(my_fn, x, y, backend=backend), my_fn(x, y))


def test_side_effects_on_what_is_made_inside(backend):
    """A list made in the function may be changed."""

    def f(x, y):
        some_list = []
        some_list.append(x)
        return some_list[0] + y

    def my_fn(x, y):
        return torch.func.vmap(f)(x, y)

    x, y = torch.ones(2, 3), torch.randn(2, 3)
    assert same(in_one_graph(my_fn, x, y, backend=backend), x + y)


def test_side_effects_on_a_list_outside_happen_once_for_each_call(backend):
    """A list from outside may be changed too: as in eager, once for each call of the compiled function."""
    some_list = []

    def f(x, y):
        some_list.append(1)
        return x + y

    def my_fn(x, y):
        return torch.func.vmap(f)(x, y)

    x, y = torch.ones(2, 3), torch.randn(2, 3)
    for count in (1, 2):
        assert same(in_one_graph(my_fn, x, y, backend=backend), x + y)
        assert some_list == [1] * count
    compiled = plumbline.compile(my_fn, backend=backend, fullgraph=True)
    for count in (3, 4, 5):
        assert same(compiled(x, y), x + y)
        assert some_list == [1] * count


QUESTIONS = (
    "stride requires_grad storage_offset layout data is_coalesced is_complex is_conj is_contiguous is_cpu is_cuda "
    "is_distributed is_floating_point is_inference is_ipu is_leaf is_meta is_mkldnn is_mps is_neg is_nested is_nonzero "
    "is_ort is_pinned is_quantized is_same_size is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla "
    "is_xpu"
).split()


def answer_or_error(run, x):
    try:
        return run(x)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_about_a_tensor_under_vmap_are_answered_as_in_eager(question):
    """Under vmap, questions about layout, kind and device are answered as in eager, or refused as there."""
    seen = []

    def bad_fn(x):
        answer = getattr(x, question)
        if question in ("is_same_size", "is_set_to"):
            answer = answer(x)
        elif callable(answer):
            answer = answer()
        return x + 1, answer if isinstance(answer, int | bool | tuple) else 0

    def my_fn(x):
        found = []

        def inside(x):
            result, answer = bad_fn(x)
            found.append(answer)
            return result

        return torch.func.vmap(inside)(x), found

    x = torch.randn(3, 3, 3)[1:]
    expected = answer_or_error(my_fn, x)
    result = answer_or_error(plumbline.compile(my_fn, backend="eager"), x)
    if isinstance(expected[0], torch.Tensor):
        assert same(result[0], expected[0])
        assert result[1] == expected[1]
    else:
        assert result == expected
    seen.append(result)


def test_a_stride_under_vmap_is_one_graph(backend):
    """The example: `stride()` under vmap breaks nothing."""

    def bad_fn(x):
        x.stride()
        return x

    def my_fn(x):
        return torch.func.vmap(bad_fn)(x)

    x = torch.randn(3, 3, 3)
    assert same(plumbline.compile(my_fn, backend=backend)(x), x)


def test_a_storage_offset_under_vmap_is_one_graph(backend):
    """`storage_offset()` under vmap is the place of the elements in memory, and guarded."""

    def my_fn(x):
        return torch.func.vmap(lambda row: row[1:] * row.storage_offset())(x)

    x = torch.randn(4, 3)
    for given in (x, x[1:], x[2:]):
        assert same(in_one_graph(my_fn, given, backend=backend), my_fn(given))


# --- the escape hatch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["plumbline", "torch._dynamo", "torch.compiler"])
def test_allow_in_graph_inside_a_compiled_function(module, backend):
    """`allow_in_graph(torch.vmap(torch.sum))(x)` in a compiled function is part of its graph."""
    marks = importlib.import_module(module)

    def f(x):
        return marks.allow_in_graph(torch.vmap(torch.sum))(x)

    x = torch.randn(2, 3)
    assert same(in_one_graph(f, x, backend=backend), x.sum(1))


def test_allow_in_graph_inside_marks_a_function_of_the_module(backend):
    """What is marked in a compiled function is one node of the graph, and stays marked."""

    def f(x):
        return plumbline.allow_in_graph(sleeps)(x) + 1

    x = torch.randn(3)
    assert same(in_one_graph(f, x, backend=backend), x * 2 + 1)
    assert same(in_one_graph(lambda x: sleeps(x), x, backend=backend), x * 2)


def sleeps(x):
    importlib.import_module("time").sleep(0)  # capture would break here
    return x * 2


def test_what_is_allowed_is_traced_by_autograd():
    """An allowed function is a black box for capture alone: its operators are traced to ATen, with gradients."""

    @plumbline.allow_in_graph
    def black_box(x):
        importlib.import_module("os").getcwd()
        return x.sin() * 2

    x = torch.randn(3, requires_grad=True)
    with recording() as events:
        plumbline.compile(lambda x: black_box(x).sum(), backend="aot_eager", fullgraph=True)(x).backward()
    (joint,) = [event.text for event in events if isinstance(event, Artifact) and event.name == "joint"]
    assert "aten.sin" in joint
    assert same(x.grad, 2 * x.detach().cos())


def test_in_place_operations_inside_an_allowed_function(backend):
    """An allowed function may write in place, if it is functional from outside."""

    @plumbline.allow_in_graph
    def from_outside(x):
        result = x.clone()
        result.add_(1)
        return result

    x = torch.randn(3)
    assert same(in_one_graph(lambda x: from_outside(x) * 2, x, backend=backend), (x + 1) * 2)


def test_the_state_of_a_module_is_an_argument_by_functional_call(backend):
    """An allowed function may not depend on parameters; `functional_call` makes them its arguments."""
    model = torch.nn.Linear(3, 2)

    @plumbline.allow_in_graph
    def forward(parameters, x):
        return torch.func.functional_call(model, parameters, (x,))

    def f(x):
        return forward(dict(model.named_parameters()), x).sum()

    x = torch.randn(4, 3)
    in_one_graph(f, x, backend=backend).backward()
    found, model.weight.grad = model.weight.grad, None
    f(x).backward()
    assert same(found, model.weight.grad)


# --- other transforms ---------------------------------------------------------------------------------------------


def linearized(x):
    result, push = torch.func.linearize(lambda x: x.sin() * 2, x)
    return result, push(torch.ones_like(x)), push(x)


OTHERS = {
    "linearize": linearized,
    "vjp": lambda x: torch.func.vjp(torch.sin, x)[1](x),
    "jvp": lambda x: torch.func.jvp(torch.sin, (x,), (x,)),
    "jacrev": lambda x: torch.func.jacrev(torch.sin)(x),
    "jacfwd": lambda x: torch.func.jacfwd(torch.sin)(x),
    "hessian": lambda x: torch.func.hessian(lambda x: x.sin().sum())(x),
    "grad_and_value": lambda x: torch.func.grad_and_value(lambda x: x.sin().sum())(x),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_transforms_are_one_graph_too(name, backend):
    """Transforms that the documents do not name are captured as well."""
    x = torch.randn(3)
    torch.testing.assert_close(in_one_graph(OTHERS[name], x, backend=backend), OTHERS[name](x))


def test_linearize_where_autograd_follows_stays_eagers(backend):
    """What `linearize` records at a tensor that requires a gradient has a history in eager: it runs there."""
    x = torch.randn(3, requires_grad=True)
    expected = torch.autograd.grad(linearized(x)[0].sum(), x)
    found = torch.autograd.grad(plumbline.compile(linearized, backend=backend)(x)[0].sum(), x)
    assert same(found, expected)
