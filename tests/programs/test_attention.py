"""Attention: scaled dot product attention under a choice of kernels, flex_attention with functions over scores."""

import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention import flex_attention as flex

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True  # eager warns of itself once, else


def query():
    torch.manual_seed(1)
    return (torch.randn(1, 2, 16, 8),)


def causal(b, h, i, j):
    return i >= j


@program(make=query)
def plain_attention(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


@program(make=query)
def one_kernel(q):
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(q, q, q)
    return out


@program(make=query)
def several_kernels(q):
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], set_priority=True):
        return F.scaled_dot_product_attention(q, q, q)


@program(make=query)
def flex_without_functions(q):
    return flex.flex_attention(q, q, q)


@program(make=query)
def flex_with_a_bias(q):
    bias = q[0, :, 0, 0] * 2
    return flex.flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + bias[h] * (i - j))


@program(make=lambda: (*query(), flex.create_block_mask(causal, None, None, 16, 16, device="cpu")))
def flex_with_a_mask(q, mask):
    return flex.flex_attention(q, q, q, block_mask=mask, scale=0.5)


@corpus.parametrize()
def test_program(program):
    check(program)
