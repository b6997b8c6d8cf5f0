"""The noise of a program as a picture: its lines with bars of digits, and the digits along the program's run.

The drawing is SVG written by hand, with nothing from outside; a page is the same inside HTML.
"""

from collections.abc import Iterable, Iterator
from html import escape

from .noise_report import MOST_LINES, CoursePoint, LineNoise, NoiseReport, OutputNoise, shortened, title_of, where_of

_WIDE, _MARGIN = 1040, 24
_ROW, _HEAD, _CHART = 26, 66, 150
_SOURCE, _BAR, _ADDS = 64, 250, 90  # characters; pixels
_BAR_AT = 560
_KEPT, _LOST, _ADDED, _TEXT, _FAINT, _RULE = "#2a7f78", "#d9534f", "#e0a030", "#222222", "#777777", "#dddddd"
_MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_SANS = "system-ui, -apple-system, Segoe UI, sans-serif"
_MOST_POINTS = 400


def picture(reports: Iterable[NoiseReport]) -> str:
    """Return an SVG document with a section for each output whose lines are known."""
    body: list[str] = []
    top = _MARGIN
    for report in reports:
        for output in report.outputs:
            if output.lines:
                part, top = _section(report.program, output, top)
                body += part
    if not body:
        body, top = (
            [_text(_MARGIN, top + 20, "Nothing is rounded: every output keeps all of its digits.", size=15)],
            top + 40,
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{top}" viewBox="0 0 {_WIDE} {top}">'
    ground = f'<rect width="{_WIDE}" height="{top}" fill="#ffffff"/>'
    return "\n".join([head, "<title>Digits along a program</title>", ground, *body, "</svg>\n"])


def page(reports: Iterable[NoiseReport]) -> str:
    """Return an HTML page with the picture, and below it the tables as text."""
    reports = list(reports)
    text = "\n\n".join(f"{report.program}\n\n{report}" for report in reports)
    style = (
        f"body {{ font-family: {_SANS}; margin: 2em; color: {_TEXT} }} pre {{ font-family: {_MONO}; overflow-x: auto }}"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Digits along a program</title>\n'
        f"<style>{style}</style></head>\n<body>\n<h1>Digits along a program</h1>\n{picture(reports)}"
        f"<h2>As text</h2>\n<pre>{escape(text)}</pre>\n</body>\n</html>\n"
    )


def _section(program: str, output: OutputNoise, top: int) -> tuple[list[str], int]:
    """Return the drawing of one output from `top` down, and where it ends."""
    title, _, rest = title_of(output).partition("; ")
    parts = [_text(_MARGIN, top + 18, f"{program}: {title}", size=17, weight="bold")]
    parts.append(_text(_MARGIN, top + 38, rest, size=12, fill=_FAINT))
    heads = [(_MARGIN, "line, in the order in which they run"), (_BAR_AT, "digits kept, and lost here")]
    heads.append((_BAR_AT + _BAR + 50, "adds to the noise"))
    parts += [_text(x, top + 60, words, size=11, fill=_FAINT) for x, words in heads]
    chosen = sorted(output.lines[:MOST_LINES], key=lambda line: line.first)
    y = top + _HEAD
    for line in chosen:
        parts += _line_row(line, output.digits_of_dtype, y)
        y += _ROW
    if len(output.lines) > MOST_LINES:
        parts.append(_text(_MARGIN, y + 16, f"and {len(output.lines) - MOST_LINES} lines more", size=11, fill=_FAINT))
        y += 20
    parts += _chart(output, y + 24)
    return parts, y + 24 + _CHART + 2 * _MARGIN


def _line_row(line: LineNoise, full: float, y: int) -> list[str]:
    """Return one line of the program: its place and text, digits kept and lost, what it adds, what it does."""
    tip = f"{where_of(line)}: {line.does}; {', '.join(line.operators)}; "
    tip += f"{line.lost:.1f} digits lost, {line.weight:.1%} added"
    kept, lost = (_BAR * value / full for value in (line.digits_after, line.lost))
    added = _ADDS * line.weight
    where = _text(_MARGIN, y + 9, where_of(line), size=9, fill=_FAINT)
    after = _BAR_AT + _BAR + 50
    return [
        f"<g><title>{escape(tip)}</title>",
        where,
        _text(_MARGIN, y + 20, shortened(line.source, _SOURCE), size=11, family=_MONO),
        _box(_BAR_AT, y + 6, _BAR, 13, "#f2f2f2"),
        _box(_BAR_AT, y + 6, kept, 13, _KEPT),
        _box(_BAR_AT + kept, y + 6, lost, 13, _LOST),
        _text(_BAR_AT + _BAR + 6, y + 17, f"{line.digits_after:.1f}", size=11),
        _box(after, y + 6, added, 13, _ADDED),
        _text(after + added + 5, y + 17, f"{line.weight:.0%}", size=11),
        "</g>",
    ]


def _chart(output: OutputNoise, y: int) -> list[str]:
    """Return digits over the operators of the run; a dot is as large as the share of the noise that passes there."""
    left, right, bottom, full = _MARGIN + 30, _WIDE - _MARGIN, y + _CHART, output.digits_of_dtype
    points = list(_thinned(output.course))
    parts = [_text(_MARGIN, y - 8, "digits of every result on the way, by operator", size=11, fill=_FAINT)]
    for digits in range(0, int(full) + 1, 1 if full < 8 else 4):
        height = bottom - _CHART * digits / full
        parts.append(f'<path d="M{left} {height:.1f}H{right}" stroke="{_RULE}" stroke-width="1"/>')
        parts.append(_text(left - 16, round(height) + 4, str(digits), size=10, fill=_FAINT))
    if not points:
        return parts
    last = max(point.number for point in points)
    first = min(point.number for point in points)
    places = [
        (
            left + 8 + (right - left - 16) * (point.number - first) / max(1, last - first),
            bottom - _CHART * min(full, point.digits) / full,
            point,
        )
        for point in points
    ]
    course = "L".join(f"{x:.1f} {height:.1f}" for x, height, _ in places)
    parts.append(f'<path d="M{course}" fill="none" stroke="{_KEPT}" stroke-width="1" stroke-opacity="0.5"/>')
    for x, height, point in places:
        radius = 1.5 + 3.5 * min(1.0, abs(point.passing)) ** 0.5
        dot = f'<circle cx="{x:.1f}" cy="{height:.1f}" r="{radius:.1f}" fill="{_KEPT}" fill-opacity="0.8">'
        parts.append(f"{dot}<title>line {point.line}: {point.digits:.1f} digits</title></circle>")
    return parts


def _thinned(course: tuple[CoursePoint, ...]) -> Iterator[CoursePoint]:
    """Yield no more than a few hundred points, of each stretch the one with the fewest digits."""
    step = max(1, -(-len(course) // _MOST_POINTS))
    for start in range(0, len(course), step):
        yield min(course[start : start + step], key=lambda point: point.digits)


def _box(x: float, y: float, wide: float, high: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.0, wide):.1f}" height="{high:.1f}" fill="{fill}"/>'


def _text(
    x: float, y: float, words: str, *, size: int, fill: str = _TEXT, family: str = _SANS, weight: str = "normal"
) -> str:
    style = f'font-family="{family}" font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} xml:space="preserve">{escape(words)}</text>'
