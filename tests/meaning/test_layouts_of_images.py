"""Operators on images whose channels are last, sizes of 1 among them: values and strides, compiled and in eager."""

import pytest
import torch
from torch.nn import functional

import plumbline

OPERATORS = {
    "group_norm": lambda x: functional.group_norm(x, 1),
    "instance_norm": functional.instance_norm,
    "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda x: functional.rms_norm(x, x.shape[1:]),
    "local_response_norm": lambda x: functional.local_response_norm(x, 2),
    "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
    "max_pool2d": lambda x: functional.max_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: functional.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: functional.adaptive_max_pool2d(x, 2),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "pad": lambda x: functional.pad(x, (1, 1, 1, 1)),
    "pad reflected": lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pixel_unshuffle": lambda x: functional.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: functional.channel_shuffle(x, x.shape[1]),
    "softmax": lambda x: x.softmax(1),
    "rot90": lambda x: x.rot90(1, (2, 3)),
    "roll": lambda x: x.roll(1, 2),
    "cat": lambda x: torch.cat([x, x], 1),
    "glu": lambda x: functional.glu(x.repeat(1, 2, 1, 1), 1),
    "cosine_similarity": lambda x: functional.cosine_similarity(x, x + 1, 1),
    "std": lambda x: x.std(1, correction=0, keepdim=True),
    "cumsum": lambda x: x.cumsum(2),
    "sort": lambda x: x.sort(2).values,
    "amax": lambda x: x.amax(1),
    "tril": lambda x: x.tril(),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "gather": lambda x: x.gather(1, (x > 0).long() * 0),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "double": lambda x: x.double(),
    "stack": lambda x: torch.stack([x, x]),
    "lerp": lambda x: torch.lerp(x, x + 1, 0.5),
    "renorm": lambda x: x.renorm(2, 1, 1.0),
}
SHAPES = [(1, 3, 4, 4), (2, 3, 4, 6), (1, 1, 4, 4)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
def test_images_with_channels_last(name, dynamic):
    compiled = plumbline.compile(OPERATORS[name], backend="inductor", dynamic=dynamic)
    for shape in SHAPES:
        x = (torch.arange(float(torch.Size(shape).numel())) % 11 - 4).reshape(shape)
        x = x.contiguous(memory_format=torch.channels_last)
        try:
            expected = OPERATORS[name](x)
        except (ValueError, RuntimeError) as error:  # one channel is not enough
            with pytest.raises(type(error)):
                compiled(x)
            continue
        result = compiled(x)
        assert result.stride() == expected.stride(), shape
        torch.testing.assert_close(result, expected, equal_nan=True)
