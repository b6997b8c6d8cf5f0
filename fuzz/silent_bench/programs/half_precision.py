"""float16 and bfloat16: every operation rounds, and comparisons, casts and overflow show whether it did."""

import torch


def test_float16_addcdiv_with_negative_value():
    """An optimizer step in half precision: p.addcdiv_(a, d, value=-1)."""

    def step(p, a, d):
        p = p.clone()
        p.addcdiv_(a, d, value=-1)
        return p

    torch.manual_seed(0)
    p, a, d = (torch.rand(6).half() + 0.1 for _ in range(3))
    torch.compile(step)(p, a, d)


def test_float16_rounding_before_comparison():
    """(x + 0.1) - 0.1 >= x in half precision: the mask depends on each rounding step."""
    keeps = torch.compile(lambda x: ((x + 0.1) - 0.1) >= x)
    keeps((torch.arange(512) / 64).half())


def test_float16_fmod_by_fraction():
    """fmod(300, 0.3) in half precision: eager reduces the rounded divisor."""
    wrap = torch.compile(lambda x: torch.fmod(x, 0.3))
    wrap(torch.tensor([300.0, 2.5, -7.0, 100.0] * 8).half())


def test_float16_normalisation_of_tiny_numbers():
    """In float16 the variance and its epsilon are 0, so that the result is NaN."""

    def normalise(x):
        variance = x.var(-1, keepdim=True)
        return x * torch.rsqrt(variance + 1e-9)

    torch.compile(normalise)(torch.full((3, 5), 1e-10, dtype=torch.float16))


def test_float16_floor_division():
    """5000 // 3 is 1666."""
    divide = torch.compile(lambda x: (x // 3, torch.div(x, 3, rounding_mode="floor")))
    divide(torch.tensor([5000.0, 4999.0, 301.0]).half())


def test_float16_product_overflows_between():
    """300 * 300 is inf in float16, and stays so when it is divided again."""
    torch.compile(lambda x: (x * x) / 300)(torch.full((8,), 300.0).half())


def test_float16_sum_overflows_between():
    """60000 + 60000 - 60000 is inf."""
    torch.compile(lambda x: (x + x) - x)(torch.full((8,), 60000.0).half())


def test_bfloat16_increment_is_lost():
    """256 + 1 - 256 is 0 in bfloat16."""
    torch.compile(lambda x: (x + 1) - x)(torch.full((8,), 256.0).bfloat16())


def test_bfloat16_equality_after_rounding():
    """x * 3 / 3 == x depends on each rounding."""
    torch.compile(lambda x: (x * 3) / 3 == x)((torch.arange(64) / 7).bfloat16())


def test_float16_cast_up_after_rounding():
    """A float16 product, cast to float32, has the digits of float16."""
    torch.compile(lambda a, b: (a * b).float())(torch.full((8,), 1.001).half(), torch.full((8,), 1.003).half())


def test_float16_next_number():
    """nextafter in float16 makes a step of float16."""
    with_step = torch.compile(lambda x: torch.nextafter(x, torch.full_like(x, 2.0)))
    with_step(torch.tensor([1.0, 0.0]).half())


def test_bfloat16_floor_after_addition():
    """floor(x + 0.5): the sum rounds to bfloat16 first."""
    torch.compile(lambda x: (x + 0.5).floor())((torch.arange(200) * 0.999).bfloat16())


def test_float16_layer_norm():
    """A layer norm in float16: a control, rounding differs and nothing else."""
    torch.manual_seed(0)
    layer = torch.nn.LayerNorm(32).half()
    with torch.no_grad():
        torch.compile(layer)(torch.randn(4, 32).half())


def test_bfloat16_linear_gelu():
    """A linear layer and gelu in bfloat16: a control."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)).bfloat16()
    torch.compile(model)(torch.randn(8, 16).bfloat16()).float().sum().backward()


def test_bfloat16_rotary_embedding():
    """A rotary embedding in bfloat16: a control, fused code rounds less often."""

    def rotate(x, cosine, sine):
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * cosine + turned * sine

    torch.manual_seed(0)
    angle = torch.randn(1, 8, 16)
    torch.compile(rotate)(torch.randn(2, 8, 16).bfloat16(), angle.cos().bfloat16(), angle.sin().bfloat16())
