"""The rules of this project that no linter knows, each a function from a source file to complaints.

A rule takes a `Source` and yields sentences; `test_house.py` runs every rule over the tree and over a planted
bad snippet.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

TOP_FOLDERS = ("compiler", "fuzz", "minifier", "oracle", "public", "pytest_plugin", "reports")
PROGRAMS = "fuzz/silent_bench/programs/"  # data in the form of Python files: tests as users write them
LONGEST_FILE = 800  # lines
LONGEST_FUNCTION = 60  # lines, one screen
LARGEST_FOLDER = 20  # Python files, `__init__.py` not counted
EMPTY_NAMES = {"common", "helpers", "helper", "lib", "misc", "stuff", "tools", "util", "utils"}

# What plumbline implements itself; names the stock compiler in any of its parts.
STOCK_COMPILER = (
    "torch._dynamo",
    "torch._C._dynamo",
    "torch._inductor",
    "torch.compile",
    "torch.export",
    "torch._functorch.aot_autograd",
    "torch._functorch._aot_autograd",
    "torch._functorch.partitioners",
    "torch._functorch.fx_minifier",
    "torch._functorch.compilers",
)
MAY_NAME_STOCK_COMPILER = {"oracle/harness/stock_torch.py", "compiler/torch_backend.py"}
MAY_NAME_PRIVATE_TORCH = MAY_NAME_STOCK_COMPILER | {
    "compiler/base/torch_facts.py",
    "compiler/runtime/cuda_facts.py",
    "compiler/base/borrowed/size_environment.py",
    "compiler/base/fake_mode_start.py",
    "compiler/values/torch/overrides/override_facts.py",
    "compiler/base/symbol_facts.py",
    "compiler/stored/torch_switches.py",
    "fuzz/operator_sweep/torch_samples.py",  # its import takes seconds and sets switches of the process
}


@dataclass(frozen=True)
class Source:
    """One Python file of the tree: its path from the root, with slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def folders(self) -> tuple[str, ...]:
        return PurePosixPath(self.path).parts[:-1]

    @property
    def top_folder(self) -> str:
        """The top folder whose code this file is, empty for tests, benchmarks, examples and the bench's programs."""
        if self.path.startswith(PROGRAMS):
            return ""
        return self.folders[0] if self.folders and self.folders[0] in TOP_FOLDERS else ""

    @cached_property
    def bound(self) -> dict[str, str]:
        """Local name -> dotted name it was imported as."""
        names = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    names[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
        return names


def files_of(root: Path) -> list[Path]:
    """Return every file that is, or would be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    return [root / name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def sources_of(root: Path) -> list[Source]:
    """Return every Python file of a tree."""
    python = (path for path in files_of(root) if path.suffix == ".py")
    return [Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in python]


def exceptions(root: Path, kind: str) -> list[dict[str, Any]]:
    """Return the entries of one kind of tests/house_exceptions.toml."""
    text = (root / "tests" / "house_exceptions.toml").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text).get(kind, [])
    return entries


Rule = Callable[[Source], Iterator[str]]
RULES: list[Rule] = []


def rule(function: Rule) -> Rule:
    """Put a rule on the list that test_house.py runs."""
    RULES.append(function)
    return function


def imported(node: ast.stmt) -> list[tuple[int, str]]:
    """Return (level, dotted module) for each module that an import statement names."""
    if isinstance(node, ast.Import):
        return [(0, alias.name) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.level, node.module or "")]
    return []


def all_imports(source: Source) -> Iterator[tuple[ast.stmt, int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.stmt):
            for level, module in imported(node):
                yield node, level, module


@rule
def file_is_at_most_800_lines(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > LONGEST_FILE:
        yield f"{source.path}: {lines} lines; split it by idea (at most {LONGEST_FILE})"


@rule
def function_fits_one_screen(source: Source) -> Iterator[str]:
    if not source.top_folder:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{source.path}:{node.lineno}: {node.name} has {lines} lines (at most {LONGEST_FUNCTION})"


@rule
def folder_is_never_imported_as_a_top_module(source: Source) -> Iterator[str]:
    for node, level, module in all_imports(source):
        top = module.split(".")[0]
        if level == 0 and top in TOP_FOLDERS:
            yield f"{source.path}:{node.lineno}: import {module}: the name is plumbline.{module}"


@rule
def imports_tell_the_distance(source: Source) -> Iterator[str]:
    """Relative inside a top folder, the full plumbline.x across."""
    if not source.top_folder:
        return
    own = "" if source.top_folder == "public" else source.top_folder
    for node, level, module in all_imports(source):
        place = f"{source.path}:{node.lineno}"
        parts = module.split(".")
        if level > len(source.folders):
            yield f"{place}: the dots leave {source.top_folder}/; across top folders write plumbline.x in full"
        elif level == 1 and source.top_folder == "public" and parts[0] in TOP_FOLDERS:
            yield f"{place}: write plumbline.{module} in full"
        elif level == 0 and parts[0] == "plumbline":
            yield from _absolute(place, own, source.top_folder, module)


def _absolute(place: str, own: str, top_folder: str, module: str) -> Iterator[str]:
    parts = module.split(".")
    if len(parts) == 1:
        yield f"{place}: {top_folder}/ must not import the package itself; import the file that defines the name"
    elif (own and parts[1] == own) or (not own and parts[1] not in TOP_FOLDERS):
        yield f"{place}: {module} is in the same top folder; use a relative import"


def late_imports(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted module) of each import inside a function."""
    seen = set()
    for function in ast.walk(source.tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                for level, module in imported(node) if isinstance(node, ast.stmt) else []:
                    if (node.lineno, module) not in seen:
                        seen.add((node.lineno, module))
                        yield node.lineno, "." * level + module


@rule
def no_type_checking_blocks(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name == "TYPE_CHECKING":
            yield f"{source.path}:{node.lineno}: TYPE_CHECKING hides a circle; move the type down instead"


def torch_names(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of everything of torch that a file names: imports, attributes, import_module."""
    inner = {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(source.tree):
        names: list[str] = []
        if id(node) in inner:
            continue  # part of a longer name
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [dotted(node, source.bound)]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = dotted(node.func, source.bound).rpartition(".")[2]
            names = [str(node.args[0].value)] if called in {"import_module", "__import__"} else []
        for name in names:
            if name.split(".")[0] == "torch":
                yield getattr(node, "lineno", 0), name


def dotted(node: ast.expr, bound: dict[str, str]) -> str:
    """Return the dotted name of a chain of attributes, its head replaced by what it was imported as."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([bound.get(node.id, node.id), *reversed(parts)])


@rule
def stock_compiler_is_named_in_its_own_files_only(source: Source) -> Iterator[str]:
    if not source.top_folder or source.path in MAY_NAME_STOCK_COMPILER:
        return
    for line, name in torch_names(source):
        if any(f"{name}.".startswith(f"{stock}.") for stock in STOCK_COMPILER):
            yield f"{source.path}:{line}: {name}: only {' and '.join(sorted(MAY_NAME_STOCK_COMPILER))} may name it"


@rule
def private_torch_names_live_in_torch_facts(source: Source) -> Iterator[str]:
    if not source.top_folder or source.path in MAY_NAME_PRIVATE_TORCH:
        return
    for line, name in torch_names(source):
        if name.startswith("torch.ops."):
            continue  # an operator's name, underscore or not, is part of the operator set we compile
        if any(re.match(r"_(?!_)", part) for part in name.split(".")):
            yield f"{source.path}:{line}: {name} is private; give it a name in compiler/base/torch_facts.py"


@rule
def file_is_named_for_its_idea(source: Source) -> Iterator[str]:
    stem = PurePosixPath(source.path).stem
    names = {stem, *source.folders} if source.top_folder else {stem}
    if names & EMPTY_NAMES:
        yield f"{source.path}: the name says nothing; name the file for the idea it holds"
    if source.top_folder and stem in sys.stdlib_module_names:
        yield f"{source.path}: {stem} is a module of Python's own library"


@rule
def only_command_files_print(source: Source) -> Iterator[str]:
    if not source.top_folder or PurePosixPath(source.path).name.startswith("command"):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield f"{source.path}:{node.lineno}: print; record an event or return the text"


@rule
def suppression_gives_its_reason(source: Source) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type != tokenize.COMMENT or not SUPPRESSION.search(token.string):
            continue
        place = f"{source.path}:{token.start[0]}"
        if WHOLE_FILE.search(token.string):
            yield f"{place}: switches a check off for a whole file; suppress one line, with its reason"
        elif not SUPPRESSION_WITH_CODE.search(token.string):
            yield f"{place}: names no code; write which rule is suppressed"
        elif len(re.findall(r"[A-Za-z]", SUPPRESSION_WITH_CODE.sub("", token.string))) < LEAST_REASON:
            yield f"{place}: suppresses without a reason; say why on the same line"


def doubled_names(sources: Iterable[Source]) -> dict[str, list[str]]:
    """Return the file names and class names that stand more than once in the product, each with its files."""
    places: dict[str, set[str]] = {}
    for source in sources:
        if not source.top_folder:
            continue
        names = [node.name for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
        file = PurePosixPath(source.path).name
        for name in [*names, *([file] if file != "__init__.py" else [])]:
            places.setdefault(name, set()).add(source.path)
    return {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}


def folder_sizes(sources: Iterable[Source]) -> dict[str, int]:
    """Return how many Python files each folder of the product holds, `__init__.py` not counted."""
    paths = [PurePosixPath(source.path) for source in sources if source.top_folder]
    return Counter(path.parent.as_posix() for path in paths if path.name != "__init__.py")


LEAST_REASON = 5  # letters; whether it is a good reason, a reader says
SUPPRESSION = re.compile(r"#\s*(noqa\b|type:\s*ignore\b|ruff:|mypy:)")
WHOLE_FILE = re.compile(r"#\s*(ruff:|mypy:)")
SUPPRESSION_WITH_CODE = re.compile(r"#\s*(noqa:\s*[A-Z]+\d+(\s*,\s*[A-Z]+\d+)*|type:\s*ignore\[[\w\s,-]+\])")

# Folders that exist on one machine only; put together here so that this file does not name one itself.
MACHINE_FOLDERS = ("root", "work", "home", "Users", "mnt", "tmp")
MACHINE_PATH = re.compile(rf"(?<![\w.~$)}}\]-])/(?:{'|'.join(MACHINE_FOLDERS)})/[\w.]|\.\./shar" + "ed/")


def paths_of_a_machine(path: str, text: str) -> Iterator[str]:
    """Yield a complaint for each line of a file that names a folder of one machine."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := MACHINE_PATH.search(line):
            yield f"{path}:{number}: {found.group()}… is a path of one machine"
