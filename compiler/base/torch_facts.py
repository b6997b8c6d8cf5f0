"""The only importer of private torch names: one place to mend per torch release.

Each name stands with what of ours breaks if torch changes it.
"""

import functools
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from functools import cache
from typing import Any

from . import torch_check  # noqa: F401  # first: it names in one line what this torch has moved

# isort: split
import torch
from torch._decomp import decomposition_table  # oracle runs composites through smaller operators in its noisy lanes
from torch._dispatch.python import enable_python_dispatcher  # shape rules in Python: the C++ ones fix symbolic sizes
from torch._functorch.utils import enable_single_level_autograd_function as at_single_level  # allows the next one
from torch._higher_order_ops.flex_attention import sdpa_dense as dense_attention  # what its operator does, for traces
from torch._higher_order_ops.utils import registered_hop_fake_fns  # operators whose shape rule fake modes call
from torch._higher_order_ops.while_loop import while_loop  # users import it from there; one node of a graph
from torch._ops import OpOverload  # every call_function target of an ATen graph; `_schema` is read by graph/facts
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # metadata of graph values, without their elements
from torch.autograd.function import _SingleLevelFunction as SingleLevelFunction  # gradients of a kernel, at one level
from torch.fx._lazy_graph_module import _LazyGraphModule  # graph modules whose text is made when first called
from torch.fx.experimental.symbolic_shapes import (  # sizes that may vary; what was assumed of them becomes guards
    ShapeEnv,
    expect_true,  # what torch._check asks
    has_free_unbacked_symbols,  # flex_attention asks; no size of ours depends on data
)
from torch.multiprocessing.reductions import StorageWeakRef  # whether a storage still lives; its key is not used again
from torch.utils._device import DeviceContext, _device_constructors  # what a device block is and what it changes
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .fake_mode_start import let_dispatch_run, start_fake_mode, without_compiler

__all__ = [
    "DispatchMode",
    "FakeTensor",
    "FakeTensorMode",
    "ModeStacks",
    "OpOverload",
    "ShapeEnv",
    "SingleLevelFunction",
    "StorageWeakRef",
    "TorchFunctionState",
    "WatchedFakeMode",
    "active_distributed_wrapper",
    "annotate_graph",
    "any_autocast",
    "any_autocast_enabled",
    "apply_function",
    "asked_once",
    "at_single_level",
    "below_autograd",
    "calls_module_plainly",
    "compiling_flag",
    "compiling_questions",
    "decomposes_by_itself",
    "decomposition_of",
    "default_device_or_none",
    "dense_attention",
    "device_constructors",
    "dispatch_key_bits",
    "enable_python_dispatcher",
    "expect_true",
    "fake_like_template",
    "fake_mode_is_active",
    "fake_run_failure",
    "first_bucket_bytes",
    "flex_attention_operator",
    "foreach_add_quotients",
    "forward_ad_is_active",
    "function_mode_depth",
    "functorch_is_active",
    "fx_questions",
    "group_size",
    "group_tensors",
    "has_foreign_modes",
    "has_free_unbacked_symbols",
    "has_history",
    "has_own_dispatch",
    "hidden_tensor_hooks",
    "inference_block",
    "is_operator",
    "jit_is_tracing",
    "keeps_graph",
    "kept_from_stock",
    "lazy_class_property",
    "lazy_module",
    "leave_forward_mode",
    "leave_function_modes",
    "leave_functorch",
    "leave_tensor_hooks",
    "load_fake_modes",
    "log_api_usage",
    "module_call_path",
    "module_registration_hooks",
    "name_decorated_frame",
    "native_functions",
    "negative_view",
    "next_gradient_number",
    "number_and_gradients",
    "operator_kinds",
    "operator_namespaces",
    "operator_schema",
    "outside_transforms",
    "override_questions",
    "print_options",
    "quiet_fake_failures",
    "quiet_fake_runs",
    "running_backward",
    "running_gradient_number",
    "set_default_dtype",
    "set_grad_mode",
    "set_print_options",
    "set_version",
    "state_parts",
    "state_questions",
    "stock_mark",
    "storage_is_gone",
    "storage_key",
    "tensor_address",
    "tensor_hooks",
    "torch_assertion",
    "torch_function_state",
    "tracing_flag",
    "tracing_question",
    "validates_distributions",
    "variable_functions",
    "weak_reference",
    "while_loop",
    "will_run",
    "with_torch_function_state",
    "without_dispatch",
    "without_dispatch_modes",
    "without_function_mode",
    "without_torch_function",
    "without_transforms",
]


