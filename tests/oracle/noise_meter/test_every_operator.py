"""The noise meter on every operator of torch: no crash, whole shares, and the error that is really there."""

import tomllib
import warnings
from pathlib import Path

import pytest
import torch

from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS
from plumbline.oracle import NoiseMeter
from plumbline.oracle.noise_meter.measuring import float_tensors

DEVIATIONS = tomllib.loads(Path(__file__).with_name("operator_deviations.toml").read_text(encoding="utf-8"))[
    "deviations"
]
NAMES = sorted(name for name, info in OPERATORS.items() if torch.float32 in info.supported_dtypes("cpu"))
GROUPS = 8


def changed(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(changed(item, change) for item in value)
    return {key: changed(item, change) for key, item in value.items()} if isinstance(value, dict) else value


def scaled(tensor):
    """Return a tensor that carries rounding errors, so that the operator has noise to pass on."""
    return tensor * 1.1 if tensor.is_floating_point() and tensor.layout == torch.strided else tensor


def wide(tensor):
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def played(info, sample, change):
    """Return the tensors that an operator gives for a sample whose tensors are changed first, None if it refuses."""
    torch.manual_seed(0)
    try:
        call = (changed(part, change) for part in (sample.input, tuple(sample.args), sample.kwargs))
        given, args, kwargs = (changed(part, scaled) for part in call)
        found = dict(float_tensors(info.op(given, *args, **kwargs), "output"))
        return {path: tensor for path, tensor in found.items() if tensor.layout == torch.strided}
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError):
        return None


def relative_error(real, exact):
    fine = torch.isfinite(exact)
    size = float(torch.linalg.vector_norm(torch.where(fine, exact, torch.zeros_like(exact))))
    gap = (real - exact).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return float(torch.linalg.vector_norm(gap)) / size if size else 0.0


def complaints(name):
    """Yield what is wrong with the measurement of one operator's first sample."""
    info = OPERATORS[name]
    sample = next(iter(info.sample_inputs("cpu", torch.float32)), None)
    real = None if sample is None else played(info, sample, lambda tensor: tensor)
    if sample is None or real is None:
        return

    def program():
        given, args, kwargs = (changed(part, scaled) for part in (sample.input, tuple(sample.args), sample.kwargs))
        return info.op(given, *args, **kwargs)

    torch.manual_seed(0)
    report = NoiseMeter(traced=2).measure(program)
    for output in report.outputs:
        introduced = sum(line.introduced for line in output.lines)
        if output.lines and introduced != pytest.approx(1, rel=1e-6):
            yield f"{name} {output.path}: what lines introduce adds up to {introduced}"
    exact = played(info, sample, wide)
    if exact is None or report.untrusted or name in DEVIATIONS:
        return
    for output in report.outputs:
        pair = real.get(output.path), exact.get(output.path)
        if pair[0] is None or pair[1] is None or pair[0].shape != pair[1].shape or not pair[0].numel():
            continue
        error = relative_error(wide(pair[0]), wide(pair[1]))
        if output.error != pytest.approx(error, rel=1e-3, abs=1e-12):
            yield f"{name} {output.path}: measured {output.error}, against float64 it is {error}"


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_every_operator_is_measured(group):
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in NAMES[group::GROUPS]:
            found += complaints(name)
    assert found == []


def test_deviations_are_operators():
    assert DEVIATIONS.keys() <= OPERATORS.keys()
