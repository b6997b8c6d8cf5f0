"""Value: the protocol of a Python value under evaluation; CaptureContext: what a value may ask of the capture."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import CodeType
from typing import NoReturn

import torch
from torch.fx import GraphModule, Node

from ..base.options import Options
from .guard import GuardKind
from .operator_table import Binary, Comparison, Unary
from .override_state import OverrideState
from .reasons import (
    ARGUMENT_NOT_KNOWN,
    ATTRIBUTE,
    CANNOT_REBUILD,
    COPY,
    LIMIT,
    UNKNOWN_CALLEE,
    UNSUPPORTED_OPERATION,
    UNSUPPORTED_TENSOR,
    Break,
    BreakReason,
    Signal,
)
from .source import Source

_MOST_ELEMENTS = 100_000  # that an iterator may give while capturing
Arguments = Sequence["Value"]
Keywords = dict[str, "Value"]


def defines(kind: type, name: str) -> bool:
    """Return whether instances of a class have a special method; what only its metaclass has does not count."""
    return any(name in base.__dict__ for base in kind.__mro__)


class Raised(Signal):
    """The evaluated program raised; value: the exception under evaluation."""

    def __init__(self, value: "Value") -> None:
        self.value = value
        super().__init__(value)


class Rebuilder(ABC):
    """Writes the Python that makes run-time objects of values after the graph has run."""

    @abstractmethod
    def value(self, value: "Value") -> str:
        """Return an expression (a name or a literal) for the value; may write lines first."""

    @abstractmethod
    def inject(self, value: object) -> str:
        """Give a constant object a name."""

    @abstractmethod
    def class_name(self, kind: type) -> str:
        """Return an expression for a class; one that was made while capturing is made again by its class statement."""

    @abstractmethod
    def line(self, text: str) -> None:
        """Write one statement."""

    @abstractmethod
    def fresh(self) -> str:
        """Return an unused name."""

    @abstractmethod
    def bind(self, value: "Value", name: str) -> None:
        """Say that the value is already there under a name, before its parts are built (cycles)."""

    @abstractmethod
    def name_of(self, value: "Value") -> str | None:
        """Return the name under which a value is there, None if it has not been made."""

    @abstractmethod
    def fill(self, place: str, value: "Value") -> None:
        """Assign to a place of an object that is there; later, where the value is made of a class not made yet."""

    @abstractmethod
    def class_parts(self, kind: "Value", parts: Mapping[str, "Value"]) -> dict[str, str]:
        """Return expressions for parts of a class that is to be made; those are left out that it is a part of."""

    @abstractmethod
    def tensor(self, value: "Value") -> str:
        """Return the name of a tensor that the graph gives."""

    @abstractmethod
    def size(self, value: "Value") -> str:
        """Return an expression that computes a symbolic size from the inputs."""

    @abstractmethod
    def fetch(self, source: Source) -> str:
        """Return the name of what the source gave at entry."""


class Value:
    """A Python value under symbolic evaluation.

    source: where it comes from at entry, None if it was made since. Unless a class says otherwise an operation breaks.
    """

    source: Source | None = None
    contents: "Value | None" = None  # what an instance of a subclass of a builtin type holds
    holder: "Value | None" = None  # the instance whose contents this is
    precedes_methods = False  # its operators come before those that the other operand's class has in Python
    has_text = True  # whether the text of the real object could be known
    always_true = False  # whether `bool` of every object of the type is True

    def python_type(self) -> type:
        """Return the type that `type(value)` gives."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return a few words for messages."""
        return f"{type(self).__name__}({self.python_type().__name__})"

    def unsupported(self, operation: str, reason: BreakReason) -> NoReturn:
        """Raise Break: this value does not know the operation."""
        raise Break(reason, f"{operation} on {self.describe()}")

    def stand_in(self) -> object:
        """Return an object of the same type, without the contents: it refuses what the type refuses."""
        raise Break(UNSUPPORTED_OPERATION, f"what {self.describe()} refuses")

    def refuse(
        self,
        ctx: "CaptureContext",
        words: str,
        operation: Callable[..., object],
        *others: "Value",
        reason: BreakReason = UNSUPPORTED_OPERATION,
        errors: tuple[type[Exception], ...] = (TypeError, AttributeError),
    ) -> NoReturn:
        """Raise what Python raises for operands of these types; Break for the reason where it does not refuse them.

        Python itself is asked, on stand-ins: the message of the error is its own.  errors: of which classes tell of
        types; others tell of values, which stand-ins do not have: `match[n]` has no such group.
        """
        try:
            operation(*(ctx.realize(value).stand_in() for value in (self, *others)))
        except errors as error:
            ctx.throw(type(error), *error.args)
        except (Break, Exception):
            pass
        self.unsupported(words, reason)

    def is_constant(self) -> bool:
        """Return whether `constant()` can answer."""
        return False

    def constant(self) -> object:
        """Return the real object, fully known now; containers are given as fresh copies."""
        raise Break(ARGUMENT_NOT_KNOWN, f"the value of {self.describe()} is not known")

    def graph_argument(self, ctx: "CaptureContext") -> tuple[object, object]:
        """Return the value as (argument of a node, argument for the fake run); Break if a graph cannot carry it."""
        raise Break(UNSUPPORTED_TENSOR, f"{self.describe()} as an argument of an operation")

    def get_attr(self, ctx: "CaptureContext", name: str) -> "Value":
        """Evaluate `value.name`."""
        self.refuse(ctx, f"attribute {name!r}", lambda value: getattr(value, name), reason=ATTRIBUTE)

    def set_attr(self, ctx: "CaptureContext", name: str, value: "Value") -> None:
        """Evaluate `self.name = value`."""
        self.refuse(ctx, f"setting attribute {name!r}", lambda owner: setattr(owner, name, None), reason=ATTRIBUTE)

    def del_attr(self, ctx: "CaptureContext", name: str) -> None:
        """Evaluate `del self.name`; an object with a `__dict__` may have the attribute though its stand-in lacks it."""
        if self.python_type().__dictoffset__:
            self.unsupported(f"deleting attribute {name!r}", ATTRIBUTE)
        self.refuse(ctx, f"deleting attribute {name!r}", lambda owner: delattr(owner, name), reason=ATTRIBUTE)

    def call(self, ctx: "CaptureContext", args: Arguments, kwargs: Keywords) -> "Value":
        """Evaluate `value(*args, **kwargs)`."""
        self.refuse(ctx, "call", lambda value: value())

    def call_method(self, ctx: "CaptureContext", name: str, args: Arguments, kwargs: Keywords) -> "Value":
        """Evaluate `value.name(*args, **kwargs)`; the default looks the attribute up."""
        return ctx.call(self.get_attr(ctx, name), args, kwargs)

    def call_native(self, ctx: "CaptureContext", method: "Value", args: Arguments, kwargs: Keywords) -> "Value":
        """Evaluate a method written in C that is bound to this value; method: a NativeMethod."""
        method.unsupported("call", UNKNOWN_CALLEE)

    def truth(self, ctx: "CaptureContext") -> bool:
        """Evaluate `bool(value)`."""
        if not self.always_true:
            self.unsupported("truth value", UNSUPPORTED_OPERATION)
        return True

    def defines_operators(self) -> bool:
        """Return whether the class may have operators written in Python."""
        return False

    def answers_operator(self, other: "Value", name: str) -> bool:
        """Return whether the special method, written in C, has an answer, so that the other operand is not asked."""
        try:
            own, others = self.stand_in(), other.stand_in()
            return getattr(type(own), name)(own, others) is not NotImplemented
        except (Break, TypeError, AttributeError):
            return False
        except Exception:  # a division by the zero that stands in, say
            return True

    def binary(
        self, ctx: "CaptureContext", record: Binary, other: "Value", reflected: bool, inplace: bool
    ) -> "Value | None":
        """Evaluate an operator with this value on the left, or on the right (reflected); None: it has no answer."""
        return None

    def concatenate(self, ctx: "CaptureContext", other: "Value", inplace: bool) -> "Value | None":
        """Evaluate `self + other` of sequences, asked where no operand has `+` as numbers do; None: not a sequence."""
        return None

    def repeat(self, ctx: "CaptureContext", count: "Value", reflected: bool, inplace: bool) -> "Value | None":
        """Evaluate `self * count`, or `count * self` (reflected), of a sequence; None: it is not one."""
        return None

    def unary(self, ctx: "CaptureContext", record: Unary) -> "Value | None":
        """Evaluate a unary operator; None: there is no rule but the method's."""
        return None

    def compare(self, ctx: "CaptureContext", record: Comparison, other: "Value", reflected: bool) -> "Value | None":
        """Evaluate a comparison with this value on the left, or on the right (reflected); None: it has no answer."""
        return None

    @property
    def equal_by_identity(self) -> bool:
        """Whether it is equal to a value of an unlike kind only if both are one object."""
        return False

    def guard_identity(self, ctx: "CaptureContext") -> None:
        """Demand that the object is the same at every entry, where it is not known already."""

    def as_index(self, ctx: "CaptureContext") -> "Value":
        """Evaluate `operator.index(value)` where the type has a rule for it; else return the value itself."""
        return self

    def iterate(self, ctx: "CaptureContext") -> "Value":
        """Evaluate `iter(value)`."""
        self.refuse(ctx, "iteration", iter)

    def reversed(self, ctx: "CaptureContext") -> "Value":
        """Evaluate `reversed(value)`."""
        self.refuse(ctx, "reversed", reversed)

    def next(self, ctx: "CaptureContext") -> "Value":
        """Evaluate `next(value)`; the end is Raised(StopIteration)."""
        self.refuse(ctx, "next", next)

    def unpacked(self, ctx: "CaptureContext") -> list["Value"]:
        """Evaluate `list(value)` as a list of values."""
        return ctx.realize(self.iterate(ctx)).taken(ctx)

    def taken(self, ctx: "CaptureContext") -> list["Value"]:
        """Take all that `next(value)` gives."""
        elements: list[Value] = []
        while True:
            try:
                elements.append(ctx.realize(self.next(ctx)))
            except Raised as raised:
                if issubclass(raised.value.python_type(), StopIteration):
                    return elements
                raise
            if len(elements) > _MOST_ELEMENTS:
                raise Break(LIMIT, f"an iterator of more than {_MOST_ELEMENTS} elements")

    def each(self, ctx: "CaptureContext", *, hinted: bool = False) -> Iterator["Value"]:
        """Evaluate `iter(value)` now, and give the elements one by one, as they are asked for.

        What is done with one element may be seen by the code that gives the next. hinted: a length is asked for first.
        """
        iterator = ctx.realize(self.iterate(ctx))
        if hinted:
            self.ask_hint(ctx)
        return elements_of(ctx, iterator)

    def ask_hint(self, ctx: "CaptureContext") -> None:
        """Ask for a hint of the length, as containers do that are filled: only code of the program notices."""

    def gathered(self, ctx: "CaptureContext") -> list["Value"]:
        """Evaluate `list(value)` as Python's containers do: they ask for a hint of the length when they have begun."""
        return self.unpacked(ctx)

    def length(self, ctx: "CaptureContext") -> "Value":
        """Evaluate `len(value)`."""
        self.refuse(ctx, "len", len)

    def get_item(self, ctx: "CaptureContext", key: "Value") -> "Value":
        """Evaluate `value[key]`."""
        self.refuse(ctx, "subscript", operator.getitem, key)

    def set_item(self, ctx: "CaptureContext", key: "Value", value: "Value") -> None:
        """Evaluate `self[key] = value`."""
        self.refuse(ctx, "item assignment", operator.setitem, key, value)

    def del_item(self, ctx: "CaptureContext", key: "Value") -> None:
        """Evaluate `del self[key]`."""
        self.refuse(ctx, "item deletion", operator.delitem, key)

    def contains(self, ctx: "CaptureContext", item: "Value") -> bool:
        """Evaluate `item in value`; the default takes elements until one is equal."""
        if type(self).iterate is Value.iterate:
            self.refuse(ctx, "membership test", lambda value: None in value)
        iterator = ctx.realize(self.iterate(ctx))
        while True:
            try:
                element = iterator.next(ctx)
            except Raised as raised:
                if issubclass(raised.value.python_type(), StopIteration):
                    return False
                raise
            if ctx.same_or_equal(element, item):
                return True

    def hash_token(self, ctx: "CaptureContext") -> Hashable:
        """Return an object that is equal for equal dict keys."""
        self.refuse(ctx, "hash", hash)

    def shallow_copy(self, ctx: "CaptureContext") -> "Value":
        """Evaluate `copy.copy(value)`."""
        raise Break(COPY, f"copy of {self.describe()}")

    def deep_copy(self, ctx: "CaptureContext", memo: dict[int, "Value"]) -> "Value":
        """Evaluate `copy.deepcopy(value)`; memo: the copies made so far, by id of the value."""
        raise Break(COPY, f"deepcopy of {self.describe()}")

    def mirrored(self, part: Callable[["Value"], object], seen: dict[int, object], ctx: "CaptureContext") -> object:
        """Return a real container of the same kind over what `part` makes of the elements, None if it is not one.

        seen: the containers made so far by id of the value, for those that contain themselves.
        """
        return None

    def identity(self) -> object:
        """Return the object that stands for this value in `is` tests; the default is the value itself."""
        return self

    def identity_beside(self, other: "Value") -> object:
        """Return what is compared with the identity of another value; it may depend on that one's type."""
        return self.identity()

    def initialise_instance(self, ctx: "CaptureContext", args: Arguments, kwargs: Keywords) -> None:
        """Evaluate the `__init__` of a builtin container on an instance of a subclass, which holds this value."""
        self.call_method(ctx, "__init__", args, kwargs)

    def fill_instance(self, name: str, base: type, out: Rebuilder) -> list[str]:
        """Return the statements that put the contents into a new instance of a subclass, past the methods of its class.

        name: of the instance; base: the builtin class.
        """
        return []

    def rebuild(self, out: Rebuilder) -> str:
        """Return an expression that makes the value at run time; only called for values without a source."""
        self.unsupported("rebuilding after the graph", CANNOT_REBUILD)

    def replay(self, out: Rebuilder) -> list[str]:
        """Return the statements that make the original object, reached by `source`, look like this value."""
        self.unsupported("replaying a change", CANNOT_REBUILD)


