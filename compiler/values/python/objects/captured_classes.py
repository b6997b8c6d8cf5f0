"""Classes that the program makes while it is evaluated: class statements, `type(name, bases, namespace)`, namedtuple.

A template, a real class of the same shape, is made while capturing, so that every look-up works on it as on any
class; its functions stand for those of the program. A class that leaves the function is made again after the graph.
"""

import abc
import builtins
import collections
import types
from collections.abc import Callable
from typing import Any

from ...constant import Constant
from ...reasons import ARGUMENT_NOT_KNOWN, ATTRIBUTE, CANNOT_REBUILD, CLASS_DEFINITION, Break
from ...refused_arguments import refuse_arguments
from ...rule_tables import calls
from ...value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value
from ..containers.mappings import DictValue
from .attributes import CAPTURED_CLASSES, ValueHolder, class_lookup, enter_template
from .class_changes import as_raw
from .classes import ClassValue, constructs
from .functions import BoundMethod, CellValue, FunctionValue

_METACLASSES = (type, abc.ABCMeta)
_AT_ONCE = ("__module__", "__qualname__", "__doc__", "__slots__", "__match_args__")


def is_special(name: str) -> bool:
    """Return whether an attribute of a class may mean something to Python, or to its metaclass."""
    return name.startswith("__") and name.endswith("__")


class CapturedClass(ClassValue):
    """A class made while capturing; namespace: what it was made of, in order. remake: for classes made by a call."""

    def __init__(
        self,
        kind: type,
        bases: list[Value],
        namespace: dict[str, Value],
        remake: Callable[[Rebuilder], str] | None = None,
    ) -> None:
        super().__init__(kind)
        self.bases = bases
        self.namespace = namespace
        self.of_body = frozenset(namespace)
        self.set_later: set[str] = set()  # they do not take their name
        self.remake = remake
        enter_template(kind, self)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Set an attribute of the template."""
        if is_special(name) or self.remake is not None:
            self.unsupported(f"setting class attribute {name!r}", CLASS_DEFINITION)
        self.namespace[name] = value
        self.set_later.add(name)
        setattr(self.kind, name, _template_part(ctx, value))

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Delete an attribute of the template."""
        if name not in self.namespace or self.remake is not None:
            self.unsupported(f"deleting class attribute {name!r}", CLASS_DEFINITION)
        del self.namespace[name]
        delattr(self.kind, name)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the class; what may refer to it is set afterwards."""
        name = out.fresh()
        if self.remake is not None:
            out.line(f"{name} = {self.remake(out)}")
            return name
        if type(self.kind) is not type:
            self.unsupported("making an abstract class after the graph", CANNOT_REBUILD)
        bases = "".join(f"{out.value(base)}, " for base in self.bases)
        of_body = {key: value for key, value in self.namespace.items() if key not in self.set_later}
        made = out.name_of(self)
        if made is not None:  # by a base, after which classes are made that derive from it
            return made
        parts = out.class_parts(self, of_body)
        later = [key for key in self.namespace if key not in parts]
        if any(is_special(key) for key in later):
            self.unsupported("a class with a special attribute that is made of the class itself", CANNOT_REBUILD)
        in_order = {key: parts.get(key, "None") for key in self.namespace if key in parts or key in self.of_body}
        entries = "".join(f"{key!r}: {text}, " for key, text in in_order.items())
        out.line(f"{name} = {out.inject(type)}({self.kind.__name__!r}, ({bases}), {{{entries}}})")
        out.bind(self, name)
        for key in later:
            out.line(f"{out.inject(setattr)}({name}, {key!r}, {out.value(self.namespace[key])})")
        derived: list[type] = type.__subclasses__(self.kind)
        for kind in derived:  # in Python they live until garbage is collected
            if type(kind) is type and kind in CAPTURED_CLASSES:
                out.value(CAPTURED_CLASSES[kind])
        return name


class DescriptorValue(Value):
    """A property, staticmethod or classmethod made while capturing; parts: as its attributes are named.

    The text of a property is a part only where it is not that of the getter.
    """

    always_true = True

    def __init__(self, kind: type, parts: dict[str, Value]) -> None:
        self.kind = kind
        self.parts = parts

    def python_type(self) -> type:
        """Return the descriptor's class."""
        return self.kind

    def as_descriptor(self, ctx: CaptureContext) -> object:
        """Return a real descriptor over stand-ins of the functions."""
        kind: Any = self.kind
        functions = {name: part for name, part in self.parts.items() if name != "doc"}
        made = kind(*(None if _is_none(part) else _callable_part(ctx, part) for part in functions.values()))
        ctx.stand_for(made, self)
        return made

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the parts, and the methods that replace one."""
        if name in self.parts and name != "doc":
            return self.parts[name]
        if name in ("__func__", "__wrapped__") and "function" in self.parts:
            return self.parts["function"]
        if name == "__isabstractmethod__":
            return Constant(any(_is_abstract(ctx, part) for key, part in self.parts.items() if key != "doc"))
        if self.kind is property and name == "__doc__" and ("doc" in self.parts or _is_none(self.parts["fget"])):
            return self.parts.get("doc", Constant(None))
        if self.kind is property and name == "__doc__":
            return self.parts["fget"].get_attr(ctx, name)
        if self.kind is property and name in ("getter", "setter", "deleter"):
            return BoundMethod(_Replacing(f"f{name[:3]}"), self)
        self.unsupported(f"attribute {name!r}", ATTRIBUTE)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Call a staticmethod."""
        if self.kind is staticmethod:
            return ctx.call(self.parts["function"], args, kwargs)
        return super().call(ctx, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the descriptor."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.kind)}({', '.join(out.value(part) for part in self.parts.values())})")
        return name


