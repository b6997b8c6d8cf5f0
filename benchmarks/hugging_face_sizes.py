"""Make the settings of any Hugging Face configuration small, sub-configurations included, by the names of the settings.

There are several ways, to be tried in turn: `fixed` gives every width the same few numbers, `filled` also gives those
that have no default, `scaled` divides widths and keeps their ratios, `short` only takes layers and words away.
"""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers.configuration_utils import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

Settings = dict[str, Any]
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
RESNET: Settings = {
    "model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1],
}  # fmt: skip
HGNET: Settings = {
    "model_type": "hgnet_v2", "embedding_size": 16, "hidden_sizes": [16, 16, 32, 64], "depths": [1, 1, 1, 1],
    "stem_channels": [3, 16, 16], "stage_in_channels": [16, 16, 16, 32], "stage_mid_channels": [8, 8, 16, 16],
    "stage_out_channels": [16, 16, 32, 64], "stage_num_blocks": [1, 1, 1, 1], "stage_numb_of_layers": [1, 1, 1, 1],
}  # fmt: skip
STAND_INS = {"timm_backbone": RESNET, "hgnet_v2": HGNET}  # for backbones of which the sizes hang together
KEPT = bool | str | int | float | list | tuple
FILLED = (
    (HEAD_WIDTHS, 16), (GROUPED_HEADS, 2), (EXPERTS, 4), (re.compile("num_experts_per_tok|top_k_experts"), 2),
    (re.compile("moe_intermediate_size"), 32), (re.compile("n_group|topk_group"), 1),
    (re.compile("mlp_layer_types"), ["dense", "sparse"]), (re.compile("n_shared_experts"), 1),
)  # fmt: skip


def settings_of(default: PretrainedConfig, shrink: Callable[[str, Any], Any]) -> Settings:
    """Return what to give the class of `default`, sub-configurations as dictionaries, to have the same but smaller."""
    found: Settings = {}
    accepted = inspect.signature(type(default).__init__).parameters
    derived = hasattr(default, "depths") and "num_hidden_layers" not in accepted  # the number of stages, then
    layers = None if derived else getattr(default, "num_hidden_layers", None)
    fewer = shrink("num_hidden_layers", layers)
    for name, value in vars(default).items():
        if name.startswith("_") or name == "chunk_size_feed_forward":
            continue
        if isinstance(value, PretrainedConfig) and value.model_type in STAND_INS:
            found[name] = STAND_INS[value.model_type] | {"out_features": _stages_of(value)}
        elif isinstance(value, PretrainedConfig):
            found[name] = {"model_type": _type_name(value)} | _unlike_default(value) | settings_of(value, shrink)
            found[name] |= _stages(value)
        elif name in accepted:
            smaller = shrink(name, _of_layers(value, layers, fewer))
            if smaller is not value and smaller != value:
                found[name] = smaller
    return found


def _type_name(part: PretrainedConfig) -> str:
    """Return the name by which a configuration is found, where it calls itself by another (donut_swin)."""
    if part.model_type in CONFIG_MAPPING:
        return part.model_type
    named = (name for name, place in CONFIG_MAPPING_NAMES.items() if place == type(part).__name__)
    return next(named, part.model_type)


def _unlike_default(part: PretrainedConfig) -> Settings:
    """Return the settings that the whole gives to a part of it, which the part's class would not have of itself."""
    plain = vars(type(part)())
    layers = getattr(part, "num_hidden_layers", None)
    accepted = set(inspect.signature(type(part).__init__).parameters) - {"id2label", "label2id", "dtype"}
    return {
        name: value for name, value in vars(part).items()
        if name in accepted and isinstance(value, KEPT) and name in plain and plain[name] != value
        and not (isinstance(value, list | tuple) and len(value) == layers)
    }  # fmt: skip


def _stages_of(backbone: Any) -> list[str]:
    names = [name for name in getattr(backbone, "out_features", None) or () if re.fullmatch(r"stage[1-4]", name)]
    return names or ["stage1", "stage2", "stage3", "stage4"]


