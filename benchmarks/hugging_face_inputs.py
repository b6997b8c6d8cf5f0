"""Make the arguments of a call of any Hugging Face model, from its configuration and the names of its parameters."""

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

LENGTH = 8  # of token sequences
BINS = ("num_mel_bins", "input_feat_per_channel", "num_mel_bands", "input_dim", "feature_size", "model_in_dim")
OTHERWISE = ("inputs_embeds", "query_embeds", "encoder_hidden_states", "hidden_states", "visual_embeds")
GRIDS = ("grid", "grid_thw", "image_grid_thw", "image_grid_hws")

Arguments = dict[str, Any]


def floats(*shape: int) -> torch.Tensor:
    """Return numbers between -1 and 1 of this shape."""
    return torch.linspace(-1, 1, math.prod(shape)).reshape(shape)


def ones(*shape: int) -> torch.Tensor:
    """Return a mask of this shape that hides nothing."""
    return torch.ones(shape, dtype=torch.long)


def whole(*shape: int, below: int = 90, start: int = 5) -> torch.Tensor:
    """Return identifiers of this shape, from `start` on."""
    return torch.arange(math.prod(shape)).reshape(shape) % below + start


def images(config: Any, batch: int = 2) -> torch.Tensor:
    """Return images of the size and the number of channels that the configuration names."""
    vision = getattr(config, "vision_config", None) or getattr(config, "backbone_config", None) or config
    size = getattr(vision, "image_size", None) or getattr(config, "image_size", None) or 32
    height, width = size if isinstance(size, list | tuple) else (size, size)
    channels = getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3
    channels = channels if isinstance(channels, int) else 3
    return floats(batch, channels, height, width)


def _first_weight(model: torch.nn.Module) -> torch.Tensor | None:
    kinds = torch.nn.Linear | torch.nn.Conv1d | torch.nn.Conv2d | torch.nn.Conv3d
    return next((module.weight for module in model.modules() if isinstance(module, kinds)), None)


def argument(name: str, config: Any) -> Any:
    """Return a value for a parameter of `forward`, or None if its name says nothing."""
    mask = ones(2, LENGTH)
    mask[1, -2:] = 0
    bins = next((size for names in BINS if (size := getattr(config, names, None))), 80)
    frames = 2 * getattr(config, "max_source_positions", 32)  # what whisper and its kin insist on
    wide = getattr(config, "hidden_size", 32)
    states = floats(2, LENGTH, wide if isinstance(wide, int) else wide[0])
    known: dict[str, Callable[[], Any]] = {
        "input_ids": lambda: whole(2, LENGTH), "attention_mask": lambda: mask,
        "decoder_input_ids": lambda: whole(2, LENGTH)[:, :5], "qformer_input_ids": lambda: whole(2, LENGTH),
        "pixel_values": lambda: images(config), "image": lambda: images(config),
        "input_values": lambda: floats(2, 4000), "audio_values": lambda: floats(2, 1, 4000),
        "input_features": lambda: floats(2, bins, frames), "input_features_mask": lambda: ones(2, frames),
        "audio_mel": lambda: floats(2, frames, bins), "audio_mel_mask": lambda: ones(2, frames).bool(),
        "bbox": lambda: torch.tensor([1, 2, 5, 7]).expand(2, LENGTH, 4),
        "spectrogram": lambda: floats(2, bins, frames).mT,
        "query_embeds": lambda: states, "hidden_states": lambda: states, "inputs_embeds": lambda: states,
        "encoder_hidden_states": lambda: states, "visual_embeds": lambda: states, "inputs": lambda: states,
        "context": lambda: states, "context_hidden_states": lambda: states, "noise_embeds": lambda: states,
        "past_values": lambda: floats(2, 16), "past_observed_mask": lambda: torch.ones(2, 16),
        "past_time_features": lambda: floats(2, 16, max(1, getattr(config, "num_time_features", 1))),
        "input_points": lambda: torch.full((2, 1, 2, 2), 5.0), "is_longer": lambda: torch.tensor([[False], [False]]),
        "visual_feats": lambda: floats(2, LENGTH, getattr(config, "visual_feat_dim", 32)),
        "visual_pos": lambda: floats(2, LENGTH, getattr(config, "visual_pos_dim", 4)),
        "aspect_ratio_ids": lambda: ones(2, 1),
        "aspect_ratio_mask": lambda: ones(2, 1, getattr(config, "max_num_tiles", 4)),
        "audio_codes": lambda: whole(2, getattr(config, "num_codebooks", 8) or 8, LENGTH, below=50),
    }  # fmt: skip
    return known[name]() if name in known else None


def patches(model: torch.nn.Module, config: Any, parameters: Any) -> Iterator[Arguments]:
    """Return one image of four by four patches, as towers that take patches of all images in one row want them."""
    weight = _first_weight(model)
    name = "hidden_states" if "hidden_states" in parameters else "pixel_values"
    grid = next(grid for grid in GRIDS if grid in parameters)
    if weight is not None:
        width = math.prod(weight.shape[1:])
        yield {name: floats(16, width), grid: torch.tensor([[1, 4, 4]])}
        yield {name: floats(16, *weight.shape[1:]), grid: torch.tensor([[1, 4, 4]])}
        yield {name: floats(16, *weight.shape[1:]), grid: torch.tensor([[4, 4]])}
        yield {name: floats(1, 16, *weight.shape[1:]), grid: torch.tensor([[1, 4, 4]])}
    channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
    patch = getattr(config, "patch_size", 8)
    if isinstance(patch, int):
        width = channels * getattr(config, "temporal_patch_size", 1) * patch**2
        yield {name: floats(16, width), grid: torch.tensor([[1, 4, 4]])}


