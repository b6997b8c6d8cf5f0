"""A compiler is used only after it was seen to compile and run; otherwise its reason is told."""

import stat
import time
from pathlib import Path

import pytest
import torch

from plumbline.compiler.base.errors import BuildError
from plumbline.compiler.runtime import toolchain
from plumbline.compiler.runtime.cpu_features import CpuFeatures, cpu_features
from plumbline.compiler.runtime.toolchain import Toolchain, compile_c, find_toolchain


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
    plain = find_toolchain("", CpuFeatures("plain", 16, False, ()), None)
    source = tmp_path / "bad.c"
    source.write_text("int f(void) { return undeclared_name; }")
    with pytest.raises(BuildError, match="undeclared_name"):
        compile_c(plain, source, tmp_path / "bad.so")


def test_output_that_is_not_text_is_told_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    broken = script(tmp_path / "cc", r"printf 'error: \377\376 bad' >&2; exit 1")
    with pytest.raises(BuildError, match="bad"):
        find_toolchain(broken, cpu_features(), None)


def test_a_compiler_that_hangs_costs_its_time_once_and_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "SECONDS", 1)
    child = tmp_path / "child"
    hanging = script(tmp_path / "cc", f"sleep 60 & echo $! > {child}; wait")
    found = Toolchain((hanging,), (), f"hanging {tmp_path}")
    with pytest.raises(BuildError, match="did not finish"):
        compile_c(found, tmp_path / "graph.c", tmp_path / "graph.so")
    first = int(child.read_text())
    child.unlink()
    with pytest.raises(BuildError, match="did not finish"):
        compile_c(found, tmp_path / "graph.c", tmp_path / "graph.so")
    assert not child.exists()  # the second graph does not start it again
    assert not running(first)


def running(process: int) -> bool:
    for _ in range(50):  # the kernel may need a moment to take it away
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.1)
    return True


def test_no_flag_depends_on_the_machine_that_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    for capability in ("AVX512", "AVX2", "DEFAULT"):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda capability=capability: capability)
        assert not any("native" in flag for flag in cpu_features.__wrapped__().flags)
