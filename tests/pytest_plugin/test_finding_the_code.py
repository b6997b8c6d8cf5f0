"""The default boundary finds the code of a project in whatever form its tests call it."""

import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]

LIBRARY = """
import torch
from torch import nn

def scale(x, by=2):
    return x * by

def grid(size):
    return torch.arange(size) * 2.0

def predict(model, x):
    return model(x) + 1

def norm_of(model):
    return sum((p * p).sum() for p in model.parameters())

def assert_close(a, b):
    torch.testing.assert_close(a, b)

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight

    def inverse(self, y):
        return y / self.weight

    def names(self):
        return [name for name, _ in self.named_parameters()]

class OwnCall(nn.Module):
    def __call__(self, x):
        return x + 1

class Boxes:
    def __init__(self, data):
        self.data = data

    def area(self):
        return self.data[..., 0] * self.data[..., 1]

class Mask:
    def __init__(self, size):
        self.mask = torch.ones(size).cumsum(0) * 2

class Diagonal:
    def __init__(self, diagonal):
        self.diagonal = diagonal

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return args[0].diagonal * args[1]

    def __matmul__(self, other):
        return self.diagonal * other

    def __rsub__(self, other):
        return other - self.diagonal

class Shift(torch.distributions.Transform):
    domain = codomain = torch.distributions.constraints.real

    def _call(self, x):
        return x + 1

class LearnedShift(Shift, nn.Module):
    pass

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2
"""


