"""Make a small model and a call for any Hugging Face family, from its default configuration and nothing else.

Sizes are shrunk by the names that configurations use for them, in three ways that are tried in turn: `fixed` gives
every width the same few numbers, `scaled` divides widths and keeps their ratios, `short` only takes layers and words
away. The arguments of the call come from the names of `forward`'s parameters.
"""

import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.configuration_utils import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING

Settings = dict[str, Any]
LARGEST = 50_000_000  # parameters
LENGTH = 8  # of token sequences
WORDS = 128

LAYERS = re.compile(
    r"num_(.*_)?hidden_layers|(encoder|decoder)_layers|n_layers?|num_layers|num_(encoder|decoder)_layers|depth|"
    r".*_num_layers|num_block|num_blocks"
)
WORD_COUNTS = re.compile(r"(\w+_)?vocab_size(_per_layer_input)?|vocab_size_or_config_json_file|n_words")
WORD_IDS = re.compile(r".*(_token_id|_token_index|_index|_token|_id)")
HEADS = re.compile(r"(\w+_)?(attention_heads|n_heads?|num_heads|num_local_heads)|num_(\w+_)?attention_heads")
GROUPED_HEADS = re.compile(r"(\w+_)?num_(key_value_heads|kv_heads|key_heads)")
HEAD_WIDTHS = re.compile(r"(\w+_)?(head_dim|d_kv|attention_head_size|d_head|dim_head|head_size|v_head_dim)")
WIDTHS = re.compile(
    r"(\w+_)?(hidden_size|hidden_dim|d_model|n_embd|embed_dim|embedding_dim|emb_dim|dim|embedding_size|channels|"
    r"intermediate_size|ffn_dim|d_ff|d_inner|inner_dim|ffn_hidden_size|mlp_dim|proj_dim|projection_dim|filters|"
    r"lora_rank|units|bottleneck_size|width|attn_hidden_size|hidden|in_dim|out_dim)"
)
EXPERTS = re.compile(r"(\w+_)?(num_experts|num_local_experts|n_routed_experts|moe_num_experts)")
POSITIONS = re.compile(r"max_position_embeddings|n_positions|n_ctx|max_(source|target)_positions|max_seq_len")
FIXED: dict[str, int] = {
    "image_size": 32, "patch_size": 8, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "sliding_window": 4,
    "intermediate_size": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "d_ff": 64, "kv_lora_rank": 8,
    "q_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "qk_head_dim": 16,
    "rotary_dim": 8, "codebook_size": 64, "num_queries": 10, "first_k_dense_replace": 1, "chunk_size": 4,
    "index_topk": 4, "num_frames": 2, "window_size": 4, "local_attention": 8, "attention_window": 4,
    "mamba_n_heads": 4, "mamba_num_heads": 4, "encoder_hash_byte_group_vocab": 64, "num_groups": 8, "max_length": 64,
    "prediction_length": 4, "context_length": 8, "n_window": 4, "n_window_infer": 8, "spec_size": 64,
    "upsample_initial_channel": 32, "upsample_groups": 32,
}  # fmt: skip
EXTRA: dict[str, Settings] = {
    "deepseek_v2": {"num_experts_per_tok": 2, "topk_group": None, "n_group": None}, "esm": {"vocab_size": 40},
    "efficientnet": {"hidden_dim": 320},
    "ernie4_5_moe": {"moe_num_experts": 4, "moe_k": 2}, "step3p5": {"sliding_window": 4},
    "mamba": {"state_size": 4, "time_step_rank": 4}, "falcon_mamba": {"state_size": 4, "time_step_rank": 4},
    "bamba": {"attn_layer_indices": [1]}, "mamba2": {"num_heads": 4, "head_dim": 16},
    "autoformer": {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2]},
    "informer": {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2]},
    "time_series_transformer": {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2]},
}  # fmt: skip
TIMM_STAND_IN: Settings = {
    "model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1],
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A way to make a seeded model in evaluation mode, and the keyword arguments of a call."""

    name: str
    recipe: str
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[], dict[str, Any]]


def settings_of(default: PretrainedConfig, shrink: Callable[[str, Any], Any]) -> Settings:
    """Return what to give the class of `default`, sub-configurations as dictionaries, to have the same but smaller."""
    found: Settings = {}
    accepted = inspect.signature(type(default).__init__).parameters
    for name, value in vars(default).items():
        if name.startswith("_") or name == "chunk_size_feed_forward":
            continue
        if isinstance(value, PretrainedConfig) and value.model_type == "timm_backbone":
            found[name] = TIMM_STAND_IN
        elif isinstance(value, PretrainedConfig):
            found[name] = {"model_type": value.model_type} | settings_of(value, shrink)
            stages = getattr(value, "out_features", None) or ()
            if stages and all(stage[-2:] in ("e1", "e2", "e3", "e4") for stage in stages):
                found[name]["out_features"] = list(stages)
        elif name in accepted:
            smaller = shrink(name, value)
            if smaller is not value and smaller != value:
                found[name] = smaller
    return found


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(type(item) is int for item in value)


def _word(name: str, value: int) -> int:
    return value if value < WORDS else WORDS - 28 + sum(map(ord, name)) % 28


def _rope(value: Any, half: int) -> Any:
    if not isinstance(value, dict):
        return value
    sections = value.get("mrope_section")
    if not _is_numbers(sections):
        return {key: _rope(inner, half) for key, inner in value.items()}
    shares = [max(1, part * half // sum(sections)) for part in sections]
    shares[0] += half - sum(shares)
    return value | {"mrope_section": shares}


def fixed(name: str, value: Any) -> Any:
    """Give every size of one kind the same small number; lists of sizes keep their ratios."""
    if name.startswith("rope_"):
        return _rope(value, 8)
    if name in ("width_coefficient", "depth_coefficient"):
        return 0.25
    if _is_numbers(value) and (name == "depths" or "blocks" in name or LAYERS.fullmatch(name)):
        return type(value)(min(item, 2) for item in value)
    if _is_numbers(value) and ("heads" in name) and min(value) > 0:
        return type(value)(max(1, item // min(value)) for item in value)
    if _is_numbers(value) and min(value) > 16:
        return type(value)(max(16, item * 16 // min(value)) for item in value)
    if type(value) is not int or value <= 1:
        return value
    if WORD_COUNTS.fullmatch(name):
        return min(value, WORDS)
    if WORD_IDS.fullmatch(name):
        return _word(name, value)
    if name in FIXED:
        return min(value, FIXED[name])
    rules = ((LAYERS, 2), (GROUPED_HEADS, 2), (HEADS, 2), (HEAD_WIDTHS, 16), (EXPERTS, 4),
             (POSITIONS, 64), (WIDTHS, 32))  # fmt: skip
    return next((min(value, small) for pattern, small in rules if pattern.fullmatch(name)), value)


def deeper(name: str, value: Any) -> Any:
    """Do as `fixed`, with layers enough for every kind of layer of a mixed stack."""
    return min(value, 8) if type(value) is int and LAYERS.fullmatch(name) else fixed(name, value)


def with_lists(name: str, value: Any) -> Any:
    """Do as `fixed`, with lists of widths as they are."""
    widths = isinstance(value, list | tuple) and name != "depths" and "blocks" not in name
    return value if widths else fixed(name, value)


def scaled(name: str, value: Any) -> Any:
    """Divide widths and keep their ratios and the numbers of heads."""
    if name.startswith("rope_"):
        return _rope(value, 4)
    if _is_numbers(value) and (name == "depths" or "blocks" in name or LAYERS.fullmatch(name)):
        return type(value)(min(item, 2) for item in value)
    if _is_numbers(value) and min(value) > 16:
        return type(value)(item // 8 if item % 8 == 0 else item for item in value)
    if type(value) is not int or value <= 1:
        return value
    if WORD_COUNTS.fullmatch(name):
        return min(value, WORDS)
    if WORD_IDS.fullmatch(name):
        return _word(name, value)
    rules = ((LAYERS, 2), (EXPERTS, 4), (POSITIONS, 64))
    for pattern, small in rules:
        if pattern.fullmatch(name):
            return min(value, small)
    if name in FIXED and not WIDTHS.fullmatch(name) and not HEAD_WIDTHS.fullmatch(name) and not HEADS.fullmatch(name):
        return min(value, FIXED[name])
    if (WIDTHS.fullmatch(name) or HEAD_WIDTHS.fullmatch(name)) and value % 8 == 0 and value >= 16:
        return value // 8
    return value


def short(name: str, value: Any) -> Any:
    """Take layers and words away, nothing else."""
    if _is_numbers(value) and name == "depths":
        return type(value)(min(item, 2) for item in value)
    if type(value) is not int or value <= 1:
        return value
    if WORD_COUNTS.fullmatch(name):
        return min(value, WORDS)
    if WORD_IDS.fullmatch(name):
        return _word(name, value)
    return min(value, 2) if LAYERS.fullmatch(name) else value


def model_classes(config: PretrainedConfig) -> list[type]:
    """Return the classes that take this configuration, the plain model first."""
    first = MODEL_MAPPING.get(type(config), None)
    found = list(first) if isinstance(first, list | tuple) else [first] if first is not None else []
    place = type(config).__module__.replace("configuration_", "modeling_")
    module = __import__(place, fromlist=["x"])
    for entry in vars(module).values():
        fits = isinstance(entry, type) and issubclass(entry, transformers.PreTrainedModel) and entry not in found
        if fits and entry.__module__ == place and entry.config_class is type(config) and "PreTr" not in entry.__name__:
            found.append(entry)
    return found


def images(config: Any, batch: int = 2) -> torch.Tensor:
    """Return images of the size and the number of channels that the configuration names."""
    vision = getattr(config, "vision_config", None) or getattr(config, "backbone_config", None) or config
    size = getattr(vision, "image_size", None) or getattr(config, "image_size", None) or 32
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3
    channels = channels if isinstance(channels, int) else 3
    return torch.linspace(-1, 1, batch * channels * height * width).reshape(batch, channels, height, width)


def argument(name: str, config: Any) -> Any:
    """Return a value for a parameter of `forward`, or None if its name says nothing."""
    ids = torch.arange(2 * LENGTH).reshape(2, LENGTH) % 90 + 5
    mask = torch.ones(2, LENGTH, dtype=torch.long)
    mask[1, -2:] = 0
    bins = next((size for names in BINS if (size := getattr(config, names, None))), 80)
    frames = 2 * getattr(config, "max_source_positions", 32)  # what whisper and its kin insist on
    features = torch.linspace(-1, 1, 2 * bins * frames).reshape(2, bins, frames)
    states = torch.linspace(-1, 1, 16 * getattr(config, "hidden_size", 32)).reshape(2, LENGTH, -1)
    known: dict[str, Callable[[], Any]] = {
        "input_ids": lambda: ids, "attention_mask": lambda: mask, "decoder_input_ids": lambda: ids[:, :5],
        "pixel_values": lambda: images(config), "image": lambda: images(config),
        "input_values": lambda: torch.linspace(-1, 1, 8000).reshape(2, 4000),
        "audio_values": lambda: torch.linspace(-1, 1, 8000).reshape(2, 1, 4000),
        "input_features": lambda: features, "input_features_mask": lambda: torch.ones(2, frames, dtype=torch.long),
        "bbox": lambda: torch.tensor([1, 2, 5, 7]).expand(2, LENGTH, 4), "spectrogram": lambda: features.mT,
        "query_embeds": lambda: states, "hidden_states": lambda: states, "inputs_embeds": lambda: states,
        "encoder_hidden_states": lambda: states, "visual_embeds": lambda: states, "inputs": lambda: states,
        "past_values": lambda: torch.linspace(-1, 1, 2 * 16).reshape(2, 16),
        "input_points": lambda: torch.full((2, 1, 2, 2), 5.0), "is_longer": lambda: torch.tensor([[False], [False]]),
    }  # fmt: skip
    return known[name]() if name in known else None


BINS = ("num_mel_bins", "input_feat_per_channel", "num_mel_bands", "input_dim", "feature_size", "model_in_dim")
OTHERWISE = {"inputs_embeds", "query_embeds", "encoder_hidden_states", "hidden_states", "visual_embeds"}


def patches(config: Any, parameters: Any) -> dict[str, Any]:
    """Return one image of four by four patches, as towers that take patches of all images in one row want them."""
    channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
    width = channels * getattr(config, "temporal_patch_size", 1) * config.patch_size**2
    name = "hidden_states" if "hidden_states" in parameters else "pixel_values"
    return {name: torch.linspace(-1, 1, 16 * width).reshape(16, width), "grid_thw": torch.tensor([[1, 4, 4]])}


def argument_sets(model: torch.nn.Module) -> Iterator[dict[str, Any]]:
    """Return sets of arguments to try, those of the plainest call first."""
    config: Any = model.config
    parameters = inspect.signature(model.forward).parameters
    main = getattr(model, "main_input_name", "input_ids")
    found = {name: argument(name, config) for name in parameters}
    found = {name: value for name, value in found.items() if value is not None}
    needed = [name for name in found if parameters[name].default is inspect.Parameter.empty]
    text = [name for name in ("input_ids", "attention_mask", "bbox") if name in found]
    decoder = [name for name in ("decoder_input_ids",) if name in found]

    def pick(*names: str) -> dict[str, Any]:
        return {name: found[name] for name in dict.fromkeys([*needed, *names])}

    if "grid_thw" in parameters:
        yield patches(config, parameters)
    if main in found and main != "input_ids":
        yield pick(main, *decoder)
    yield pick(*text, *decoder)
    yield pick(*(name for name in text if name != "attention_mask"))
    yield pick(*(name for name in found if name not in OTHERWISE))
    for name in OTHERWISE & set(found):
        yield pick(name)
        yield pick(name, *decoder)
    if "pixel_values" in found:
        pictures = found["pixel_values"]
        yield pick("pixel_values", *text, *decoder)
        video = pictures[:, None].expand(-1, getattr(config, "num_frames", 2) or 2, -1, -1, -1)
        yield pick(*text) | {"pixel_values": video}
    if "input_features" in found:
        turned = found["input_features"].mT
        yield pick(*decoder) | {"input_features": turned}
        yield pick(*decoder, "input_features_mask" if "input_features_mask" in found else "input_features")
        yield pick(*text, *decoder) | {"input_features": turned[:, None]}
    if "input_values" in found:
        width = getattr(config, "max_length", None) or 64
        yield pick() | {"input_values": argument("input_features", config).mT[:, :width]}
        yield pick(*decoder) | {"input_values": found["input_values"][:, None]}


def count(kind: type, config: PretrainedConfig) -> int:
    """Return the number of parameters, without making them."""
    with torch.device("meta"):
        return sum(math.prod(parameter.shape) for parameter in kind(config).parameters())


def _source(kind: type) -> str:
    return Path(inspect.getfile(kind).replace("configuration_", "modeling_")).read_text(encoding="utf-8")


def _add_sections(settings: Settings) -> None:
    place = settings.get("text_config", settings)
    place.setdefault("rope_parameters", {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]})


def cases(name: str, head: str | None = None) -> Iterator[Case | str]:
    """Return what may be tried for a family, until one runs in eager; a text says why a way led nowhere."""
    kind = CONFIG_MAPPING[name]
    for recipe in (fixed, deeper, with_lists, scaled, short):
        try:
            settings = settings_of(kind(), recipe)
            settings |= {} if recipe is short or not hasattr(kind(), "pad_token_id") else {"pad_token_id": 0}
            settings |= EXTRA.get(name, {})
            if "mrope_section" in _source(kind):
                _add_sections(settings)
            classes = model_classes(kind(**settings))
            chosen = [entry for entry in classes if entry.__name__.endswith(head or "")][: 1 if head else 2]
        except Exception as error:
            yield f"{recipe.__name__}: {type(error).__name__}: {error}"
            continue
        for entry in chosen:
            yield from _cases_of(entry, kind, settings, recipe.__name__)


def _cases_of(entry: type, kind: type, settings: Settings, recipe: str) -> Iterator[Case | str]:
    def make() -> torch.nn.Module:
        torch.manual_seed(0)
        return entry(kind(**settings)).eval()

    try:
        size = count(entry, kind(**settings))
        if size > LARGEST:
            yield f"{recipe}: {size // 10**6}M parameters"
            return
        model = make()
        choices = list(argument_sets(model))
    except Exception as error:
        yield f"{recipe}: {type(error).__name__}: {error}"
        return
    for chosen in choices:
        yield Case(entry.__name__, recipe, make, lambda chosen=chosen: {k: v.clone() for k, v in chosen.items()})
