"""`model.generate` over a compiled forward gives eager's words, with a number of compilations that does not grow."""

import pytest
import torch

from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, RanEagerly, recording

pytest.importorskip("transformers", reason="the models come from the optional hf dependency")

from support.hugging_face import FAMILIES
from support.programs import compiled

pytestmark = pytest.mark.slow

DECODING = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 5, "temperature": 0.8},
    "beams": {"do_sample": False, "num_beams": 3},
    "static_cache": {"do_sample": False, "cache_implementation": "static"},
}
WORDS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])


@pytest.mark.parametrize("decoding", DECODING)
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "qwen2", "opt", "t5", "bart"])
def test_words_are_those_of_eager(name, decoding):
    mask = torch.ones_like(WORDS)
    mask[1, -1 if name in ("t5", "bart") else 0] = 0  # decoders are padded on the left
    prompt = {"input_ids": WORDS, "attention_mask": mask}
    settings = DECODING[decoding] | {"max_new_tokens": 10, "pad_token_id": 0}
    model = FAMILIES[name].make()
    torch.manual_seed(0)
    expected = model.generate(**prompt, **settings)
    model = FAMILIES[name].make()
    model.forward = compiled(model.forward)
    costs = []
    for _ in range(2):
        torch.manual_seed(0)
        with recording() as events:
            assert torch.equal(expected, model.generate(**prompt, **settings))
        assert not [event for event in events if isinstance(event, Broke | RanEagerly | CompilerFailed)]
        costs.append(sum(isinstance(event, Captured) for event in events))
    prefill_step_and_any_length = 3
    assert 1 <= costs[0] <= prefill_step_and_any_length
    assert costs[1] == 0
