"""Indexes of dynamic sizes that lie column by column gave a result that lay row by row; so did a rolled image."""

import pytest
import torch

import plumbline

PLACES = [
    lambda source, index: source[index],
    lambda source, index: source[index, :, index],
    lambda source, index: source[:, index],
    lambda source, index: source[index] + 1,
]
SIZES = [(8, 3), (4, 5), (3, 9), (2, 7), (7, 2)]


def columns(rows: int, columns: int) -> torch.Tensor:
    return torch.arange(rows * columns).remainder(5).view(columns, rows).t()


@pytest.mark.parametrize("place", PLACES)
def test_result_lies_as_eagers(place) -> None:
    compiled = plumbline.compile(place, backend="inductor", dynamic=True)
    source = torch.randn(5, 6, 7)
    for rows, width in SIZES:
        index = columns(rows, width)
        expected, actual = place(source, index), compiled(source, index)
        assert torch.equal(actual, expected)
        assert actual.stride() == expected.stride()


def test_rolled_image_lies_as_eagers() -> None:
    def rolled(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(torch.roll(x, 2, -4), [0, 0])

    x = torch.randn(5, 3, 2, 4).contiguous(memory_format=torch.channels_last)
    assert plumbline.compile(rolled, backend="inductor")(x).stride() == rolled(x).stride()
