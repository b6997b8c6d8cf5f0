"""Capture many Hugging Face families that no test names, and print graphs, breaks and reasons beside stock's.

Usage: python benchmarks/hugging_face_survey.py [family ...]

Every model is made small by whichever of the usual size settings its configuration has; what cannot be made or run
in eager that way is listed as skipped, with the reason.
"""

import sys
from pathlib import Path
from typing import Any

import torch
import torch._dynamo as dynamo
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, RanEagerly, recording

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.hugging_face import tokens
from support.programs import compiled

FAMILIES = """
albert electra deberta deberta-v2 gpt_neox gptj bloom gemma gemma2 gemma3_text mixtral qwen2_moe qwen3 qwen3_moe
starcoder2 stablelm mamba mpt ctrl blenderbot pegasus marian mbart led longformer big_bird mobilebert squeezebert
layoutlm fnet nystromformer convbert camembert xlm-roberta ernie roformer rembert megatron-bert mpnet olmo olmo2 phi3
granite cohere persimmon helium glm deit beit resnet segformer dinov2 mobilevit poolformer regnet cvt pvt whisper
wav2vec2 hubert
""".split()
SMALL: dict[str, int] = {
    **dict.fromkeys(("vocab_size",), 100),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "true_hidden_size"), 16),
    **dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "n_layers", "num_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "encoder_attention_heads", "decoder_attention_heads", "n_head", "n_heads",
                     "num_heads", "num_key_value_heads", "num_local_experts", "num_experts"), 2),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "hidden_dim", "ffn_dim", "d_ff",
                     "n_inner", "intermediate_dim", "image_size"), 32),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx"), 64),
    **dict.fromkeys(("head_dim", "d_kv", "patch_size"), 8),
    **dict.fromkeys(("rotary_dim", "state_size", "attention_window"), 4),
    **dict.fromkeys(("num_experts_per_tok", "bos_token_id"), 1),
    **dict.fromkeys(("intra_bottleneck_size", "moe_intermediate_size"), 16),
    "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0,
}  # fmt: skip


def make(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """Return a small model of the family and the arguments of a call."""
    kind = CONFIG_MAPPING[name]
    default = kind()
    settings = {k: v for k, v in SMALL.items() if hasattr(default, k) and not isinstance(getattr(default, k), list)}
    config = kind(**settings)
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(config).eval(), inputs_of(config, name)


def inputs_of(config: Any, name: str) -> dict[str, torch.Tensor]:
    """Return images, sound or tokens, as the family takes."""
    if name == "whisper":
        return {"input_features": torch.linspace(-1, 1, 480000).reshape(2, 80, 3000),
                "decoder_input_ids": torch.ones(2, 3, dtype=torch.long)}  # fmt: skip
    if name in ("wav2vec2", "hubert"):
        return {"input_values": torch.linspace(-1, 1, 2000).reshape(2, 1000)}
    if hasattr(config, "num_channels"):
        size = config.image_size if isinstance(getattr(config, "image_size", None), int) else 32
        return {"pixel_values": torch.linspace(-1, 1, 6 * size * size).reshape(2, 3, size, size)}
    found = tokens(8)
    if config.is_encoder_decoder:
        found["decoder_input_ids"] = torch.arange(10).reshape(2, 5) + 7
    return found


def leaves(value: Any) -> list[torch.Tensor]:
    """Return the tensors of an output."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(dict(value)) if isinstance(leaf, torch.Tensor)]


def stock(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> str:
    """Return graphs and breaks under stock."""
    dynamo.reset()
    dynamo.utils.counters.clear()
    try:
        torch.compile(model, backend="eager")(**inputs)
    except Exception as error:
        return type(error).__name__
    counters = dynamo.utils.counters
    return f"{counters['stats'].get('unique_graphs', 0)} graphs, {sum(counters['graph_break'].values())} breaks"


def survey(name: str) -> None:
    """Print one family."""
    try:
        model, inputs = make(name)
        expected = leaves(model(**inputs))
    except Exception as error:
        print(f"{name:<14} skipped: {type(error).__name__}: {str(error)[:80]}", flush=True)
        return
    with recording() as events:
        actual = leaves(compiled(model, strict=False, recompile_limit=64)(**inputs))
    same = len(expected) == len(actual) and all(torch.equal(a, b) for a, b in zip(expected, actual, strict=True))
    graphs = sum(isinstance(event, Captured) for event in events)
    stops = [event for event in events if isinstance(event, Broke | RanEagerly)]
    failed = [event.error for event in events if isinstance(event, CompilerFailed)]
    verdict = "equal" if same else "NOT EQUAL"
    ours = f"{graphs} graphs, {len(stops)} breaks"
    print(f"{name:<14} {verdict}; {ours}; stock {stock(model, inputs)} {failed or ''}", flush=True)
    for stop in [stop for stop in stops if stop.reason != "callee-breaks"][:3]:
        place = stop.origin.place() if stop.origin else ""
        print(f"    {stop.reason}: {stop.what[:90]} ({'/'.join(place.split('/')[-2:])})", flush=True)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    with torch.no_grad():
        for family in sys.argv[1:] or FAMILIES:
            survey(family)
