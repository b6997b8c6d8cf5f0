"""The FAQ on NumPy: its examples as printed, where it deviates, and what falls back to NumPy."""

import importlib

import numpy as np
import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported, UserError
from plumbline.compiler.base.events import Artifact, Broke, Captured, CompilerFailed, recording
from support.gpu_only import needs_gpu

ANOTHER_ORDER = {"rtol": 1e-12, "atol": 1e-12}  # sums are rounded otherwise: docs/numpy.md


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def watched(function, *args, **settings):
    """Return the result of a compiled call, and how many graphs and breaks it took; an error of ours fails."""
    with recording() as events:
        result = plumbline.compile(function, backend="eager", **settings)(*args)
    assert not [event for event in events if isinstance(event, CompilerFailed)]
    return result, *(sum(isinstance(event, kind) for event in events) for kind in (Captured, Broke))


def numpy_fn(X: np.ndarray, Y: np.ndarray) -> np.ndarray:  # noqa: N803 - as in the document
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))


def arrays():
    return np.random.randn(1024, 64), np.random.randn(1024, 64)


def test_a_numpy_program_is_compiled():
    """`compile` takes functions of NumPy arrays, and gives arrays."""
    x, y = arrays()
    z, graphs, breaks = watched(numpy_fn, x, y)
    assert isinstance(z, np.ndarray)
    assert (graphs, breaks) == (1, 0)
    np.testing.assert_allclose(z, numpy_fn(x, y), **ANOTHER_ORDER)


def test_programs_of_both_convert_in_the_graph():
    """`x.numpy()` and `torch.from_numpy` are part of the graph."""

    def program(x, y):
        return torch.from_numpy(numpy_fn(x.numpy(), y.numpy())) + 1

    x, y = torch.randn(16, 4), torch.randn(16, 4)
    z, graphs, breaks = watched(program, x, y)
    assert (graphs, breaks) == (1, 0)
    torch.testing.assert_close(z, program(x, y))


@pytest.mark.cc
def test_product_and_sum_are_one_kernel():
    """With TORCH_LOGS=output_code one sees that product and sum are one C++ kernel, run by several threads."""
    with recording() as events, plumbline.config.patch(threads=2):
        plumbline.compile(numpy_fn)(*arrays())
    (text,) = [event.text for event in events if isinstance(event, Artifact) and event.name == "graph.c"]
    kernel = text.partition("static void kernel_0_run(")[2].partition("\n}")[0]
    assert "int thread, int threads" in kernel
    assert "(t0 * t1)" in kernel
    assert "acc" in kernel
    assert "kernel_0_thread" in text


# --- where semantics may deviate ----------------------------------------------------------------------------------


def test_scalars_stay_scalars():
    """NumPy scalars may become arrays of no dimension; here they are what they are in NumPy, in one graph."""
    scalar, _, breaks = watched(lambda: np.float32(3))
    assert (type(scalar), scalar, breaks) == (np.float32, 3, 0)
    product, graphs, breaks = watched(lambda x: x * np.float32(3), np.ones(3, np.float32))
    assert (product.dtype, graphs, breaks) == (np.float32, 1, 0)


def test_scalars_can_be_cast_to_pythons_numbers():
    """The workaround: cast a NumPy scalar to bool, int or float."""
    result, graphs, breaks = watched(lambda x: x * float(np.float32(3)) + int(np.int8(2)), np.ones(3, np.float32))
    assert (result.tolist(), graphs, breaks) == ([5, 5, 5], 1, 0)


@pytest.mark.parametrize("program", [lambda x: np.flip(x, 0), lambda x: x[::-1], lambda x: x[:, ::-2]])
def test_negative_strides_are_numpys_views(program):
    """`np.flip` and negative steps may return copies; here they return the views that NumPy returns."""
    x = np.arange(12.0).reshape(3, 4)
    result, _, _ = watched(program, x)
    assert np.array_equal(result, program(x))
    assert result.strides == program(x).strides
    assert np.shares_memory(result, x)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.astype(np.float32) + np.float64(3),
        lambda x: x.astype(np.float32) + 3.0,
        lambda x: x.astype(np.int8) + 1,
        lambda x: x.astype(np.uint8) + np.int64(1),
        lambda x: np.float32(3) + 3.0 + x.astype(np.float16),
    ],
)
def test_types_are_promoted_as_nep_50_says(program):
    """Promotion follows NEP 50: Python's numbers are weak, NumPy's are not."""
    x = np.arange(4.0)
    result, _, _ = watched(program, x)
    assert result.dtype == program(x).dtype
    assert np.array_equal(result, program(x))


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices", "tril_indices_from", "triu_indices_from"])
def test_indices_of_triangles_are_numpys_tuples(name):
    """Indices of triangles may come as one array; here they are NumPy's tuple of two."""
    argument = np.ones((3, 3)) if name.endswith("from") else 3
    expected = getattr(np, name)(argument)
    result, _, _ = watched(lambda: getattr(np, name)(argument))
    assert type(result) is tuple
    assert all(map(np.array_equal, result, expected))