class Ended(StopIteration):
    """An iterator of the evaluated program has ended; raised: the StopIteration it did so with."""

    def __init__(self, raised: Raised) -> None:
        self.raised = raised
        super().__init__()


class Elements(Iterator[Value]):
    """The elements of an iterator value, one by one, for Python's own iterators to run over.

    Unlike a generator it can be asked again after it has ended or failed, as it is in the program.
    """

    __slots__ = ("ctx", "iterator", "left")

    def __init__(self, ctx: "CaptureContext", iterator: Value) -> None:
        self.ctx = ctx
        self.iterator = iterator
        self.left = _MOST_ELEMENTS

    def __next__(self) -> Value:
        self.left -= 1
        if self.left < 0:
            raise Break(LIMIT, f"an iterator of more than {_MOST_ELEMENTS} elements")
        try:
            return self.ctx.realize(self.iterator.next(self.ctx))
        except Raised as raised:
            if not issubclass(raised.value.python_type(), StopIteration):
                raise
            ended = Ended(raised.with_traceback(None))  # a traceback would hold what the frames hold
        try:
            raise ended
        finally:
            del ended


def elements_of(ctx: "CaptureContext", iterator: Value) -> Iterator[Value]:
    """Give the elements of an iterator value one by one."""
    return Elements(ctx, iterator)


