"""A graph as a picture: SVG text, written here without outside programs.

Every operation stands below what it reads: its row is the longest path that leads to it (the layering of Sugiyama,
Tagawa and Toda 1981), and within a row it stands near the middle of what it reads. Colours tell inputs, operations and
outputs apart; a box holds the operation, what it gives, and the user's line, whose text shows under the pointer.
"""

from dataclasses import dataclass
from html import escape

from torch import fx

from .base.origin import Origin
from .base.torch_facts import OpOverload
from .graph.node_values import origin_of, type_text

_LETTER, _LINE, _MARGIN, _GAP, _RISE = 7, 16, 12, 24, 46  # pixels
_COLOURS = {"placeholder": "#dbeafe", "get_attr": "#dbeafe", "output": "#dcfce7"}
_WORDS_LIMIT = 40  # letters in a line of a box


@dataclass(slots=True)
class _Box:
    """node: what it shows.  row: from 0 above.  x: its middle; y: its upper edge, in pixels."""

    node: fx.Node
    lines: list[str]
    row: int
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> int:
        return max(map(len, self.lines)) * _LETTER + 2 * _MARGIN

    @property
    def height(self) -> int:
        return len(self.lines) * _LINE + _MARGIN


def graph_svg(graph: fx.GraphModule) -> str:
    """Return an SVG picture of a graph.

    Each box has the operation, the type and shape of what it gives where that is known, and `file:line`.
    """
    boxes = _boxes(graph)
    width, height = _place(list(boxes.values()), boxes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#64748b"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
    ]
    for box in boxes.values():
        parts += [_arrow(boxes[source], box) for source in box.node.all_input_nodes if source in boxes]
    parts += [_drawn(box) for box in boxes.values()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _boxes(graph: fx.GraphModule) -> dict[fx.Node, _Box]:
    boxes: dict[fx.Node, _Box] = {}
    for node in graph.graph.nodes:
        row = max((boxes[source].row + 1 for source in node.all_input_nodes), default=0)
        boxes[node] = _Box(node, _lines(node), row)
    last = max((box.row for box in boxes.values()), default=0)
    for node, box in boxes.items():
        if node.op == "output":
            box.row = max(last, box.row)
    return boxes


def _lines(node: fx.Node) -> list[str]:
    target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    if isinstance(node.target, OpOverload):
        target = str(node.target)
    head = {"placeholder": f"input {node.name}", "output": "output"}.get(node.op, f"{node.name} = {target}")
    value = node.meta.get("val", node.meta.get("example_value"))
    rows = [head, type_text(value) if value is not None else ""]
    if (origin := _user_line(node)) is not None:
        rows.append(f"{origin.file.rpartition('/')[2]}:{origin.line}")
    return [row if len(row) <= _WORDS_LIMIT else f"{row[: _WORDS_LIMIT - 3]}..." for row in rows if row]


def _user_line(node: fx.Node) -> Origin | None:
    return origin_of(node) if node.op not in ("placeholder", "output") else None


def _place(order: list[_Box], boxes: dict[fx.Node, _Box]) -> tuple[float, float]:
    """Give every box its place; return the size of the picture, in pixels."""
    rows: dict[int, list[_Box]] = {}
    for box in order:
        rows.setdefault(box.row, []).append(box)
    top, widest = float(_GAP), 0.0
    for _, row in sorted(rows.items()):
        row.sort(key=lambda box: _middle_of_inputs(box, boxes))
        left = float(_GAP)
        for box in row:
            box.x = max(left + box.width / 2, _middle_of_inputs(box, boxes))
            box.y = top
            left = box.x + box.width / 2 + _GAP
        widest = max(widest, left)
        top += max(box.height for box in row) + _RISE
    return widest, top - _RISE + _GAP


def _middle_of_inputs(box: _Box, boxes: dict[fx.Node, _Box]) -> float:
    read = [boxes[source].x for source in box.node.all_input_nodes]
    return sum(read) / len(read) if read else 0.0


def _arrow(source: _Box, target: _Box) -> str:
    start, end = source.y + source.height, target.y
    half = (start + end) / 2
    path = f"M{source.x:.0f},{start:.0f} C{source.x:.0f},{half:.0f} {target.x:.0f},{half:.0f} {target.x:.0f},{end:.0f}"
    return f'<path d="{path}" fill="none" stroke="#64748b" marker-end="url(#tip)"/>'


def _drawn(box: _Box) -> str:
    colour = _COLOURS.get(box.node.op, "#f1f5f9")
    origin = _user_line(box.node)
    title = f"<title>{escape(origin.source_line())}</title>" if origin is not None else ""
    left = box.x - box.width / 2
    words = "".join(
        f'<text x="{left + _MARGIN:.0f}" y="{box.y + _LINE * (number + 1):.0f}">{escape(line)}</text>'
        for number, line in enumerate(box.lines)
    )
    rectangle = f'<rect x="{left:.0f}" y="{box.y:.0f}" width="{box.width}" height="{box.height}" rx="4" '
    return f'<g>{title}{rectangle}fill="{colour}" stroke="#64748b"/>{words}</g>'
