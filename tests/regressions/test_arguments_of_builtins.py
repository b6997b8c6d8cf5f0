"""Builtins took arguments that Python refuses: rules looked at those they know, `list(key=1)` was an empty list."""

import inspect

import pytest

import plumbline
from plumbline.compiler.values.builtin_arguments import BUILTIN_ARGUMENTS

CALLS = ("()", "(1, key=1)", "([1], key=1)", "([1], [2], [3], [4], [5])", "([3, 1], foo=2, key=None)", "([1], start=1)",
         "([1], 1, 1)", "(None)", "(1, 2, 3, 4)")  # fmt: skip


@pytest.mark.parametrize("builtin", BUILTIN_ARGUMENTS, ids=lambda builtin: builtin.__name__)
def test_what_python_refuses_is_refused_in_its_words(builtin, tmp_path):
    lines = ["def step():", "    found = []"]
    for call in CALLS:
        lines += ["    try:", f"        found.append(type({builtin.__name__}{call}).__name__)"]
        lines += ["    except Exception as error:", "        found.append(str(error))"]
    scope = {builtin.__name__: builtin}
    file = tmp_path / "calls.py"
    file.write_text("\n".join([*lines, "    return found"]))
    exec(compile(file.read_text(), str(file), "exec"), scope)
    assert plumbline.compile(scope["step"], backend="eager")() == scope["step"]()


def test_the_forms_are_those_of_the_signatures():
    """Where Python shows a signature, the table has its numbers."""
    for builtin, form in BUILTIN_ARGUMENTS.items():
        try:
            parameters = inspect.signature(builtin).parameters.values()
        except ValueError:
            continue
        positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        if any(one.kind is one.VAR_POSITIONAL for one in parameters):
            continue
        assert form.most == len(positional), builtin
        assert form.least == sum(one.default is one.empty for one in positional), builtin
