"""Scripts of findings: a dozen lines at most, exit 1 while the fault is there and 0 without it."""

import pytest
import torch

from plumbline.compiler.backends import replaced_backend
from plumbline.fuzz.operator_sweep.case_trial import SWALLOWED, CaseFault
from plumbline.fuzz.operator_sweep.cases import read_case
from plumbline.fuzz.operator_sweep.prepared_cases import Sample, prepare
from plumbline.fuzz.operator_sweep.sweep_script import MOST_LINES, sweep_script
from plumbline.testing import lowering_of, replace_lowering

NAME = "sin float32 static inductor alone 0"


def written(fault, *args):
    script = sweep_script(fault, prepare(read_case(fault.case), Sample(args, {})))
    assert len(script.splitlines()) <= MOST_LINES
    return script


def status(script):
    with pytest.raises(SystemExit) as end:
        exec(script, {"__name__": "__main__"})
    return int(end.value.code)


@pytest.mark.cc
def test_a_script_exits_1_while_the_lowering_is_wrong():
    script = written(CaseFault(NAME, "WRONG", "values", "", "differs\nby much"), torch.arange(3.0))
    assert "operator_sweep" not in script
    with replace_lowering(torch.ops.aten.sin.default, lowering_of(torch.ops.aten.cos.default)):
        assert status(script) == 1
    assert status(script) == 0


def test_a_script_exits_1_while_an_exception_is_missing():
    name = "index_select float32 static aot_eager far_index 0"
    fault = CaseFault(name, "WRONG", "exceptions", "", "raises nothing")
    script = written(fault, torch.ones(3), 0, torch.tensor([1]))
    with replaced_backend("aot_eager", lambda graph, inputs, options: lambda *tensors: (tensors[0],)):
        assert status(script) == 1
    assert status(script) == 0


def test_a_script_exits_1_while_an_error_is_swallowed():
    def fails(graph, inputs, options):
        raise KeyError("planted")

    name = "sin float32 static aot_eager alone 0"
    script = written(CaseFault(name, "SWALLOWED", SWALLOWED, "", "KeyError"), torch.ones(3))
    with replaced_backend("aot_eager", fails):
        assert status(script) == 1
    assert status(script) == 0


def test_what_has_no_literal_is_replayed_by_name():
    fault = CaseFault(NAME, "CRASH", "process", "SIGFPE", "ends the process")
    assert f"still_fails(('{NAME}',))" in written(fault, torch.ones(3))
    assert "still_fails" in sweep_script(fault, None)
    big = CaseFault(NAME, "WRONG", "values", "", "differs")
    assert "still_fails" in written(big, torch.ones(5000))
