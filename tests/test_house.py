"""Rules that no linter knows; each is run over the tree and over a planted fault."""

import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support import house_rules
from support.house_rules import (
    LARGEST_FOLDER,
    PROGRAMS,
    RULES,
    TOP_FOLDERS,
    Rule,
    Source,
    doubled_names,
    exceptions,
    files_of,
    folder_sizes,
    late_imports,
    paths_of_a_machine,
    sources_of,
)
from support.link_tree import make_link_tree

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "numpy", "scipy", "pandas", "sqlalchemy", "plotly", "jinja2")


def sources() -> list[Source]:
    return sources_of(ROOT)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# --- rules about one file ---------------------------------------------------------------------------------------

PLANTED = [
    ("file_is_at_most_800_lines", "oracle/long.py", "x = 1\n" * 801),
    ("function_fits_one_screen", "oracle/x.py", "def f():\n" + "    x = 1\n" * 60),
    ("folder_is_never_imported_as_a_top_module", "oracle/x.py", "import compiler"),
    ("folder_is_never_imported_as_a_top_module", "tests/test_x.py", "from oracle.verdict import VerdictKind"),
    ("imports_tell_the_distance", "oracle/x.py", "from plumbline.oracle.verdict import VerdictKind"),
    ("imports_tell_the_distance", "oracle/x.py", "from ..compiler.base.errors import UserError"),
    ("imports_tell_the_distance", "compiler/base/x.py", "from ...oracle import verdict"),
    ("imports_tell_the_distance", "public/command.py", "from .reports.rows import Row"),
    ("imports_tell_the_distance", "public/command.py", "from plumbline.doctor import checks"),
    ("imports_tell_the_distance", "oracle/x.py", "from plumbline import compile"),
    ("no_type_checking_blocks", "oracle/x.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"),
    ("stock_compiler_is_named_in_its_own_files_only", "oracle/x.py", "import torch._dynamo"),
    ("stock_compiler_is_named_in_its_own_files_only", "oracle/x.py", "from torch import _inductor"),
    ("stock_compiler_is_named_in_its_own_files_only", "oracle/x.py", "import torch\ntorch.compile(print)"),
    ("stock_compiler_is_named_in_its_own_files_only", "oracle/x.py", "import torch as t\nt._dynamo.reset()"),
    ("stock_compiler_is_named_in_its_own_files_only", "oracle/x.py", "from torch import compile as c"),
    ("stock_compiler_is_named_in_its_own_files_only", "oracle/x.py", "from torch._functorch.partitioners import x"),
    ("stock_compiler_is_named_in_its_own_files_only", "fuzz/x.py", "import torch\ntorch._C._dynamo.guards"),
    (
        "stock_compiler_is_named_in_its_own_files_only",
        "fuzz/x.py",
        "import importlib\nimportlib.import_module('torch.export')",
    ),
    ("private_torch_names_live_in_torch_facts", "oracle/x.py", "from torch.utils._pytree import tree_map"),
    ("private_torch_names_live_in_torch_facts", "oracle/x.py", "import torch\ntorch._C._get_tracing_state()"),
    ("file_is_named_for_its_idea", "oracle/utils.py", ""),
    ("file_is_named_for_its_idea", "compiler/common/x.py", ""),
    ("file_is_named_for_its_idea", "reports/json.py", ""),
    ("only_command_files_print", "oracle/x.py", "print(1)"),
    ("suppression_gives_its_reason", "oracle/x.py", "x = 1  # noqa"),
    ("suppression_gives_its_reason", "oracle/x.py", "x = 1  # noqa: E501"),
    ("suppression_gives_its_reason", "tests/x.py", "x = 1  # type: ignore  # torch has no stubs here"),
    ("suppression_gives_its_reason", "tests/x.py", "x = 1  # type: ignore[misc]"),
    ("suppression_gives_its_reason", "tests/x.py", "# mypy: ignore-errors because it is easier"),
]

ALLOWED = [
    ("oracle/x.py", "from .verdict import VerdictKind\nfrom plumbline.compiler.base.errors import UserError\n"),
    ("compiler/graph/x.py", "from .facts import a\nfrom ..base.errors import UserError\n"),
    ("public/command.py", "from .doctor import checks\nfrom plumbline.reports.rows import Row\nprint(1)\n"),
    ("oracle/harness/stock_torch.py", "import torch._dynamo\nimport torch\ntorch.compile(print)\n"),
    ("compiler/base/torch_facts.py", "import torch\ntorch._C._get_tracing_state()\n"),
    ("oracle/x.py", "import torch\ntorch.compiler.is_compiling()\ntorch.__version__\n'torch.compile'\n"),
    ("oracle/x.py", "import torch\ntorch.ops.aten._softmax.default\n"),
    ("tests/test_x.py", "import torch\ntorch.compile(print)\nprint(1)\n"),
    (
        "oracle/x.py",
        "x = 1  # type: ignore[misc]  # torch leaves this untyped\ny = 2  # noqa: E501 - one long table row\n",
    ),
]


