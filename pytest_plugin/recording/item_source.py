"""A hash of a test's source without its name, by which a renamed or moved test is known again."""

import ast
import hashlib
import inspect
import textwrap
from functools import cache
from typing import Any


def source_hash(item: Any) -> str:
    """Return 16 hex digits for the source of an item's test function and its parameters, "" when it has none."""
    body = _function_hash(inspect.unwrap(getattr(item, "obj", None) or item.function))
    if not body:
        return ""
    parameters = item.test_id.partition("[")[2]
    return hashlib.blake2s(f"{body}[{parameters}".encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


@cache
def _function_hash(function: Any) -> str:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):  # made at run time, or the file is gone
        return ""
    if not isinstance(tree, ast.FunctionDef):
        return ""
    tree.name = ""
    # Comments and layout do not change what a test does, so that they do not change what it is.
    return hashlib.blake2s(ast.dump(tree).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
