"""The text of an upstream issue about a repro script, ready to paste: title, verdict, program, environment."""

import ast
import textwrap
from pathlib import Path

PROGRAM_PARTS = ("forward", "inputs")
"""Functions of a graph's script that are the program itself."""


def issue_text(script: Path) -> str:
    """Return Markdown: what goes wrong, the program alone, how to see it, and the facts of the machine.

    script: as the minifier writes it; what the text says is read from its head, so it is what was proved.
    """
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    head = (ast.get_docstring(tree) or "").splitlines()
    facts = _paragraphs(head)
    title = head[0].rstrip(".") if head else script.stem
    return "\n".join(
        [
            f"# {title}",
            "",
            *(f"    {line}" for line in facts[1]),
            "",
            "## Program",
            "",
            "```python",
            _program(tree, text),
            "```",
            "",
            f"The attached `{script.name}` judges it: exit status 1 while the failure is there, 0 when it is fixed.",
            "",
            "## What is known",
            "",
            *(f"    {line}" for part in facts[2:] for line in part),
            "",
        ]
    )


def _paragraphs(lines: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            parts[-1].append(line)
        elif parts[-1]:
            parts.append([])
    return [*parts, [], []][: max(len(parts), 2)]


def _program(tree: ast.Module, text: str) -> str:
    """Return the program as the script has it, comments of shapes included."""
    for node in tree.body:
        if isinstance(node, ast.If) and "__program__" in ast.unparse(node.test) and "==" in ast.unparse(node.test):
            lines = text.splitlines()[node.body[0].lineno - 1 : node.end_lineno]
            return textwrap.dedent("\n".join(lines))
    parts = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in PROGRAM_PARTS]
    return "import torch\n\n\n" + "\n\n\n".join(ast.get_source_segment(text, node) or "" for node in parts)