def _stages(backbone: Any) -> Settings:
    """Return as many stages as a backbone gives away, and as many layers if each layer is a stage."""
    wanted = [stage for stage in getattr(backbone, "out_features", None) or () if re.fullmatch(r"stage\d+", stage)]
    if not wanted:
        return {}
    if hasattr(backbone, "depths") or not hasattr(backbone, "num_hidden_layers"):
        return {"out_features": wanted} if all(stage[5:] in "1234" for stage in wanted) else {}
    if len(wanted) == 1:
        return {"out_features": None, "out_indices": None}
    names = [f"stage{number}" for number in range(1, len(wanted) + 1)]
    return {"num_hidden_layers": len(wanted), "out_features": names, "out_indices": None}


def _of_layers(value: Any, layers: Any, fewer: Any) -> Any:
    """Return what is left of a setting that has a value for every layer, or for layers by their number."""
    if type(layers) is not int:
        return value
    if isinstance(value, list | tuple) and len(value) == layers and layers != fewer and _is_numbers(value):
        return value[:fewer]
    if isinstance(value, dict) and value and all(type(key) is int for key in value):
        return {key: inner for key, inner in value.items() if key < fewer}
    return value


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(type(item) is int for item in value)


def _is_of_words(name: str) -> bool:
    return bool(WORD_COUNTS.fullmatch(name) or WORD_IDS.fullmatch(name))


def _word(name: str, value: int) -> int:
    """Return how many words there are, or one of them: another one for each name."""
    if value < WORDS or WORD_COUNTS.fullmatch(name):
        return min(value, WORDS)
    return WORDS - 28 + sum(map(ord, name)) % 28


def _rope(value: Any, half: int) -> Any:
    if not isinstance(value, dict):
        return value
    sections = value.get("mrope_section")
    if not _is_numbers(sections):
        return {key: _rope(inner, half) for key, inner in value.items()}
    return value | {"mrope_section": _shares(sections, half)}


def _shares(sections: Any, half: int) -> list[int]:
    shares = [max(1, part * half // sum(sections)) for part in sections]
    shares[0] += half - sum(shares)
    return shares


def add_sections(settings: Settings, config: Any) -> None:
    """Give every part of a model that turns positions in three directions shares that fit the width of its heads."""
    for name, inner in vars(config).items():
        if isinstance(inner, PretrainedConfig) and isinstance(settings.get(name), dict):
            add_sections(settings[name], inner)
    place = Path(inspect.getfile(type(config)).replace("configuration_", "modeling_"))
    if not place.exists() or "mrope_section" not in place.read_text(encoding="utf-8"):
        return
    turns = getattr(config, "rope_parameters", None)
    heads = getattr(config, "num_attention_heads", None)
    if not isinstance(turns, dict) or any(isinstance(part, dict) for part in turns.values()) or type(heads) is not int:
        return
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    partial = turns.get("partial_rotary_factor") or getattr(config, "partial_rotary_factor", None) or 1
    half = int(width * partial) // 2
    turns = {"rope_type": "default", "rope_theta": 10000.0} | turns
    settings["rope_parameters"] = turns | {"mrope_section": _shares(turns.get("mrope_section") or (3, 3, 2), half)}


def merged(settings: Settings, others: Settings) -> Settings:
    """Return the settings with others in their stead, those of sub-configurations one by one."""
    both = dict(settings)
    for name, value in others.items():
        inner = both.get(name)
        both[name] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both


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
    if _is_of_words(name):
        return _word(name, value)
    if name in FIXED:
        return min(value, FIXED[name])
    rules = ((LAYERS, 2), (GROUPED_HEADS, 2), (HEADS, 2), (HEAD_WIDTHS, 16), (EXPERTS, 4),
             (POSITIONS, 64), (WIDTHS, 32))  # fmt: skip
    return next((min(value, small) for pattern, small in rules if pattern.fullmatch(name)), value)


def filled(name: str, value: Any) -> Any:
    """Do as `fixed`, and give sizes that have no default one."""
    if value is not None:
        return fixed(name, value)
    return next((small for pattern, small in FILLED if pattern.fullmatch(name)), None)


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
    if _is_of_words(name):
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
    if _is_of_words(name):
        return _word(name, value)
    return min(value, 2) if LAYERS.fullmatch(name) else value


RECIPES = (fixed, filled, deeper, with_lists, scaled, short)  # in the order in which to try them