def unless_refused(ctx: "CaptureContext", ask: Callable[["CaptureContext"], Value | None]) -> Value | None:
    """Return what a question gives, None where it raises a TypeError."""
    try:
        return ask(ctx)
    except Raised as raised:
        if not issubclass(raised.value.python_type(), TypeError):
            raise
    return None


class GuardDemands(ABC):
    """What later calls must fulfil to be served by the code of this capture."""

    @abstractmethod
    def add(self, source: Source | None, kind: GuardKind, expected: object, others: tuple[Source, ...] = ()) -> None:
        """Demand a condition at entry."""

    @abstractmethod
    def told_apart(self, value: Value) -> None:
        """Note that the program relies on this object not being another one: it hashes by identity."""


class GraphInProgress(ABC):
    """The graph that is being built, and evaluations beside it; mutates_inputs: an operation changes one."""

    mutates_inputs: bool

    @abstractmethod
    def call(self, kind: str, target: object, args: Arguments, kwargs: Keywords) -> Value:
        """Add an operation to the graph; kind: `call_function` or `call_method` (target: the name)."""

    @abstractmethod
    def add(
        self,
        target: Callable[..., object],
        args: tuple[object, ...],
        result: object,
        kwargs: dict[str, object] | None = None,
    ) -> "Value":
        """Add a call to the graph whose result on fake tensors is known."""

    @abstractmethod
    def fake_run(self, run: Callable[..., object], args: list[object], kwargs: dict[str, object], what: str) -> object:
        """Run a Python function over fake tensors; what: its name for messages."""

    @abstractmethod
    def size_argument(self, value: Value) -> object:
        """Return the node of the graph that computes a symbolic size, or the number if there is none for it."""

    @abstractmethod
    def evaluate_apart(
        self,
        function: "Value",
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        once: bool = False,
        takes_numbers: bool = False,
    ) -> tuple[object, GraphModule, tuple[Node, ...]]:
        """Evaluate a call on fake tensors in a graph of its own.

        Returns the result, the graph (inputs: the tensors of the arguments, then the lifted ones) and the nodes of
        the surrounding graph that were lifted. Effects are a Break, unless the function runs exactly once.
        takes_numbers: whether numbers that vary may be among these, with the symbol as `val`; else they are fixed.
        """

    @abstractmethod
    def evaluate_dry(self, evaluate: Callable[[], None], what: str, given: Sequence["Value"] = ()) -> None:
        """Evaluate something for its guards; its operations are dropped again, and effects are a Break.

        given: what it gets as arguments; other numbers from outside are fixed, for it reads them itself when it runs.
        """

    @abstractmethod
    def open_number(self, tensor: Value) -> Value | None:
        """Return the number in a tensor of one element, computed at entry, as one that may vary; None: it cannot be."""

    @abstractmethod
    def computed_number(self, function: Callable[..., object], operands: Sequence[object]) -> Value | None:
        """Return a float that a pure function gives, computed at entry, as one that may vary; None: it cannot be.

        operands: numbers and torch's symbols.
        """

    @abstractmethod
    def draw(self, generator: Value, draw: object, sample: torch.Tensor, words: str) -> Value | None:
        """Return the tensor of a number that is drawn before the graph runs; None where none can be.

        draw: called with the generator, gives the tensor. sample: one of its kind. words: for people.
        """

    @abstractmethod
    def warn(self, message: str, category: type[Warning]) -> None:
        """Warn at the line that is evaluated, at each call."""

    @abstractmethod
    def may_start(self) -> bool:
        """Return whether something may be made before capture: the program has computed and changed nothing so far."""

    @abstractmethod
    def number_at_entry(self, tensor: Value) -> int | float | bool | None:
        """Return the number in a tensor of one element that small inputs give, guarded; None where it is to be read.

        In torch's own code only, and of what the program does not write to.
        """

    @abstractmethod
    def ask(self, condition: Value, *, anywhere: bool = False) -> bool | None:
        """Return a truth value that small inputs give, computed and guarded at entry; None where a break is better.

        anywhere: not only in loops and in torch's own code.
        """

    @abstractmethod
    def assume(self, condition: Value, outcome: bool) -> bool:
        """Assume a truth value that only the graph can give, to be checked when it has run; False: not possible."""

    @abstractmethod
    def sees_finite_numbers(self) -> bool:
        """Return whether all inputs are finite, and results may be assumed to be: else the code is captured again."""

    @abstractmethod
    def assume_no_warning(self, flags: Value, *, finite: bool = False) -> bool:
        """Assume that all elements of a tensor are true: then NumPy would not warn; False: not possible.

        finite: they say that a result is finite, which is more than that.
        """

    @abstractmethod
    def follows(self, flags: Value) -> None:
        """Take back `assume_no_warning(flags)`: it follows from what was assumed last."""

    @abstractmethod
    def rebound(self, tensor: Value) -> None:
        """Note that a tensor's value stands for another node now."""

    @abstractmethod
    def inputs(self) -> Sequence[Value]:
        """Return the tensors from outside that were looked at so far."""

    @abstractmethod
    def leaves(self) -> Sequence[Value]:
        """Return the tensors of the graph that may collect gradients, in the order they came in or were made."""

    @abstractmethod
    def draws(self) -> Sequence[object]:
        """Return what operations so far draw random numbers from: a generator or a device for each of them."""

    @abstractmethod
    def is_apart(self) -> bool:
        """Return whether a function is being evaluated in a graph of its own."""

    @abstractmethod
    def add_change(self, change: Callable[..., object], args: tuple[object, ...] = ()) -> None:
        """Add a call to the graph that changes a setting of torch and gives nothing."""


