import subprocess
import sys

from torch.fx.experimental.symbolic_shapes import ShapeEnv

from plumbline.compiler.base.borrowed import size_environment
from plumbline.compiler.base.borrowed.size_environment import SizeEnvironment
from plumbline.compiler.base.symbol_facts import (
    make_shape_environment,
    make_symbolic_number,
    size_conditions,
    size_expression,
)

SETTINGS = {"duck_shape": False, "allow_scalar_outputs": False, "allow_dynamic_output_shape_ops": False}

TRACED = """
import os, sys, tempfile
folder = tempfile.mkdtemp()
os.environ["TORCH_TRACE"] = folder
import torch
import plumbline

plumbline.compile(lambda x: x + 1, backend="eager", dynamic=True)(torch.ones(3))
(log,) = [os.path.join(folder, name) for name in os.listdir(folder)]
assert "create_symbol" in open(log).read()
assert '"name": "sizes"' not in open(log).read()
"""


UNASKED = """
import logging
logging.disable(logging.CRITICAL)
import torch
import plumbline

plumbline.compile(lambda x: x + 1, backend="eager", dynamic=True)(torch.ones(3))
assert not logging.getLogger("torch.__trace").handlers  # one would make torch write down the stack of every question
"""


def test_an_environment_is_what_torch_makes_it():
    mine, torchs = SizeEnvironment(**SETTINGS), ShapeEnv(**SETTINGS)
    assert vars(mine).keys() == vars(torchs).keys()
    assert mine.settings == torchs.settings


def test_where_torch_wants_more_of_its_compiler_it_is_imported(monkeypatch):
    def wants_more(*_: object, **settings: object) -> None:
        raise AttributeError("a setting that is not known here")

    monkeypatch.setattr(size_environment, "without_compiler", lambda code: wants_more)
    assert vars(SizeEnvironment(**SETTINGS)).keys() == vars(ShapeEnv(**SETTINGS)).keys()


def test_questions_become_conditions():
    environment = make_shape_environment()
    rows = make_symbolic_number(environment, 5, "rows")
    assert rows > 3
    assert str(size_expression(rows) > 3) in [str(condition) for condition in size_conditions(environment)]


def test_who_asks_for_torchs_trace_has_it():
    done = subprocess.run([sys.executable, "-c", TRACED], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_trace_that_nobody_asked_for_ends_where_logging_is_disabled():
    done = subprocess.run([sys.executable, "-c", UNASKED], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
