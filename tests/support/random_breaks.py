"""Small nested functions with breaks at random places, as text: calls, loops, blocks, handlers, closures."""

from hypothesis import strategies as st

PROLOGUE = """
import contextlib
import sys
import torch
import plumbline

STATE = {"n": 0}


class Problem(Exception):
    pass


class Other(Exception):
    pass


class Note:
    def __init__(self, log, word, swallow):
        self.log, self.word, self.swallow = log, word, swallow

    def __enter__(self):
        self.log.append(f"enter {self.word}")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(f"exit {self.word} {kind.__name__ if kind else None}")
        return self.swallow


@contextlib.contextmanager
def block(log, word, swallow):
    log.append(f"in {word}")
    try:
        yield word
    except Problem:
        log.append("problem")
        if not swallow:
            raise
    finally:
        log.append(f"out {word}")


class LoudNote(Note):
    def __enter__(self):
        self.log.append("loud")
        plumbline.graph_break()
        return super().__enter__()

    def __exit__(self, kind, error, trace):
        self.log.append("leaving")
        plumbline.graph_break()
        return super().__exit__(kind, error, trace)

"""
SIMPLE = (
    "x = x * 2 - {k}",
    "x = x + len(log)",
    "log.append({k})",
    "plumbline.graph_break()",
    "plumbline.graph_break()",
    "total += {k}",
    "x = x + add({k})",
    "STATE['n'] += 1",
    "x = x * STATE['n']",
    "log.append(total)",
    "g = (x * v for v in range({k}))",
    "x = x + next(g, {k})",
    "x = x + next(g, {k})",
    "y = x * {k}",
    "x = x + y",
    "item = (x * 0 + {k}).sum().item()",
    "log.append([v + item for v in range({k})])",
)
RAISING = (
    "if len(log) % 3 == {k} % 3: raise Problem(len(log))",
    "if x.sum() < -{k}: raise Other({k})",
    "int('none', base=2)",
)
LEAVING = ("return x * {k}", "if len(log) > {k}: return x")
IN_LOOP = ("if len(log) % 2: continue", "if len(log) > 6: break")
IN_HANDLER = (
    "raise",
    "log.append(repr(sys.exc_info()[1]))",
    "log.append(repr(error.__context__))",
    "log.append(type(error).__name__)",
    "log.append(str(error))",
    "raise Other('again')",
    "raise Other('from') from error",
)


@st.composite
def block(draw, depth, callees, where):
    """Return the lines of a block; where: which statements may stand in it."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statement(depth, callees, where))
    return lines


@st.composite
def statement(draw, depth, callees, where):
    """Return the lines of one statement."""
    kinds = ["simple"] * 4 + ["raising", "leaving"] + ["call"] * 3 * bool(callees)
    kinds += ["if", "for", "with", "try", "finally", "data"] * (depth > 0)
    kinds += ["loop"] * ("loop" in where) + ["handler"] * 2 * ("handler" in where)
    kind, k = draw(st.sampled_from(kinds)), draw(st.integers(0, 4))
    lines = {"simple": SIMPLE, "raising": RAISING, "leaving": LEAVING, "loop": IN_LOOP, "handler": IN_HANDLER}
    if kind in lines:
        return [draw(st.sampled_from(lines[kind])).format(k=k)]
    if kind == "call":
        callee = draw(st.sampled_from(callees))
        calls = (
            "x = {c}(x, log)",
            "x = x + {c}(x * 2, log)",
            "x = {c}(*[x], **{{'log': log}})",
            "x = torch.add({c}(x, log), {c}(x, log))",
            "x = [{c}(x + i, log) for i in range(2)][-1]",
            "return {c}(x, log)",
            "x = x + Held_{c}(x, log).x",
            "x = sum(x * v for v in gen_{c}(x, log, {k}))",
        )
        return [draw(st.sampled_from(calls)).format(c=callee, k=k)]
    inner = [f"    {line}" for line in draw(block(depth - 1, callees, where | {"loop"} if kind == "for" else where))]
    if kind == "for":
        over = [f"range({k})", f"(1, {k})"] + [f"gen_{callee}(x, log, {k})" for callee in callees]
        return [f"for i in {draw(st.sampled_from(over))}:", *inner]
    if kind == "with":
        manager = draw(st.sampled_from(("Note", "LoudNote", "block")))
        return [f"with {manager}(log, {k}, {draw(st.booleans())}):", *inner]
    other = [f"    {line}" for line in draw(block(depth - 1, callees, where))]
    if kind == "try":
        other = [f"    {line}" for line in draw(block(depth - 1, callees, where | {"handler"}))]
        caught = draw(st.sampled_from(("Problem", "(Problem, ValueError)", "Exception")))
        return ["try:", *inner, f"except {caught} as error:", *other]
    if kind == "finally":
        return ["try:", *inner, "finally:", *other]
    test = "x.sum() > {k}" if kind == "data" else "len(log) % 2 == {k} % 2"
    return [f"if {test.format(k=k)}:", *inner, "else:", *other]


@st.composite
def programs(draw):
    """Return the text of a module whose function `f0(x, log)` calls the others."""
    count = draw(st.integers(1, 3))
    parts = [PROLOGUE]
    for number in reversed(range(count)):
        callees = [f"f{later}" for later in range(number + 1, count)]
        body = draw(block(2, callees, frozenset()))
        inside = draw(st.sampled_from(("total += n", "plumbline.graph_break()", "log.append(n)")))
        parts.append(
            "\n".join(
                [
                    f"def f{number}(x, log, total=1):",
                    "    y = x",
                    "    item, g = 0, iter(())",
                    "    def add(n):",
                    "        nonlocal total",
                    "        total += 1",
                    f"        {inside}",
                    "        return total + n",
                    *(f"    {line}" for line in body),
                    "    return x + total",
                    "",
                    f"def gen_f{number}(x, log, n):",
                    "    for i in range(n):",
                    f"        {draw(st.sampled_from(('log.append(i)', 'plumbline.graph_break()', 'x = x + 1')))}",
                    "        yield i + 1",
                    "",
                    f"class Held_f{number}:",
                    "    def __init__(self, x, log):",
                    f"        self.x = f{number}(x, log)",
                    f"        {draw(st.sampled_from(('log.append(7)', 'plumbline.graph_break()')))}",
                    "        log.append('held')",
                    "",
                ]
            )
        )
    return "\n\n".join(parts)
