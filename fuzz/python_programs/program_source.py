"""Programs from a number: features are drawn, and the grammar is expanded with an environment of typed variables.

The same number gives the same text.  Variables of a block are dropped at its end, so that nearly every name that a
program reads is assigned; what a statement assigns, later statements read.
"""

import random
import re
from dataclasses import dataclass

from .features.asking_features import ASKING_FEATURES
from .features.class_features import CLASS_FEATURES
from .features.core_features import CORE
from .features.data_features import DATA_FEATURES
from .features.ending_features import ENDING_FEATURES
from .features.expression_features import EXPRESSION_FEATURES
from .features.failure_features import FAILURE_FEATURES
from .features.function_features import FUNCTION_FEATURES
from .features.iteration_features import ITERATION_FEATURES
from .features.library_features import LIBRARY_FEATURES
from .features.module_features import MODULE_FEATURES
from .features.object_features import OBJECT_FEATURES
from .features.protocol_features import PROTOCOL_FEATURES
from .features.record_features import RECORD_FEATURES
from .features.reflective_features import REFLECTIVE_FEATURES
from .features.text_features import TEXT_FEATURES
from .features.torch_features import TORCH_FEATURES
from .grammar import BLOCK_HOLES, CONSTANTS, HOLE, Feature, Grammar, Production, changes_of, grammar_of
from .object_zoo import ZOO, zoo_feature
from .python_program import PythonProgram

FEATURES: tuple[Feature, ...] = (
    *EXPRESSION_FEATURES,
    *DATA_FEATURES,
    *TEXT_FEATURES,
    *FUNCTION_FEATURES,
    *ITERATION_FEATURES,
    *CLASS_FEATURES,
    *OBJECT_FEATURES,
    *PROTOCOL_FEATURES,
    *RECORD_FEATURES,
    *FAILURE_FEATURES,
    *ENDING_FEATURES,
    *LIBRARY_FEATURES,
    *TORCH_FEATURES,
    *MODULE_FEATURES,
    *REFLECTIVE_FEATURES,
    *ASKING_FEATURES,
)
MOST_FEATURES = 7
_OWN_NAME = re.compile(r"v\d+")
_OTHER_BRANCHES = ("except", "finally:", "else:", "case ")
WATCHED = 0.15
"""How many programs ask whether the argument of their last call is gone after it."""
DEEPEST_EXPRESSION = 3
DEEPEST_BLOCK = 3

PREAMBLE = """\
import torch
import torch.nn.functional as F
x0 = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
x1 = torch.tensor([[2.0, 0.0, -1.0], [1.5, -3.0, 2.5]])
"""

PARAMETERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "y": ("tensor", ("x0", "x1", "x0", "x0[:1]", "x1 + 1", "torch.ones(2, 3)", "x0.t().contiguous().t()")),
    "n": ("int", ("0", "1", "2", "3", "5", "True", "-1")),
    "s": ("float", ("0.5", "1.0", "2.5", "-0.5", "0.0", "float('inf')")),
    "items": ("ints", ("[1, 2]", "[3]", "[]", "items0", "items0", "[5, 4, 3]")),
    "table": ("table", ("{'a': 1}", "table0", "table0", "{'b': 2, 'a': 0}", "{}")),
    "pieces": ("tensors", ("[x0]", "[x0, x1]", "pieces0", "pieces0")),
    "flag": ("bool", ("True", "False")),
    "word": ("str", ("'a'", "'b c'", "''", "'x=1'")),
    "thing": ("zoo", ("None", "3", "'text'", "x1", "zoo0", "zoo1", "(1, 2)", "[x0]")),
}
"""Parameters of `step` after its tensor `x`: kind, and arguments."""

FIRST_ARGUMENTS = ("x0", "x0", "x1", "x0 * 2", "x1[:1]", "x1 * 0.5", "x1 - x0", "torch.ones(4, 3)", "torch.zeros(2, 3)")
PARAMETER_SETUP = "items0 = [1, 2, 3]\ntable0 = {'a': 1, 'b': 2}\npieces0 = [x0 + 1, x1]\n"


@dataclass(slots=True)
class _Scope:
    """What may be read and assigned at a place of the program.

    variables: names by kind.  fresh_only: names of an enclosing function cannot be assigned here.
    """

    variables: dict[str, list[str]]
    in_loop: bool = False
    in_handler: bool = False
    fresh_only: bool = False
    depth: int = 0

    def inner(self, **changes: bool) -> "_Scope":
        """Return the scope of a block, whose new variables are not known after it."""
        copied = {kind: list(names) for kind, names in self.variables.items()}
        scope = _Scope(copied, self.in_loop, self.in_handler, self.fresh_only, self.depth + 1)
        for name, value in changes.items():
            setattr(scope, name, value)
        return scope


