import runpy

import pytest
import torch
from torch import fx

from plumbline.compiler.base.errors import Unsupported
from plumbline.minifier.failure_signature import FailureSignature
from plumbline.minifier.graphs.graph_case import case_key, case_of
from plumbline.minifier.graphs.subgraph import record
from plumbline.minifier.reduce.graph_judge import GraphRules
from plumbline.minifier.repro.repro_script import History, Pipeline, repro_script
from plumbline.oracle.harness.compilers import CompileRequest

SIGNATURE = FailureSignature("WRONG", "values", band="gross")
HISTORY = History("Net, call of plumbline:inductor", "", "graph 0", 9, 5, "output[0] is wrong")


def script_of(function, inputs, *, compiler="plumbline", backend="eager", after="dynamo", settings=""):
    case = case_of(fx.symbolic_trace(function), inputs)
    record(case)
    pipeline = Pipeline(compiler, backend, after, CompileRequest(), settings)
    rules = GraphRules(grad=False, gradients=False)
    return case, repro_script(case, SIGNATURE, rules, pipeline, HISTORY, "repro.py")


def loaded(tmp_path, script):
    file = tmp_path / "repro.py"
    file.write_text(script.text)
    if script.blob:
        (tmp_path / "repro.inputs.pt").write_bytes(script.blob)
    return runpy.run_path(str(file))


def everything(x, n):
    a = torch.sin(x)[..., 1:3].view(2, -1)
    b = torch.nn.functional.gelu(a, approximate="tanh").to(dtype=torch.float64)
    c = torch.cat([b, torch.full((2, n), -1.5, dtype=torch.float64)], dim=-1)
    return c.clamp(min=float("-inf")), c.sum(dim=(0, 1))


def test_the_graph_is_rebuilt_exactly_and_readably(tmp_path):
    case, script = script_of(everything, (torch.randn(2, 4).t().contiguous().t(), 3))
    module = loaded(tmp_path, script)
    again = case_of(module["build_graph"](), module["inputs"]())
    assert case_key(again) == case_key(case)
    expected, found = case.run(*case.fresh_inputs()), module["forward"](*module["inputs"]())
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    assert "f32[2, 4] strides (1, 2)" in script.text
    assert "def test_repro()" in script.text


def test_large_inputs_lie_beside_the_script_and_must_be_the_same(tmp_path):
    _, script = script_of(lambda x: x.sin(), (torch.randn(3000),))
    module = loaded(tmp_path, script)
    assert module["inputs"]()[0].shape == (3000,)
    (tmp_path / "repro.inputs.pt").write_bytes(b"other")
    assert module["reproduce"]()[0] == 125
    (tmp_path / "repro.inputs.pt").unlink()
    status, said = module["reproduce"]()
    assert status == 125
    assert "missing" in said


def test_a_fixed_compiler_gives_status_0(tmp_path):
    _, script = script_of(lambda x: x.sin(), (torch.ones(3),))
    assert loaded(tmp_path, script)["reproduce"]()[0] == 0


FAULT = """
from plumbline.compiler import backends
configure.keep = backends.replaced_backend("eager", lambda graph, inputs, options: {})
configure.keep.__enter__()
""".strip()


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("lambda x: (x.sin() + 1,)", 1),
        ("lambda x: (x.sin().double(),)", 2),
        ("lambda x: (x.sin(),)", 0),
    ],
)
def test_status_tells_reproduced_from_fixed_from_another_failure(tmp_path, program, status):
    _, script = script_of(lambda x: x.sin(), (torch.ones(3),), settings=FAULT.format(program))
    module = loaded(tmp_path, script)
    try:
        assert module["reproduce"]()[0] == status
    finally:
        module["configure"].keep.__exit__(None, None, None)


def test_what_eager_cannot_run_cannot_be_tested(tmp_path):
    _, script = script_of(lambda x: x.sin(), (torch.ones(3),))
    assert "x.sin()" in script.text
    module = loaded(tmp_path, type(script)(script.text.replace("x.sin()", "x.nonsense()"), None))
    assert module["reproduce"]()[0] == 125


def test_a_callable_without_a_home_is_refused():
    def local(x):
        return x

    graph = fx.Graph()
    graph.output((graph.call_function(local, (graph.placeholder("x"),)),))
    case = case_of(fx.GraphModule({}, graph), (torch.ones(1),))
    record(case)
    pipeline = Pipeline("torch", "inductor", "dynamo", CompileRequest())
    with pytest.raises(Unsupported, match="no import can name"):
        repro_script(case, SIGNATURE, GraphRules(grad=False), pipeline, HISTORY, "repro.py")