@pytest.fixture
def real(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> PluginRuns:
    runs = PluginRuns(pytester, monkeypatch, fake=False)
    pytester.makepyfile(mylib=LIBRARY)
    pytester.syspathinsert()
    return runs


def judged(runs: PluginRuns, body: str, *options: str) -> tuple[dict[str, int], str]:
    runs.write(f"import torch\nimport mylib\n\ndef test_it():\n    x = torch.ones(3)\n    {body}\n")
    result = runs.run("-v", "--compile-compilers=plumbline", *options, backends="eager")
    line = next((line for line in result.outlines if "test_it.py::test_it" in line), "")
    return outcomes(result), line


FORMS = {
    "a function": ("mylib.scale(x)", "scale"),
    "a module": ("mylib.Flow()(x)", "Flow"),
    "a method of a module": ("mylib.Flow().inverse(x)", "Flow.inverse"),
    "forward": ("mylib.Flow().forward(x)", "Flow.forward"),
    "a module with a call of its own": ("mylib.OwnCall()(x)", "OwnCall.__call__"),
    "a method of an object that holds tensors": ("mylib.Boxes(torch.ones(4, 2)).area()", "Boxes.area"),
    "a module that is handed to a function": ("mylib.predict(mylib.Flow(), x)", "Flow"),
    "a function that reads a module": ("mylib.norm_of(mylib.Flow())", "norm_of"),
    "a function of numbers": ("mylib.grid(4)", "grid"),
    "an object whose construction computes": ("mylib.Mask(3)", "Mask"),
    "a function of torch's that an object answers": ("torch.matmul(mylib.Diagonal(x), x)", "torch.matmul"),
    "an operator of an object": ("mylib.Diagonal(x) @ x", "operator.matmul"),
    "an operator of the right operand": ("1 - mylib.Diagonal(x)", "operator.sub"),
    "a method of torch's that an object inherits": ("mylib.Shift()(x)", "Shift"),
    "a call of torch's that a module inherits": ("mylib.LearnedShift()(x)", "Transform.__call__"),
    "a function under a transform": ("torch.func.grad(lambda t: mylib.scale(t).sum())(x)", "<lambda>"),
    "a function given to gradcheck": (
        "torch.autograd.gradcheck(lambda t: mylib.scale(t), (x.double().requires_grad_(),))",
        "<lambda>",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_calls(real: PluginRuns, form: str) -> None:
    body, boundary = FORMS[form]
    found, line = judged(real, body)
    assert found == {"passed": 1}, line
    assert f" {boundary}: " in line, line


def test_a_call_that_computes_nothing_hides_no_other(real: PluginRuns) -> None:
    found, line = judged(real, "mylib.Flow().names(); mylib.grid(4)")
    assert found == {"passed": 1}, line
    assert "grid" in line, line


@pytest.mark.parametrize(
    ("options", "boundary"),
    [(["--compile-boundary=module"], "Flow: "), (["--compile-boundary=module,call"], "predict: ")],
)
def test_kinds_add_up(real: PluginRuns, options: list[str], boundary: str) -> None:
    found, line = judged(real, "mylib.predict(mylib.Flow(), x)", *options)
    assert found == {"passed": 1}
    assert f" {boundary}" in line, line
    found, line = judged(real, "mylib.scale(x)", *options)
    assert found == ({"vacuous": 1} if options == ["--compile-boundary=module"] else {"passed": 1}), line


def test_what_compares_is_no_program(real: PluginRuns) -> None:
    found, line = judged(real, "mylib.assert_close(x, x)")
    assert found == {"vacuous": 1}, line


def test_the_share_that_ran_compiled(real: PluginRuns) -> None:
    _, line = judged(real, "y = mylib.scale(x); z = (y + 1) * y - 2")
    assert "scale: 1 call judged, 25% of the tensor operations compiled" in line


def test_a_call_without_a_reference_costs_that_call(real: PluginRuns) -> None:
    real.write("""
import torch
import mylib

def test_it():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    mylib.scale(torch.ones(3))
    mylib.scale(nested)
""")
    result = real.run("--compile-compilers=plumbline", backends="eager")
    assert outcomes(result)["passed"] == 1
    result.stdout.fnmatch_lines(["*EQUAL*"])
    assert "NO_REFERENCE" not in result.stdout.str()


def test_an_expected_exception_is_no_failure(real: PluginRuns) -> None:
    found = judged(real, "\n    with pytest.raises(RuntimeError):\n        mylib.Flow()(torch.ones(2, 5))")
    assert found[0] == {"passed": 1}, found


def test_a_test_that_depends_on_something_else_is_not_called_sensitive(real: PluginRuns) -> None:
    real.write("""
import torch
import mylib

def test_it():
    mylib.scale(torch.ones(3))
    raise OSError("the disk is full")
""")
    result = real.run("--compile-compilers=plumbline", backends="eager")
    assert outcomes(result) == {"failed": 1}
    assert "SENSITIVE" not in result.stdout.str()
    assert "EAGER_FAILED" in result.stdout.str()


def test_helpers_below_a_folder_of_tests_are_tests(real: PluginRuns) -> None:
    folder = real.pytester.mkdir("tests")
    (folder / "helping.py").write_text(
        "import mylib\n\ndef check(x):\n    y = mylib.scale(x)\n    return bool((y > 0).all())\n"
    )
    (folder / "conftest.py").write_text("import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n")
    (folder / "test_it.py").write_text(
        "import torch\nimport helping\n\ndef test_it():\n    assert helping.check(torch.ones(2))\n"
    )
    result = real.run("-v", "--compile-compilers=plumbline", backends="eager")
    assert " scale: " in result.stdout.str(), result.stdout.str()


def test_tests_that_a_package_hands_down_are_tests(real: PluginRuns) -> None:
    case = "class Cases:\n    def test_scale(self):\n        mylib.scale(torch.ones(2))\n"
    real.pytester.makepyfile(mylib_cases=f"import mylib, torch\n\n{case}")
    real.write("from mylib_cases import Cases\n\nclass TestScale(Cases):\n    pass\n")
    result = real.run("-v", "--compile-compilers=plumbline", backends="eager")
    assert " scale: " in result.stdout.str(), result.stdout.str()


def test_construction_is_not_judged_beside_other_calls(real: PluginRuns) -> None:
    _, line = judged(real, "mylib.scale(mylib.Mask(3).mask)")
    assert " scale: 1 call judged" in line


def test_cases_of_unittest_run_again_too(real: PluginRuns) -> None:
    real.write("""
import unittest

import mylib

class TestMask(unittest.TestCase):
    def setUp(self):
        self.size = 3

    def test_it(self):
        self.assertEqual(mylib.Mask(self.size).mask.tolist(), [2.0, 4.0, 6.0])

    def test_wrong_size(self):
        self.assertEqual(mylib.Mask(self.size).mask.tolist(), [2.0])
""")
    result = real.run("-v", "--compile-compilers=plumbline", backends="eager")
    assert outcomes(result) == {"passed": 1, "failed": 1}
    assert " Mask: 1 call judged" in result.stdout.str(), result.stdout.str()
    assert "AttributeError" not in result.stdout.str()
