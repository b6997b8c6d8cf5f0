"""Print the figures of the house: files per folder, depth of imports, circles, doubled names, sizes, ladders of types.

    python benchmarks/house_figures.py [ROOT]

ROOT: the tree to measure (default: this one).  The files are read as text; nothing is imported.
"""

import ast
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

TOP_FOLDERS = ("compiler", "oracle", "minifier", "fuzz", "reports", "pytest_plugin", "public")
PARTICIPLES = ("found", "made", "given", "kept", "wanted", "taken", "held")
LADDER = 3  # isinstance tests of one variable in one function


def module_name(path: Path, root: Path) -> str:
    """Return the name under which the product imports a file."""
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts[1:] if parts[0] == "public" else parts
    return ".".join(("plumbline", *parts)).removesuffix(".__init__")


def imported(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    """Yield the full names that a file imports from the product, members of packages included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".") if is_package else module.split(".")[:-1]
            base = base[: len(base) - node.level + 1] if node.level else []
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            yield prefix
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


def depth_and_circles(graph: dict[str, set[str]]) -> tuple[int, list[list[str]]]:
    """Return how many floors the longest chain of imports has, and the groups of files that import each other."""
    groups = strongly_connected(graph)
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    floors: dict[int, int] = {}
    for number, group in enumerate(groups):  # Tarjan yields what is imported first
        below = {group_of[other] for name in group for other in graph[name]} - {number}
        floors[number] = 1 + max((floors[each] for each in below), default=0)
    return max(floors.values(), default=0), [sorted(group) for group in groups if len(group) > 1]


def strongly_connected(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return Tarjan's components, imported ones before their importers."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            result.append(component)

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return result


def ladders(function: ast.AST) -> int:
    """Return the largest number of isinstance tests that a function makes of one expression, in `if` statements."""
    counts: Counter[str] = Counter()
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp):
            for call in ast.walk(node.test):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "isinstance":
                    counts[ast.unparse(call.args[0])] += 1
    return max(counts.values(), default=0)


def main(root: Path) -> None:
    """Print all figures of the tree at root."""
    sys.setrecursionlimit(10_000)
    paths = sorted(path for top in TOP_FOLDERS for path in (root / top).rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in paths}
    names = {module_name(path, root): path for path in paths}
    graph = {
        name: {
            other
            for other in imported(trees[path], name, path.name == "__init__.py")
            if other in names and other != name and names[other].name != "__init__.py"
        }
        for name, path in names.items()
        if path.name != "__init__.py"
    }
    files, circles = depth_and_circles(graph)
    print(f"{len(paths)} files, longest chain of imports {files} files, circles of files: {len(circles)}")
    for circle in circles:
        print("  circle:", ", ".join(circle))
    print_folders(paths, root, graph)
    print_names(paths, trees)
    print_sizes(trees, root)


def print_folders(paths: list[Path], root: Path, graph: dict[str, set[str]]) -> None:
    """Print how many files each folder has, and how deep their imports of each other go."""
    folders: dict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        if path.name != "__init__.py":
            folders[path.parent].append(path)
    print("folder: files, floors of imports inside it")
    for folder, inside in sorted(folders.items(), key=lambda item: (-len(item[1]), item[0])):
        own = {module_name(path, root) for path in inside}
        floors, _ = depth_and_circles({name: graph[name] & own for name in own})
        print(f"  {folder.relative_to(root)!s:28} {len(inside):3} {floors:3}")


def print_names(paths: list[Path], trees: dict[Path, ast.Module]) -> None:
    """Print names that stand for more than one thing, and locals named for how they came about."""
    doubled = [name for name, count in Counter(path.name for path in paths).items() if count > 1]
    print("file names that stand twice:", " ".join(sorted(set(doubled) - {"__init__.py"})) or "none")
    classes = Counter(node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef))
    print("class names that stand twice:", " ".join(sorted(n for n, count in classes.items() if count > 1)) or "none")
    words = Counter(
        node.id
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in PARTICIPLES
    )
    print("locals named by participle:", ", ".join(f"{word} {words[word]}" for word in PARTICIPLES))


def print_sizes(trees: dict[Path, ast.Module], root: Path) -> None:
    """Print sizes of functions, files and classes, and where types are told apart one by one."""
    functions, large_classes, ladder_rows = [], [], []
    tests = 0
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                functions.append(((node.end_lineno or 0) - node.lineno + 1, f"{path.relative_to(root)}:{node.name}"))
                if (count := ladders(node)) >= LADDER:
                    ladder_rows.append((count, f"{path.relative_to(root)}:{node.name}"))
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(each, ast.FunctionDef) for each in node.body)
                if methods > 25:
                    large_classes.append(f"{path.relative_to(root)}:{node.name} ({methods})")
            tests += isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
    lengths = sorted(length for length, _ in functions)
    print(f"{len(lengths)} functions: median {statistics.median(lengths):.0f} lines, longest {max(functions)}")
    files = sorted((len(path.read_text().splitlines()), str(path.relative_to(root))) for path in trees)
    print(f"files: median {statistics.median(n for n, _ in files):.0f} lines, longest {files[-1]}")
    print("classes over 25 methods:", ", ".join(large_classes) or "none")
    print(f"isinstance: {tests} calls; {len(ladder_rows)} functions test one value's type {LADDER} times or more:")
    for count, place in sorted(ladder_rows, reverse=True)[:12]:
        print(f"  {count} {place}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
