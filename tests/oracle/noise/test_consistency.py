"""The diagnosis of operators whose float64 evaluation is another function."""

import torch

from plumbline.oracle.noise.shadow import ShadowRun


def follow(function, *inputs, **options):
    with ShadowRun(**options) as run:
        result = function(*inputs)
    return run, result


def test_a_diagnosis_names_the_operator_that_is_another_function_in_float64():
    x = torch.tensor([1.0, float("inf")])
    run, _ = follow(lambda v: torch.nan_to_num(v * 2).add_(1).exp(), x, diagnose=True)
    assert [s.split(":")[0] for s in run.suspects] == ["aten.nan_to_num.default"]
    calm, _ = follow(lambda v: torch.softmax(v.half() @ v.half()[:, None], -1), torch.randn(3, 3)[0], diagnose=True)
    assert not calm.suspects