# --- what falls back to NumPy -------------------------------------------------------------------------------------

RECORDS = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])


class Sub(np.ndarray):
    """A subclass of arrays."""


class Wrapping(np.ndarray):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        return ("wrapped", float(np.asarray(array).sum()))


class WithFunction:
    def __array_function__(self, function, types, args, kwargs):
        return function.__name__


class WithInterface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


FALLBACKS = {
    "datetimes": lambda x: np.datetime64("2020-01-01") + np.arange(3),
    "strings": lambda x: np.array(["a", "b"]),
    "chars": lambda x: np.char.upper(np.array(["a", "b"])),
    "void": lambda x: np.zeros(2, dtype="V4"),
    "structured": lambda x: RECORDS["b"] * 2,
    "recarrays": lambda x: RECORDS.view(np.recarray).b,
    "float128": lambda x: x.astype(np.longdouble) * 2,
    "complex256": lambda x: x.astype(np.clongdouble) * 2,
    "uint16": lambda x: x.astype(np.uint16) + np.uint16(1),
    "uint32": lambda x: x.astype(np.uint32) * 2,
    "uint64": lambda x: x.astype(np.uint64) * 2,
    "subclasses": lambda x: x.view(Sub) * 2,
    "masked arrays": lambda x: np.ma.masked_greater(x, 3).sum(),
    "axes": lambda x: np.matmul(x, x, axes=[(1, 0), (0, 1), (0, 1)]),
    "ufunc methods": lambda x: np.add.reduce(x),
    "ordering complex numbers": lambda x: np.sort(x * 1j - 2),
    "poly1d": lambda x: np.poly1d([1, 2])(x),
    "polynomial": lambda x: np.polynomial.Polynomial([1.0, 2.0])(x),
    "out1, out2": lambda x: np.modf(x, np.empty_like(x), np.empty_like(x)),
    "out=tuple": lambda x: np.modf(x, out=(np.empty_like(x), np.empty_like(x))),
    "__array_function__": lambda x: np.sum(WithFunction()),
    "__array_interface__": lambda x: np.asarray(WithInterface(x)) + 1,
    "__array_wrap__": lambda x: np.sin(x.view(Wrapping)),
    "ctypes": lambda x: x.ctypes.shape[0],
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_what_is_not_traced_is_left_to_numpy(name):
    """Esoteric dtypes, subclasses, masked arrays, ufunc machinery and the like run in NumPy, unharmed."""
    x = np.arange(12.0).reshape(3, 4)
    result, _, _ = watched(lambda x: FALLBACKS[name](x + 1), x)
    expected = FALLBACKS[name](x + 1)
    assert type(result) is type(expected)
    assert getattr(result, "dtype", None) == getattr(expected, "dtype", None)
    assert repr(result) == repr(expected)


def test_a_break_between_two_parts_of_numpy_code():
    """Graph breaks in NumPy code: both parts are compiled."""

    def program(X, Y):  # noqa: N803 - as in the document
        product = X[:, :, None] * Y[:, None, :]
        print("oops, a graph break!")
        return np.sum(product, axis=(-2, -1))

    x, y = np.random.randn(16, 4), np.random.randn(16, 4)
    result, graphs, breaks = watched(program, x, y)
    assert (graphs, breaks) == (2, 1)
    np.testing.assert_allclose(result, numpy_fn(x, y), **ANOTHER_ORDER)


# --- gradients and devices ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_wrapped_numpy_code_is_differentiated(backend):
    """`wrap_numpy` and `fullgraph=True`: tensors go in and come out, and gradients pass."""

    @plumbline.compile(fullgraph=True, backend=backend)
    @plumbline.wrap_numpy
    def numpy_mean(X, Y):  # noqa: N803 - as in the document
        return np.mean(np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1)))

    x, y = torch.randn(16, 4, requires_grad=True), torch.randn(16, 4)
    z = numpy_mean(x, y)
    assert isinstance(z, torch.Tensor)
    z.backward()
    torch.testing.assert_close(x.grad, (y.sum(1, keepdim=True) / 16).expand(16, 4))


