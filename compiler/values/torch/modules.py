"""nn.Module: parameters, buffers, submodules, hooks."""

import types
from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from ...base.torch_facts import calls_module_plainly, log_api_usage, module_call_path, module_registration_hooks
from ..constant import Constant
from ..guard import GuardKind
from ..python.containers.lists import ListValue
from ..python.containers.mappings import DictValue
from ..python.objects.attributes import MISSING, class_lookup, told_name
from ..python.objects.instances import INSTANCES, ObjectValue
from ..reasons import AUTOGRAD_CALL, DISTRIBUTED_WRAPPER, TENSOR_STATE, UNSUPPORTED_OBJECT, Break, Signal
from ..rule_tables import calls
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .tensor import TensorValue


class Uninitialised(Signal):
    """A lazy module of torch's own is called for the first time; shapes: of what it is called with."""

    def __init__(self, module: torch.nn.Module, shapes: list[tuple[int, ...]]) -> None:
        self.module = module
        self.shapes = shapes
        super().__init__(module)

    def initialise(self) -> bool:
        """Make the parameters as its first call does: of the shapes alone, with draws from the same generator.

        Returns True.
        """
        examples = tuple(torch.empty(shape, device="meta") for shape in self.shapes)
        module: Any = self.module
        module._infer_parameters(module, examples)
        return True


