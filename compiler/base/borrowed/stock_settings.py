"""What users of torch's compiler set, by torch's names: which option it is here, or what holds here whatever is set.

`plumbline.config` stands for both of torch's (`torch._dynamo.config`, `torch._inductor.config`), whose sections
`triton` and `trace` are sections here; a name in a section is written with the section's and a dot before it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import UserError

# Files of the debug folder by torch's names for them -> whether they are written unless somebody says otherwise.
TRACED_FILES: dict[str, bool] = {
    "source": True,
    "bytecode": True,
    "guards": True,
    "fx_graph": True,
    "fx_graph_transformed": True,
    "ir_pre_fusion": True,
    "ir_post_fusion": True,
    "output_code": True,
    "specialisation": True,
    "graph_diagram": False,
    "compile_profile": False,
}


def files_of(text: str) -> frozenset[str]:
    """Return which files of the debug folder an option such as `graph_diagram,-guards` asks for.

    Raises UserError for a name that is none.
    """
    chosen = {name for name, written in TRACED_FILES.items() if written}
    for word in filter(None, map(str.strip, text.split(","))):
        name = word.lstrip("+-")
        if name not in TRACED_FILES:
            raise UserError(f"no file of the debug folder is named {name!r}", hint=f"one of: {', '.join(TRACED_FILES)}")
        (chosen.discard if word.startswith("-") else chosen.add)(name)
    return frozenset(chosen)


def _text_of(chosen: frozenset[str]) -> str:
    """Return the shortest option that asks for these files."""
    words = [("" if name in chosen else "-") + name for name, on in TRACED_FILES.items() if (name in chosen) != on]
    return ",".join(words)


@dataclass(frozen=True, slots=True)
class _CalledOtherwise:
    """option: what it is called here.  opposite: True there is False here."""

    option: str
    opposite: bool = False


@dataclass(frozen=True, slots=True)
class _Held:
    """value: what holds here, always.  accepted: values that ask for no more than that.  why: what a reader is told."""

    value: object
    accepted: tuple[object, ...]
    why: str


_RENAMED: dict[str, _CalledOtherwise] = {
    "cache_size_limit": _CalledOtherwise("recompile_limit"),
    "debug_dir_root": _CalledOtherwise("record_directory"),
    "optimize_ddp": _CalledOtherwise("ddp_stages"),
    "suppress_errors": _CalledOtherwise("strict", opposite=True),
    "trace.enabled": _CalledOtherwise("debug"),
    "triton.cudagraphs": _CalledOtherwise("cuda_graphs"),
}
_EITHER = (True, False)
_HELD: dict[str, _Held] = {
    "fallback_random": _Held(True, _EITHER, "compiled code always draws what eager draws"),
    "force_parameter_static_shapes": _Held(True, (True,), "sizes of parameters are always fixed"),
    "guard_nn_modules": _Held(True, _EITHER, "modules are always guarded"),
    "max_autotune": _Held(False, _EITHER, "there is nothing to tune"),
    "verbose": _Held(True, _EITHER, "every error says where and why; PLUMBLINE_LOGS=all prints the rest"),
}

SECTIONS = ("trace", "triton")


def stock_names() -> tuple[str, ...]:
    """Return every name of torch's that can be set here, those in sections with their section."""
    return (*_RENAMED, *_HELD, *(f"trace.{name}" for name in TRACED_FILES))


def is_stock_name(name: str) -> bool:
    """Return whether it is a name of torch's that can be set here."""
    return name in stock_names()


def read_stock(name: str, option: Callable[[str], object]) -> object:
    """Return what holds now for a name of torch's; option: gives the value of an option of ours."""
    if name in _HELD:
        return _HELD[name].value
    if name in _RENAMED:
        value = option(_RENAMED[name].option)
        return not value if _RENAMED[name].opposite else value
    return name.partition(".")[2] in files_of(str(option("debug_files")))


def in_our_names(changes: Mapping[str, object], option: Callable[[str], object]) -> dict[str, object]:
    """Return changes with torch's names replaced by the options that they are here; other names stay.

    option: gives the value that an option has now.  Raises UserError for a value of torch's that cannot be had.
    """
    ours: dict[str, object] = {}
    for name, value in changes.items():
        if name in _HELD:
            _demand_held(name, value)
        elif name in _RENAMED:
            ours[_RENAMED[name].option] = not value if _RENAMED[name].opposite and isinstance(value, bool) else value
        elif name.startswith("trace.") and name.partition(".")[2] in TRACED_FILES:
            before = files_of(str(ours.get("debug_files", option("debug_files"))))
            file = frozenset({name.partition(".")[2]})
            ours["debug_files"] = _text_of(before | file if value else before - file)
        else:
            ours[name] = value
    return ours


def _demand_held(name: str, value: object) -> None:
    held = _HELD[name]
    if value not in held.accepted:
        raise UserError(f"{name} cannot be {value!r}", why=held.why, hint=f"delete the line, or set it to {held.value}")
