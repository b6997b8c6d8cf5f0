"""The catalogue of reasons for which capture stops, and the signals by which it does.

Ids are stable: they appear in reports and documentation. The signals derive from BaseException so that no
`except Exception` in between, ours or torch's, can swallow one.
"""

from dataclasses import dataclass

from ..base.origin import Origin


@dataclass(frozen=True, slots=True)
class BreakReason:
    """Why capture stops: stable id, what happens in general, why, and the next thing to do."""

    id: str
    what: str
    why: str
    hint: str


REASONS: dict[str, BreakReason] = {}


def _reason(identifier: str, what: str, why: str, hint: str) -> BreakReason:
    assert identifier not in REASONS
    REASONS[identifier] = BreakReason(identifier, what, why, hint)
    return REASONS[identifier]


DATA_DEPENDENT_BRANCH = _reason(
    "data-dependent-branch",
    "a branch depends on the data of a tensor",
    "the value is known only when the graph has run",
    "use torch.where, or move the branch out of the hot path",
)
DATA_DEPENDENT_VALUE = _reason(
    "data-dependent-value",
    "a tensor's data becomes a Python value",
    "the value is known only when the graph has run",
    "keep it a tensor, or compute it outside the compiled function",
)
DATA_DEPENDENT_SHAPE = _reason(
    "data-dependent-shape",
    "the shape of a result depends on the data",
    "the shape is known only when the graph has run",
    "use a mask of fixed shape, or accept the break",
)
UNKNOWN_CALLEE = _reason(
    "unknown-callee",
    "a call to code that capture cannot look into",
    "it may do anything, so it runs in plain Python between two graphs",
    "move the call out of the compiled function",
)
SIDE_EFFECT_CALL = _reason(
    "side-effect-call",
    "a call whose effect must happen at this point of the program",
    "printing, logging, input and output run in plain Python",
    "move it out of the compiled function",
)
DISABLED = _reason(
    "disabled",
    "the callee is marked to run uncompiled",
    "disable, disallow_in_graph or torch.compiler.disable was applied to it",
    "remove the mark to capture it",
)
EXPLICIT_BREAK = _reason(
    "explicit-break", "graph_break() was called", "the program asks for a break here", "remove the call to capture on"
)
CALLEE_BREAKS = _reason(
    "callee-breaks",
    "the called function has a break of its own",
    "it is compiled as a unit of its own",
    "see the break inside it",
)
OPERATION_FAILED = _reason(
    "operation-failed",
    "an operation fails on the shapes and types it is given",
    "eager raises here too, or the operation has no shape rule",
    "run the function without compilation to see the error",
)
UNSUPPORTED_TENSOR = _reason(
    "unsupported-tensor",
    "a tensor of a kind that graphs do not carry",
    "subclasses, sparse, quantised and nested tensors run eagerly",
    "convert it before the compiled function",
)
TENSOR_STATE = _reason(
    "tensor-state",
    "a change of a tensor's own state",
    "requires_grad, hooks, attributes and storage are not part of a graph",
    "do it outside the compiled function",
)
AUTOGRAD_CALL = _reason(
    "autograd-call",
    "the autograd engine is called",
    "backward and grad run between two graphs",
    "call it outside the compiled function",
)
UNSUPPORTED_OBJECT = _reason(
    "unsupported-object",
    "an object whose behaviour capture does not know",
    "it is implemented in C or overrides attribute access",
    "use plain Python objects, or accept the break",
)
UNSUPPORTED_OPERATION = _reason(
    "unsupported-operation",
    "a Python operation that capture does not evaluate yet",
    "it runs in plain Python between two graphs",
    "accept the break, or write it another way",
)
UNSUPPORTED_BYTECODE = _reason(
    "unsupported-bytecode",
    "a Python construct that capture does not evaluate yet",
    "the whole function runs eagerly",
    "move the construct into a function of its own",
)
CANNOT_RESUME = _reason(
    "cannot-resume",
    "a break at a place where the function cannot be split",
    "the whole function runs eagerly",
    "move the code that breaks out of this block",
)
EXCEPTION = _reason(
    "exception",
    "the function ends by an exception",
    "eager raises it at the right place with the right state",
    "expected; nothing to do",
)
LIMIT = _reason(
    "limit",
    "capture grew past a limit",
    "the loop or recursion is too long to unroll",
    "raise the option named in the message, or keep the loop out of the compiled function",
)
RANDOM_STATE = _reason(
    "random-state",
    "Python's or NumPy's random generator is used",
    "its draws must be new on every call",
    "draw outside the compiled function",
)
NUMPY = _reason(
    "numpy", "NumPy code", "it runs in NumPy between two graphs", "use torch operations to stay in one graph"
)
FUNCTION_MODE = _reason(
    "function-mode",
    "a torch function or dispatch mode is active",
    "the mode sees every call, so the function runs eagerly",
    "compile inside the mode, or leave it",
)
SUSPENDABLE = _reason(
    "generator",
    "a generator or coroutine function is to be compiled",
    "its frame stops and goes on at moments when no guard is checked, so it runs eagerly",
    "compile the function it calls",
)


class Signal(BaseException):
    """The base of what stops or redirects capture; never leaves the frontend."""


class Break(Signal):
    """The current operation must run in plain Python; detail: this case in words."""

    def __init__(self, reason: BreakReason, detail: str, origin: Origin | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.origin = origin
        super().__init__(f"{reason.id}: {detail}")


class SkipFrame(Signal):
    """The whole frame must run eagerly."""

    def __init__(self, reason: BreakReason, detail: str, origin: Origin | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.origin = origin
        super().__init__(f"{reason.id}: {detail}")