class ModuleValue(ObjectValue):
    """An `nn.Module`."""

    def missing_attr(self, ctx: CaptureContext, name: str, fallback: types.FunctionType) -> Value:
        """Look among parameters, buffers and submodules as `nn.Module.__getattr__` does."""
        if fallback is not torch.nn.Module.__getattr__:
            return super().missing_attr(ctx, name, fallback)
        for table in ("_parameters", "_buffers", "_modules"):
            holder = self.table(ctx, table)
            if holder is not None and self._has(holder, name):
                member = holder.find(ctx, Constant(name))
                if member is not None:
                    return member
        self.guard_missing(ctx, name)
        for table in ("_parameters", "_buffers", "_modules"):
            holder = self.table(ctx, table)
            if holder is not None:
                holder.find(ctx, Constant(name))
        ctx.throw(AttributeError, f"'{told_name(self.kind)}' object has no attribute '{name}'")

    def table(self, ctx: CaptureContext, name: str) -> DictValue | None:
        """Return one of the three registries."""
        registry = self.namespace.find(ctx, Constant(name))
        return registry if isinstance(registry, DictValue) else None

    @staticmethod
    def _has(holder: DictValue, name: str) -> bool:
        return name in holder.entries or (
            holder.unread is not None and name in holder.unread and name not in holder.deleted
        )

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Evaluate `module.name = value` as `nn.Module.__setattr__` does for plain values and buffers."""
        if class_lookup(self.kind, "__setattr__")[1] is not torch.nn.Module.__setattr__:
            super().set_attr(ctx, name, value)
            return
        value = ctx.realize(value)
        kind = value.python_type()
        if issubclass(kind, torch.nn.Parameter | torch.nn.Module):
            self._register(ctx, name, value, "_modules" if issubclass(kind, torch.nn.Module) else "_parameters")
            return
        for table in ("_parameters", "_modules"):
            holder = self.table(ctx, table)
            if holder is not None and holder.contains(ctx, Constant(name)):
                if kind is not type(None):
                    self.unsupported(f"replacing the registered {name!r}", TENSOR_STATE)
                holder.set_item(ctx, Constant(name), value)
                return
        buffers = self.table(ctx, "_buffers")
        if buffers is not None and buffers.contains(ctx, Constant(name)):
            if not issubclass(kind, torch.Tensor | type(None)):
                self.unsupported(f"assigning a {kind.__name__} to the buffer {name!r}", TENSOR_STATE)
            buffers.set_item(ctx, Constant(name), value)
        else:
            self.set_plain(ctx, name, value)

    def _register(self, ctx: CaptureContext, name: str, value: Value, table: str) -> None:
        """Put a parameter or submodule into its registry and take the name out of the others."""
        holder = self.table(ctx, table)
        if holder is None or module_registration_hooks():
            self.unsupported(f"registering {name!r}", TENSOR_STATE)
        others = [self.table(ctx, other) for other in ("_parameters", "_buffers", "_modules") if other != table]
        for other in (self.namespace, *others):
            if other is not None and self._has(other, name):
                other.del_item(ctx, Constant(name))
        holder.set_item(ctx, Constant(name), value)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `module(*args)`: `forward` directly where there are no hooks, else torch's own call path."""
        if issubclass(self.kind, torch.nn.parallel.DistributedDataParallel):
            raise Break(DISTRIBUTED_WRAPPER, self.describe())
        for name in ("__call__", "_call_impl"):
            class_lookup(self.kind, name)  # which guards it
        if not calls_module_plainly(self.kind):
            return super().call(ctx, args, kwargs)
        if self._is_leaf_with_backward_hooks(ctx):
            raise Break(AUTOGRAD_CALL, f"hooks on the gradients of {self.describe()}")
        self._demand_initialised(ctx, args, kwargs)
        if self._has_hooks_for_errors():
            raise Break(UNSUPPORTED_OBJECT, f"hooks of {self.describe()} that are called when it raises as well")
        if self.real is not MISSING and self._has_no_hooks(ctx):
            return ctx.calls.hand_on(self, self.get_attr(ctx, "forward"), args, kwargs)
        return ctx.calls.hand_on(self, ctx.wrap(module_call_path, Injected(module_call_path)), [self, *args], kwargs)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Evaluate `module[key]`; a slice of a ModuleList stays symbolic, so that no module is made."""
        getter = class_lookup(self.kind, "__getitem__")[1]
        key = ctx.realize(key)
        if getter is torch.nn.ModuleList.__getitem__ and isinstance(key, Constant) and isinstance(key.value, slice):
            modules = self.table(ctx, "_modules")
            if modules is not None:
                entries = list(modules.read_all(ctx).values())
                return ModuleListSlice([entry.value for entry in entries[key.value]])
        return super().get_item(ctx, key)

    def _demand_initialised(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> None:
        """Stop where torch's own lazy module is called for the first time: its hook makes the parameters."""
        if not isinstance(self.real, LazyModuleMixin) or not self.kind.__module__.startswith("torch.nn.modules."):
            return
        module: Any = self.real
        values = [ctx.realize(arg) for arg in args]
        plain = not kwargs and all(isinstance(value, TensorValue) for value in values)
        initialised = not module.has_uninitialized_params()
        if initialised or not plain or ctx.graph.is_apart() or ctx.graph.draws():
            return
        shapes = [tuple(map(int, value.fake.shape)) for value in values if isinstance(value, TensorValue)]
        raise Uninitialised(module, shapes)

    def _is_leaf_with_backward_hooks(self, ctx: CaptureContext) -> bool:
        """Return whether hooks see the gradients of a module without parts: it is as good to run it in one piece.

        The hooks hang on autograd nodes, which a graph does not have.
        """
        if not torch.is_grad_enabled() or getattr(self.real, "_modules", None):
            return False
        unread = self.namespace.unread or {}
        names = ("_backward_hooks", "_backward_pre_hooks")
        if not any(unread.get(name) for name in names) or any(name in self.namespace.entries for name in names):
            return False
        registries = [self.namespace.find(ctx, Constant(name)) for name in names]
        return any(isinstance(hooks, DictValue) and hooks.truth(ctx) for hooks in registries)

    def _has_hooks_for_errors(self) -> bool:
        """Return whether hooks of the user's are called when the forward raises as well; torch.export has its own."""
        always = getattr(self.real, "_forward_hooks_always_called", ())
        hooks: Any = getattr(self.real, "_forward_hooks", {})
        return any(not (getattr(hooks[key], "__module__", None) or "").startswith("torch.") for key in always)

    def _has_no_hooks(self, ctx: CaptureContext) -> bool:
        names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        namespace = self.namespace.unread
        if namespace is None or any(name in self.namespace.entries for name in names):
            return False
        if any(namespace.get(name) for name in names) or has_global_hooks():
            return False
        assert self.namespace.source is not None
        ctx.guards.add(self.namespace.source, GuardKind.EMPTY_ITEMS, names)
        ctx.guards.add(Injected(_HOOKS_OF_ALL), GuardKind.EMPTY_ITEMS, _GLOBAL_HOOKS)
        return True


INSTANCES[torch.nn.Module] = ModuleValue


@calls(log_api_usage)
def _log_api_usage(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return Constant(None)


class ModuleListSlice(ListValue):
    """What slicing a ModuleList gives; it becomes a real one only if it leaves the function."""

    copies_plainly = False

    def __init__(self, items: list[Value]) -> None:
        super().__init__(items, kind=torch.nn.ModuleList)

    def sliced(self, items: list[Value]) -> Value:
        """Return a slice of the slice."""
        return ModuleListSlice(items)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the ModuleList."""
        name = out.fresh()
        items = "".join(f"{out.value(item)}, " for item in self.items)
        out.line(f"{name} = {out.inject(torch.nn.ModuleList)}(({items}))")
        return name


_HOOKS_OF_ALL = vars(torch.nn.modules.module)
_GLOBAL_HOOKS = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
)


def has_global_hooks() -> bool:
    """Return whether any hook is registered for all modules."""
    return any(map(_HOOKS_OF_ALL.__getitem__, _GLOBAL_HOOKS))
