"""An expression of sizes becomes calls of Python's arithmetic; what is there already is used again."""

import operator

import sympy

from plumbline.compiler.graph.size_nodes import node_of_size


def calls_of(expression: sympy.Expr, nodes: dict, known: tuple[str, ...] = ("a", "b")) -> tuple[object, list]:
    calls = []

    def call(operation, parts):
        calls.append((operation, *parts))
        return f"call_{len(calls)}"

    return node_of_size(expression, nodes, lambda name: name if name in known else None, call), calls


A, B = sympy.symbols("a b", integer=True, positive=True)


def test_an_expression_of_many_parts_becomes_calls_of_two() -> None:
    node, calls = calls_of(A * B + 3, {})
    assert node == f"call_{len(calls)}"
    assert sorted(operation.__name__ for operation, *_ in calls) == ["add", "mul"]
    assert (operator.mul, "a", "b") in calls


def test_numbers_are_numbers() -> None:
    assert calls_of(sympy.Integer(3), {}) == (3, [])


def test_an_expression_is_computed_once() -> None:
    nodes: dict = {}
    first, _ = calls_of(A * B, nodes)
    assert calls_of(A * B, nodes) == (first, [])


def test_an_unknown_operation_or_symbol_has_no_node() -> None:
    assert calls_of(sympy.Function("unknown")(A), {})[0] is None
    assert calls_of(A + B, {}, known=("a",))[0] is None