def running_backward() -> int:
    """Return the number of the backward that the autograd engine runs on this thread, -1 outside of one."""
    return torch._C._current_graph_task_id()


def will_run(step: Any) -> bool:
    """Return whether the backward that runs now visits a step of history, or has (what nobody takes is not kept)."""
    return torch._C._will_engine_execute_node(step)


def functorch_is_active() -> bool:
    """Return whether a functorch transform (vmap, grad, jvp, ...) surrounds this call."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def leave_functorch() -> None:
    """Leave every functorch transform that a failing compiler left entered (the fuzzer goes on in this process)."""
    with suppress(RuntimeError):  # torch 2.11 looks below the stack when it has emptied it
        torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)


def leave_forward_mode() -> bool:
    """Leave a forward-mode level that a failing compiler left, which torch's own call refuses; return if one was."""
    try:
        level = torch._C._enter_dual_level()
    except RuntimeError:
        torch._C._exit_dual_level(level=0)
        return True
    torch._C._exit_dual_level(level=level)
    return False


def calls_module_plainly(kind: type) -> bool:
    """Return whether calling a module is what `nn.Module` does; what fx modules put around it only words errors.

    If torch renames that wrapper, these modules run in Python.
    """
    call = kind.__call__
    if getattr(kind, "_call_impl", None) is not module_call_path:
        return False
    if call is _module_call:
        return True
    name, wrapped = getattr(call, "__qualname__", ""), getattr(kind, "_wrapped_call", None)
    is_wrapper = name == "GraphModule.recompile.<locals>.call_wrapped" and call.__module__ == "torch.fx.graph_module"
    return is_wrapper and getattr(wrapped, "cls_call", kind) is None


def jit_is_tracing() -> bool:
    """Return whether torch.jit.trace is recording this call."""
    return torch._C._get_tracing_state() is not None


def apply_function(function: Any, *args: object) -> Any:
    """Return what an autograd function, of several levels or of one, gives."""
    return function.apply(*args)