@dataclass(slots=True)
class _Writer:
    """Expands productions with one generator of random numbers."""

    draws: random.Random
    grammar: Grammar
    count: int = 0

    def block(self, scope: _Scope, statements: int) -> list[str]:
        """Return the lines of so many statements."""
        lines: list[str] = []
        for _ in range(statements):
            lines += self.statement(scope)
        return lines

    def statement(self, scope: _Scope) -> list[str]:
        """Return the lines of one statement; it adds what it assigns to the scope."""
        places = ["statement"]
        if scope.in_loop and self.draws.random() < 0.15:
            places = ["loop"]
        elif scope.in_handler and self.draws.random() < 0.35:
            places = ["handler"]
        choices = [one for place in places for one in self.grammar.of(place)]
        own = [one for one in choices if one.feature != "core"]
        if own and self.draws.random() < 0.6:
            choices = own
        if scope.depth >= DEEPEST_BLOCK:
            choices = [one for one in choices if not any(f"<{hole}>" in one.text for hole in BLOCK_HOLES)]
        if not choices:
            return ["pass"]
        return self._expand_statement(self.draws.choice(choices).text, scope)

    def _expand_statement(self, text: str, scope: _Scope) -> list[str]:
        if any(f"<{hole}>" in text for hole in BLOCK_HOLES):
            scope = scope.inner()
        lines: list[str] = []
        header = ""
        own: dict[str, str] = {}
        before = {kind: list(names) for kind, names in scope.variables.items()}
        for line in text.split("\n"):
            stripped = line.strip()
            if stripped.startswith(_OTHER_BRANCHES):  # what the branch above assigned may not be there
                scope.variables = {kind: list(names) for kind, names in before.items()}
            if stripped in ("<body>", "<function>"):
                indent = line[: len(line) - len(line.lstrip())]
                lines += [indent + one for one in self._inner_block(stripped, header, scope)]
                continue
            lines.append(self._line(line, scope, own))
            header = stripped if stripped.endswith(":") else header
        return lines

    def _inner_block(self, hole: str, header: str, scope: _Scope) -> list[str]:
        if hole == "<function>":
            inner = scope.inner(fresh_only=True, in_loop=False, in_handler=False)
        elif header.startswith(("for ", "while ")):
            inner = scope.inner(in_loop=True)
        elif header.startswith("except"):
            inner = scope.inner(in_handler=True)
        else:
            inner = scope.inner()
        return self.block(inner, self.draws.choice((1, 1, 2, 2, 3)))

    def _line(self, line: str, scope: _Scope, own: dict[str, str]) -> str:
        """Return a line with its holes filled; what it assigns is known in the next line.

        own: what the statement itself has assigned, by kind; a known variable is this one.
        """
        assigned: list[tuple[str, str]] = []

        def filled(hole: re.Match[str]) -> str:
            mark, kind = hole.group(1), hole.group(2)
            if mark == "$" and kind in own:
                return own[kind]
            if "f'" in line and mark != "+":
                return self._without_quotes(kind, scope)
            if mark == "$":
                return self._known(kind, scope)
            if mark:
                name = self._target(mark, kind, scope)
                assigned.append((kind, name))
                return name
            return self.expression(kind, scope, 1)

        text = HOLE.sub(filled, line)
        for kind, name in assigned:
            own[kind] = name
            if name not in scope.variables.setdefault(kind, []):
                scope.variables[kind].append(name)
        return text

    def _target(self, mark: str, kind: str, scope: _Scope) -> str:
        local = [name for name in scope.variables.get(kind, ()) if name.isidentifier()]
        local = [name for name in local if _OWN_NAME.fullmatch(name) or name in PARAMETERS or name == "x"]
        if mark == "=" and local and not scope.fresh_only and self.draws.random() < 0.5:
            return self.draws.choice(local)
        self.count += 1
        return f"v{self.count}"

    def _known(self, kind: str, scope: _Scope, depth: int = DEEPEST_EXPRESSION) -> str:
        names = scope.variables.get(kind)
        if names:
            return self.draws.choice(names[-6:] if self.draws.random() < 0.7 else names)
        return self.expression(kind, scope, depth)

    def expression(self, kind: str, scope: _Scope, depth: int) -> str:
        """Return an expression of a kind; deep ones are variables and constants."""
        if kind in CONSTANTS:
            return self.draws.choice(CONSTANTS[kind])
        names = scope.variables.get(kind, [])
        choices = self.grammar.of(kind)
        if names and (depth > DEEPEST_EXPRESSION or not choices or self.draws.random() < 0.35 + 0.15 * depth):
            return self._known(kind, scope)
        if depth > DEEPEST_EXPRESSION:
            choices = self._shortest(choices)
        if not choices:
            raise AssertionError(f"the grammar has no {kind}")
        own = [one for one in choices if one.feature != "core"]
        one = self.draws.choice(own if own and depth <= 2 and self.draws.random() < 0.5 else choices)

        def filled(hole: re.Match[str]) -> str:
            if "f'" in one.text:
                return self._without_quotes(hole.group(2), scope)
            if hole.group(1):
                return self._known(hole.group(2), scope, depth + 1)
            return self.expression(hole.group(2), scope, depth + 1)

        text = HOLE.sub(filled, one.text)
        return text if depth == 1 or text.isidentifier() or text.isdecimal() else f"({text})"

    def _shortest(self, choices: tuple[Production, ...]) -> tuple[Production, ...]:
        """Return the productions with the fewest holes that are not constants, so that expressions end."""
        counted = [(sum(hole.group(2) not in CONSTANTS for hole in HOLE.finditer(one.text)), one) for one in choices]
        fewest = min((count for count, _ in counted), default=0)
        return tuple(one for count, one in counted if count == fewest)

    def _without_quotes(self, kind: str, scope: _Scope) -> str:
        """Return an expression for the inside of an f-string, which before Python 3.12 may not repeat its quotes."""
        for _ in range(8):
            text = self.expression(kind, scope, DEEPEST_EXPRESSION + 1)
            if not set(text) & set("'\"\\:={"):
                return text
        return "log" if kind == "str" else "1"


