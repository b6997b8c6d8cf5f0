"""A code object decoded once: frozen instructions with resolved targets, lines and exception-table rows."""

import dis
from dataclasses import dataclass
from types import CodeType
from weakref import WeakKeyDictionary


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; caches and EXTENDED_ARG are folded away.

    index: position in `Decoded.instructions`.  offset: in bytes, of the first EXTENDED_ARG if there is one.
    argument: the raw number, 0 if the opcode takes none.  value: what `dis` resolves the number to.
    target: index of the jump target.  line: 0 if unknown.
    """

    name: str
    index: int
    offset: int
    argument: int
    value: object
    target: int | None
    line: int


@dataclass(frozen=True, slots=True)
class Handler:
    """A row of the exception table: instructions first..last go to `target` with `depth` stack values kept."""

    first: int
    last: int
    target: int
    depth: int
    keeps_position: bool


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """A code object as data."""

    code: CodeType
    instructions: tuple[Instruction, ...]
    handlers: tuple[Handler, ...]
    handler_of: tuple[Handler | None, ...]  # per instruction: where an exception goes
    loops: tuple[tuple[int, int], ...]  # (first, last) index of each backward jump's body


_DECODED: WeakKeyDictionary[CodeType, Decoded] = WeakKeyDictionary()


def decode(code: CodeType) -> Decoded:
    """Return the decoded form; kept per code object."""
    decoded = _DECODED.get(code)
    if decoded is None:
        decoded = _decode(code)
        _DECODED[code] = decoded
    return decoded


def _decode(code: CodeType) -> Decoded:
    raw: list[tuple[dis.Instruction, int]] = []
    starts: dict[int, int] = {}
    extended: int | None = None
    for item in dis.get_instructions(code):
        if item.opname == "EXTENDED_ARG":
            extended = item.offset if extended is None else extended
            continue
        start = item.offset if extended is None else extended
        for offset in range(start, item.offset + 2, 2):
            starts[offset] = len(raw)
        raw.append((item, start))
        extended = None
    instructions: list[Instruction] = []
    line = 0
    for index, (item, start) in enumerate(raw):
        position = item.positions
        line = (position.lineno if position and position.lineno else None) or line
        is_jump = item.opcode in dis.hasjrel or item.opcode in dis.hasjabs
        target = starts[item.argval] if is_jump else None
        instructions.append(Instruction(item.opname, index, start, item.arg or 0, item.argval, target, line))
    handlers = _handlers(code, starts, len(raw))
    handler_of: list[Handler | None] = [None] * len(raw)
    for handler in handlers:
        for index in range(handler.first, handler.last + 1):
            handler_of[index] = handler
    loops = tuple((i.target, i.index) for i in instructions if i.target is not None and i.target <= i.index)
    return Decoded(code, tuple(instructions), handlers, tuple(handler_of), loops)


def _handlers(code: CodeType, starts: dict[int, int], count: int) -> tuple[Handler, ...]:
    rows: list[Handler] = []
    for start, end, target, depth, keeps_position in exception_table(code.co_exceptiontable):
        covered = [starts[offset] for offset in range(start, end, 2) if offset in starts]
        if covered and starts[target] < count:
            rows.append(Handler(min(covered), max(covered), starts[target], depth, keeps_position))
    return tuple(rows)


def exception_table(table: bytes) -> list[tuple[int, int, int, int, bool]]:
    """Return (start, end, target, depth, keeps position) in bytes, end exclusive, of a `co_exceptiontable`.

    Layout: CPython, Objects/exception_handling_notes.txt (six-bit big-endian numbers).
    """
    rows: list[tuple[int, int, int, int, bool]] = []
    numbers = iter(table)

    def number() -> int:
        byte = next(numbers)
        value = byte & 63
        while byte & 64:
            byte = next(numbers)
            value = (value << 6) | (byte & 63)
        return value

    while True:
        try:
            start = number() * 2
        except StopIteration:
            return rows
        length, target, flags = number() * 2, number() * 2, number()
        rows.append((start, start + length, target, flags >> 1, bool(flags & 1)))


def encode_exception_table(rows: list[tuple[int, int, int, int, bool]]) -> bytes:
    """Return the bytes of a `co_exceptiontable`: the inverse of `exception_table`."""
    out = bytearray()
    for start, end, target, depth, keeps_position in rows:
        numbers = (start // 2, (end - start) // 2, target // 2, depth * 2 + keeps_position)
        for position, number in enumerate(numbers):
            out += _varint(number, 128 if position == 0 else 0)
    return bytes(out)


def _varint(number: int, marker: int) -> bytes:
    groups = [number & 63]
    while number > 63:
        number >>= 6
        groups.append((number & 63) | 64)
    groups.reverse()
    groups[0] |= marker
    return bytes(groups)
