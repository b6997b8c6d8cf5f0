"""Where the compiled forms of a captured graph stand on disk: under what key, and whether they may stand there at all.

An entry is found by everything that its making depended on: the captured graph, the facts of the call, the options,
and the process (`process_facts`).  It is looked for only where no one would miss what making it anew records: where
somebody listens to the record, under `debug`, `verify` and `bisect`, and while a fault is planted, every stage runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...base.events import GraphStored, is_recording, record
from ...base.options import Options
from ...graph.effects.undo import HOOKED, WARNED
from ...stored.graph_data import plain_graph
from ...stored.graph_store import GraphStore, StoredPart, key_of_plain
from ...stored.plain_data import NotPlain, Plain, plain_value
from ...stored.process_facts import obstacle, process_facts
from ..joint_program import JointProgram
from ..stages.gradient_buckets import current_caps


@dataclass(frozen=True, slots=True, eq=False)
class LoadedPart:
    """A compiled graph from disk; op_by_op: the same graph through ATen, for where the code cannot go on."""

    call: Callable[..., Any]
    op_by_op: Callable[..., Any]


LoadPart = Callable[[Plain], LoadedPart]
_NOWHERE = ("cache_directory", "record_directory", "bundle_directory", "bundle_limit", "bundle_inputs")


@dataclass(frozen=True, slots=True, eq=False)
class FormPlace:
    """The place of one form; load_part: makes a compiled graph from its plain form."""

    store: GraphStore
    key: str
    load_part: LoadPart

    def find(self, *inside: Plain) -> Plain | None:
        """Return what is kept of the form, or of the part of it that `inside` names; None where it is to be made."""
        if is_recording() or obstacle():
            return None
        return self.store.find(self._key(inside))

    def keep(self, content: Callable[[], Plain], *inside: Plain) -> None:
        """Keep the form, or a part of it; whether that was possible goes on record. content: raises NotPlain."""
        part, why = "backward" if inside else "graph", obstacle()
        try:
            why = why or self.store.keep(self._key(inside), content())
        except NotPlain as error:
            why = str(error)
        record(GraphStored(part, "not kept" if why else "kept", why))

    def _key(self, inside: tuple[Plain, ...]) -> str:
        return key_of_plain(self.key, *inside) if inside else self.key


def place_of(
    program: JointProgram, facts: object, options: Options, recompute: bool, load_part: LoadPart | None
) -> FormPlace | None:
    """Return where the form of a program for calls with these facts stands; None where it stands nowhere.

    facts: what is looked at in a call to tell whether a form serves it.  load_part: None where nothing is kept.
    """
    if load_part is None or program.gate is not None:
        return None
    why = _switched_off(options) or ("" if current_caps() is None else _SENT) or obstacle()
    if not why:
        try:
            return FormPlace(GraphStore.of(options), _key(program, facts, options, recompute), load_part)
        except NotPlain as error:
            why = str(error)
    record(GraphStored("graph", "not kept", why))
    return None


_SENT = "DistributedDataParallel sends its gradients: stages and order of arrival are those of this process"


def _switched_off(options: Options) -> str:
    if not (options.graph_cache and options.disk_cache):
        return "switched off by the options"
    if options.debug or options.verify or options.bisect or options.time_kernels:
        return "every stage is wanted: debug, verify, bisect or time_kernels"
    return "kernels in Triton" if options.kernel_language not in ("", "c") else ""


def _key(program: JointProgram, facts: object, options: Options, recompute: bool) -> str:
    chosen = [(f.name, getattr(options, f.name)) for f in dataclasses.fields(options) if f.name not in _NOWHERE]
    meta = program.gm.meta
    if meta.get(HOOKED):
        raise NotPlain("a graph that puts hooks on its inputs")
    return key_of_plain(
        plain_graph(program.gm),
        plain_value(tuple(sorted(meta.get(WARNED, ())))),
        plain_value(program.arguments),
        plain_value((program.grad_enabled, program.autocast, program.sizes, recompute)),
        plain_value(program.dynamic),
        plain_value(facts),
        plain_value(tuple(chosen)),
        process_facts(),
    )


def with_condition(part: StoredPart, text: str) -> str:
    """Return the Python text that says for which sizes a part may be used, given what its trace assumes of them."""
    return " and ".join(f"({each})" for each in (text, part.condition) if each)
