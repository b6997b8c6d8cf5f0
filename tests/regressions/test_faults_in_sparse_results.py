"""A wrong sparse result failed the judge, and a wrong quantised one was said to differ in eager: the run that measures
rounding compared sparse and quantised tensors as they are, and the others as plain ones."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check

FORMS = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "sum": lambda x: x.to_sparse() + x.to_sparse(),
    "quantised": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_another_value_is_wrong(form):
    x = torch.tensor([[0.0, 1.0, -2.0], [0.5, 0.0, 3.0]])
    assert check(form, (x,), compiled=form).kind is VerdictKind.EQUAL
    assert check(form, (x,), compiled=lambda x: form(x * 1.2)).kind is VerdictKind.WRONG


@pytest.mark.parametrize("form", [FORMS["coo"], FORMS["csr"]], ids=["coo", "csr"])
def test_rounding_is_not_wrong(form):
    x = torch.tensor([[0.0, 1.0, -2.0], [0.5, 0.0, 3.0]])
    assert not check(form, (x,), compiled=lambda x: form(x * (1 + 2**-22))).failed
