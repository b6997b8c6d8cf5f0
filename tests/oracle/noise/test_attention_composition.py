"""Attention written out for noisy lanes reads what torch's kernel reads."""

import torch

from plumbline.oracle.noise.compositions import attention, attention_backward

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def test_the_backward_reads_the_output_as_it_was_stored():
    """Where values are alike, its rounding in half precision is most of what eager's gradients are off."""
    generator = torch.Generator().manual_seed(0)
    query, key, value, grad = (torch.randn(2, 3, 8, 16, generator=generator, dtype=torch.float64) for _ in range(4))
    out, logsumexp = attention(query, key, value)
    for stored in (out, out.bfloat16().double()):
        arguments = (grad, query, key, value, stored, logsumexp, 0.0, False)
        torch.testing.assert_close(attention_backward(*arguments), KERNEL(*arguments))
