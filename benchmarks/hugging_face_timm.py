"""Make timm importable beside a torch without CUDA, for the families that take a model of timm as their backbone.

timm imports torchvision, whose wheel on the registry is built for CUDA: its operators cannot be loaded beside a torch
for CPU, and its import ends at the first of them that it wants to register a fake for. No model here calls them.
"""

import importlib.util
import re
from pathlib import Path

import torch

DECLARED: list[torch.library.Library] = []  # for as long as a library lives, its operators do


def make_importable() -> bool:
    """Declare torchvision's operators if they cannot be loaded; return whether torchvision and timm are there."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None or importlib.util.find_spec("timm") is None:
        return False
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        text = (Path(found.origin).parent / "_meta_registrations.py").read_text(encoding="utf-8")
        library = torch.library.Library("torchvision", "DEF")
        for name in re.findall(r'register_(?:meta|fake)\("(?:torchvision::)?(\w+)"', text):
            library.define(f"{name}(Tensor first) -> Tensor")
        DECLARED.append(library)
        importlib.import_module("torchvision")
    return True


AVAILABLE = make_importable()
