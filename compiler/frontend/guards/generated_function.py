"""The generated function of a specialisation: statements that check guards, then a body, compiled as one function."""

import ast
from collections.abc import Callable
from types import CodeType, FunctionType

from ...base.locks import ForkedLock
from ...base.origin import Origin
from ...values.guard import Guard
from ...values.source import Argument, Injected, Source
from .guard_rules import check_text
from .rule import CHECK_NAMES, GUARD_ERRORS

MISS = type("Miss", (), {"__repr__": lambda self: "MISS"})()


class Names:
    """Names of injected objects, and of the temporaries that hold what sources give."""

    def __init__(self) -> None:
        self.constants: dict[str, object] = {}
        self._by_id: dict[int, str] = {}
        self.fetched: dict[Source, str] = {}
        self._count = 0

    def inject(self, value: object) -> str:
        """Give a constant object a name."""
        name = self._by_id.get(id(value))
        if name is None:
            name = f"_k{len(self.constants)}"
            self._by_id[id(value)] = name
            self.constants[name] = value
        return name

    def fresh(self) -> str:
        """Return an unused name."""
        self._count += 1
        return f"_t{self._count}"

    def fetch(self, source: Source, lines: list[str]) -> str:
        """Return the name of what a source gives; writes the lines that fetch it the first time."""
        if isinstance(source, Argument):
            return source.name
        if isinstance(source, Injected):
            return self.inject(source.value)
        name = self.fetched.get(source)
        if name is None:
            base = source.base()
            assert base is not None
            text = source.text(self.fetch(base, lines), self.inject)
            name = self.fresh()
            lines.append(f"{name} = {text}")
            self.fetched[source] = name
        return name


def guard_lines(guards: list[Guard], names: Names) -> list[str]:
    """Return the statements that return MISS unless every guard holds."""
    lines: list[str] = []
    for guard in guards:
        value = names.fetch(guard.source, lines) if guard.source is not None else ""
        others = tuple(names.fetch(other, lines) for other in guard.others)
        lines.append(f"if not ({check_text(guard, value, others, names.inject)}): return {names.inject(MISS)}")
    return lines


def function_text(name: str, parameters: list[str], guards: list[str], body: list[str], names: Names) -> str:
    """Return the text of a function that returns MISS where a guard fails or cannot be evaluated."""
    lines = [f"def {name}({', '.join(parameters)}):"]
    if guards:
        lines.append("    try:")
        lines += [f"        {line}" for line in guards]
        lines.append(f"    except ({', '.join(names.inject(kind) for kind in GUARD_ERRORS)}):")
        lines.append(f"        return {names.inject(MISS)}")
    lines += [f"    {line}" for line in body]
    return "\n".join(lines) + "\n"


_PARSING = ForkedLock()


def parsed(text: str) -> ast.Module:
    """Return the tree of a text, for one thread at a time: Python 3.11 counts the depth of all of them together."""
    with _PARSING:
        return ast.parse(text)


def assemble(
    name: str,
    parameters: list[str],
    guards: list[str],
    body: list[str],
    names: Names,
    origin: Origin | None,
    module: dict[str, object],
) -> tuple[Callable[..., object], str]:
    """Return the function `name(parameters)` of guard and body statements, and its text.

    With an origin, every line of the function claims to be that user line, so that tracebacks and warnings of the
    operation at a break point where the user looks. module: the globals of the user's code.
    """
    text = function_text(name, parameters, guards, body, names)
    tree = parsed(text)
    filename = f"<plumbline {name}>"
    if origin is not None:
        filename = origin.file
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = origin.line  # type: ignore[attr-defined]  # statements and expressions
    code = compile(tree, filename, "exec", dont_inherit=True)
    namespace = CHECK_NAMES | names.constants
    namespace["__name__"] = module.get("__name__", "")  # who makes a class or warns here is the user's module
    if origin is not None:
        namespace["__warningregistry__"] = module.get("__warningregistry__", {})  # never made for the user
    exec(code, namespace)
    function = namespace[name]
    assert isinstance(function, FunctionType)
    if origin is not None:
        function.__code__ = _renamed(function.__code__, origin.function)
    return function, text


def _renamed(code: CodeType, name: str) -> CodeType:
    return code.replace(co_name=name, co_qualname=name)
