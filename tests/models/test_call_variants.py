"""The same Hugging Face models called in other ways: other outputs, caches and positions given, other precisions."""

import contextlib

import pytest
import torch

from plumbline.compiler.base.events import Captured, CompilerFailed, RanEagerly, recording

pytest.importorskip("transformers", reason="the models come from the optional hf dependency")

from support.hugging_face import FAMILIES
from support.programs import compiled
from support.sameness import assert_alike

pytestmark = pytest.mark.slow

LENGTH = 9


def filled_cache(model, inputs):
    """Return a call for one more word, with the cache of all the words."""
    words = inputs["input_ids"]
    past = model(input_ids=words, use_cache=True).past_key_values
    return {"input_ids": words[:, :1], "past_key_values": past, "use_cache": True}


WAYS = {
    "tuples": lambda model, inputs: inputs | {"return_dict": False},
    "no_cache": lambda model, inputs: inputs | {"use_cache": False},
    "no_mask": lambda model, inputs: {name: value for name, value in inputs.items() if name != "attention_mask"},
    "mask_of_four_dimensions": lambda model, inputs: inputs | {"attention_mask": torch.zeros(2, 1, LENGTH, LENGTH)},
    "positions": lambda model, inputs: inputs | {"position_ids": torch.arange(LENGTH).expand(2, LENGTH).clone()},
    "labels": lambda model, inputs: inputs | {"labels": inputs["input_ids"]},
    "cache_given": filled_cache,
}
DECODERS = ("gpt2", "llama", "mistral", "qwen2", "phi")
CALLS = [(name, way) for name in DECODERS for way in WAYS] + [("bert", "tuples"), ("bert", "no_mask"), ("t5", "labels")]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(("name", "way"), CALLS)
def test_call_is_one_graph_and_equal_to_eager(name, way, attention):
    family = FAMILIES[name]
    inputs = family.inputs() if way != "labels" or name != "t5" else {"input_ids": family.inputs()["input_ids"]}

    def call():
        model = family.make()
        model.set_attn_implementation(attention)
        return model, WAYS[way](model, dict(inputs))

    with torch.no_grad():
        model, arguments = call()
        expected = tensors_of(model(**arguments))
        model, arguments = call()
        run = compiled(model, fullgraph=True)
        with recording() as events:
            assert_alike(expected, tensors_of(run(**arguments)))
        assert sum(isinstance(event, Captured) for event in events) == 1
        with recording() as events:
            run(**WAYS[way](model, dict(inputs)))
        assert not [event for event in events if isinstance(event, Captured | RanEagerly)]


def tensors_of(value):
    """Return the tensors of an output, those in caches included."""
    if isinstance(value, torch.Tensor):
        return [value.detach().clone()]
    if hasattr(value, "layers"):
        return [tensor for layer in value.layers for tensor in (layer.keys.clone(), layer.values.clone())]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for part in parts for tensor in tensors_of(part)]


@pytest.mark.parametrize("asked", ["output_hidden_states", "output_attentions"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5"])
def test_states_and_attentions_are_collected(name, asked):
    family = FAMILIES[name]
    with torch.no_grad():
        model = family.make()
        model.set_attn_implementation("eager")
        expected = tensors_of(model(**family.inputs(), **{asked: True}))
        model = family.make()
        model.set_attn_implementation("eager")
        run = compiled(model)
        for _ in range(2):  # the first call installs the model's own hooks, under a lock
            assert_alike(expected, tensors_of(run(**family.inputs(), **{asked: True})))
        with recording() as events:
            assert_alike(expected, tensors_of(run(**family.inputs(), **{asked: True})))
        assert not [event for event in events if isinstance(event, Captured | RanEagerly)]


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, "autocast"], ids=str)
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "vit"])  # bart asks its data about overflow in float16
def test_lower_precision(name, kind):
    family = FAMILIES[name]

    def make():
        return family.make() if kind == "autocast" else family.make().to(kind)

    inputs = family.inputs()
    if kind != "autocast" and "pixel_values" in inputs:
        inputs["pixel_values"] = inputs["pixel_values"].to(kind)
    mixed = torch.autocast("cpu", torch.bfloat16) if kind == "autocast" else contextlib.nullcontext()
    with torch.no_grad(), mixed:
        expected = tensors_of(make()(**inputs))
        with recording() as events:
            assert_alike(expected, tensors_of(compiled(make(), fullgraph=True)(**inputs)))
    assert sum(isinstance(event, Captured) for event in events) == 1


def gradients(model, run, inputs, labels):
    """Return the loss and the gradients of a call with dropout from a fixed seed."""
    torch.manual_seed(5)
    loss = run(**inputs, labels=labels).loss
    loss.backward()
    return loss.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", FAMILIES)
def test_training_with_dropout(name, backend):
    family = FAMILIES[name]
    inputs = family.inputs()
    labels = inputs.get("decoder_input_ids", inputs.get("input_ids", torch.tensor([0, 1])))
    model = family.make().train()
    expected = gradients(model, model, inputs, labels)
    model = family.make().train()
    with recording() as events:
        actual = gradients(model, compiled(model, backend=backend, fullgraph=True), inputs, labels)
    assert_alike(expected, actual, rounding=backend != "eager")
    assert sum(isinstance(event, Captured) for event in events) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5"])
def test_gradient_checkpointing(name, backend):
    family = FAMILIES[name]
    inputs = family.inputs()
    labels = inputs.get("decoder_input_ids", inputs["input_ids"])

    def make():
        model = family.make().train()
        model.gradient_checkpointing_enable({"use_reentrant": False})
        return model

    model = make()
    expected = gradients(model, model, inputs, labels)
    model = make()
    with recording() as events:
        actual = gradients(model, compiled(model, backend=backend), inputs, labels)
    assert_alike(expected, actual, rounding=backend != "eager")
    assert not [event for event in events if isinstance(event, CompilerFailed)]