def by_name(name: str) -> Rule:
    return next(rule for rule in RULES if rule.__name__ == name)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tree_obeys(rule: Rule):
    complaints = [complaint for source in sources() for complaint in rule(source)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(("name", "path", "text"), PLANTED)
def test_rule_sees_a_planted_fault(name: str, path: str, text: str):
    assert list(by_name(name)(Source(path, text)))


@pytest.mark.parametrize(("path", "text"), ALLOWED)
def test_rules_leave_good_code_alone(path: str, text: str):
    assert [complaint for rule in RULES for complaint in rule(Source(path, text))] == []


def test_every_rule_has_a_planted_fault():
    assert {name for name, _, _ in PLANTED} == {rule.__name__ for rule in RULES}


# --- imports inside functions -----------------------------------------------------------------------------------


def unexplained_late_imports(imports: dict[str, list[str]], explained: list[dict[str, str]]) -> list[str]:
    """Return complaints: a late import nobody explained, an explanation nothing needs."""
    allowed = {(entry["file"], entry["module"]) for entry in explained if entry["reason"].strip()}
    complaints, used = [], set()
    for path, modules in imports.items():
        for module in modules:
            reasons = allowed & {(path, module), (path, "*")}
            used |= reasons
            if not reasons:
                complaints.append(f"{path}: imports {module} inside a function, unexplained in house_exceptions.toml")
    return complaints + [f"{path}: no late import of {module} left; drop the entry" for path, module in allowed - used]


def test_late_imports_are_explained():
    imports = {source.path: [m for _, m in late_imports(source)] for source in sources() if source.top_folder}
    complaints = unexplained_late_imports(imports, exceptions(ROOT, "late_import"))
    assert not complaints, "\n".join(complaints)


def test_unexplained_late_import_is_seen():
    source = Source("oracle/x.py", "def f():\n    from .walk import g\n    import scipy.stats\n")
    imports = {source.path: [module for _, module in late_imports(source)]}
    assert imports == {"oracle/x.py": [".walk", "scipy.stats"]}
    walk = {"file": "oracle/x.py", "module": ".walk", "reason": "heavy"}
    assert len(unexplained_late_imports(imports, [])) == 2
    assert len(unexplained_late_imports(imports, [walk])) == 1
    assert len(unexplained_late_imports({}, [walk])) == 1


# --- names and folders ------------------------------------------------------------------------------------------


def unexplained_doubles(doubles: dict[str, list[str]], allowed: set[str]) -> list[str]:
    """Return complaints: a name that stands in several files, an allowance that nothing needs any more."""
    complaints = [f"{name}: in {', '.join(doubles[name])}; one name for one thing" for name in doubles.keys() - allowed]
    return sorted(complaints) + [
        f"{name} is no longer double; drop the entry" for name in sorted(allowed - set(doubles))
    ]


def test_names_of_files_and_classes_are_unique():
    allowed = {name for entry in exceptions(ROOT, "doubled_names") for name in entry["names"]}
    complaints = unexplained_doubles(doubled_names(sources()), allowed)
    assert not complaints, "\n".join(complaints)


def test_doubled_name_is_seen():
    one, other = Source("oracle/x.py", "class A:\n    pass\n"), Source("fuzz/deep/x.py", "class A:\n    class B: ...\n")
    doubles = doubled_names([one, other, Source("tests/x.py", "class B: ...\n")])
    assert doubles == {"x.py": ["fuzz/deep/x.py", "oracle/x.py"], "A": ["fuzz/deep/x.py", "oracle/x.py"]}
    assert len(unexplained_doubles(doubles, {"A"})) == 1
    assert unexplained_doubles({}, {"A"}) == ["A is no longer double; drop the entry"]


def crowded(sizes: dict[str, int], allowed: dict[str, int]) -> list[str]:
    """Return complaints: a folder with too many files, an allowance larger than what is left of it."""
    complaints = [
        f"{folder}/ holds {size} files (at most {allowed.get(folder, LARGEST_FOLDER)}); cut it by idea"
        for folder, size in sizes.items()
        if size > allowed.get(folder, LARGEST_FOLDER)
    ]
    for folder, size in allowed.items():
        if sizes.get(folder, 0) < size:
            complaints.append(
                f"{folder}/ holds {sizes.get(folder, 0)} files, {size} are allowed; lower or drop the entry"
            )
    return complaints


def test_folders_are_small():
    allowed = {entry["folder"]: entry["files"] for entry in exceptions(ROOT, "crowded_folder")}
    complaints = crowded(folder_sizes(sources()), allowed)
    assert not complaints, "\n".join(complaints)


def test_crowded_folder_is_seen():
    files = [Source(f"oracle/x{number}.py", "") for number in range(LARGEST_FOLDER + 1)]
    sizes = folder_sizes([*files, Source("oracle/__init__.py", ""), Source("tests/x.py", "")])
    assert sizes == {"oracle": LARGEST_FOLDER + 1}
    assert len(crowded(sizes, {})) == 1
    assert crowded(sizes, {"oracle": LARGEST_FOLDER + 1}) == []
    assert len(crowded(sizes, {"oracle": LARGEST_FOLDER + 2})) == 1


# --- packages ---------------------------------------------------------------------------------------------------


def unlisted(root: Path, files: list[Path], settings: dict) -> list[str]:
    """Return complaints: folders and data files that an editable install shows and a wheel would lack."""
    folders = settings["package-dir"]
    listed = set(settings["packages"])
    patterns = settings["package-data"]["*"]
    complaints, present = [], set()
    for path in files:
        parts = path.relative_to(root).parts
        if len(parts) < 2 or parts[0] not in TOP_FOLDERS:
            continue
        if folders.get("plumbline" if parts[0] == "public" else f"plumbline.{parts[0]}") != parts[0]:
            complaints.append(f"{parts[0]}/ is not in package-dir")
        package = ".".join(["plumbline", *(parts[:-1] if parts[0] != "public" else parts[1:-1])])
        present.add(package)
        if path.suffix == ".py":
            if package not in listed:
                complaints.append(f"{package} is not in packages of pyproject.toml")
            if not (path.parent / "__init__.py").is_file():
                complaints.append(f"{package} has no __init__.py")
        elif not any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns):
            complaints.append(f"{path.relative_to(root)} matches no pattern of package-data")
    return sorted(set(complaints)) + [f"{package} is listed and has no folder" for package in listed - present]


