"""A batch of one image whose channels lie last came out row-major: the stride of the one image was asked for."""

import pytest
import torch
from torch import nn

import plumbline

IMAGES = {
    "made of rows, columns, channels": lambda: torch.randn(4, 4, 3).permute(2, 0, 1).unsqueeze(0),
    "by a stride of nothing": lambda: torch.as_strided(torch.randn(200), (1, 3, 4, 4), (7, 1, 12, 3)),
    "of one row": lambda: torch.randn(4, 1, 4, 3).permute(1, 3, 0, 2),
    "channels last": lambda: torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "row-major": lambda: torch.randn(1, 3, 4, 4),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("image", IMAGES)
def test_strides(image, training, backend):
    module = nn.BatchNorm2d(3).train(training)
    x = IMAGES[image]()
    assert plumbline.compile(module, backend=backend)(x).stride() == module(x).stride()
