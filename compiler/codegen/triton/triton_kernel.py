"""One loop as the text of a Triton kernel, with what a host has to know to launch it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from ...loops.body import Scalar
from ...loops.ir import Buffer, Loop, LoopStore
from ...loops.phases import Phase, roots_of
from ...symbolic.symbolic_sizes import Extent
from .tiles import DeviceFacts, Tiling
from .triton_library import HEADER, LIBRARY
from .triton_reductions import TritonReductions
from .triton_shape import TritonShape, shape_loop
from .triton_text import TritonText, axes_of_access
from .triton_types import ELEMENT, HALF, VALUE
from .triton_values import TritonValues


@dataclass(frozen=True, slots=True, eq=False)
class TritonKernel:
    """A kernel: its text, and how it is launched.

    text: of the function `kernel`, in which nothing is called by a name of the program: equal kernels have equal texts.
    signature: the type of each parameter, in Triton's words.  buffers, sizes: what the parameters are, in order; where
    needs_flag, a last one points to an int32 that is set to 1 for an index out of range and 2 for a division by zero.
    programs: how many are launched, in one dimension.
    """

    text: str
    signature: tuple[str, ...]
    buffers: tuple[str, ...]
    sizes: tuple[Extent, ...]
    needs_flag: bool
    programs: Extent
    tiling: Tiling

    @property
    def name(self) -> str:
        """A name that tells kernels of different texts apart."""
        return f"{self.tiling.kind}_{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"

    @property
    def module(self) -> str:
        """The text of a whole Python module with the function `kernel`."""
        return self.module_for("cuda")

    def module_for(self, maker: str) -> str:
        """Return the module for the GPUs of a maker, `cuda` or `hip`, whose functions of mathematics are others."""
        return f"{HEADER.format(maker=maker)}{LIBRARY}\n\n{self.text}"


def write_triton_kernel(loop: Loop, buffers: Mapping[str, Buffer], device: DeviceFacts) -> TritonKernel:
    """Return a loop as a Triton kernel; the loop has points."""
    shape = shape_loop(loop, buffers, device)
    writer = _KernelWriter(TritonText(shape, buffers, stops_at_zero=device.stops_at_zero))
    writer.write()
    text, head = writer.text, writer.head()
    parameters = [f"p{number}" for number in range(len(text.buffer_order))]
    signature = [f"*{ELEMENT[buffers[name].dtype]}" for name in text.buffer_order]
    parameters += [f"n{number}" for number in range(len(text.sizes))]
    signature += ["i64"] * len(text.sizes)
    if text.needs_flag:
        parameters.append("flag")
        signature.append("*i32")
    lines = ["@triton.jit", f"def kernel({', '.join(parameters)}):", *head, *text.lines]
    return TritonKernel(
        "\n".join(lines) + "\n",
        tuple(signature),
        tuple(text.buffer_order),
        tuple(text.sizes),
        text.needs_flag,
        shape.programs,
        shape.tiling,
    )


class _KernelWriter:
    """Writes one kernel."""

    def __init__(self, text: TritonText) -> None:
        self.text = text
        self.shape: TritonShape = text.shape
        self.values = TritonValues(text)
        self.reductions = TritonReductions(text, self.values)

    @property
    def is_looped(self) -> bool:
        return not self.shape.tiling.whole

    def head(self) -> list[str]:
        """Return the lines before all values: which points a program has."""
        text, tiling = self.text, self.shape.tiling
        wide = ".to(tl.int64)" if self.shape.is_wide else ""
        lines = [f"pid = tl.program_id(0){wide}", f"zero = tl.full({[1] * self.shape.rank}, 0, tl.int32)"]
        if tiling.kind == "tiles":
            across, down = text.extent(self.shape.blocks("px")), text.extent(self.shape.blocks("py"))
            lines.append(f"px = pid % {across} * {tiling.x} + tl.arange(0, {tiling.x})[None, :]")
            lines.append(f"py = pid // {across} % {down} * {tiling.y} + tl.arange(0, {tiling.y})[:, None]")
            lines.append(f"pz = pid // {across} // {down}")
        elif tiling.kind == "pieces":
            across = text.extent(self.shape.blocks("px"))
            lines.append(f"px = pid % {across} * {tiling.x} + tl.arange(0, {tiling.x})")
            lines.append(f"pz = pid // {across}")
        else:
            column = "" if tiling.kind == "pointwise" else "[:, None]"
            lines.append(f"px = pid * {tiling.x} + tl.arange(0, {tiling.x}){column}")
        for axis in ("py", "px"):
            if axis in self.shape.axes and self.shape.is_ragged(axis):
                lines.append(f"{axis}_in = {axis} < {text.extent(self.shape.size(axis))}")
        if "pr" in self.shape.axes and not self.is_looped:
            lines += self._reduced_lines(f"tl.arange(0, {tiling.r})[None, :]")
        return [f"    {line}" for line in lines]

    def _reduced_lines(self, points: str) -> list[str]:
        lines = [f"pr = {points}"]
        if self.shape.is_wide:
            lines = [f"pr = ({points}).to(tl.int64)"]
        if self.shape.is_ragged("pr"):
            lines.append(f"pr_in = pr < {self.text.extent(self.shape.size('pr'))}")
        return lines

    def write(self) -> None:
        phases = self.shape.passes.phases
        for number, phase in enumerate(phases):
            self._store_due(number)
            if self.is_looped and "pr" in self.shape.axes:
                self._write_steps(phase)
            else:
                for reduction in phase.reductions:
                    self.reductions.whole(reduction)
                for store in phase.stores:
                    self._store(store, frozenset({"px", "py", "pr"}))
        self._store_due(len(phases))

    def _write_steps(self, phase: Phase) -> None:
        if not phase.reductions and not phase.stores:
            return
        for scan in self._hoist(phase):
            self.values.start_scan(scan)
        for reduction in phase.reductions:
            self.reductions.declare(reduction)
        step = self.shape.tiling.r
        self.text.line(f"for start in range(0, {self.text.extent(self.shape.size('pr'))}, {step}):")
        self.text.depth += 1
        for line in self._reduced_lines(f"start + tl.arange(0, {step})[None, :]"):
            self.text.line(line)
        for reduction in phase.reductions:
            self.reductions.accumulate(reduction)
        for store in phase.stores:
            self._store(store, frozenset({"px", "py", "pr"}))
        self.text.depth -= 1
        inner = self.shape.passes.inner
        self.text.names = {key: name for key, name in self.text.names.items() if key not in inner}
        for reduction in phase.reductions:
            self.reductions.finish(reduction)

    def _hoist(self, phase: Phase) -> list[Scalar]:
        """Write the values of kept points that a pass needs before its loop; return the scans in it."""
        inner, seen, scans = self.shape.passes.inner, set[int](), list[Scalar]()
        stack: list[Scalar] = roots_of(phase)
        while stack:
            scalar = stack.pop()
            if id(scalar) in seen:
                continue
            seen.add(id(scalar))
            if id(scalar) in inner:
                stack.extend(scalar.args)
                scans += [scalar] if scalar.name == "scan" else []
            else:
                self.values.value(scalar)
        return scans

    def _store_due(self, level: int) -> None:
        for due, store in self.shape.passes.kept_stores:
            if due == level:
                self._store(store, frozenset({"px", "py"}))

    def _store(self, store: LoopStore, axes: frozenset[str]) -> None:
        """Write one store at all points of some variables."""
        text = self.text
        value = text.names.get(id(store.value)) or self.values.value(store.value)
        buffer = text.buffers[store.access.buffer]
        offset = text.index(store.access.index[0], {})
        for axis in ("py", "px", "pr"):  # a pointer for every lane of the mask, which there may be one point for
            masked = axis in axes and axis in self.shape.axes and self.shape.is_ragged(axis)
            if masked and axis not in axes_of_access(store.access):
                offset += f" + 0 * {axis}"
        kind = HALF.get(buffer.dtype, VALUE[buffer.dtype])
        present = axes & frozenset(self.shape.axes)
        mask = text.masked_argument(present)
        text.line(f"tl.store({text.pointer(store.access.buffer)} + ({offset}), {value}.to({kind}){mask})")