def test_every_package_is_listed():
    assert unlisted(ROOT, files_of(ROOT), project()["tool"]["setuptools"]) == []


def test_unlisted_package_is_seen(tmp_path: Path):
    listed = {"packages": ["plumbline", "plumbline.oracle", "plumbline.gone"], "package-data": {"*": ["*.html"]}}
    listed["package-dir"] = {"plumbline": "public", "plumbline.oracle": "oracle"}
    names = ["public/__init__.py", "oracle/__init__.py", "oracle/page.html", "tests/test_x.py"]
    assert unlisted_in(tmp_path, names, listed) == ["plumbline.gone is listed and has no folder"]
    names += ["oracle/deep/x.py", "oracle/letter.xyz", "fuzz/__init__.py"]
    assert unlisted_in(tmp_path, names, listed) == [
        "fuzz/ is not in package-dir",
        "oracle/letter.xyz matches no pattern of package-data",
        "plumbline.fuzz is not in packages of pyproject.toml",
        "plumbline.oracle.deep has no __init__.py",
        "plumbline.oracle.deep is not in packages of pyproject.toml",
        "plumbline.gone is listed and has no folder",
    ]


def unlisted_in(root: Path, names: list[str], listed: dict) -> list[str]:
    for name in names:
        touch(root / name)
    return unlisted(root, [root / name for name in names], listed)


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_tests_are_not_a_package():
    assert not [path for path in files_of(ROOT / "tests") if path.name == "__init__.py"]


def test_type_checking_has_no_escapes():
    settings = project()["tool"]["mypy"]
    assert settings["strict"] is True
    assert not set(settings) & {"overrides", "disable_error_code", "ignore_errors", "ignore_missing_imports"}
    assert [f"fuzz/{path}" for path in settings["exclude"]] == [
        PROGRAMS
    ]  # data, not code: programs as users write them


# --- text of the tree -------------------------------------------------------------------------------------------


def test_no_path_of_a_machine():
    complaints = []
    for path in files_of(ROOT):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        complaints += paths_of_a_machine(path.relative_to(ROOT).as_posix(), text)
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("folder", house_rules.MACHINE_FOLDERS)
def test_path_of_a_machine_is_seen(folder: str):
    assert list(paths_of_a_machine("x.md", f"see /{folder}/thing"))
    assert list(paths_of_a_machine("x.md", f'open("/{folder}/thing")'))
    assert not list(paths_of_a_machine("x.md", f"see docs/{folder}/thing and https://a.org/{folder}/thing"))


# --- start-up ---------------------------------------------------------------------------------------------------


def heavy_modules_after(statement: str, path: Path | None = None) -> list[str]:
    """Return which heavy modules a fresh interpreter has loaded after a statement."""
    code = f"import json, sys\n{statement}\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, env=environment)
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", ["plumbline", "plumbline.pytest_plugin.plugin"])
def test_start_up_loads_nothing_heavy(module: str):
    assert heavy_modules_after(f"import {module}") == []