def negative_view(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of the same elements with the other sign, as the imaginary part of a conjugate is one."""
    return torch._neg_view(tensor)


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """A mode that sees every ATen call below autograd, with types: the oracle and the tracer derive from it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # type: ignore[no-untyped-call]  # untyped in torch
        let_dispatch_run(cls)


class WatchedFakeMode(FakeTensorMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """A fake mode that hands each call to `watcher`, where there is one, which runs it with `run`.

    Calls that `rules` know are theirs, others are torch's.  What either gives goes through `correction`.

    What a call is made of inside the mode is not shown.  A second mode would see the same, at a seventh of the cost of
    capture.  If torch renames what is overridden here, nothing is noted, and the tests of effects fail.
    """

    supports_higher_order_operators = True  # torch looks for rules of exactly its own class
    watcher: "Callable[[WatchedFakeMode, Any, Any, tuple[Any, ...], dict[str, Any]], Any] | None" = None
    correction: "Callable[[WatchedFakeMode, Any, Any, Any, Any], Any] | None" = None  # last: what the call gave
    rules: "Callable[[WatchedFakeMode, Any, Any, Any], Any] | None" = None  # asked before torch; may not implement

    def __init__(self, **settings: Any) -> None:
        start_fake_mode(self, **settings)

    _dispatch_impl = without_compiler(FakeTensorMode._dispatch_impl)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # a shield against stock torch.compile around each call, which no frame of ours has

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a call, by the watcher if there is one."""
        try:
            if self.watcher is not None:
                return self.watcher(self, func, types, args, kwargs or {})
            rule = func.python_key_table.get(FakeTensorMode)
            if rule is None or func in registered_hop_fake_fns:  # those have a rule that only leads back here
                result = NotImplemented if self.rules is None else self.rules(self, func, args, kwargs or {})
                if result is NotImplemented:
                    if func is torch.ops.aten.where.self and args[0].dtype is torch.uint8:  # its rule takes bools alone
                        args = (args[0].view(torch.bool), *args[1:])
                    result = in_own_memory(func, args, self.dispatch(func, types, args, kwargs or {}))
                return result if self.correction is None else self.correction(self, func, args, kwargs or {}, result)
            return rule(self, *args, **(kwargs or {}))
        except BaseException:
            # An interrupt may have come between entering a mode and its block.  torch puts this one back behind the
            # call, and where there is one already it ends the process.
            if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
                torch._C._unset_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
            raise

    def run(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call for the watcher: what it is made of is not shown."""
        watcher, self.watcher = self.watcher, None
        try:
            return self.__torch_dispatch__(func, types, args, kwargs)
        finally:
            self.watcher = watcher


def in_own_memory(operator: Any, args: Any, result: Any) -> Any:
    """Return fake results that are new where the schema says so: the rule of native_dropout gives an argument back."""
    if isinstance(result, tuple):  # of a class of its own, where a rule in Python gives several
        return tuple(in_own_memory(operator, args, part) for part in result)
    if not isinstance(result, FakeTensor) or not any(part is result for part in args) or not aliases_nothing(operator):
        return result
    with result.fake_mode, torch.no_grad():
        return torch.empty_strided(result.shape, result.stride(), dtype=result.dtype, device=result.device)


@cache
def aliases_nothing(operator: Any) -> bool:
    """Return whether an operator declares that no result shares memory with an argument."""
    schema = getattr(operator, "_schema", None)
    if schema is None or decomposes_by_itself(operator):  # compositions such as atleast_1d do all the same
        return False
    return all(part.alias_info is None for part in schema.returns)


@contextmanager
def hidden_tensor_hooks() -> Iterator[None]:
    """Hide the caller's saved-tensor hooks in the block: what is only traced there is not theirs to pack.

    If torch changes the switch, activation checkpointing around compiled code counts too many saved tensors.
    """
    before = torch._C._autograd._saved_tensors_hooks_set_tracing(True)
    try:
        yield
    finally:
        torch._C._autograd._saved_tensors_hooks_set_tracing(before)


def tensor_hooks() -> tuple[Any, ...]:
    """Return what packs and unpacks the tensors that autograd saves now; nothing without saved-tensor hooks."""
    return torch._C._autograd._top_saved_tensors_default_hooks(False) or ()


@cache
def decomposes_by_itself(operator: OpOverload) -> bool:
    """Return whether a call is only a composition of smaller ATen calls (seen unsplit where autograd is off).

    Read from the dispatcher: if the key moves, programs in inference mode are recorded with big operators.
    """
    keys = torch._C.DispatchKey
    schema = operator._schema
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if not torch._C._dispatch_has_kernel(name):  # of the script language alone, such as aten::size
        return False
    return has(name, keys.CompositeImplicitAutograd) and not (has(name, keys.CPU) or has(name, keys.CUDA))


def decomposition_of(operator: Any) -> Callable[..., Any] | None:
    """Return torch's own decomposition of an ATen overload, None without one (then lanes run the operator whole)."""
    return decomposition_table.get(operator)


def operator_schema(operator: Any) -> Any:
    """Return the schema of an overload: its name, and which arguments it writes (oracle's lanes copy those)."""
    return operator._schema


def storage_key(tensor: torch.Tensor) -> int:
    """Return the identity of a tensor's storage, unique while the storage lives (shadow memory is found by it)."""
    key: int = tensor.untyped_storage()._cdata
    return key


def weak_reference(storage: torch.UntypedStorage) -> StorageWeakRef:
    """Return a reference that keeps the identity of a storage from being used again, and not its memory."""
    return StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch leaves it untyped


def storage_is_gone(reference: StorageWeakRef) -> bool:
    """Return whether the memory of a storage has been freed."""
    return bool(reference.expired())  # type: ignore[no-untyped-call]  # torch leaves it untyped


def set_version(tensor: torch.Tensor, version: int) -> None:
    """Set how often a tensor counts as changed (a failed run that is undone must not count)."""
    torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))


def without_dispatch_modes() -> Any:
    """Return a context in which operators run for real, whatever modes are on (kernels are asked while capturing)."""
    return _disable_current_modes()


def without_torch_function() -> Any:
    """Return a context in which no `__torch_function__` mode or subclass sees our calls (lanes stay unseen)."""
    return torch._C.DisableTorchFunction()


class TorchFunctionState(Enum):
    """Who sees calls of torch's functions: subclasses and modes, modes alone, or nobody."""

    ALL = 0
    MODES = 1
    NONE = 2


def torch_function_state() -> TorchFunctionState:
    """Return who sees calls now (the judge restores it around the user's code)."""
    if torch._C._is_torch_function_enabled():
        return TorchFunctionState.ALL
    return TorchFunctionState.NONE if torch._C._is_torch_function_all_disabled() else TorchFunctionState.MODES


