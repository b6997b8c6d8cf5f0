"""Samples of torch's own, forward and backward, in Triton's interpreter beside C: a slice of what a command does.

All operators: `python tests/support/sampled_operators.py`.
"""

import pytest

from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.codegen.triton import triton_library
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from support.sampled_operators import compare_operators

pytestmark = [
    pytest.mark.cc,
    pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}"),
]
OPERATORS = ("where", "sum", "nn.functional.gelu", "nn.functional.layer_norm", "cumsum", "clamp")
DTYPES = ("float32", "bfloat16", "int64", "uint8")


@pytest.mark.parametrize("operator", OPERATORS)
def test_samples_give_what_c_gives(operator: str) -> None:
    account = compare_operators([(operator, dtype) for dtype in DTYPES], samples=1)
    assert not account.faults
    assert account.kernels
    assert account.results["same bits"] > account.results["within noise"]


def test_a_wrong_kernel_is_named_with_its_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = triton_library.LIBRARY.replace("return a + b", "return a + b + b * 0.01")
    monkeypatch.setattr("plumbline.compiler.codegen.triton.interpreted_segments.LIBRARY", broken)
    account = compare_operators([("sum", "float32")], samples=1)
    assert account.faults
    assert all(fault.startswith("sum float32 static triton ") for fault in account.faults)
    assert "units of noise" in account.faults[0]


@pytest.mark.parametrize("error", [RuntimeError("planted"), Unsupported("planted", hint="none")])
def test_a_graph_that_aten_runs_is_a_fault(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise error

    monkeypatch.setattr("plumbline.compiler.native.triton_segments", refuse)
    account = compare_operators([("sum", "float32")], samples=1)
    assert account.faults
    assert "planted" in account.faults[0]
