"""Tensors of every layout are saved before a call and set back after it, their form and their numbers."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check
from plumbline.oracle.state.snapshot import Snapshot

KEPT = {
    "coo": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "csc": lambda: torch.eye(3).to_sparse_csc(),
    "bsr": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "bsc": lambda: torch.eye(4).to_sparse_bsc((2, 2)),
}


def write_values(tensor):
    (tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()).mul_(3)


def multiply(tensor):
    tensor.mul_(3)


def grow(tensor):
    tensor.add_(torch.ones(3, 3).to_sparse())


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("write", [write_values, multiply])
@pytest.mark.parametrize("layout", KEPT)
def test_sparse_tensors_are_set_back(layout, write):
    tensor = KEPT[layout]()
    before = tensor.to_dense()
    snapshot = Snapshot.take({"kept": tensor})
    assert not snapshot.obstacles
    assert not snapshot.changes().entries
    write(tensor)
    assert not torch.equal(tensor.to_dense(), before)
    snapshot.rewind()
    assert torch.equal(tensor.to_dense(), before)
    assert not snapshot.changes().storages


def test_sparse_tensors_that_grow_are_set_back():
    tensor = KEPT["coo"]()
    snapshot = Snapshot.take({"kept": tensor})
    grow(tensor)
    snapshot.rewind()
    assert (tensor._nnz(), tensor.is_coalesced()) == (3, True)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_a_write_to_a_sparse_global_is_noticed(layout):
    kept = KEPT[layout]()

    def right(x):
        return torch.sparse.mm(kept, x)

    def wrong(x):
        kept.mul_(3)
        return torch.sparse.mm(kept, x) / 3

    x = torch.rand(3, 3)
    assert check(right, (x,), compiled=right).kind is VerdictKind.EQUAL
    verdict = check(right, (x,), compiled=wrong)
    assert verdict.kind is VerdictKind.WRONG
    assert "mutations" in {finding.aspect for finding in verdict.findings}


def test_tensors_without_numbers_are_set_back():
    kept = torch.ones(2, 2, device="meta")

    def right(x):
        return x + 1, kept * 2

    def wrong(x):
        return x + 1, kept.double() * 2

    def write(x):
        kept.unsqueeze_(0)
        return x + 1, kept[0] * 2

    x = torch.ones(3)
    assert check(right, (x,), compiled=right).kind is VerdictKind.EQUAL
    assert check(right, (x,), compiled=wrong).kind is VerdictKind.WRONG
    assert check(right, (x,), compiled=write).kind is VerdictKind.WRONG
    leaf = torch.ones(3, device="meta", requires_grad=True)
    assert check(lambda m: m * 2, (leaf,), compiled=lambda m: m * 2).kind is VerdictKind.EQUAL
    assert check(lambda m: m * 2, (leaf,), compiled=lambda m: m.detach() * 2).kind is VerdictKind.WRONG
