"""The hook costs nothing before torch is there, and misses nothing after it."""

import subprocess
import sys

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_installing_imports_no_torch():
    code = """
import sys
from plumbline.oracle.harness.interception_hook import install_import_interception
install_import_interception()
print('torch' in sys.modules)
"""
    assert run(code) == "False"


@pytest.mark.parametrize(
    "first",
    [
        "import torch",
        "from torch import compile",
        "import plumbline.oracle.harness.boundary",
        "import plumbline.oracle.state.walk",
    ],
)
def test_whoever_imports_torch_first_what_is_compiled_then_is_judged(first):
    code = f"""
from plumbline.oracle.harness.interception_hook import install_import_interception, uninstall_import_interception
install_import_interception()
{first}
import torch
stock = torch.compile
early = torch.compile(lambda x: x + 1)
from plumbline.oracle.harness.session import JudgeSession
with JudgeSession(compiler='torch', backend='eager') as judge:
    early(torch.ones(1))
print([call.verdict.kind.value for call in judge.calls])
uninstall_import_interception()
print('_plumbline' in repr(vars(torch.compile)), torch.compile.__module__)
"""
    assert run(code).splitlines() == ["['EQUAL']", "False torch"]


def test_uninstalling_without_any_use_gives_stock_back():
    code = """
from plumbline.oracle.harness.interception_hook import install_import_interception, uninstall_import_interception
import torch
stock = torch.compile
install_import_interception()
assert torch.compile is not stock
uninstall_import_interception()
assert torch.compile is stock
import sys
print('torch._dynamo' in sys.modules)
"""
    assert run(code) == "False"


@pytest.mark.parametrize("compiler", ["plumbline", "torch"])
def test_stocks_modules_are_loaded_only_where_stock_is_asked_for(compiler):
    code = f"""
import sys
import plumbline, torch
from plumbline.oracle import check
from plumbline.oracle.harness.session import JudgeSession
assert check(torch.sin, (torch.ones(1),), compiled=torch.sin).kind.value == 'EQUAL'
with JudgeSession(compiler='{compiler}', backend='eager') as judge:
    plumbline.compile(lambda x: x + 1)(torch.ones(1))
print([call.verdict.kind.value for call in judge.calls], 'plumbline.oracle.harness.stock_torch' in sys.modules)
"""
    assert run(code) == f"['EQUAL'] {compiler == 'torch'}"


def test_what_is_compiled_before_stock_is_loaded_is_judged_by_every_compiler():
    code = """
import torch
from plumbline.oracle.harness.interception import start_intercepting, stop_intercepting
from plumbline.oracle.harness.session import JudgeSession
start_intercepting()
early = torch.compile
compiled = early(lambda x: x + 1)
module = torch.compile(torch.nn.Linear(2, 2))
for compiler in 'plumbline', 'torch':
    with JudgeSession(compiler=compiler, backend='eager') as judge:
        compiled(torch.ones(1))
        module(torch.ones(1, 2))
    print([call.verdict.kind.value for call in judge.calls])
stop_intercepting()
print(early(lambda x: x + 1, backend='eager')(torch.ones(1)).item(), torch.compile.__module__)
"""
    assert run(code).splitlines() == ["['EQUAL', 'EQUAL']", "['EQUAL', 'EQUAL']", "2.0 torch"]
