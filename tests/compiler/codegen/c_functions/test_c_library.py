"""Functions of our own in generated C, held to the exact function over the whole range of floats."""

import math

import pytest
import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph
from support.hard_values import ulps_apart

pytestmark = pytest.mark.cc


def test_the_error_function_is_within_two_units() -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = torch.exp2(torch.rand(200_000, generator=generator) * 160 - 150)
    signs = torch.where(torch.rand(200_000, generator=generator) < 0.5, -1.0, 1.0)
    x = torch.cat([torch.linspace(-5, 5, 400_001), sizes * signs])
    special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 3e38, 0.93, -0.93, 4.0])
    x = torch.cat([x, special])
    (found,) = compile_graph(trace(torch.erf, (x,)), (x,), Options(strict=True))(x)
    apart = ulps_apart(found, torch.erf(x.double()).float())
    assert apart.max() <= 2, (x[apart.argmax()], apart.max())


def test_square_roots_are_correctly_rounded() -> None:
    x = torch.rand(100_001, generator=torch.Generator().manual_seed(1)) * 1e6
    (found,) = compile_graph(trace(torch.sqrt, (x,)), (x,), Options(strict=True))(x)
    assert torch.equal(found, torch.sqrt(x.double()).float())
