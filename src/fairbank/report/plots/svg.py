"""A picture as SVG: text that any browser draws, with words for those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from fairbank.report.plots.picture import (
    INK,
    PAPER,
    SIZE,
    Box,
    Dot,
    Group,
    Mark,
    Path,
    Picture,
    Point,
    Text,
)


def svg(picture: Picture) -> str:
    """The whole document, on paper of its own."""
    return (
        _element(
            "svg",
            "\n",
            _element("title", escape(picture.title)),
            "\n",
            _element("desc", escape(picture.about)),
            "\n",
            _element("rect", width="100%", height="100%", fill=PAPER),
            "\n",
            *(f"{_mark(each)}\n" for each in picture.marks),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(picture.wide)} {number(picture.high)}",
            width=picture.wide,
            height=picture.high,
            role="img",
            font_family="Helvetica, Arial, Liberation Sans, sans-serif",
            font_size=SIZE,
            fill=INK,
        )
        + "\n"
    )


def _mark(mark: Mark) -> str:
    match mark:
        case Group((right, down), marks):
            return _element(
                "g",
                "\n",
                "\n".join(map(_mark, marks)),
                "\n",
                transform=f"translate({right:g} {down:g})",
            )
        case Path():
            return _path(mark)
        case Text():
            return _text(mark)
        case Box((x, y), wide, high, fill, stroke, width):
            shown = {
                "fill": fill or "none",
                "stroke": stroke,
                "stroke_width": _unusual(width) if stroke else None,
            }
            return _element("rect", x=x, y=y, width=wide, height=high, **shown)
        case Dot((x, y), radius, fill):
            return _element("circle", cx=x, cy=y, r=radius, fill=fill)


def _path(path: Path) -> str:
    closed = "Z" if path.fill else ""
    parts = [
        f"M{'L'.join(f'{number(x)},{number(y)}' for x, y in _bends(line))}{closed}"
        for line in path.lines
    ]
    return _element(
        "path",
        d="".join(parts),
        fill=path.fill or "none",
        fill_rule="evenodd" if path.fill else None,
        stroke=None if path.fill else path.stroke,
        stroke_width=None if path.fill else _unusual(path.width),
        stroke_dasharray=" ".join(map(number, path.dash)) or None,
    )


def _text(text: Text) -> str:
    """A gap around letters is a text of its own beneath, for not every reader of SVG can paint an outline beneath its letters."""
    x, y = text.at
    style = {
        "text_anchor": None if text.anchor == "start" else text.anchor,
        "font_size": None if text.size == SIZE else text.size,
        "font_weight": "bold" if text.bold else None,
        "transform": f"rotate(-90 {x:g} {y:g})" if text.upwards else None,
    }
    colour = None if text.colour == INK else text.colour
    letters = _element("text", escape(text.said), x=x, y=y, **style, fill=colour)
    if text.edge is None:
        return letters
    gap = _element(
        "text",
        escape(text.said),
        x=x,
        y=y,
        **style,
        fill=text.edge,
        stroke=text.edge,
        stroke_width=text.edge_width,
    )
    return gap + letters


def _unusual(width: float) -> float | None:
    return None if width == 1 else width


def _element(name: str, *inside: str, **attributes: object) -> str:
    """One element. `stroke_width=2` becomes `stroke-width="2"`; what is None is left out."""
    said = "".join(
        f" {key.replace('_', '-')}={quoteattr(_said(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{said}>{''.join(inside)}</{name}>" if inside else f"<{name}{said}/>"


def _said(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """To a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:g}"


def _bends(line: Sequence[Point]) -> Sequence[Point]:
    """The points without those that lie on the straight way between their neighbours, at the precision that is written."""
    kept: list[Point] = []
    for x, y in ((round(x, 1), round(y, 1)) for x, y in line):
        while len(kept) > 1 and _straight(kept[-2], kept[-1], (x, y)):
            kept.pop()
        if not kept or kept[-1] != (x, y):
            kept.append((x, y))
    return kept


def _straight(a: Point, b: Point, c: Point) -> bool:
    """Whether b is on the way from a to c."""
    before, after = (b[0] - a[0], b[1] - a[1]), (c[0] - b[0], c[1] - b[1])
    return (
        abs(before[0] * after[1] - before[1] * after[0]) < 1e-6
        and before[0] * after[0] + before[1] * after[1] >= 0
    )
