"""Options: one frozen object of every knob, with its doc line; the only reader of PLUMBLINE_* settings."""

import dataclasses
import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .bisecting.switches import read_switches
from .borrowed.stock_settings import files_of, in_our_names, stock_names
from .errors import UnknownOption, UserError

T = TypeVar("T")


def option(default: T, doc: str, *, environment: str | None = None, words: tuple[str, ...] = ()) -> T:
    """Declare a field of Options: its default, what it means (with the unit) and a further environment name.

    words: what a field may hold besides values of the default's type.
    """
    metadata = {"doc": doc, "environment": environment, "words": words}
    field: T = dataclasses.field(default=default, metadata=metadata)
    return field


_WRONG_ANSWERS = 4  # the level from which on they are looked for, as in torch
RUN = "run"  # of `verify`: every check, and at a first call every stage runs beside the compiled code


@dataclass(frozen=True, slots=True)
class Options:
    """Every knob of the compiler; passed down as an argument and part of every cache key.

    Each field is also read from `PLUMBLINE_<NAME>` by `options_from_environment`.
    """

    # capture
    recompile_limit: int = option(8, "specialisations of one function before further misses run eager")
    dynamic_shapes: bool | None = option(
        None,
        "True: sizes are symbols; False: never; None: a size becomes a symbol after it first changed",
        environment="TORCHDYNAMO_DYNAMIC_SHAPES",
    )
    inline_depth_limit: int = option(60, "nested calls evaluated inside one capture before the outer call breaks")
    instruction_limit: int = option(2_000_000, "bytecode instructions evaluated in one capture before it gives up")
    trace_numpy: bool = option(True, "NumPy's functions of arrays become part of graphs where a table shows them equal")
    numpy_threshold: int = option(
        160_000,
        "work up to which calls of functions of NumPy arrays run in NumPy, in elements read and written; 0: none",
    )
    capture_scalar_outputs: bool = option(
        False, "a number read from a tensor by `item()` stays in the graph where only arithmetic on tensors uses it"
    )
    capture_func_transforms: bool = option(True, "transforms of torch.func become part of graphs")
    strict: bool = option(False, "raise the compiler's own errors instead of running the frame eagerly")
    guards_in_c: bool = option(True, "check guards by an evaluator in C where there is a C compiler")
    # graphs and gradients
    verify: bool | str = option(
        False,
        "run every named check after every pass; 'run': at a first call also compare what the stages give",
        words=(RUN,),
    )
    save_budget: float = option(1.0, "share of forward activations that may be kept for backward, 0 to 1")
    ddp_stages: bool = option(True, "cut the backward where DistributedDataParallel sends a bucket of gradients")
    # code generation
    fuse: bool = option(True, "join loops into one kernel where it is allowed and pays")
    kernel_language: str = option(
        "", "'c' or 'triton' (its interpreter runs kernels on CPU tensors); empty: C, and op by op on a GPU"
    )
    cuda_graphs: bool = option(False, "record Triton's launches as a CUDA graph where nothing speaks against it")
    threads: int = option(0, "OpenMP threads of generated kernels; 0: as torch.get_num_threads()")
    compiler: str = option("", "C compiler to use; empty: search", environment="PLUMBLINE_CC")
    cache_directory: str = option("", "folder of built kernels; empty: the user's cache folder")
    disk_cache: bool = option(True, "look for built kernels on disk and keep new ones there")
    graph_cache: bool = option(True, "look for compiled graphs on disk and keep new ones there, beside the kernels")
    warn_fallback: bool = option(True, "warn once when a graph runs op by op because nothing can compile it")
    time_kernels: bool = option(False, "time each kernel and each ATen call of a graph; what `profile` sets")
    # bisecting
    bisect: str = option("", "applications that are switched off, such as 'fusion:12'; 'list' has them all on record")
    # record
    debug: bool = option(
        False, "write every stage of each compilation to a folder of its own", environment="TORCH_COMPILE_DEBUG"
    )
    debug_files: str = option("", "files that `debug` writes besides the usual, or, with a minus, does not write")
    record_directory: str = option("", "folder of what `debug` writes; empty: ./plumbline_debug")
    repro_after: str = option(
        "",
        "'dynamo' or 'aot': where compiled code fails, say where the bundle with a script that reproduces it lies",
        environment="TORCHDYNAMO_REPRO_AFTER",
    )
    repro_level: int = option(
        3, "with repro_after: up to 3, errors alone; 4: wrong answers too", environment="TORCHDYNAMO_REPRO_LEVEL"
    )
    bundle_directory: str = option("", "folder of bundles on errors of ours; empty: `bundles` in the cache folder")
    bundle_limit: int = option(20, "bundles kept, the oldest are dropped; 0: none are written")
    bundle_inputs: bool = option(False, "keep the values of the inputs in bundles, not their kinds alone")

    def replace(self, **changes: object) -> "Options":
        """Return a copy with some fields changed.

        Names of torch's settings stand for what they are here (`stock_settings`).  Raises UnknownOption for a name that
        is not an option, UserError for a value of another type than the default's.
        """
        changes = in_our_names(changes, lambda name: getattr(self, name))
        known = {field.name: field for field in dataclasses.fields(self)}
        for name, value in changes.items():
            if name not in known:
                raise unknown_option(name)
            if value not in known[name].metadata["words"]:
                _demand_type(name, value, known[name].default, known[name].metadata["words"])
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # names and types are checked

    @property
    def validates(self) -> bool:
        """Whether what is compiled is compared with the stages before it when it first runs."""
        return self.verify == RUN or (bool(self.repro_after) and self.repro_level >= _WRONG_ANSWERS)

    @property
    def small_work(self) -> int:
        """Up to how much work NumPy's functions are left to NumPy: none where every call is to be looked at."""
        return 0 if self.validates or self.time_kernels else self.numpy_threshold

    @property
    def draws_graphs(self) -> bool:
        """Whether captured graphs are drawn into the debug folder."""
        return self.debug and "graph_diagram" in files_of(self.debug_files)


