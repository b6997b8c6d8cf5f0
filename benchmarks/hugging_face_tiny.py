"""Make a small model and a call for any Hugging Face family, from its default configuration and nothing else.

Sizes are shrunk by `hugging_face_sizes`, arguments made by `hugging_face_inputs`; where neither knows enough, the
tables of `hugging_face_families` say more.
"""

import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hugging_face_timm  # noqa: F401 -- before the parts of transformers that import torchvision
import torch
import transformers
from hugging_face_families import INPUTS, MADE_WITH, SETTINGS
from hugging_face_inputs import argument_sets
from hugging_face_sizes import RECIPES, Settings, add_sections, merged, settings_of
from transformers.configuration_utils import PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING

NO_CLASS = "no class takes this configuration"
NO_FORWARD = "has no forward, it only generates"
LARGEST = 50_000_000  # parameters
NOT_MODELS = re.compile(
    "(configuration|convert|processing|tokenization|modular|feature_extraction|image_proc|video_proc|"
    "image_processing|generation|__init__).*"
)


@dataclass(frozen=True)
class Case:
    """A way to make a seeded model in evaluation mode, and the keyword arguments of a call."""

    name: str
    recipe: str
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[], dict[str, Any]]


def _modules(kind: type) -> Iterator[Any]:
    """Return the modules beside that of a configuration in which its models may lie."""
    package = kind.__module__.rsplit(".", 1)[0]
    place = Path(inspect.getfile(kind)).parent
    first = kind.__module__.replace("configuration_", "modeling_")
    names = [f"{package}.{path.stem}" for path in sorted(place.glob("*.py")) if not NOT_MODELS.match(path.stem)]
    for name in sorted(names, key=lambda name: name != first):
        yield importlib.import_module(name)


def model_classes(config: PretrainedConfig) -> list[type]:
    """Return the classes that take this configuration: the plain model first, parts that are no whole models last."""
    first = MODEL_MAPPING.get(type(config), None)
    found = list(first) if isinstance(first, list | tuple) else [first] if first is not None else []
    parts: list[type] = []
    for module in _modules(type(config)):
        for entry in vars(module).values():
            if not isinstance(entry, type) or entry.__module__ != module.__name__ or entry in found:
                continue
            if issubclass(entry, transformers.PreTrainedModel):
                if entry.config_class is type(config) and "PreTr" not in entry.__name__:
                    found.append(entry)
            elif issubclass(entry, torch.nn.Module) and _takes(entry, type(config)):
                parts.append(entry)
    return found or sorted(parts, key=lambda part: len(inspect.getsource(part)), reverse=True)


def _takes(entry: type, kind: type) -> bool:
    _, *parameters = inspect.signature(entry.__init__).parameters.values()
    given = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    return bool(given) and len(given) == 1 and given[0].annotation in (kind, kind.__name__)


def count(kind: type, config: PretrainedConfig) -> int:
    """Return the number of parameters, without making them."""
    with torch.device("meta"):
        return sum(math.prod(parameter.shape) for parameter in kind(config).parameters())


def cases(name: str, head: str | None = None) -> Iterator[Case | str]:
    """Return what may be tried for a family, until one runs in eager; a text says why a way led nowhere."""
    kind = CONFIG_MAPPING[name]
    for recipe in RECIPES:
        try:
            settings = settings_of(kind(**MADE_WITH.get(name, {})), recipe)
            settings |= {} if recipe is RECIPES[-1] or not hasattr(kind(), "pad_token_id") else {"pad_token_id": 0}
            settings = merged(settings, SETTINGS.get(name, {}))
            classes = model_classes(kind(**settings))
            settings = turned(kind, settings)
            chosen = [entry for entry in classes if entry.__name__.endswith(head or "")][: 1 if head else 2]
        except Exception as error:
            yield f"{recipe.__name__}: {type(error).__name__}: {error}"
            continue
        if not chosen:
            yield NO_CLASS
        for entry in chosen:
            yield from _cases_of(name, entry, kind, settings, recipe.__name__)


def turned(kind: type, settings: Settings) -> Settings:
    """Return the settings with what positions in three directions want, if the configuration takes it."""
    more = copied(settings)
    try:
        add_sections(more, kind(**copied(settings)))
        kind(**copied(more))
    except Exception:
        return settings
    return more


class Encoding(torch.nn.Module):
    """A model that has no `forward`, called by its `encode`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.main_input_name = model.main_input_name
        self.signature = inspect.signature(model.encode)

    def forward(self, **arguments: Any) -> Any:
        """Return the codes of an image or of a sound."""
        return self.model.encode(**arguments)


def _cases_of(name: str, entry: type, kind: type, settings: Settings, recipe: str) -> Iterator[Case | str]:
    def make() -> torch.nn.Module:
        torch.manual_seed(0)
        model = entry(kind(**settings)).eval()
        return Encoding(model) if entry.forward is torch.nn.Module.forward and hasattr(model, "encode") else model

    if entry.forward is torch.nn.Module.forward and not hasattr(entry, "encode"):
        yield f"{entry.__name__} {NO_FORWARD}"
        return
    try:
        config = kind(**settings)
        size = count(entry, config)
        if size > LARGEST:
            yield f"{recipe}: {size // 10**6}M parameters"
            return
        model = make()
        choices = list(argument_sets(model, config))
        if name in INPUTS:
            accepted = getattr(model, "signature", None) or inspect.signature(model.forward)
            given = INPUTS[name](config)
            choices.insert(0, {key: value for key, value in given.items() if key in accepted.parameters})
    except Exception as error:
        yield f"{recipe}: {type(error).__name__}: {error}"
        return
    for chosen in choices:
        yield Case(entry.__name__, recipe, make, lambda chosen=chosen: copied(chosen))


def copied(value: Any) -> Any:
    """Return arguments with tensors of their own."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [copied(inner) for inner in value]
    return value.clone() if isinstance(value, torch.Tensor) else value
