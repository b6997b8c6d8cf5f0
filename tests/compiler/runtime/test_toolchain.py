"""A compiler is used only after it was seen to compile and run; otherwise its reason is told."""

import stat
from pathlib import Path

import pytest

from plumbline.compiler.base.errors import BuildError
from plumbline.compiler.runtime.cpu_features import CpuFeatures, cpu_features
from plumbline.compiler.runtime.toolchain import compile_c, find_toolchain


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.cc
def test_the_machines_compiler_works_and_is_remembered(tmp_path: Path) -> None:
    found = find_toolchain("", cpu_features(), tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [f"toolchain-{found.identity}.json"]
    assert find_toolchain("", cpu_features(), tmp_path) == found
    (tmp_path / f"toolchain-{found.identity}.json").write_text("{broken")
    assert find_toolchain("", cpu_features(), tmp_path) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo 'oops: error: no assembler' >&2; exit 1", "no assembler"),
        ('while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\nexit 3\\n" > "$2"; chmod +x "$2"', "end with 3"),
        ("exit 0", "No such file"),
    ],
    ids=["refuses", "wrong_program", "writes_nothing"],
)
def test_a_compiler_that_does_not_work_is_told_apart(tmp_path: Path, text: str, reason: str) -> None:
    broken = script(tmp_path / "cc", text)
    with pytest.raises(BuildError, match=reason) as caught:
        find_toolchain(broken, cpu_features(), tmp_path / "cache")
    assert "PLUMBLINE_CC" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "cache").exists()  # a failure is not remembered: the compiler may be mended


def test_a_missing_compiler_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no working C compiler"):
        find_toolchain("no-such-compiler-anywhere --flag", cpu_features(), tmp_path)


@pytest.mark.cc
def test_refused_text_shows_the_first_error(tmp_path: Path) -> None:
    toolchain = find_toolchain("", CpuFeatures("plain", 16, False, ()), None)
    source = tmp_path / "bad.c"
    source.write_text("int f(void) { return undeclared_name; }")
    with pytest.raises(BuildError, match="undeclared_name"):
        compile_c(toolchain, source, tmp_path / "bad.so")
