"""The profile of compiled code: every kernel and ATen call with its time, what it moves and computes, and its lines."""

import inspect

import pytest
import torch
from click.testing import CliRunner

import plumbline
from plumbline.command_profile import profile as profile_command

pytestmark = pytest.mark.cc


def program(x, w):
    y = x @ w
    return torch.softmax(y.sin() * 2, 1).sum(0)


def profiled(runs=2):
    x, w = torch.randn(64, 32), torch.randn(32, 16)
    with plumbline.profile() as found:
        compiled = plumbline.compile(program)
        for _ in range(runs):
            torch.testing.assert_close(compiled(x, w), program(x, w))
    return found


def test_every_step_is_there_with_its_runs_and_lines():
    rows = profiled().rows()
    kinds = {row.name: row.kind for row in rows}
    assert kinds["aten.mm.default"] == "ATen"
    assert [row.kind for row in rows].count("kernel") >= 1
    assert all(row.runs == 2 and row.seconds > 0 for row in rows)
    first = inspect.getsourcelines(program)[1]
    lines = " ".join(line for row in rows for line in row.lines)
    assert f"test_kernel_profile.py:{first + 1}" in lines
    assert f"test_kernel_profile.py:{first + 2}" in lines
    assert [row.seconds for row in rows] == sorted((row.seconds for row in rows), reverse=True)


def test_bytes_and_operations_are_counted():
    with plumbline.profile() as found:
        plumbline.compile(lambda x, y: x * y + 1)(torch.ones(100), torch.ones(100))
    (row,) = found.rows()
    assert (row.bytes, row.flops) == (3 * 400, 2 * 100)


def test_operations_of_a_reduction_and_of_a_matrix_product():
    with plumbline.profile() as found:
        plumbline.compile(lambda x: (x * 2).sum(1))(torch.ones(10, 20))
    (row,) = found.rows()
    assert (row.bytes, row.flops) == (4 * 210, 2 * 200)
    matrix = next(row for row in profiled().rows() if row.name == "aten.mm.default")
    assert matrix.flops == 2 * 64 * 32 * 16
    assert matrix.bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16)


def test_operations_on_views_are_counted():
    with plumbline.profile() as found:
        plumbline.compile(lambda x: x.t() @ x)(torch.ones(10, 20))
    assert next(row.flops for row in found.rows() if "mm" in row.name) == 2 * 20 * 10 * 20


def test_the_table_has_shares_and_lines():
    text = str(profiled())
    assert text.splitlines()[0].split() == "ms share runs GB/s GFLOP/s kernel or ATen call".split()
    assert "y = x @ w" in text
    shares = [float(line.split()[1].rstrip("%")) for line in text.splitlines()[1:] if "%" in line]
    assert 99 < sum(shares) < 101


def test_outside_the_block_nothing_is_timed():
    found = profiled()
    before = len(found.events)
    plumbline.compile(program)(torch.randn(64, 32), torch.randn(32, 16))
    assert len(found.events) == before
    with plumbline.profile() as nothing:
        pass
    assert "no compiled code ran" in str(nothing)


def test_the_command_runs_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch, plumbline\n"
        "run = plumbline.compile(lambda x: x.sin() * len(sys.argv))\n"
        "for _ in range(3):\n    run(torch.ones(1000))\n"
    )
    done = CliRunner().invoke(profile_command, [str(script), "one", "--two"], standalone_mode=False)
    assert done.exception is None
    assert "script.py:2" in done.output
    assert "  3  " in done.output
    missing = CliRunner().invoke(profile_command, ["nothing.py"], standalone_mode=False)
    assert "is no file" in str(missing.exception)