@contextmanager
def with_torch_function_state(state: TorchFunctionState) -> Iterator[None]:
    """Let calls of the block be seen as this says."""
    switches = {
        TorchFunctionState.ALL: (torch._C._EnableTorchFunction,),
        TorchFunctionState.MODES: (torch._C._EnableTorchFunction, torch._C.DisableTorchFunctionSubclass),
        TorchFunctionState.NONE: (torch._C.DisableTorchFunction,),
    }
    with ExitStack() as stack:
        for switch in switches[state]:
            stack.enter_context(switch())
        yield


def fake_mode_is_active() -> bool:
    """Return whether calls run on fake tensors only; a judgement there would compare shapes, not values."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def has_own_dispatch(kind: type) -> bool:
    """Return whether a tensor type overrides `__torch_dispatch__` (shadow execution lets it unwrap itself first)."""
    usual = (None, torch._C._disabled_torch_dispatch_impl, torch.Tensor.__torch_dispatch__)
    return getattr(kind, "__torch_dispatch__", None) not in usual


def is_operator(function: Any) -> bool:
    """Return whether a dispatched callable is an ordinary overload with a schema, not a higher-order operator."""
    return isinstance(function, OpOverload)


def _levels(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    yield tensor
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
        yield tensor


def unwrapped(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the plain tensor inside functorch's wrappers, None for a tensor that is not such a wrapper."""
    *_, inner = _levels(tensor)
    return None if inner is tensor else inner


def has_history(tensor: torch.Tensor) -> bool:
    """Return whether gradients flow to a tensor at its own level of transforms, or at one that it wraps."""
    return any(level.requires_grad for level in _levels(tensor))


def device_constructors() -> frozenset[Any]:
    """Return the functions that make tensors on the device of a surrounding `with torch.device` block."""
    return frozenset(_device_constructors())


def asked_once(mode: FakeTensorMode) -> FakeTensorMode:
    """Return a fake mode, told to remember no results where sizes are symbolic: hardly any is asked for again."""
    if mode.shape_env is not None:
        mode.cache_enabled = False
    return mode


@functools.cache
def load_fake_modes() -> None:
    """Have torch import what the first fake mode of a process needs, once.

    Some of those modules swallow import errors, which live until the garbage collector runs and hold every frame below
    them. A thread of its own has no frames of the program below it.
    """
    thread = threading.Thread(target=WatchedFakeMode)
    thread.start()
    thread.join()


class ModeStacks:
    """How deep torch's stacks of modes are, and its flags: noted when made, restored by `unwind`.

    An interrupt may arrive between entering a mode and the block that leaves it; then no block ever does.
    """

    def __init__(self) -> None:
        self.dispatch = torch._C._len_torch_dispatch_stack()
        self.functions = torch._C._len_torch_function_stack()
        self.transforms = torch._C._functorch.get_dynamic_layer_stack_depth()
        self.grad = torch.is_grad_enabled()
        self.lifts_only_cpu = torch._C._only_lift_cpu_tensors()
        dispatching = torch.utils._python_dispatch
        self.in_dispatch = dispatching._is_in_torch_dispatch_mode, dispatching._is_in_non_infra_torch_dispatch_mode

    def unwind(self) -> None:
        """Leave what was entered since; what was left since is not entered again."""
        if torch._C._functorch.get_dynamic_layer_stack_depth() > self.transforms:
            torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(self.transforms)
        while torch._C._len_torch_dispatch_stack() > self.dispatch:
            torch._C._pop_torch_dispatch_stack(None)
        while torch._C._len_torch_function_stack() > self.functions:
            torch._C._pop_torch_function_stack()
        set_grad_mode(self.grad)
        torch._C._set_only_lift_cpu_tensors(self.lifts_only_cpu)
        dispatching = torch.utils._python_dispatch
        dispatching._is_in_torch_dispatch_mode, dispatching._is_in_non_infra_torch_dispatch_mode = self.in_dispatch


def has_foreign_modes() -> bool:
    """Return whether a torch function mode other than that of a device block is active: it sees every call.

    A device block is one too, but all it does is to name a device to functions that make tensors.
    """
    depth = torch._C._len_torch_function_stack()
    return any(type(torch._C._get_function_stack_at(place)) is not DeviceContext for place in range(depth))


