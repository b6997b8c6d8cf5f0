"""Which functions are evaluated inside a capture, and which are called as they are."""

import os
import sys
from types import FunctionType

import torch

from ..base.function_marks import own_mark
from ..base.torch_facts import kept_from_stock
from ..values.reasons import DISABLED, NUMPY, RANDOM_STATE, SIDE_EFFECT_CALL, UNKNOWN_CALLEE, Break
from ..values.torch.collective_calls import COLLECTIVES
from ..values.torch.torch_calls import explicit_break, is_graph_break_mark

# Pure helpers of the standard library, written in Python, that programs build their own code from.
_INLINED_STANDARD = frozenset(
    {
        "functools",
        "contextlib",
        "collections",
        "operator",
        "dataclasses",
        "typing",
        "types",
        "enum",
        "abc",
        "itertools",
        "numbers",
        "statistics",
        "_collections_abc",
        "keyword",
        "reprlib",
        "bisect",
        "heapq",
    }
)
_INLINED_OF_INSPECT = ("Signature.", "Parameter.", "BoundArguments.", "is", "_has_code_flag")
_EFFECTS = frozenset(
    {"logging", "warnings", "io", "sys", "os", "subprocess", "socket", "threading", "time", "traceback"}
)
_CALLED_IN_TORCH = (
    "torch._dynamo",
    "torch._inductor",
    "torch.distributed",
    "torch.jit",
    "torch.onnx",
    "torch.utils.data",
    "torch.utils.tensorboard",
    "torch.utils.cpp_extension",
    "torch.serialization",
    "torch.hub",
    "torch.profiler",
    "torch.fx",
    "torch.cuda",
    "torch.random",
    "torch._subclasses",
    "torch.package",
    "torch.testing",
    "torch.library",
    "torch._tensor",
    "torch._functorch",
    "torch.func",
    "torch._C",
    "torch._ops",
    "torch.export",
    "torch.multiprocessing",
    "torch.autograd.graph",
    "torch.autograd.function",
    "torch.autograd.profiler",
    "torch.autograd.gradcheck",
    "torch.autograd.functional",
    "torch.autograd.forward_ad",
    "torch._prims",
    "torch._refs",
    "torch._decomp",
    "torch._higher_order_ops",
    "torch.utils.checkpoint",
    "torch._tensor_str",
    "torch.masked",
    "torch.sparse",
    "torch.quantization",
    "torch.ao",
    "torch.nested",
    "torch.mps",
    "torch.xpu",
    "torch._numpy",
    "torch._lobpcg",
    "torch.compiler",
    "torch._compile",
)
_INLINED_IN_TORCH = frozenset(
    {
        "torch._higher_order_ops.associative_scan",
        "torch.autograd.functional",
        "torch.fx._pytree",  # what the code of exported programs calls, and their hooks
        "torch.export._unlift",
        "torch.export._tree_utils",
        "torch._dynamo.external_utils",
        "torch._dynamo._trace_wrapped_higher_order_op",  # how masks of flex_attention are indexed
        COLLECTIVES,
    }
)
_LEGACY_VMAP = "torch._vmap_internals"  # raises a level that code between two graphs would not see; runs as a whole
_MODULE_PATCHES = "torch._dynamo.mutation_guard"
_CALLED_OUTRIGHT = frozenset({"numpy", "scipy", "pandas", "sympy", "pytest", "_pytest", "hypothesis"})


_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep


def is_torch_file(name: str) -> bool:
    """Return whether code is torch's own."""
    return name.startswith(_TORCH_FOLDER)