class CallingFrames(ABC):
    """What a program may ask of the frames that are running."""

    given: frozenset[int]  # the ids of the objects that they were given

    @abstractmethod
    def calling_namespace(self) -> dict[str, object]:
        """Return the globals of the frame that calls."""

    @abstractmethod
    def calling_frame(self, depth: int) -> tuple[CodeType, int, object]:
        """Return code and line of the frame that calls, or of one that many calls further out, and that frame."""

    @abstractmethod
    def depth_of(self, frame: object) -> int | None:
        """Return how many calls further out a frame is now; None if it has ended."""

    @abstractmethod
    def calling_locals(self) -> dict[str, Value]:
        """Return the local variables of the frame that calls, closure variables too."""

    @abstractmethod
    def locals_given(self) -> Value:
        """Return what `locals()` gives to the frame that calls."""

    @abstractmethod
    def hold(self, test: Callable[[object], bool]) -> bool:
        """Return whether a running frame has an object from outside that passes, in a variable or on its stack."""

    @abstractmethod
    def calling_class_cell(self) -> tuple[Value, Value]:
        """Return (`__class__`, first argument) of the running frame, for `super()`."""

    @abstractmethod
    def handled_exception(self) -> Value | None:
        """Return the exception of the innermost `except` block that the program is in."""

    @abstractmethod
    def needs_own_frame(self, what: str, depth: int = 0) -> NoReturn:
        """Stop: the operation looks at the Python frame that calls it, so that frame must be the original one.

        depth: how many calls further out it looks; the frames on the way must be the original ones, too.
        """

    @abstractmethod
    def break_around(self, signal: Break) -> NoReturn:
        """Break where the running function is called, so that what it makes ends with its frame."""

    @abstractmethod
    def awaited_truth(self) -> bool | None:
        """Return which result of the running call leads to no error, where only one of true and false does so."""

    @abstractmethod
    def is_dropped(self) -> bool:
        """Return whether the program throws away the result of the operation that is being evaluated."""


