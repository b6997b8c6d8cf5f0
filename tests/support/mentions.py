"""What documents, docstrings and comments name: paths, and names of code in backticks; and what of that exists.

A name exists if every part of it is a name or a word of a text in some Python file of the tree, a file, a folder, or
known to Python or torch.  That is generous, and sees what was renamed or removed.
"""

import ast
import builtins
import dis
import io
import keyword
import re
import sys
import tokenize
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import torch

from support.document_blocks import blocks_of
from support.house_rules import TOP_FOLDERS, Source

FOLDERS = (*TOP_FOLDERS, "tests", "benchmarks", "docs", "examples", "changes")
PATH = re.compile(rf"(?<![\w./:-])(?:{'|'.join(FOLDERS)})/[\w./*-]*")
FILE = re.compile(r"(?<![\w./*$-])[\w*-]+(?:/[\w*-]+)*\.(?:py|toml|md|html|css|js|c)\b")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")
PLACEHOLDER = re.compile(r"<\w+>")
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Text:
    """A piece of prose: where it stands, and its words."""

    place: str
    text: str


def prose_of(source: Source) -> Iterator[Text]:
    """Yield the docstrings and comments of a Python file; a text below an assignment is a docstring too."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(f"{source.path}:{node.lineno}", node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield Text(f"{source.path}:{token.start[0]}", token.string)


def prose_of_document(path: str, text: str) -> Text:
    """Return a document without the blocks that name files of the reader's."""
    lines = text.splitlines()
    for block in blocks_of(text):
        if "yours" in block.not_run:
            end = block.line + block.text.count("\n")
            lines[block.line - 1 : end] = [""] * (end - block.line + 1)
    return Text(path, "\n".join(lines))


def words_of_code(sources: Iterable[Source]) -> set[str]:
    """Return the names of all files, and the words of their code; docstrings and comments do not count."""
    return set().union(*(_words_of(source) for source in sources))


@cache
def _words_of(source: Source) -> frozenset[str]:
    words = set(PurePosixPath(source.path).with_suffix("").parts)
    prose = {id(n.value) for n in ast.walk(source.tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            words.update(WORD.findall(node.value))
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.NAME:
            words.add(token.string)
    return frozenset(words)


def words_of_others() -> set[str]:
    """Return the names that Python and torch have."""
    words = {*dir(builtins), *keyword.kwlist, *dis.opmap, *sys.stdlib_module_names, *sys.modules}
    words = {part for word in words for part in word.split(".")}
    for thing in (torch, torch.Tensor, torch.nn, torch.nn.functional, torch.nn.Module, torch.fx, torch.compiler):
        words.update(dir(thing))
    for kind in (object, type, str, list, dict, set, (lambda: 0), (lambda: 0).__code__, iter([]), (x for x in ())):
        words.update(dir(kind))
    return words


def words_of_modules(sources: Iterable[Source]) -> dict[str, set[str]]:
    """Return what `name.word` may say of each file or folder: its words, and what code asks of a variable so named."""
    product = [source for source in sources if source.top_folder]
    words: dict[str, set[str]] = {}
    for source in product:
        own = words_of_code([source])
        for name in {PurePosixPath(source.path).stem, *source.folders} - {"torch"}:  # theirs, not our folder
            words.setdefault(name, set()).update(own)
    for source in product:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in words:
                words[node.value.id].add(node.attr)
    return words


def missing_paths(prose: Text, root: Path, foreign: Iterable[str] = ()) -> Iterator[str]:
    """Yield a complaint for each path from the root that prose names and the tree lacks."""
    for path in PATH.findall(PLACEHOLDER.sub("*", prose.text)):
        plain = path.rstrip(".")
        if plain not in foreign and not any(root.glob(plain)):
            yield f"{prose.place}: there is no {plain}"


def ends_of_paths(files: Iterable[str]) -> frozenset[str]:
    """Return each path and every end of it: "a/b.py" and "b.py"."""
    paths = [file.split("/") for file in files]
    return frozenset("/".join(parts[start:]) for parts in paths for start in range(len(parts)))


def missing_files(prose: Text, ends: Collection[str]) -> Iterator[str]:
    """Yield a complaint for each file that a docstring or comment names, by the end of its path, and the tree lacks."""
    for name in FILE.findall(PLACEHOLDER.sub("*", prose.text)):
        if name not in ends and not ("*" in name and any(PurePosixPath(end).match(name) for end in ends)):
            yield f"{prose.place}: there is no file {name}"


def missing_names(prose: Text, words: Collection[str], modules: dict[str, set[str]]) -> Iterator[str]:
    """Yield a complaint for each name in backticks of which nothing is left; a module is asked for what it has."""
    for span in SPAN.findall(prose.text):
        if not NAME.fullmatch(span) or FILE.fullmatch(span) or span.endswith(".txt"):
            continue
        first, *rest = span.removesuffix("()").removeprefix("plumbline.").split(".")
        unknown = [part for part in (first, *rest) if part not in words]
        if unknown:
            yield f"{prose.place}: nothing is called {unknown[0]} (`{span}`)"
        elif rest and first in modules and rest[0] not in modules[first]:
            yield f"{prose.place}: {first} has no {rest[0]} (`{span}`)"