def test_a_break_in_wrapped_code_passes_no_gradient():
    """Gradients do not pass a graph break: a full graph is demanded, or an error says so."""

    @plumbline.wrap_numpy
    def broken(X):  # noqa: N803 - as in the document
        product = X * 2
        print("oops, a graph break!")
        return np.sum(product)

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(Unsupported, match="print"):
        plumbline.compile(broken, backend="eager", fullgraph=True)(x)
    with pytest.raises(UserError, match="gradient"):
        plumbline.compile(broken, backend="eager")(x)
    assert plumbline.compile(broken, backend="eager")(x.detach()).item() == 6


@needs_gpu
def test_numpy_code_runs_on_the_device_of_the_block():
    """Inside `torch.device("cuda")` NumPy code runs on the GPU, and arrays go in and come out."""
    x, y = arrays()
    with torch.device("cuda"):
        z = plumbline.compile(numpy_fn)(x, y)
    assert isinstance(z, np.ndarray)
    np.testing.assert_allclose(z, numpy_fn(x, y), **ANOTHER_ORDER)


@needs_gpu
def test_tensors_of_a_device_stay_there():
    """With `.numpy()` and `from_numpy` as hints, tensors on the GPU stay there."""

    @plumbline.compile
    def of_tensors(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:  # noqa: N803 - as in the document
        X, Y = X.numpy(), Y.numpy()  # noqa: N806 - as in the document
        Z = np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))  # noqa: N806 - as in the document
        return torch.from_numpy(Z)

    x, y = torch.randn(1024, 64, device="cuda"), torch.randn(1024, 64, device="cuda")
    with torch.device("cuda"):
        z = of_tensors(x, y)
    assert z.device.type == "cuda"


@needs_gpu
def test_wrapped_numpy_code_stays_on_the_device():
    """`wrap_numpy` keeps tensors on the GPU, with and without a gradient."""
    x, y = torch.randn(1024, 64, device="cuda", requires_grad=True), torch.randn(1024, 64, device="cuda")
    z = plumbline.compile(plumbline.wrap_numpy(lambda x, y: np.mean(numpy_fn(x, y))), fullgraph=True)(x, y)
    assert z.device.type == "cuda"
    z.backward()
    assert x.grad.device.type == "cuda"


@needs_gpu
def test_after_a_break_the_rest_is_on_the_device_of_the_block():
    """Across a break arrays are on the CPU; the rest runs on the device of the block again."""

    @plumbline.compile
    @plumbline.wrap_numpy
    def program(X, Y):  # noqa: N803 - as in the document
        prod = X[:, :, None] * Y[:, None, :]
        print("oops, a graph break!")
        return np.sum(prod, axis=(-2, -1))

    x, y = torch.randn(1024, 64, device="cuda"), torch.randn(1024, 64, device="cuda")
    with torch.device("cuda"):
        z = program(x, y)
    assert z.device.type == "cuda"


# --- debugging ----------------------------------------------------------------------------------------------------


def test_tracing_of_numpy_can_be_switched_off():
    """`config.trace_numpy = False` leaves NumPy's functions to NumPy."""
    x, y = np.random.randn(16, 4), np.random.randn(16, 4)
    with plumbline.config.patch(trace_numpy=False):
        result, graphs, _ = watched(numpy_fn, x, y)
    assert graphs == 0
    assert np.array_equal(result, numpy_fn(x, y))


def test_numpy_in_terms_of_torch_runs_eagerly():
    """`torch._numpy` runs the same code on PyTorch, without a compiler, to find out where a fault is."""
    tnp = importlib.import_module("torch._numpy")

    def program(x, y):
        return tnp.sum(tnp.asarray(x)[:, :, None] * tnp.asarray(y)[:, None, :], axis=(-2, -1)).tensor

    x, y = torch.randn(16, 4), torch.randn(16, 4)
    expected = torch.from_numpy(numpy_fn(x.numpy(), y.numpy()))
    torch.testing.assert_close(program(x, y), expected)
    torch.testing.assert_close(plumbline.compile(program, backend="eager")(x, y), expected)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x[x > 0].sum(),
        lambda x: np.multiply(x, 2, out=np.empty_like(x)),
        lambda x: np.add(x, 1, out=x.copy()),
        lambda x: x.copy().sort(),
        lambda x: x + 1 if x.sum() > 0 else x - 1,
    ],
)
def test_what_does_not_pay_is_right_nevertheless(program):
    """Writes in place, `out=`, masks and branches on data cost graphs or speed; answers stay NumPy's."""
    x = np.linspace(-1, 2, 7)
    result, _, _ = watched(program, x)
    expected = program(x)
    assert type(result) is type(expected)
    assert np.array_equal(result, expected) if expected is not None else result is None