class SideEffects(ABC):
    """Changes of what lives outside, replayed after the graph."""

    class_changes: dict[type, Value]  # attributes of classes that the program has set, by class
    class_namespaces: dict[type, list[Value]]  # the views of their namespaces that it has asked for

    @abstractmethod
    def count(self) -> tuple[int, int]:
        """Return how much has changed so far; where this grows, something changed."""

    @abstractmethod
    def note_count(self, write: Callable[[Rebuilder], str]) -> None:
        """Note a statement that counts something which no captured code reads; it runs after the other changes."""

    @abstractmethod
    def has_changed(self, kind: type[Value]) -> bool:
        """Return whether an object from outside of this kind of value has changed."""

    @abstractmethod
    def changed_objects(self) -> set[int]:
        """Return the ids of the objects from outside that have changed so far."""

    @abstractmethod
    def mutated(self, value: Value) -> None:
        """Note that an object changed, so that the change is replayed if it came from outside."""

    @abstractmethod
    def let_go(self, holder: Value | None, lost: Sequence[object]) -> None:
        """Break if a holder from outside has let go of an object whose end can be noticed.

        holder: None for a namespace. lost: values, or objects that nothing has looked at yet.
        """

    @abstractmethod
    def global_value(self, namespace: dict[str, object], name: str) -> Value:
        """Evaluate a global name: the namespace, then builtins."""

    @abstractmethod
    def own_global(self, namespace: dict[str, object], name: str) -> Value | None:
        """Return what a namespace has under a name, builtins left out; None if nothing."""

    @abstractmethod
    def written_global(self, namespace: dict[str, object], name: str) -> "tuple[Value | None] | None":
        """Return what was assigned to a global name in this capture, (None,) if it was deleted; None if neither."""

    @abstractmethod
    def changed_names(self, namespace: dict[str, object]) -> dict[str, bool]:
        """Return the global names that were assigned (True) or deleted in this capture."""

    @abstractmethod
    def set_global(self, namespace: dict[str, object], name: str, value: Value | None) -> None:
        """Assign a global name; None deletes it."""