def refusal(function: FunctionType) -> Break | None:
    """Return the break that calling the function makes, None if its body is evaluated."""
    if is_graph_break_mark(function):
        return explicit_break()
    name = f"{function.__module__}.{function.__qualname__}"
    if is_disabled(function):
        return Break(DISABLED, name)
    if function.__globals__.get("__name__") == _LEGACY_VMAP:  # what it wraps says that it is from elsewhere
        return Break(UNKNOWN_CALLEE, name)
    module = _home_of_code(function)
    root = module.partition(".")[0]
    if root == "torch":
        called = module not in _INLINED_IN_TORCH and any(
            module == prefix or module.startswith(prefix + ".") for prefix in _CALLED_IN_TORCH
        )
        return Break(UNKNOWN_CALLEE, name) if called else None
    if root == "random":
        return Break(RANDOM_STATE, name)
    if root == "numpy":
        return Break(NUMPY, name)
    if root in _EFFECTS:
        return Break(SIDE_EFFECT_CALL, name)
    if root == "plumbline":
        return None if own_mark(function, "_plumbline_inline") else Break(UNKNOWN_CALLEE, name)
    if root in _CALLED_OUTRIGHT:
        return Break(UNKNOWN_CALLEE, name)
    if name == "dataclasses.make_dataclass":
        return Break(UNKNOWN_CALLEE, name)  # it writes source and runs it: one break is better than one at each method
    if root == "inspect" and function.__qualname__.startswith(_INLINED_OF_INSPECT):
        return None
    if root in sys.stdlib_module_names and root not in _INLINED_STANDARD and root != "__main__":
        return Break(UNKNOWN_CALLEE, name)
    return None


def _home_of_code(function: FunctionType) -> str:
    """Return the module whose rule holds for a function: where it says it is from, unless that is a library's name.

    `functools.wraps(numpy.einsum)` gives code of a package the name of NumPy's function.
    """
    said, written = function.__module__ or "", function.__globals__.get("__name__")
    if not _is_library(said) or not isinstance(written, str) or _is_library(written):
        return said
    return written


def _is_library(module: str) -> bool:
    root = module.partition(".")[0]
    return root in _CALLED_OUTRIGHT or (root in sys.stdlib_module_names and root != "__main__")


def is_disabled(function: object) -> bool:
    """Return whether `disable` of ours or of torch was applied; torch leaves `_torchdynamo_disable`."""
    marked = own_mark(function, "_plumbline_disabled") or own_mark(function, "_torchdynamo_disable")
    return bool(marked) and left_by_stock(function) is None


def left_by_stock(function: object) -> FunctionType | None:
    """Return the original of a wrapper that stock puts into torch itself once it has run in this process.

    `Module.__init__` and `__setstate__` count instances for it, the optimizers' `_init_group` and `zero_grad` are
    kept from its tracing; none is a wish of the user's.
    """
    if not isinstance(function, FunctionType):
        return None
    if function.__module__ == _MODULE_PATCHES:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        original: object = next((cell.cell_contents for name, cell in cells if name in ("init", "setstate")), None)
    elif function.__code__ is kept_from_stock.__code__:
        original = getattr(function, "__wrapped__", None)
        if getattr(original, "__qualname__", "") != "Optimizer.zero_grad":
            return None
    else:
        original = function.__dict__.get("_torchdynamo_orig_callable")
        is_optimizers = getattr(original, "__module__", "").startswith("torch.optim.")
        if not is_optimizers or getattr(original, "__name__", "") != "_init_group":
            return None
    return original if isinstance(original, FunctionType) else None


def frame_disabled(function: FunctionType) -> FunctionType | None:
    """Return the function whose own frame alone is disabled, by our mark or torch's, None if it is not so."""
    original: object = None
    namespace = function.__dict__
    disabled = own_mark(function, "_plumbline_disabled")
    if disabled is not None:
        original = disabled if namespace["_plumbline_disable"] == "frame" else None
    elif own_mark(function, "_torchdynamo_disable") and namespace.get("_torchdynamo_disable_recursive") is False:
        original = own_mark(function, "_torchdynamo_orig_callable")
    return original if isinstance(original, FunctionType) else None


def compiled_original(function: FunctionType) -> FunctionType | None:
    """Return what a compiled wrapper, ours or torch's, stands for; it is evaluated instead of the wrapper."""
    stock = left_by_stock(function)
    if stock is not None:
        return stock
    if is_disabled(function):
        return None
    # The last one marks a region that torch would compile once and reuse; eager just calls it.
    for mark in ("_plumbline_original", "_torchdynamo_orig_callable", "__marked_compile_region_fn__"):
        original = own_mark(function, mark)
        if isinstance(original, FunctionType):
            return original
    return None