def module_registration_hooks() -> bool:
    """Return whether anyone watches registrations of parameters or submodules; without the tables nobody can."""
    module = torch.nn.modules.module
    return bool(module._global_parameter_registration_hooks or module._global_module_registration_hooks)


def fake_run_failure(error: Exception) -> str:
    """Say why an operation failed on fake tensors: it needs the data for a `shape`, for a `value`, or `other`.

    Named by class, as fake tensors raise them; a renamed class makes the reason of a break vaguer, nothing else.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    if "DynamicOutputShapeException" in names:
        return "shape"
    if names & {"DataDependentOutputException", "GuardOnDataDependentSymNode"}:
        return "value"
    return "other"


def outside_transforms() -> bool:
    """Return whether no functorch transform, dispatch mode or jit trace surrounds this call: capture may run."""
    return (
        torch._C._functorch.peek_interpreter_stack() is None
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._get_tracing_state() is None
    )


def state_parts(function: Any, expected: object) -> tuple[tuple[Any, object], ...]:
    """Return (function, answer) pairs that all hold exactly if function() == expected: what a check in C asks.

    Python functions of torch's state are split into the C functions they ask; others stand for themselves.
    """
    if function is outside_transforms and expected is True:
        stack = torch._C._functorch.peek_interpreter_stack
        return ((stack, None), (torch._C._len_torch_dispatch_stack, 0), (torch._C._get_tracing_state, None))
    if function is torch.are_deterministic_algorithms_enabled:
        return ((torch._C._get_deterministic_algorithms, expected),)
    return ((function, expected),)


def dispatch_key_bits(tensor: torch.Tensor) -> int:
    """Return the set of dispatch keys as bits (the guard evaluator finds by it where a tensor keeps them)."""
    bits: int = torch._C._dispatch_keys(tensor).raw_repr()
    return bits


def tensor_address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's data structure (found in the Python object by the guard evaluator)."""
    address: int = tensor._cdata
    return address


def any_autocast() -> bool:
    """Return whether autocast is on for any device (else compiled graphs would ask device by device, at every call)."""
    return torch._C._is_any_autocast_enabled()


@contextmanager
def compiling_flag(value: object) -> Iterator[None]:
    """Let `is_compiling()` and `is_dynamo_compiling()` give this (the judge tells a reference that it is compiled).

    The second is a constant for Python: it borrows the code of the first, so that imported names answer as well.
    """
    before, constant = torch.compiler._is_compiling_flag, torch.compiler.is_dynamo_compiling.__code__
    torch.compiler._is_compiling_flag = value  # type: ignore[assignment]  # it says who asked
    torch.compiler.is_dynamo_compiling.__code__ = torch.compiler.is_compiling.__code__
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before
        torch.compiler.is_dynamo_compiling.__code__ = constant


def default_device_or_none() -> torch.device | None:
    """Return the device that `torch.set_default_device` has set, None where nobody has (the judge sets it back)."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def print_options() -> dict[str, Any]:
    """Return how tensors are printed (the judge compares it, and sets it back); torch has no public reader."""
    return dict(vars(torch._tensor_str.PRINT_OPTS))


def set_print_options(options: dict[str, Any]) -> None:
    """Set how tensors are printed (as above)."""
    vars(torch._tensor_str.PRINT_OPTS).update(options)


def leave_tensor_hooks(hooks: tuple[Any, ...]) -> None:
    """Take hooks for saved tensors away until these are the innermost ones (the judge undoes what a run leaves on)."""
    while (now := tensor_hooks()) and now != hooks:
        torch._C._autograd._pop_saved_tensors_default_hooks()


def leave_function_modes(depth: int) -> None:
    """Take modes for functions away until there are no more than this many (as above)."""
    while torch._C._len_torch_function_stack() > depth:
        torch._C._pop_torch_function_stack()


@contextmanager
def without_function_mode(mode: object) -> Iterator[None]:
    """Leave one mode for functions for the duration of a block, whatever was entered after it (the judge's counter)."""
    depth = torch._C._len_torch_function_stack()
    places = [place for place in range(depth) if torch._C._get_function_stack_at(place) is mode]
    if not places:
        yield
        return
    above = [torch._C._pop_torch_function_stack() for _ in range(depth - places[-1])][:-1]
    for each in reversed(above):
        torch._C._push_on_torch_function_stack(each)
    try:
        yield
    finally:
        taken = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack() - places[-1])]
        for each in (mode, *reversed(taken)):
            torch._C._push_on_torch_function_stack(each)


