"""Hugging Face BERT with random weights, from a tiny configuration."""

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="the hf extra is not installed")


@pytest.fixture
def config():
    torch.manual_seed(0)
    return transformers.BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=32,
        num_labels=3,
    )


def test_hidden_states_and_pooled_output(config):
    bert = transformers.BertModel(config).eval()
    tokens = torch.randint(0, 64, (2, 12))
    mask = torch.ones_like(tokens)
    mask[1, 8:] = 0
    with torch.no_grad():
        output = bert(input_ids=tokens, attention_mask=mask)
    assert output.last_hidden_state.shape == (2, 12, 32)
    assert output.pooler_output.abs().max() <= 1


def test_fine_tuning_lowers_the_loss(config):
    classifier = transformers.BertForSequenceClassification(config)
    tokens, labels = torch.randint(0, 64, (6, 12)), torch.arange(6) % 3
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=5e-3)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = classifier(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