def _rows(features: Any) -> int:
    """Return for how many words the features of an image stand."""
    if isinstance(features, torch.Tensor):
        return math.prod(features.shape[:-1])
    if isinstance(features, dict):
        return _rows(features.get("pooler_output", features.get("last_hidden_state")))
    return sum(map(_rows, features))


def with_words_for_image(model: Any, config: Any, parameters: Any) -> Iterator[Arguments]:
    """Return one image, and a text that has the word that stands for an image as often as the model makes features."""
    names = ("image_token_id", "image_token_index", "media_placeholder_token_id")
    word = next((word for name in names if type(word := getattr(config, name, None)) is int), None)
    ask = getattr(model, "get_image_features", None) or getattr(model.base_model, "get_image_features", None)
    if word is None or ask is None or not {"pixel_values", "input_ids"} <= set(parameters):
        return
    tower = next((part for name, part in model.named_modules() if "vis" in name), model)
    if any(grid in parameters for grid in GRIDS):
        grids = next(grid for grid in GRIDS if grid in parameters)
        choices = [{grids: chosen.pop("grid"), **chosen} for chosen in patches(tower, config, {"grid": None})]
    else:
        choices = [{"pixel_values": images(config, 1)}]
    for chosen in choices:
        try:
            with torch.no_grad():
                count = _rows(ask(**chosen))
        except Exception:  # not the form in which this model takes images
            continue
        ids = torch.cat([whole(1, 2), torch.full((1, count), word), whole(1, LENGTH)], 1)
        kinds = {"mm_token_type_ids": (ids == word).long()} if "mm_token_type_ids" in parameters else {}
        yield {"input_ids": ids, "attention_mask": torch.ones_like(ids), **kinds, **chosen}


def argument_sets(model: torch.nn.Module, config: Any) -> Iterator[Arguments]:
    """Return sets of arguments to try, those of the plainest call first."""
    parameters = (getattr(model, "signature", None) or inspect.signature(model.forward)).parameters
    main = getattr(model, "main_input_name", "input_ids")
    found = {name: argument(name, config) for name in parameters}
    found = {name: value for name, value in found.items() if value is not None}
    needed = [name for name in found if parameters[name].default is inspect.Parameter.empty]
    text = [name for name in ("input_ids", "attention_mask", "bbox") if name in found]
    decoder = [name for name in ("decoder_input_ids",) if name in found]

    def pick(*names: str) -> Arguments:
        return {name: found[name] for name in dict.fromkeys([*needed, *names])}

    if any(grid in parameters for grid in GRIDS) and "input_ids" not in parameters:
        yield from patches(model, config, parameters)
    if hasattr(model, "base_model"):
        yield from with_words_for_image(model, config, parameters)
    if main in found and main != "input_ids":
        yield pick(main, *decoder)
    yield pick(*text, *decoder)
    yield pick(*(name for name in text if name != "attention_mask"))
    yield pick(*(name for name in found if name not in OTHERWISE))
    yield pick(*text, *(name for name in ("visual_feats", "visual_pos") if name in found))
    if text and "encoder_hidden_states" in found:
        yield pick(*text, "encoder_hidden_states")
    for name in (name for name in OTHERWISE if name in found):
        yield pick(name)
        yield pick(name, *decoder)
    if "pixel_values" in found:
        yield from _with_pictures(pick, found, config, text, decoder)
    yield from _with_sounds(pick, model, found, config, text, decoder)


def _with_pictures(
    pick: Callable[..., Arguments], found: Arguments, config: Any, text: list[str], decoder: list[str]
) -> Iterator[Arguments]:
    pictures = found["pixel_values"]
    yield pick("pixel_values", *text, *decoder)
    video = pictures[:, None].expand(-1, getattr(config, "num_frames", 2) or 2, -1, -1, -1)
    yield pick(*text) | {"pixel_values": video}


def _with_sounds(
    pick: Callable[..., Arguments], model: torch.nn.Module, found: Arguments, config: Any,
    text: list[str], decoder: list[str],
) -> Iterator[Arguments]:  # fmt: skip
    if "input_features" in found:
        turned = found["input_features"].mT
        masks = ["input_features_mask"] if "input_features_mask" in found else []
        yield pick(*decoder) | {"input_features": turned}
        yield pick(*decoder, *masks, "input_features")
        yield pick(*text, *decoder) | {"input_features": turned[:, None]}
        weight = _first_weight(model)
        for length in () if weight is None else (64, 128):
            yield pick(*decoder, *masks) | {"input_features": floats(2, length, weight.shape[1])}
            yield pick(*decoder, *masks) | {"input_features": floats(2, weight.shape[1], length)}
    if "input_values" in found:
        width = getattr(config, "max_length", None) or 64
        yield pick() | {"input_values": argument("input_features", config).mT[:, :width]}
        yield pick(*decoder) | {"input_values": found["input_values"][:, None]}
        yield pick(*decoder) | {"input_values": floats(2, 1, 3840)}
