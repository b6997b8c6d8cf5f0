"""The benchmark of nets: every fault of its table can be planted in the source as it is, and is planted."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def benchmark():
    spec = importlib.util.spec_from_file_location("net_mutation", ROOT / "benchmarks" / "net_mutation.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["net_mutation"] = module  # its data classes look themselves up
    spec.loader.exec_module(module)
    return module


FAULTS = benchmark().read_faults()


def test_there_are_enough_faults_at_every_stage():
    assert len(FAULTS) >= 40
    assert {fault.stage for fault in FAULTS} == {"capture", "autograd", "passes", "lowering", "fusion", "code"}
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_text_stands_once_and_the_fault_is_python(fault):
    source = (ROOT / fault.module).read_text(encoding="utf-8")
    assert source.count(fault.old) == 1
    ast.parse(source.replace(fault.old, fault.new))
    assert set(fault.nets) <= set(benchmark().NETS)


def test_a_planted_fault_is_loaded(tmp_path):
    fault = next(fault for fault in FAULTS if fault.module == "compiler/base/function_marks.py")
    text = f"""
import sys
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import net_mutation
sys.meta_path.insert(0, net_mutation._Planter(next(f for f in net_mutation.read_faults() if f.name == {fault.name!r})))
import functools
from plumbline.compiler.base.function_marks import own_mark
def marked(): pass
marked.mark = 1
print(own_mark(functools.wraps(marked)(lambda: 0), "mark"))
"""
    ran = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"