def draw_program(number: int | random.Random, among: tuple[str, ...] = ()) -> PythonProgram:
    """Return the program of a number or a generator; among: it uses all these features, instead of drawn ones."""
    draws = random.Random(number) if isinstance(number, int) else number
    features = [feature for feature in FEATURES if feature.name in among]
    features = features or draws.sample(FEATURES, draws.randint(2, MOST_FEATURES))
    zoo = draws.sample(ZOO, 3)
    features.append(zoo_feature(zoo))
    grammar = grammar_of((CORE, *features))
    parameters = draws.sample(sorted(PARAMETERS), draws.randint(1, 4))
    writer = _Writer(draws, grammar)
    module = _module(writer, features, parameters)
    return PythonProgram(module, tuple(_history(draws, features, parameters)))


def _module(writer: _Writer, features: list[Feature], parameters: list[str]) -> str:
    setups = list(dict.fromkeys(feature.setup.strip("\n") for feature in features if feature.setup))
    variables: dict[str, list[str]] = {
        "tensor": ["x", "v0"],
        "ints": ["items0"],
        "table": ["table0"],
        "tensors": ["pieces0"],
    }
    for feature in features:
        for name, kind in feature.variables.items():
            variables.setdefault(kind, []).append(name)
    for name in parameters:
        variables.setdefault(PARAMETERS[name][0], []).append(name)
    scope = _Scope(variables)
    body = writer.block(scope, writer.draws.randint(4, 12))
    returned = [
        name
        for kind, names in scope.variables.items()
        for name in names
        if kind != "hash" and _OWN_NAME.fullmatch(name)
    ]
    results = [*writer.draws.sample(returned, min(len(returned), 5)), writer.draws.choice(scope.variables["tensor"])]
    signature = ", ".join(["x", *(_parameter(writer.draws, name) for name in parameters)])
    lines = [
        f"def step({signature}):",
        "    log = []",
        f"    v0 = x * {writer.draws.randint(2, 3)} + 1",
        *(f"    {line}" for line in body),
    ]
    lines.append(f"    return log, {', '.join(results)}")
    return "\n\n".join([PREAMBLE + PARAMETER_SETUP, *setups, "\n".join(lines)]) + "\n"


def _parameter(draws: random.Random, name: str) -> str:
    return f"{name}={PARAMETERS[name][1][0]}"


def _history(draws: random.Random, features: list[Feature], parameters: list[str]) -> list[str]:
    changes = [change for feature in features for change in changes_of(feature)]
    first = _call(draws, parameters, 0)
    history = [first]
    for number in range(1, draws.randint(3, 6)):
        history += draws.sample(changes, min(len(changes), draws.choice((0, 1, 1, 2))))
        again = draws.random() < 0.3
        history.append(f"r{number} = {first.partition(' = ')[2]}" if again else _call(draws, parameters, number))
    if draws.random() < WATCHED:
        call = history.pop().partition("(")
        history += ["given = x0 + 1", "watched = reference(given)", f"{call[0]}(given{_rest(call[2])}"]
        history += ["del given", "gone = watched() is None"]
    return history


def _rest(arguments: str) -> str:
    """Return a list of arguments without the first; the commas of that one are inside brackets."""
    for first in FIRST_ARGUMENTS:
        if arguments.startswith((first + ",", first + ")")):
            return arguments.removeprefix(first)
    raise AssertionError(arguments)


def _call(draws: random.Random, parameters: list[str], number: int) -> str:
    arguments = [draws.choice(FIRST_ARGUMENTS)]
    for name in parameters:
        chance = draws.random()
        value = draws.choice(PARAMETERS[name][1])
        if chance < 0.15:
            break
        arguments.append(f"{name}={value}" if chance < 0.3 or "=" in arguments[-1] else value)
    return f"r{number} = step({', '.join(arguments)})"