Settings = Options | Callable[[], Options]  # options, or what gives those in force now


def in_force(settings: Settings) -> Options:
    """Return the options that hold now."""
    return settings if isinstance(settings, Options) else settings()


# What users of torch's compiler set there -> what to do here.
_STOCK_NAMES = {
    "accumulated_cache_size_limit": "recompile_limit bounds the specialisations of each function",
    "accumulated_recompile_limit": "recompile_limit bounds the specialisations of each function",
    "assume_static_by_default": "set dynamic_shapes: True, False or None",
    "automatic_dynamic_shapes": "set dynamic_shapes: True, False or None",
    "capture_dynamic_output_shape_ops": "operators whose shape depends on data always break the graph; delete the line",
    "error_on_recompile": "set recompile_limit to 1, or use plumbline.run, which never compiles",
    "log_level": "call plumbline.set_logs(...), or set the environment variable PLUMBLINE_LOGS",
    "output_code": "set the environment variable PLUMBLINE_LOGS=output_code",
    "triton": "it is a section: set config.triton.cudagraphs",
    "trace": "it is a section: set config.trace.output_code and its like",
    "specialize_float": "floats are always specialised; delete the line",
    "specialize_int": "set dynamic_shapes: True, False or None",
}


def unknown_option(name: str) -> UnknownOption:
    """Return the error for a name that is not an option: with torch's name for it explained, or the nearest ones."""
    known = [field.name for field in dataclasses.fields(Options)]
    near = difflib.get_close_matches(name, [*known, *stock_names()], 3)
    hint = _STOCK_NAMES.get(name) or (f"did you mean {' or '.join(near)}?" if near else f"one of: {', '.join(known)}")
    return UnknownOption(f"no option is named {name!r}", hint=hint)


def _demand_type(name: str, value: object, default: object, further: tuple[str, ...]) -> None:
    """Raise UserError for a value that the field cannot hold."""
    kinds: tuple[type, ...] = (bool, type(None)) if default is None else (type(default),)
    if isinstance(default, float):
        kinds = (float, int)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        words = " or ".join(
            ["None" if kind is type(None) else kind.__name__ for kind in kinds] + list(map(repr, further))
        )
        raise UserError(f"option {name} cannot be {value!r}", hint=f"use a value of type {words}, such as {default!r}")
    if name == "save_budget":
        _demand_share(name, value)
    if name == "bisect":
        read_switches(str(value))
    if name == "numpy_threshold" and isinstance(value, int) and value < 0:
        raise UserError(f"option {name} cannot be {value!r}", hint="use 0 to compile every call")
    if name == "repro_after" and value not in ("", "dynamo", "aot"):
        raise UserError(f"option {name} cannot be {value!r}", hint="use 'dynamo' or 'aot'")
    if name == "repro_level" and value not in (1, 2, 3, _WRONG_ANSWERS):
        raise UserError(f"option {name} cannot be {value!r}", hint="use a level from 1 to 4")
    if name == "debug_files":
        files_of(str(value))


def _demand_share(name: str, value: object) -> None:
    if isinstance(value, int | float) and not 0 <= value <= 1:
        raise UserError(f"option {name} cannot be {value!r}", hint="use a number from 0 to 1")


def options_from_environment(environment: Mapping[str, str] | None = None) -> Options:
    """Return the options that the environment asks for; raises UserError for a value that cannot be read."""
    source = os.environ if environment is None else environment
    changes: dict[str, object] = {}
    for field in dataclasses.fields(Options):
        extra = field.metadata["environment"]
        for name in (extra, f"PLUMBLINE_{field.name.upper()}"):
            if name and name in source:
                text, words = source[name], field.metadata["words"]
                changes[field.name] = text if text in words else _read(name, text, field.default)
    return Options().replace(**changes)


def compilation_is_switched_off(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether the environment has `compile` return what it is given; the switches of torch's own compiler.

    Raises UserError for a value that is neither on nor off.
    """
    source = os.environ if environment is None else environment
    return any(_read(name, source[name], False) for name in _SWITCHES if name in source)


_SWITCHES = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")


def describe_options() -> tuple[tuple[str, object, str], ...]:
    """Return (name, default, meaning) of every option, for the documentation table."""
    return tuple((field.name, field.default, field.metadata["doc"]) for field in dataclasses.fields(Options))


def changed_options(options: Options) -> dict[str, object]:
    """Return the options that differ from their defaults."""
    fields = dataclasses.fields(options)
    return {field.name: value for field in fields if (value := getattr(options, field.name)) != field.default}


def default_cache_directory(options: Options) -> Path:
    """Return the folder of built kernels and bundles.

    It is the option, else `$XDG_CACHE_HOME/plumbline`, else `~/.cache/plumbline`.
    """
    if options.cache_directory:
        return Path(options.cache_directory)
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "plumbline"


def _read(name: str, text: str, default: object) -> object:
    try:
        if default is None or isinstance(default, bool):
            return _read_flag(text)
        return type(default)(text)  # type: ignore[call-arg]  # int, float or str: the declared defaults
    except ValueError:
        raise UserError(f"{name}={text!r} cannot be read", hint=f"use a value such as {default!r}") from None


def _read_flag(text: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(text)
