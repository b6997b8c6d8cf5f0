"""The doctor: finds what works, and does not fall for programs that are there but broken."""

import json
import os
import stat
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from plumbline import doctor
from plumbline.compiler.base import torch_check
from plumbline.doctor import OK, PROBLEM, WARNING, Machine, examine, examine_one, healthy
from plumbline.probing import attempt
from support.made_rows import case_row, stored


def fake_torch(version="2.13.0", *, cuda=False, mps=False, threads=1, build=None):
    return SimpleNamespace(
        __version__=version,
        version=SimpleNamespace(cuda=build, hip=None),
        cuda=SimpleNamespace(is_available=lambda: cuda, device_count=lambda: 1, get_device_name=lambda _: "Fake H100"),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps)),
        get_num_threads=lambda: threads,
    )


@pytest.fixture
def machine(tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    return Machine(environment, 10.0, fake_torch())


def program(folder, name, body):
    """Put an executable shell script into a folder."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def with_path(machine, *folders, **variables):
    path = os.pathsep.join(map(str, folders))
    return replace(machine, environment={**machine.environment, "PATH": path, **variables})


@pytest.mark.cc
def test_a_working_compiler_is_found_and_used(machine):
    finding = examine_one("C compiler", machine)
    assert finding.level == OK
    assert finding.advice == ""


@pytest.mark.cc
def test_the_cpp_compiler_is_tried_with_openmp(machine):
    finding = examine_one("C++ compiler", machine)
    assert finding.level in (OK, WARNING)
    assert ("OpenMP" in finding.fact) or "Python.h" in finding.fact


BROKEN = {
    "fails": ("echo 'ld: error: cannot find crt1.o' >&2; exit 1", "cannot find crt1.o"),
    "dies": ("kill -SEGV $$", "SIGSEGV"),
    "makes nothing": ("exit 0", "makes no program"),
    "makes a program that fails": (
        'while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\nexit 7\\n" > "$2"; chmod +x "$2"',
        "exits with 7",
    ),
    "makes a program that cannot start": (
        'while [ "$1" != -o ]; do shift; done; echo noise > "$2"',
        "cannot be started",
    ),
}


@pytest.mark.parametrize(("body", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_compiler_that_is_there_but_broken_is_a_problem(machine, tmp_path, body, said):
    program(tmp_path / "bin", "gcc", body)
    finding = examine_one("C compiler", with_path(machine, tmp_path / "bin", "/bin"))
    # /bin may hold a real cc or clang: then the broken one is a warning, and still named.
    assert finding.level in (PROBLEM, WARNING)
    assert said in finding.fact
    assert str(tmp_path / "bin" / "gcc") in finding.fact
    assert finding.advice


def test_a_broken_compiler_alone_is_a_problem(machine, tmp_path):
    program(tmp_path / "bin", "cc", "exit 3")
    finding = examine_one("C compiler", with_path(machine, tmp_path / "bin"))
    assert finding.level == PROBLEM
    assert "exits with 3" in finding.fact


def test_a_compiler_that_hangs_is_stopped_with_its_children(machine, tmp_path):
    program(tmp_path / "bin", "gcc", "/bin/sleep 1000 & echo $! > " + str(tmp_path / "child") + "; wait")
    started = time.monotonic()
    finding = examine_one("C compiler", replace(with_path(machine, tmp_path / "bin"), seconds=0.5))
    assert time.monotonic() - started < 20
    assert finding.level == PROBLEM
    assert "did not end within 0.5 s" in finding.fact
    child = int((tmp_path / "child").read_text())
    assert not is_running(child)


def is_running(process):
    for _ in range(50):  # a killed process is gone when its new parent has noticed
        try:
            with open(f"/proc/{process}/stat") as file:
                if file.read().split()[2] == "Z":
                    return False
        except FileNotFoundError:
            return False
        time.sleep(0.05)
    return True


def test_no_compiler_is_a_warning_because_nothing_breaks(machine, tmp_path):
    (tmp_path / "empty").mkdir()
    bare = with_path(machine, tmp_path / "empty")
    for name in ("C compiler", "C++ compiler"):
        finding = examine_one(name, bare)
        assert finding.level == WARNING
        assert "install" in finding.advice


@pytest.mark.parametrize("chosen", ["/no/such/cc", "false", "{broken} -m32"])
def test_a_chosen_compiler_that_does_not_work_is_a_problem_whatever_else_is_there(machine, tmp_path, chosen):
    broken = program(tmp_path / "bin", "mycc", "exit 1")
    environment = {**machine.environment, "PLUMBLINE_CC": chosen.format(broken=broken)}
    finding = examine_one("C compiler", replace(machine, environment=environment))
    assert finding.level == PROBLEM
    assert "PLUMBLINE_CC" in finding.advice


@pytest.mark.cc
def test_a_chosen_compiler_may_have_options(machine):
    environment = {**machine.environment, "PLUMBLINE_CC": "cc -O1"}
    assert examine_one("C compiler", replace(machine, environment=environment)).level == OK


@pytest.mark.parametrize(
    ("torch", "level", "said"),
    [
        (fake_torch("2.13.0+cpu"), OK, "CPU build"),
        (fake_torch("2.11.0", build="12.8"), OK, "cuda 12.8 build"),
        (fake_torch("2.10.1"), PROBLEM, "2.10.1"),
        (fake_torch("1.13"), PROBLEM, "1.13"),
        (fake_torch("3.0.0a0+git123"), OK, "3.0.0a0"),
        (fake_torch("2.15.1"), OK, "plumbline was tested with 2.11"),
        (fake_torch("unknown"), PROBLEM, "unknown"),
        (None, PROBLEM, "OSError: libtorch.so"),
    ],
)
def test_torch(machine, torch, level, said):
    finding = examine_one("torch", replace(machine, torch=torch, torch_trouble="OSError: libtorch.so"))
    assert finding.level == level
    assert said in finding.fact
    assert bool(finding.advice) == (level != OK)


@pytest.mark.parametrize(("at_import", "level"), [(True, PROBLEM), (False, WARNING)])
def test_a_torch_that_lacks_private_names_is_told(machine, monkeypatch, at_import, level):
    gone = torch_check.MissingName("torch._ops.Gone", "targets of a graph", at_import)
    monkeypatch.setattr(torch_check, "missing_names", lambda: [gone])
    finding = examine_one("torch", replace(machine, torch=fake_torch("3.0.0")))
    assert finding.level == level
    assert "does not have torch._ops.Gone (targets of a graph)" in finding.fact
    assert examine_one("torch", machine).level == OK


WRONG_INDUCTOR = """
import plumbline.compiler.backends as backends

real = backends._BACKENDS["inductor"]

def wrong(graph, inputs, options):
    run = real(graph, inputs, options)
    return lambda *values: [one + 1 if one.is_floating_point() else one for one in run(*values)]

backends._BACKENDS["inductor"] = wrong
"""


@pytest.mark.slow
def test_the_compiler_is_judged_and_not_believed(machine, tmp_path, monkeypatch):
    machine = replace(machine, seconds=60.0)
    finding = examine_one("compiler", machine)
    assert finding.level == OK
    assert finding.fact.endswith("eager: EQUAL, aot_eager: EQUAL, inductor: EQUAL") or "NOISE" in finding.fact
    (tmp_path / "sitecustomize.py").write_text(WRONG_INDUCTOR)
    environment = {**machine.environment, "PYTHONPATH": str(tmp_path)}
    finding = examine_one("compiler", replace(machine, environment=environment))
    assert finding.level == PROBLEM
    assert "inductor is WRONG" in finding.fact
    assert finding.advice


def test_without_torch_every_other_check_still_runs(machine):
    findings = [examine_one(name, replace(machine, torch=None, torch_trouble="gone")) for name in doctor._CHECKS]
    assert [f.check for f in findings if "broke" in f.fact] == []
    assert [f.check for f in findings if f.level == PROBLEM] == ["torch"]


def test_gpus(machine, tmp_path):
    (tmp_path / "empty").mkdir()
    bare = with_path(machine, tmp_path / "empty")
    assert "Fake H100" in examine_one("GPU", replace(bare, torch=fake_torch(cuda=True))).fact
    assert "mps" in examine_one("GPU", replace(bare, torch=fake_torch(mps=True))).fact
    assert examine_one("GPU", bare).level == OK
    program(tmp_path / "bin", "nvidia-smi", "exit 0")
    assert examine_one("GPU", with_path(machine, tmp_path / "bin")).level == WARNING


def test_more_threads_than_cores_is_a_warning(machine):
    assert examine_one("threads", replace(machine, torch=fake_torch(threads=1))).level == OK
    assert examine_one("threads", replace(machine, torch=fake_torch(threads=10_000))).level == WARNING


def test_the_cache_directory_is_not_made_by_looking(machine, tmp_path):
    finding = examine_one("cache", machine)
    assert finding.level in (OK, WARNING)  # a warning where less than 2 GB are free
    assert str(tmp_path / ".cache" / "plumbline") in finding.fact or sys.platform == "darwin"
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_a_problem(machine, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        environment = {**machine.environment, "PLUMBLINE_CACHE_DIRECTORY": str(place)}
        finding = examine_one("cache", replace(machine, environment=environment))
        assert finding.level == PROBLEM
        assert "PLUMBLINE_CACHE_DIRECTORY" in finding.advice


def test_a_full_disk_is_told(machine, monkeypatch):
    for free, level in [(50_000_000, PROBLEM), (500_000_000, WARNING), (50_000_000_000, OK)]:
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        assert examine_one("cache", machine).level == level


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"PLUMBLINE_CACHE_DIRECTORY": "/c"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/plumbline"),
        ({"PLUMBLINE_CACHE_DIRECTORY": "", "XDG_CACHE_HOME": "/x"}, "/x/plumbline"),
    ],
)
def test_where_the_cache_is(variables, place):
    assert str(doctor.cache_directory(variables)) == place


def test_the_database(machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "made by the first run" in examine_one("database", machine).fact
    stored(tmp_path / "r.sqlite", [case_row()])
    (tmp_path / "text").write_text("no database")
    for place, level, said in [("r.sqlite", OK, "holds 1 runs"), ("text", PROBLEM, "not an SQLite database")]:
        named = replace(machine, environment={**machine.environment, "PLUMBLINE_DB": place})
        finding = examine_one("database", named)
        assert (finding.level, said in finding.fact) == (level, True)


def test_the_plugin_is_registered(machine):
    assert examine_one("pytest plugin", machine).level == OK


def test_an_unregistered_or_broken_plugin_is_a_problem(machine, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    assert examine_one("pytest plugin", machine).level == PROBLEM

    def load() -> None:
        raise SyntaxError("half written")

    entry = SimpleNamespace(value="plumbline.pytest_plugin.plugin", load=load)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [entry])
    finding = examine_one("pytest plugin", machine)
    assert finding.level == PROBLEM
    assert "half written" in finding.fact


def test_a_check_that_breaks_is_a_finding(machine, monkeypatch):
    def broken(_: Machine) -> doctor.CheckResult:
        raise RuntimeError("unforeseen")

    monkeypatch.setitem(doctor._CHECKS, "Python", broken)
    finding = examine_one("Python", machine)
    assert finding.level == PROBLEM
    assert "unforeseen" in finding.fact


def test_the_verdict_and_both_forms(machine):
    findings = [examine_one("Python", machine), examine_one("torch", replace(machine, torch=None))]
    assert not healthy(findings)
    assert healthy(findings[:1])
    data = json.loads(doctor.findings_json(findings))
    assert data["healthy"] is False
    assert [check["level"] for check in data["checks"]] == [OK, PROBLEM]
    text = doctor.findings_text(findings)
    assert text.splitlines()[-1].strip().startswith("-> pip install")


@pytest.mark.slow
@pytest.mark.cc
def test_this_machine_can_be_examined_whole():
    findings = examine()
    assert [finding.check for finding in findings] == list(doctor._CHECKS)
    assert all(finding.fact for finding in findings)
    assert not [finding for finding in findings if "broke" in finding.fact]


def test_a_program_that_cannot_start_is_told(tmp_path):
    assert "cannot be started" in attempt(["/no/such/program"], tmp_path, {}, 1).trouble
    assert attempt(["/bin/sh", "-c", "exit 0"], tmp_path, {}, 10).good


def test_a_triton_that_does_not_work_is_a_warning(machine, tmp_path, monkeypatch):
    (tmp_path / "site" / "triton").mkdir(parents=True)
    (tmp_path / "site" / "triton" / "__init__.py").write_text("raise ImportError('libLLVM is missing')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    environment = {**machine.environment, "PYTHONPATH": str(tmp_path / "site")}
    finding = examine_one("Triton", replace(machine, environment=environment))
    assert finding.level == WARNING
    assert "libLLVM is missing" in finding.fact
