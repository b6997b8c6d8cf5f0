"""What programs ask of torch.distributed before they use it is known, as long as the default group stays."""

import pytest
import torch
import torch.distributed as dist

import plumbline

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="torch was built without torch.distributed")


def scaled(x):
    if dist.is_available() and dist.is_initialized():
        return x + 10 * dist.get_world_size() + dist.get_rank()
    return x * 2


def refused(x):
    try:
        return x + dist.get_world_size()
    except ValueError:
        return x * 3


@pytest.mark.parametrize(("function", "alone"), [(scaled, 2.0), (refused, 3.0)])
def test_questions_to_no_group_are_one_graph_until_there_is_one(function, alone, tmp_path):
    x = torch.ones(2)
    compiled = plumbline.compile(function, backend="eager", fullgraph=True)
    assert compiled(x).tolist() == [alone, alone]
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        assert compiled(x).tolist() == function(x).tolist() != [alone, alone]
    finally:
        dist.destroy_process_group()
    assert compiled(x).tolist() == [alone, alone]