def validates_distributions() -> bool:
    """Return whether new distributions check their arguments (the judge compares it, and sets it back)."""
    return bool(torch.distributions.Distribution._validate_args)


def next_gradient_number() -> int:
    """Return the number that the next autograd node will get (user lines of backward nodes are found by it)."""
    return torch._C._autograd._get_sequence_nr()


def running_gradient_number() -> int | None:
    """Return the number of the autograd node that runs now, None outside a backward (as above)."""
    node = torch._C._current_autograd_node()
    return None if node is None else int(node._sequence_nr())


def number_and_gradients(node: Any) -> tuple[int, int]:
    """Return the number of an autograd node, and how many gradients it takes: one for each result of its call."""
    return int(node._sequence_nr()), len(node._input_metadata)


def keeps_graph() -> bool:
    """Return whether the backward that runs now was told to keep what its steps have saved."""
    return bool(torch._C._autograd._get_current_graph_task_keep_graph())


def active_distributed_wrapper() -> Any:
    """Return the DistributedDataParallel whose forward runs now, None outside of one; its buckets cut backward."""
    return torch.nn.parallel.DistributedDataParallel._active_ddp_module


def group_size(name: str) -> int:
    """Return the number of processes in the group of a name."""
    ask: Any = torch.distributed.distributed_c10d._get_group_size_by_name
    return int(ask(name))


def first_bucket_bytes() -> int:
    """Return the size of the first bucket of DistributedDataParallel where its user names none."""
    return int(getattr(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 1 << 20))


def saved_one_by_one(step: Any) -> dict[int, torch.Tensor]:
    """Return what a step of history has saved, by place, but for what was written to since; raise if it was freed.

    `saved_tensors` gives all or nothing. Without this, a write to one result ends the backward of the others.
    """
    found: dict[int, torch.Tensor] = {}
    for place, one in enumerate(step._raw_saved_tensors):
        with suppress(RuntimeError, AttributeError):  # written to, a result of the step itself, or no way in this torch
            found[place] = one.unpack()
    return found


def below_autograd() -> Any:
    """Return a context in which calls record no gradient whatever grad mode says (kernels that read grad mode)."""
    return torch._C._AutoDispatchBelowAutograd()


# Capture reads and sets these; a rename stops the import of the frontend, so it is seen at once.
set_grad_mode = torch._C._set_grad_enabled  # a node of graphs: grad mode inside captured code
any_autocast_enabled = torch._C._is_any_autocast_enabled  # guarded: autocast changes what operations do
function_mode_depth = torch._C._len_torch_function_stack  # guarded: with a mode on, code runs eagerly
_module_call = torch.nn.Module.__call__  # as torch made it: a program may replace it, and `_call_impl` behind it
module_call_path = torch.nn.Module._call_impl  # what calling a module with hooks runs; evaluated like user code
without_transforms = torch._C._DisableFuncTorch  # inputs are wrapped as they are, whatever transform is being evaluated
foreach_add_quotients = torch._foreach_addcdiv_  # takes a tensor of scalars too, which its fake kernel refuses
log_api_usage = torch._C._log_api_usage_once  # counted once a process; nothing for a capture to do
group_tensors = torch._C._group_tensors_by_device_and_dtype  # what foreach code sorts its lists by
flex_attention_operator = torch.ops.higher_order.flex_attention  # what flex_attention calls where it is compiled
annotate_graph = torch.fx.traceback.annotate  # labels of stock's graphs; a block that does nothing here
dispatch_keys_kept = torch._C._PreserveDispatchKeyGuard  # a block behind which the thread has the keys that it had
inference_block = torch._C._InferenceMode  # what torch.inference_mode enters
lazy_class_property: type = torch.distributions.utils._lazy_property_and_property  # of a class; else: breaks there
set_default_dtype = torch._C._set_default_dtype  # what torch.set_default_dtype calls
kept_from_stock = torch._compile._disable_dynamo(lambda: None)  # its code tells what torch keeps from stock's tracing
name_decorated_frame = getattr(torch.utils._contextlib, "_set_stack_frame_name", None)  # of 2.15: for profilers only
torch_assertion = torch._assert  # torch.compile users know it as the assert that tracing accepts
native_functions = torch._C._nn  # functions of torch.nn.functional that are written in C
variable_functions = torch._C._VariableFunctions  # functions of the torch namespace that are written in C
operator_kinds = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)  # torch.ops.x.y and torch.ops.x.y.z
operator_namespaces = (torch._ops._OpNamespace, torch._ops._Ops)  # torch.ops.x and torch.ops
compiling_questions = (torch._utils.is_compiling,)  # true in captured code, besides the public ones
override_questions = (  # false in captured code for plain tensors, which override nothing
    torch._C._has_torch_function,
    torch._C._has_torch_function_unary,
    torch._C._has_torch_function_variadic,
)
tracing_flag = torch._C._is_tracing  # false in captured code: what modules of torch 2.15 ask when they are called
tracing_question = torch._C._get_tracing_state  # None in captured code: nothing of torch.jit is tracing
fx_questions: tuple[Callable[[], object], ...] = tuple(  # whether a symbolic trace is going on; a torch that has no
    vars(torch.fx._symbolic_trace)[name]  # such name has no programs that ask
    for name in ("is_fx_tracing", "is_fx_symbolic_tracing")
    if name in vars(torch.fx._symbolic_trace)
)
state_questions = (  # answers that the entry guards hold, or that never change in a process
    torch._C._is_any_autocast_enabled,
    torch._C._is_autocast_available,
    torch._C._len_torch_function_stack,
    torch._C._is_torch_function_mode_enabled,
    torch._C._get_privateuse1_backend_name,
    torch._C._functorch.maybe_current_level,
    torch._C._are_functorch_transforms_active,
)


