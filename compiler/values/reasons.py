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
    "use torch.where or a mask of fixed shape, or pad the result to a fixed size",
)
UNKNOWN_CALLEE = _reason(
    "unknown-callee",
    "a call to code that capture cannot look into",
    "it may do anything, so it runs in plain Python between two graphs",
    "call it outside and pass its result in, or make it an operator of torch with torch.library.custom_op",
)
DISTRIBUTED_WRAPPER = _reason(
    "distributed-wrapper",
    "a call of a module in DistributedDataParallel",
    "the wrapper talks to the other processes; it runs in plain Python, and the module inside is compiled",
    "nothing has to be done: one graph before it, one for the module, one behind; fullgraph=True fits the model alone",
)
ARGUMENT_NOT_KNOWN = _reason(
    "argument-not-known",
    "an argument that must be known while capturing is not",
    "it decides what is captured, and its value comes from a tensor or from code that capture cannot run",
    "pass a literal, or compute the argument outside the compiled function and pass it in",
)
CONSTRUCTION = _reason(
    "construction",
    "an instance of a class that capture cannot construct",
    "its class is partly written in C, has a metaclass or a finaliser of its own, or acts outside the program",
    "construct it outside the compiled function and pass it in, or make the class a plain Python class",
)
COPY = _reason(
    "copy",
    "a copy of an object that capture cannot copy",
    "its class has a rule for copying that is not Python, or it holds state that capture does not see",
    "use clone() for tensors, build the new object from the fields of the old one, or copy it before the call",
)
FUNCTION_TRANSFORM = _reason(
    "function-transform",
    "a function under torch.func that does more than compute its result",
    "the transform becomes one node of the graph, and a tensor of the function has no meaning outside it",
    "let the function compute from its arguments only, and do the rest after the transform",
)
TORCH_CALL_FORM = _reason(
    "torch-call-form",
    "a function of torch is called in a form that capture does not take",
    "only its usual form has a meaning inside a graph; the message names what is unusual",
    "use the plain form: functional_call without strict, checkpoint with use_reentrant=False, arguments by position",
)
TORCH_SETTING = _reason(
    "torch-setting",
    "a setting of torch changes in a way that graphs do not carry",
    "it acts on everything that runs later, not on one block of the program",
    "use a block instead: `with torch.device(...)`, left in the order in which blocks were entered",
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
    "subclasses with __torch_dispatch__, sparse, quantised and nested tensors run eagerly",
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
BACKWARD_STATE = _reason(
    "backward-state",
    "the backward of an autograd function reads or changes state of the program",
    "it runs later, when that may be another; a compiled backward is made with the forward",
    "give what it needs to the function as an argument, and keep that on its ctx in forward",
)
UNSUPPORTED_OBJECT = _reason(
    "unsupported-object",
    "an object whose behaviour capture does not know",
    "it is implemented in C or overrides attribute access",
    "pass what is needed of it as plain Python values, or use the object outside the compiled function",
)
UNSUPPORTED_OPERATION = _reason(
    "unsupported-operation",
    "an operation for which capture has no rule on this type of value",
    "it runs in plain Python between two graphs",
    "convert the operands to plain numbers, lists, dictionaries or tensors first",
)
BUILTIN_METHOD = _reason(
    "builtin-method",
    "a method of a builtin type that capture has no rule for",
    "it is written in C, and its effect on values that are not known is not described",
    "use an operator, a comprehension or another method, or call it outside the compiled function",
)
ATTRIBUTE = _reason(
    "attribute",
    "an attribute that capture cannot read or change",
    "it belongs to an object that capture describes only in part: a function, a method, an iterator",
    "keep the state in an attribute of an object of a plain class, or read it outside the compiled function",
)
CLASS_DEFINITION = _reason(
    "class-definition",
    "a class is defined or changed in a way that capture does not evaluate",
    "hooks of classes run arbitrary code, which would have to run at every call",
    "define and change classes at the top of the module",
)
TEXT = _reason(
    "text",
    "the text of a value that is not known",
    "it would show the data of a tensor, an address or words made in C",
    "format it outside the compiled function, or format its shape and dtype",
)
IDENTITY_NUMBER = _reason(
    "identity-number",
    "calculation with id() or with the number of a thread",
    "the number is a new one in every call",
    "compare objects with `is`, and use the objects themselves as keys",
)
CANNOT_REBUILD = _reason(
    "cannot-rebuild",
    "a value that capture made would have to live on, and cannot be made again",
    "no Python expression gives an object in the same state",
    "turn iterators into lists before the break, and return plain values",
)
FRAME_ACCESS = _reason(
    "frame-access",
    "code looks at the frame that calls it",
    "the compiled function has another frame, so the function runs eagerly",
    "pass what it looks up as arguments",
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
    """The current operation must run in plain Python; detail: this case in words.

    walks_results: whether it walks from one result of the graph to another, through operations of the graph.
    lets_go_first: whether the arguments of the unit are to be let go of before: the operation ends what they hold.
    """

    def __init__(self, reason: BreakReason, detail: str, origin: Origin | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.origin = origin
        self.walks_results = False
        self.lets_go_first = False
        super().__init__(f"{reason.id}: {detail}")


class SkipFrame(Signal):
    """The whole frame must run eagerly."""

    def __init__(self, reason: BreakReason, detail: str, origin: Origin | None = None) -> None:
        self.reason = reason
        self.detail = detail
        self.origin = origin
        super().__init__(f"{reason.id}: {detail}")