class ModeChanges(ABC):
    """Settings of torch that the program changes: devices, dtypes, grad mode, autocast and other blocks."""

    overrides: OverrideState  # whom torch asks before an operation

    @abstractmethod
    def keep_open(self, block: Value) -> None:
        """Note a block that the program has entered, which no node of the graph enters."""

    @abstractmethod
    def close(self, block: Value) -> None:
        """Note that such a block was left."""

    @abstractmethod
    def enter_device(self, device: torch.device) -> None:
        """Make tensors on a device from here on."""

    @abstractmethod
    def leave_device(self) -> None:
        """Make tensors where they were made before the innermost device block."""

    @abstractmethod
    def default_device(self) -> torch.device:
        """Return where tensors are made."""

    @abstractmethod
    def set_default_dtype(self, dtype: torch.dtype) -> None:
        """Change the default dtype for what is captured next, and when the graph has run."""

    @abstractmethod
    def change_block(self, change: Callable[[], None], block: Value | None) -> None:
        """Enter or leave a block, now and in the graph; block: the one that is entered."""

    @abstractmethod
    def set_state(self, name: str, setter: Callable[..., object], args: tuple[object, ...]) -> None:
        """Change a global state of torch (grad mode, autocast) in the graph and for the rest of the capture."""


class CallEvaluation(ABC):
    """Python functions evaluated where they are called."""

    @abstractmethod
    def call_rule(self, function: object) -> Callable[["CaptureContext", Arguments, Keywords], Value] | None:
        """Return the rule for calling a known object, None if there is none."""

    @abstractmethod
    def call_and_push(self, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call whose result the running instruction pushes, doing nothing else with it.

        A break inside the callee can then go on there, and with the caller afterwards.
        """

    @abstractmethod
    def initialise(self, instance: Value, init: Value, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate the `__init__` of a new object, which is the result of calling its class."""

    @abstractmethod
    def hand_on(self, caller: Value, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call whose result is the result of calling `caller`, the value whose rule this is."""

    @abstractmethod
    def inline(self, function: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the body of a Python function; function: a FunctionValue."""

    @abstractmethod
    def class_body(self, function: Value) -> dict[str, Value]:
        """Evaluate the body of a class statement and return its names."""


class CaptureContext(ABC):
    """What values may ask of the capture: to evaluate, and its parts; implemented by `frontend/context`."""

    options: Options
    guards: GuardDemands
    graph: GraphInProgress
    frames: CallingFrames
    effects: SideEffects
    modes: ModeChanges
    calls: CallEvaluation

    @abstractmethod
    def wrap(self, value: object, source: Source) -> Value:
        """Return the value of a real object reached by a source, with the guards that make it true."""

    @abstractmethod
    def lazy(self, value: object, source: Source) -> Value:
        """Return a value that is wrapped, and guarded, only when it is used."""

    @abstractmethod
    def realize(self, value: Value) -> Value:
        """Return the value itself, wrapped now if it was lazy."""

    @abstractmethod
    def known(self, value: object) -> Value:
        """Return the value of an object computed while evaluating; containers become new containers."""

    @abstractmethod
    def call(self, callee: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a call."""

    @abstractmethod
    def throw(self, kind: type[BaseException], *args: object, **fields: object) -> NoReturn:
        """Raise an exception in the evaluated program."""

    @abstractmethod
    def stand_for(self, real: object, value: Value) -> None:
        """Let a real object, made only to be found, stand for a value made while evaluating."""

    @abstractmethod
    def same_or_equal(self, left: Value, right: Value) -> bool:
        """Evaluate `left is right or left == right` as containers do."""

    @abstractmethod
    def less(self, left: Value, right: Value) -> bool:
        """Evaluate `left < right`."""

    @abstractmethod
    def unpack(self, value: Value) -> list[Value]:
        """Evaluate `list(value)`."""

    @abstractmethod
    def class_attr(self, instance: Value, kind: type, name: str) -> Value:
        """Evaluate the part of `instance.name` that looks into the class; raises AttributeError in the program."""