class _QuietFakeRuns(logging.Filter):
    """Drops torch's own report of an operation that failed on fake tensors, while capture runs it on purpose."""

    on = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is kept."""
        return not self.on


_QUIET = _QuietFakeRuns()
logging.getLogger("torch._subclasses.fake_tensor").addFilter(_QUIET)  # a renamed logger only brings the noise back


@contextmanager
def quiet_fake_runs() -> Iterator[None]:
    """Keep torch from logging failures of fake operations in the block: capture turns them into graph breaks."""
    before, _QUIET.on = _QUIET.on, True
    try:
        yield
    finally:
        _QUIET.on = before


def stock_mark(function: object) -> str:
    """Return how stock's `allow_in_graph` or `disallow_in_graph` marked a callable: "allowed", "disallowed" or "".

    These marks leave nothing on the callable: stock keeps its identity in two tables, looked at only if something
    else has imported them. If they move, the marks are not seen, and the callable is captured as any other.
    """
    rules = sys.modules.get("torch._dynamo.trace_rules")
    for table, mark in (("_disallowed_callable_ids", "disallowed"), ("_allowed_callable_ids", "allowed")):
        marked = getattr(rules, table, None)
        if marked is not None and id(function) in marked:
            return mark
    return ""


def forward_ad_is_active() -> bool:
    """Return whether a dual level is open: compiled code knows no forward-mode derivatives."""
    return torch.autograd.forward_ad._current_level >= 0


@contextmanager
def quiet_fake_failures() -> Iterator[None]:
    """Keep torch from logging a traceback when a fake run fails: the program itself will raise, or runs eagerly."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def lazy_module(root: Any, graph: torch.fx.Graph) -> torch.fx.GraphModule:
    """Return a GraphModule whose Python text is made when it is first called: it costs a fifth of a compilation."""
    return _LazyGraphModule(root, graph)


def without_dispatch() -> Any:
    """Return a context in which an ATen call goes straight to its kernel; `_DisableTorchDispatch` is one C++ guard."""
    return torch._C._DisableTorchDispatch()


def fake_like_template(
    mode: FakeTensorMode, template: torch.Tensor, memory: torch.Tensor | None, device: torch.device
) -> torch.Tensor:
    """Return a fake tensor that is like a meta tensor, in the memory of another, or in its own.

    `data` keeps the computed answers and gives a version counter of its own; `_lazy_clone` makes memory, in a hundredth
    of the time of `empty_strided` with symbols; without `_functionalize_unsafe_set` capture fails at once.  From torch
    2.15 on it refuses a fake tensor, which names another device than its meta memory; `data` of one names none.
    """
    copy = template.data
    torch._functionalize_unsafe_set(copy, torch._lazy_clone(template) if memory is None else memory.data)
    return FakeTensor(mode, copy, device)


USED_UP = "Trying to backward through the graph a second time"
"""What the engine says where saved tensors were freed; without it a used-up history would be taken for a whole one."""
