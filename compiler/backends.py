"""The named backends: what is done with a captured graph."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import torch

from .autograd.compile import compile_with_autograd
from .autograd.forms.form_place import LoadedPart
from .base.errors import UserError
from .base.options import Options, Settings, in_force
from .base.seam import planting
from .base.torch_facts import OpOverload
from .frontend.specialise import SYMBOLIC
from .graph.promises import checked_at_first
from .graph.tracer import Decomposition
from .stored.plain_data import Plain
from .stored_code import code_of_plain

Backend = Callable[[torch.fx.GraphModule, list[object]], Callable[..., object]]
NamedBackend = Callable[[torch.fx.GraphModule, list[object], Options], Callable[..., object]]

_BACKENDS: dict[str, NamedBackend] = {}
_USERS: dict[str, Backend] = {}


def named(name: str) -> Callable[[NamedBackend], NamedBackend]:
    """Register a backend of ours under its name."""

    def register(backend: NamedBackend) -> NamedBackend:
        assert name not in _BACKENDS
        _BACKENDS[name] = backend
        return backend

    return register


@named("eager")
def run_as_captured(
    graph: torch.fx.GraphModule, example_inputs: list[object], options: Options
) -> Callable[..., object]:
    """Run the captured operations with PyTorch, as they are."""
    del example_inputs, options
    forward: Callable[..., object] = graph.forward
    return forward


@named("aot_eager")
def run_traced(graph: torch.fx.GraphModule, example_inputs: list[object], options: Options) -> Callable[..., object]:
    """Trace forward and backward to ATen and run both with PyTorch."""

    def run_part(part: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
        del inputs
        return checked_at_first(part)

    return compile_with_autograd(graph, example_inputs, run_part, options, recompute=False, guarded=_is_guarded(graph))


@named("aot_eager_decomp_partition")
def run_taken_apart(
    graph: torch.fx.GraphModule, example_inputs: list[object], options: Options
) -> Callable[..., object]:
    """Do as `inductor` up to code generation: decompositions and the minimum cut; PyTorch runs both halves."""

    def run_part(part: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
        del inputs
        return checked_at_first(part)

    rules, guarded = _extra_decompositions, _is_guarded(graph)
    return compile_with_autograd(graph, example_inputs, run_part, options, decompositions=rules, guarded=guarded)


@named("inductor")
def run_compiled(graph: torch.fx.GraphModule, example_inputs: list[object], options: Options) -> Callable[..., object]:
    """Trace forward and backward to ATen and compile both to native code."""

    def load_part(form: Plain) -> LoadedPart:
        return LoadedPart(*code_of_plain(form, options))

    return compile_with_autograd(
        graph,
        example_inputs,
        native_compiler(options),
        options,
        decompositions=_extra_decompositions,
        guarded=_is_guarded(graph),
        load_part=load_part,
    )


@named("triton")
def run_as_triton(graph: torch.fx.GraphModule, example_inputs: list[object], options: Options) -> Callable[..., object]:
    """Do as `inductor`, with Triton kernels on every device; on CPU tensors Triton's interpreter runs them."""
    return run_compiled(graph, example_inputs, options.replace(kernel_language="triton"))


def native_compiler(options: Options) -> Callable[..., Callable[..., Any]]:
    """Return what makes native code of one traced graph and its example inputs, and says when it may be used."""

    def compile_part(part: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
        from .kernel_levels import acceptance
        from .native import compile_traced

        return compile_traced(part, inputs, options, acceptance(options))

    return compile_part


def _extra_decompositions() -> Mapping[OpOverload, Decomposition]:
    from .native import extra_decompositions

    return extra_decompositions()


def _is_guarded(graph: torch.fx.GraphModule) -> bool:
    """Return whether guards of a capture fix everything that its example values do not leave dynamic."""
    return SYMBOLIC in graph.meta


def register_backend(backend: Backend, name: str | None = None) -> Backend:
    """Register a callable (graph module, example inputs) -> callable under a name; usable as a decorator.

    Raises UserError for a name that is taken, and for what cannot be called.
    """
    if not callable(backend):
        raise UserError(f"{backend!r} cannot be called", hint="give the backend first, then its name")
    chosen = name or str(getattr(backend, "__name__", type(backend).__name__))
    if chosen in _BACKENDS or chosen in _USERS:
        raise UserError(f"a backend named {chosen!r} exists", hint="choose another name")
    _USERS[chosen] = backend
    return backend


def list_backends() -> list[str]:
    """Return the names that `compile(backend=...)` takes; installed packages offer some by `torch_dynamo_backends`."""
    return sorted({*_BACKENDS, *_USERS, *_installed()})


def _installed() -> dict[str, EntryPoint]:
    """Return the backends that other packages offer to torch's compiler; they take a graph and inputs, as ours do."""
    offered = entry_points(group="torch_dynamo_backends")
    return {entry.name: entry for entry in offered if not entry.value.startswith("plumbline.")}


def resolve_backend(backend: object, settings: Settings) -> tuple[Backend, str, bool]:
    """Return (backend, its name, whether it is the user's own); raises UserError for an unknown one.

    settings: the options, or what gives those in force when a graph is compiled.
    """
    if isinstance(backend, str):
        if backend in _USERS:
            return _USERS[backend], backend, True
        ours = _BACKENDS.get(backend)
        if ours is None and (offered := _installed().get(backend)) is not None:
            return offered.load(), backend, True
        if ours is None:
            known = ", ".join(list_backends())
            near = difflib.get_close_matches(backend, list_backends(), 1)
            hint = f"did you mean {near[0]!r}? There are: {known}" if near else f"one of: {known}; or give a callable"
            raise UserError(f"no backend is named {backend!r}", hint=hint)
        return (lambda graph, inputs: ours(graph, inputs, in_force(settings))), backend, False
    if not callable(backend):
        raise UserError(f"backend={backend!r} is neither a name nor a callable", hint="see plumbline.list_backends()")
    return backend, getattr(backend, "__name__", type(backend).__name__), True


@contextmanager
def replaced_backend(name: str, backend: NamedBackend) -> Iterator[None]:
    """Put another implementation behind a name for the block; for tests of the harness."""
    before = _BACKENDS[name]
    _BACKENDS[name] = backend
    try:
        with planting():
            yield
    finally:
        _BACKENDS[name] = before
