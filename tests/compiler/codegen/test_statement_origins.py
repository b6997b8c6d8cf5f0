"""Each statement of a kernel tells the user's line and the operator that it is there for."""

import torch

import plumbline
from plumbline.compiler.base.events import Artifact, recording
from plumbline.compiler.codegen.kernel_text import commented, without_comments


def c_text(function, *inputs) -> str:
    """Return the C of a compiled function."""
    with recording() as events:
        plumbline.compile(function)(*inputs)
    (text,) = (
        e.text for e in events if isinstance(e, Artifact) and e.language == "c" and "static int kernel" in e.text
    )
    return text


def program(x, y):
    a = x.sin() + 1
    b = a * y  # inlined into the loop of the sum: the head of the kernel does not name this line
    return b.sum(-1)


def test_statements_name_their_line_and_operator():
    first = program.__code__.co_firstlineno
    lines = c_text(program, torch.randn(8, 16), torch.randn(8, 16)).splitlines()
    wanted = {"sin": (1, "aten.sin.default"), "*": (2, "aten.mul.Tensor"), "acc": (3, "aten.sum.dim_IntList")}
    for part, (offset, operator) in wanted.items():
        comment = f"/* test_statement_origins.py:{first + offset} {operator} */"
        assert any(part in line.partition("/*")[0] and line.endswith(comment) for line in lines), part


def test_layers_that_repeat_share_a_kernel():
    """Their comments differ, their code does not; the kernel names the first of them."""

    def layers(x, w):
        x = (x @ w).sin() + 1
        x = (x @ w).sin() + 1
        return x @ w

    assert c_text(layers, torch.randn(4, 4), torch.randn(4, 4)).count("static int kernel_") == 1


def test_a_comment_cannot_end_early():
    assert commented("odd*/name.py:1 aten.sin.default").count("*/") == 1
    assert without_comments("t1 = t0;" + commented("a.py:1 aten.sin.default")) == "t1 = t0;"
