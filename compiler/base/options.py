"""Options: one frozen object of every knob, with its doc line; the only reader of PLUMBLINE_* settings."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .errors import UserError

T = TypeVar("T")


def option(default: T, doc: str, *, environment: str | None = None) -> T:
    """Declare a field of Options: its default, what it means (with the unit) and a further environment name."""
    metadata = {"doc": doc, "environment": environment}
    field: T = dataclasses.field(default=default, metadata=metadata)
    return field


@dataclass(frozen=True, slots=True)
class Options:
    """Every knob of the compiler; passed down as an argument and part of every cache key.

    Each field is also read from `PLUMBLINE_<NAME>` by `options_from_environment`.
    """

    # capture
    recompile_limit: int = option(8, "specialisations of one function before further misses run eager")
    dynamic_shapes: bool | None = option(
        None, "True: sizes are symbols; False: never; None: a size becomes a symbol after it first changed",
        environment="TORCHDYNAMO_DYNAMIC_SHAPES",
    )
    inline_depth_limit: int = option(60, "nested calls evaluated inside one capture before the outer call breaks")
    instruction_limit: int = option(2_000_000, "bytecode instructions evaluated in one capture before it gives up")
    strict: bool = option(False, "raise the compiler's own errors instead of running the frame eagerly")
    guards_in_c: bool = option(True, "check guards by an evaluator in C where there is a C compiler")
    # graphs and gradients
    verify: bool = option(False, "run every named check after every pass")
    save_budget: float = option(1.0, "share of forward activations that may be kept for backward, 0 to 1")
    # code generation
    fallback_random: bool = option(False, "take the random draws of eager instead of the compiler's own generator")
    fuse: bool = option(True, "join loops into one kernel where it is allowed and pays")
    threads: int = option(0, "OpenMP threads of generated kernels; 0: as torch.get_num_threads()")
    compiler: str = option("", "C compiler to use; empty: search", environment="PLUMBLINE_CC")
    cache_directory: str = option("", "folder of built kernels; empty: the user's cache folder")
    disk_cache: bool = option(True, "look for built kernels on disk and keep new ones there")
    warn_fallback: bool = option(True, "warn once when a graph runs op by op because nothing can compile it")
    # record
    debug: bool = option(False, "write every artefact of a compilation to a folder", environment="TORCH_COMPILE_DEBUG")
    record_directory: str = option("", "folder of the artefacts written under `debug`; empty: ./plumbline_debug")
    # planted faults (`plumbline.testing`): names only, so that they enter keys and travel into repros
    replaced: tuple[str, ...] = option((), "names of replaced lowerings and passes, for tests of the harness")

    def replace(self, **changes: object) -> "Options":
        """Return a copy with some fields changed; raises UserError for a name that is no option."""
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise UserError(f"no option is named {name!r}", hint=f"one of: {', '.join(known)}")
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # names checked; values are the caller's


def options_from_environment(environment: Mapping[str, str] | None = None) -> Options:
    """Return the options that the environment asks for; raises UserError for a value that cannot be read."""
    source = os.environ if environment is None else environment
    changes: dict[str, object] = {}
    for field in dataclasses.fields(Options):
        extra = field.metadata["environment"]
        for name in (extra, f"PLUMBLINE_{field.name.upper()}"):
            if name and name in source:
                changes[field.name] = _read(name, source[name], field.default)
    return Options().replace(**changes)


def describe_options() -> tuple[tuple[str, object, str], ...]:
    """Return (name, default, meaning) of every option, for the documentation table."""
    return tuple((field.name, field.default, field.metadata["doc"]) for field in dataclasses.fields(Options))


def default_cache_directory(options: Options) -> Path:
    """Return the folder of built kernels: the option, else `$XDG_CACHE_HOME/plumbline`, else `~/.cache/plumbline`."""
    if options.cache_directory:
        return Path(options.cache_directory)
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "plumbline"


def _read(name: str, text: str, default: object) -> object:
    try:
        if default is None or isinstance(default, bool):
            return _read_flag(text)
        if isinstance(default, tuple):
            return tuple(part for part in text.split(",") if part)
        return type(default)(text)  # type: ignore[call-arg]  # int, float or str: the declared defaults
    except ValueError:
        raise UserError(f"{name}={text!r} cannot be read", hint=f"give a value like {default!r}") from None


def _read_flag(text: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(text)
