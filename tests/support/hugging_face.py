"""Hugging Face models from tiny configurations: seeded weights, small inputs, no download."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers

if torch.version.cuda is not None and not torch.cuda.is_available():
    # transformers asks this in every call; without a driver, a torch 2.11 that was built for CUDA ends the process here
    torch.cuda.is_current_stream_capturing = lambda: False  # type: ignore[assignment]  # as it says without CUDA


@dataclass(frozen=True)
class Family:
    """A model class, the settings of its configuration and a maker of the call's keyword arguments."""

    model: str
    config: str
    settings: dict[str, Any]
    inputs: Callable[[], dict[str, torch.Tensor]]

    def make(self) -> torch.nn.Module:
        """Return the model with seeded weights, in evaluation mode."""
        torch.manual_seed(0)
        config = getattr(transformers, self.config)(**self.settings)
        return getattr(transformers, self.model)(config).eval()


def tokens(length: int = 9) -> dict[str, torch.Tensor]:
    """Return (2, length) token ids and a mask that hides the last tokens of the second row."""
    mask = torch.ones(2, length, dtype=torch.long)
    mask[1, -2:] = 0
    return {"input_ids": torch.arange(2 * length).reshape(2, length) % 90 + 5, "attention_mask": mask}


def pairs() -> dict[str, torch.Tensor]:
    """Return tokens of an encoder and a decoder."""
    return tokens() | {"decoder_input_ids": torch.arange(10).reshape(2, 5) + 7}


def images() -> dict[str, torch.Tensor]:
    """Return two small images."""
    return {"pixel_values": torch.linspace(-1, 1, 2 * 3 * 16 * 16).reshape(2, 3, 16, 16)}


_SIZES = {
    "vocab_size": 100,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
_DECODER = _SIZES | {"num_key_value_heads": 1, "max_position_embeddings": 32, "pad_token_id": 0}

FAMILIES = {
    "bert": Family("BertForMaskedLM", "BertConfig", _SIZES, tokens),
    "distilbert": Family(
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": 100, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
        tokens,
    ),
    "roberta": Family("RobertaForMaskedLM", "RobertaConfig", _SIZES | {"max_position_embeddings": 40}, tokens),
    "gpt2": Family(
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": 100, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2},
        tokens,
    ),
    "gpt_neo": Family(
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "vocab_size": 100,
            "hidden_size": 16,
            "num_layers": 2,
            "num_heads": 2,
            "max_position_embeddings": 32,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "attention_types": [[["global", "local"], 1]],
        },
        tokens,
    ),
    "opt": Family(
        "OPTForCausalLM",
        "OPTConfig",
        {
            "vocab_size": 100,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "ffn_dim": 32,
            "max_position_embeddings": 32,
            "word_embed_proj_dim": 16,
        },
        tokens,
    ),
    "llama": Family("LlamaForCausalLM", "LlamaConfig", _DECODER, tokens),
    "mistral": Family("MistralForCausalLM", "MistralConfig", _DECODER, tokens),
    "qwen2": Family("Qwen2ForCausalLM", "Qwen2Config", _DECODER, tokens),
    "phi": Family("PhiForCausalLM", "PhiConfig", _DECODER | {"num_key_value_heads": 2}, tokens),
    "t5": Family(
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": 100,
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 32,
            "num_layers": 2,
            "num_heads": 2,
            "decoder_start_token_id": 0,
        },
        pairs,
    ),
    "bart": Family(
        "BartForConditionalGeneration",
        "BartConfig",
        {
            "vocab_size": 100,
            "d_model": 16,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "max_position_embeddings": 32,
        },
        pairs,
    ),
    "vit": Family(
        "ViTForImageClassification",
        "ViTConfig",
        {
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "image_size": 16,
            "patch_size": 8,
        },
        images,
    ),
}
