"""torch.nn.TransformerEncoder with a padding mask."""

import torch
from torch import nn


def test_padding_is_not_attended_to():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(d_model=32, nhead=2, dim_feedforward=64, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False).eval()
    words = torch.randn(3, 10, 32)
    padding = torch.arange(10) >= torch.tensor([[10], [7], [4]])
    noisy = torch.where(padding[:, :, None], torch.randn_like(words), words)
    with torch.no_grad():
        clean, disturbed = (encoder(x, src_key_padding_mask=padding) for x in (words, noisy))
    assert clean.shape == words.shape
    torch.testing.assert_close(clean[~padding], disturbed[~padding])
