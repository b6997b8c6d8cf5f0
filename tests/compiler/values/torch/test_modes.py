"""Blocks that graphs enter: entered in order, left in order, and unwound when a graph fails."""

import torch

from plumbline.compiler.base.torch_facts import inference_block
from plumbline.compiler.values.torch.modes import EnterBlock, block_depth, leave_block, unwind_blocks


def test_blocks_are_left_in_order():
    depth = block_depth()
    EnterBlock(inference_block, (True,))()
    EnterBlock(inference_block, (False,))()
    assert not torch.is_inference_mode_enabled()
    leave_block()
    assert torch.is_inference_mode_enabled()
    leave_block()
    assert not torch.is_inference_mode_enabled()
    assert block_depth() == depth


def test_a_failing_graph_leaves_nothing_open():
    depth = block_depth()
    EnterBlock(inference_block, (True,))()
    EnterBlock(torch.no_grad, ())()
    unwind_blocks(depth)
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()
    assert block_depth() == depth