class _Replacing(Value):
    """`property.setter` and the like."""

    def __init__(self, part: str) -> None:
        self.part = part

    def python_type(self) -> type:
        """Return the type of builtins."""
        return types.BuiltinFunctionType

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Return a copy with another part, unless that is None."""
        owner = args[0]
        assert isinstance(owner, DescriptorValue)
        if len(args) != 2 or kwargs:
            self.unsupported("call with arguments of another form", CLASS_DEFINITION)
        part = ctx.realize(args[1])
        return DescriptorValue(owner.kind, owner.parts if _is_none(part) else owner.parts | {self.part: part})


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _is_abstract(ctx: CaptureContext, part: Value) -> bool:
    """Return whether a function that a descriptor holds is marked as abstract."""
    try:
        return ctx.realize(part.get_attr(ctx, "__isabstractmethod__")).truth(ctx)
    except Raised as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return False
        raise


def _callable_part(ctx: CaptureContext, value: Value) -> object:
    raw = as_raw(ctx, value)
    if isinstance(raw, ValueHolder):
        raise Break(CLASS_DEFINITION, f"a descriptor over {value.describe()}")
    return raw


@constructs(property)
def _property(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    names = ("fget", "fset", "fdel", "doc")
    if len(args) > len(names) or not kwargs.keys() <= {*names[len(args) :]}:
        refuse_arguments(ctx, property, args, kwargs)
    functions = dict(zip(names, args, strict=False)) | kwargs
    parts = {name: ctx.realize(functions.get(name, Constant(None))) for name in names}
    if _is_none(parts["doc"]):
        del parts["doc"]
        if not isinstance(parts["fget"], FunctionValue) and not _is_none(parts["fget"]):
            raise Break(CLASS_DEFINITION, f"a property over {parts['fget'].describe()}, which is asked for its text")
    return DescriptorValue(property, parts)


@constructs(staticmethod, classmethod)
def _wrapped(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) != 1 or kwargs:
        refuse_arguments(ctx, kind, args, kwargs)
    return DescriptorValue(kind, {"function": ctx.realize(args[0])})


def _template_part(ctx: CaptureContext, value: Value, key: str = "") -> object:
    """Return what stands for a value in a template: known values themselves, so that Python can read them."""
    value = ctx.realize(value)
    known = value.is_constant() and (key in _AT_ONCE or value.python_type() is tuple)
    if isinstance(value, Constant | ClassValue) or known:
        return value.constant()
    return as_raw(ctx, value)


def make_class(
    ctx: CaptureContext, name: str, bases: list[Value], namespace: dict[str, Value], metaclass: type | None = None
) -> CapturedClass:
    """Evaluate the making of a class."""
    if not all(isinstance(base, ClassValue) for base in bases):
        raise Break(CLASS_DEFINITION, "making a class with a base that is not a class")
    kinds = tuple(base.kind for base in bases if isinstance(base, ClassValue))
    metaclass_so_far = metaclass or type
    for kind in kinds:
        metaclass_so_far = type(kind) if issubclass(type(kind), metaclass_so_far) else metaclass_so_far
        hook = class_lookup(kind, "__init_subclass__")[1]
        if isinstance(hook, classmethod) and isinstance(hook.__func__, types.FunctionType):
            raise Break(CLASS_DEFINITION, f"deriving from {kind.__qualname__}, which has __init_subclass__")
    if metaclass_so_far not in _METACLASSES or any(kind.__module__.startswith("torch") for kind in kinds):
        raise Break(CLASS_DEFINITION, f"making a class of metaclass {metaclass_so_far.__qualname__}")
    cell = namespace.get("__classcell__")
    if isinstance(cell, CellValue):
        del namespace["__classcell__"]
    for key in ("__qualname__", "__slots__"):
        if key in namespace and not ctx.realize(namespace[key]).is_constant():
            raise Break(CLASS_DEFINITION, f"making a class whose {key} is not known")
    for value in namespace.values():
        owner = class_lookup(ctx.realize(value).python_type(), "__set_name__")[0]
        if owner is not None and not isinstance(value, DescriptorValue | ClassValue):
            raise Break(CLASS_DEFINITION, "making a class with descriptors that take their name")
    parts = {key: _template_part(ctx, value, key) for key, value in namespace.items()}
    try:
        template = metaclass_so_far(name, kinds, parts)
    except (TypeError, ValueError) as error:
        ctx.throw(type(error), *error.args)
    class_value = CapturedClass(template, bases, namespace)
    if isinstance(cell, CellValue):
        cell.store(ctx, class_value)
    return class_value


@calls(builtins.__build_class__)
def _build_class(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    body, name, *bases = (ctx.realize(arg) for arg in args)
    if not isinstance(body, FunctionValue) or not set(kwargs) <= {"metaclass"}:
        raise Break(CLASS_DEFINITION, "making a class with arguments")
    metaclass_value = ctx.realize(kwargs["metaclass"]) if kwargs else None
    if metaclass_value is not None and not isinstance(metaclass_value, ClassValue):
        raise Break(CLASS_DEFINITION, f"making a class by {metaclass_value.describe()}")
    metaclass = metaclass_value.kind if metaclass_value is not None else None
    if (metaclass or type) not in _METACLASSES or any(not isinstance(base, ClassValue) for base in bases):
        raise Break(CLASS_DEFINITION, f"making the class {name.constant()}")
    return make_class(ctx, str(name.constant()), bases, ctx.calls.class_body(body), metaclass)


def class_by_call(ctx: CaptureContext, args: Arguments) -> Value:
    """Evaluate `type(name, bases, namespace)`."""
    name, bases, namespace = (ctx.realize(arg) for arg in args)
    if not isinstance(namespace, DictValue) or not name.is_constant():
        raise Break(CLASS_DEFINITION, "making a class")
    pairs = {str(entry.key.constant()): ctx.realize(entry.value) for entry in namespace.read_all(ctx).values()}
    pairs.setdefault("__module__", Constant(ctx.frames.calling_namespace().get("__name__")))
    return make_class(ctx, str(name.constant()), [ctx.realize(base) for base in ctx.unpack(bases)], pairs)


@calls(collections.namedtuple)
def _namedtuple(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    known = [ctx.realize(arg) for arg in args]
    named = {key: ctx.realize(value) for key, value in kwargs.items()}
    named.setdefault("module", Constant(ctx.frames.calling_namespace().get("__name__")))
    if not all(value.is_constant() for value in (*known, *named.values())):
        raise Break(ARGUMENT_NOT_KNOWN, "namedtuple() of fields that are not known")
    maker: Any = collections.namedtuple
    try:
        template = maker(*(value.constant() for value in known), **{k: v.constant() for k, v in named.items()})
    except (TypeError, ValueError) as error:
        ctx.throw(type(error), *error.args)

    def remake(out: Rebuilder) -> str:
        parts = [out.value(value) for value in known] + [f"{key}={out.value(value)}" for key, value in named.items()]
        return f"{out.inject(maker)}({', '.join(parts)})"

    return CapturedClass(template, [ctx.known(tuple)], {}, remake)
