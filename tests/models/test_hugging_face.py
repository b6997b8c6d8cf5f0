"""Hugging Face models are captured whole: one graph, no break, eager's answer; and they generate with a cache."""

import copy

import pytest
import torch

from plumbline.compiler.base.events import Captured, CompilerFailed, RanEagerly, Recompiled, recording

pytest.importorskip("transformers", reason="the models come from the optional hf dependency")

from support.hugging_face import FAMILIES
from support.programs import compiled
from support.sameness import assert_alike

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", FAMILIES)
def test_forward_is_one_graph_and_equal_to_eager(name):
    family = FAMILIES[name]
    model = family.make()
    run = compiled(model, fullgraph=True)
    with torch.no_grad():
        expected = model(**family.inputs())
        with recording() as events:
            actual = run(**family.inputs())
        assert_alike(expected, actual)
        assert len([e for e in events if isinstance(e, Captured)]) == 1
        with recording() as events:
            assert_alike(expected, run(**family.inputs()))
        assert not [e for e in events if isinstance(e, Captured | Recompiled | RanEagerly)]


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_those_of_eager(name):
    family = FAMILIES[name]
    model, other = family.make(), family.make()
    inputs = family.inputs()
    labels = inputs.get("decoder_input_ids", inputs.get("input_ids", torch.tensor([0, 1])))
    expected = model(**inputs, labels=labels).loss
    expected.backward()
    actual = compiled(other, fullgraph=True)(**family.inputs(), labels=labels).loss
    actual.backward()
    assert torch.equal(expected, actual)
    gradients = {n: p.grad for n, p in model.named_parameters()}
    assert_alike(gradients, {n: p.grad for n, p in other.named_parameters()})


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_generation_with_a_cache(name):
    family = FAMILIES[name]
    model = family.make()
    prompt = {"input_ids": torch.tensor([[5, 6, 7, 8]]), "attention_mask": torch.ones(1, 4, dtype=torch.long)}
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(**prompt, **settings)
    faster = copy.deepcopy(model)
    faster.forward = compiled(faster.forward)
    with recording() as events:
        actual = faster.generate(**prompt, **settings)
    assert torch.equal(expected, actual)
    assert [e for e in events if isinstance(e, Captured)]
    assert not [e for e in events if isinstance(e, CompilerFailed)]