def test_heavy_start_up_is_seen(tmp_path: Path):
    (tmp_path / "eager_module.py").write_text("import numpy\n")
    assert heavy_modules_after("import eager_module", tmp_path) == ["numpy"]


# --- import contracts -------------------------------------------------------------------------------------------

# A file, and the module that it must not import.
BROKEN_IMPORTS = [
    ("reports/planted.py", "oracle.verdict"),
    ("oracle/planted.py", "reports.rows"),
    ("compiler/base/planted.py", "oracle.verdict"),
    ("oracle/planted.py", "pytest_plugin.plugin"),
    ("minifier/planted.py", "command"),
    ("compiler/frontend/capture.py", "compiler.codegen"),
    ("compiler/codegen/planted.py", "compiler.autograd"),
    ("compiler/values/planted.py", "compiler.frontend"),
    ("compiler/frontend/capture.py", "compiler.loops.ir"),
    ("compiler/lowering/planted.py", "compiler.values"),
    ("compiler/runtime/planted.py", "compiler.graph"),
    ("fuzz/findings.py", "fuzz.campaign"),
    ("fuzz/guard_scenarios/planted.py", "fuzz.transform_programs.programs"),
    ("minifier/graphs/planted.py", "minifier.reduce.problem"),
    ("minifier/reduce/planted.py", "minifier.cases.failing_calls"),
    ("pytest_plugin/settings.py", "pytest_plugin.plugin_options"),
    ("reports/rows.py", "reports.store"),
    ("compiler/values/value.py", "compiler.values.constant"),
    ("compiler/values/python/size_calls.py", "compiler.values.torch.tensor"),
    ("compiler/values/python/containers/planted.py", "compiler.values.python.objects.classes"),
    ("compiler/frontend/guards/guard_rules.py", "compiler.frontend.units.unit"),
    ("compiler/frontend/opcodes/opcode_table.py", "compiler.frontend.evaluate"),
    ("compiler/frontend/context/frame_stack.py", "compiler.frontend.context.recorder"),
    ("compiler/frontend/guards/guard_rules.py", "compiler.frontend.guards.guarded_code"),
    ("oracle/state/planted.py", "oracle.harness.session"),
    ("oracle/noise/planted.py", "oracle.numeric.references"),
]
UNLISTED_FILES = ["compiler/unheard_of/__init__.py", "fuzz/unheard_of.py"]


def contracts_say(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the link tree of root, as `./run test` does."""
    links = make_link_tree(root)
    main = "from importlinter.cli import lint_imports_command as main; main()"
    return subprocess.run(
        [sys.executable, "-c", main, "--no-logo", "--no-cache", "--config", str(root / "pyproject.toml")],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(links)},
    )


def product_files() -> list[str]:
    """Return the path of every Python file that ships, from the root."""
    return [source.path for source in sources() if source.top_folder]


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """The product's files, all of them empty, with the true pyproject.toml."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in product_files():
        touch(tmp_path / name)
    return tmp_path


def module_name(path: str) -> str:
    """Return the dotted name of a file of the product."""
    parts = Path(path).with_suffix("").parts
    return ".".join(["plumbline", *(parts if parts[-1] != "__init__" else parts[:-1])])


def test_contracts_are_kept_by_a_skeleton(skeleton: Path):
    sound = contracts_say(skeleton)
    assert sound.returncode == 0, sound.stdout + sound.stderr


def test_contracts_see_every_planted_import(skeleton: Path):
    for path, module in BROKEN_IMPORTS:
        package, _, name = f"plumbline.{module}".rpartition(".")
        with (skeleton / path).open("a") as file:
            file.write(f"from {package} import {name}\n")
    for path in UNLISTED_FILES:
        touch(skeleton / path)
    broken = contracts_say(skeleton)
    assert broken.returncode == 1
    arrows = [f"{module_name(path)} -> plumbline.{module}" for path, module in BROKEN_IMPORTS]
    arrows += [f"- {module_name(path)}" for path in UNLISTED_FILES]
    said = " ".join(broken.stdout.split())  # long lines are wrapped
    assert [arrow for arrow in arrows if arrow not in said] == [], broken.stdout + broken.stderr


def test_contracts_see_a_planted_circle(skeleton: Path):
    (skeleton / "minifier" / "reduce" / "engine.py").write_text("from .problem import Pass\n")
    (skeleton / "minifier" / "reduce" / "problem.py").write_text("from .engine import reduce\n")
    broken = contracts_say(skeleton)
    assert broken.returncode == 1
    assert "No circles among files or folders, at any depth BROKEN" in broken.stdout, broken.stdout + broken.stderr
