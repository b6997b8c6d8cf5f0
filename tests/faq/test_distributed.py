"""The FAQ's part on distributed code: what is trained in several processes is what eager trains."""

import pytest
import torch

from support.distributed_training import (
    BACKENDS,
    LEAST,
    OF_FOUR,
    SETTINGS,
    WAYS,
    Net,
    everything,
    inputs,
    least,
    trained,
)
from support.gloo_ranks import run_ranks

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="torch was built without distributed")
PARAMETERS = len(list(Net().parameters()))


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return run_ranks(everything, 2, tmp_path_factory.mktemp("ranks"))


@pytest.fixture(scope="module")
def four_ranks(tmp_path_factory):
    return run_ranks(least, 4, tmp_path_factory.mktemp("four_ranks"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_gradients_parameters_and_buffers_are_eagers_bit_for_bit(ranks, setting, way):
    """A compiled module in DistributedDataParallel trains as eager does, bit for bit."""
    for rank in ranks:
        for ours, eagers in zip(rank[setting, "aot_eager", way], rank[setting,], strict=True):
            assert torch.equal(ours, eagers)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", LEAST)
def test_under_inductor_they_differ_by_rounding(ranks, setting, way):
    """With generated code gradients and parameters differ by rounding alone."""
    for rank in ranks:
        for ours, eagers in zip(rank[setting, "inductor", way], rank[setting,], strict=True):
            torch.testing.assert_close(ours, eagers, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", OF_FOUR)
def test_four_processes_train_as_eager_does(four_ranks, setting, way):
    """So they do in four processes, where a sum rounds by the order in which gradients came: bit for bit."""
    assert len(four_ranks) == 4
    for rank in four_ranks:
        for ours, eagers in zip(rank[setting, "aot_eager", way], rank[setting,], strict=True):
            assert torch.equal(ours, eagers)
        if setting in LEAST:
            for native, eagers in zip(rank[setting, "inductor", way], rank[setting,], strict=True):
                torch.testing.assert_close(native, eagers, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("setting", SETTINGS)
def test_all_ranks_have_the_same_parameters(ranks, setting):
    """Gradients are exchanged in buckets: all processes end with the same parameters."""
    for way in WAYS:
        parameters = [rank[setting, "aot_eager", way][PARAMETERS : 2 * PARAMETERS] for rank in ranks]
        assert all(map(torch.equal, *parameters))


def test_one_process_with_the_whole_batch_trains_the_same(ranks):
    """Several processes with a part of the batch each train what one process trains with all of it."""

    def whole(rank, setting, step):
        del rank
        return torch.cat([inputs(each, setting, step) for each in range(2)])

    alone = trained(0, "plain", lambda net: net, whole)
    for backend in BACKENDS:
        for ours, single in zip(ranks[0]["plain", backend, WAYS[0]], alone, strict=True):
            torch.testing.assert_close(ours, single, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["fully_shard", "tensor parallel", "collectives"])
def test_sharded_modules_and_collectives_are_eagers(ranks, kind, backend):
    """Other libraries (sharded modules, tensor parallelism, collectives) run between graphs, as in eager."""
    for rank in ranks:
        for ours, eagers in zip(rank[kind, backend], rank[kind, ""], strict=True):
            torch.testing.assert_close(ours, eagers, rtol=1e-4, atol=1e-6)
            assert backend == "inductor" or torch.equal(ours, eagers)
