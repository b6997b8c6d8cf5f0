"""The stack of recent frames that an agent looks at: the newest in front, the oldest falls off the end."""

import torch
from torch import nn


class MakeRoom(nn.Module):
    """Moves every frame back by one place; the caller fills the place in front."""

    def forward(self, stack):
        stack[1:] = stack[:-1].clone()
        return stack


def test_newest_frame_comes_first():
    make_room = MakeRoom()
    stack = torch.zeros(4, 8, 8)
    with torch.no_grad():
        for number in range(1, 4):
            frame = torch.full((8, 8), float(number))
            stack = make_room(stack)
            stack[0] = frame
    assert stack.shape == (4, 8, 8)
    assert torch.equal(stack[0], frame)
