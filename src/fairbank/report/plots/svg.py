"""The little of SVG that figures need: elements with escaped texts, paths of points, and one size of type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

Point = tuple[float, float]
"""In pixels of the picture: to the right, and down."""

INK, PAPER = "#1a1a1a", "#ffffff"


def element(name: str, *inside: str, **attributes: object) -> str:
    """One element. `stroke_width=2` becomes `stroke-width="2"`; what is None is left out."""
    said = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_said(value))}" for key, value in attributes.items() if value is not None
    )
    return f"<{name}{said}>{''.join(inside)}</{name}>" if inside else f"<{name}{said}/>"


def _said(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """To a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:g}"


def text(said: str, at: Point, **attributes: object) -> str:
    """A line of text with its baseline's beginning, middle or end at a point."""
    return element("text", escape(said), x=at[0], y=at[1], **attributes)


def path(lines: Iterable[Sequence[Point]], *, closed: bool = False, **attributes: object) -> str:
    """Lines through points, in one path. Points that say nothing new are left out."""
    parts = [f"M{'L'.join(f'{number(x)},{number(y)}' for x, y in _bends(line))}{'Z' if closed else ''}" for line in lines]
    return element("path", d="".join(parts), **attributes)


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
    return abs(before[0] * after[1] - before[1] * after[0]) < 1e-6 and before[0] * after[0] + before[1] * after[1] >= 0


def document(title: str, about: str, width: float, height: float, inside: Iterable[str]) -> str:
    """A whole picture, on paper of its own, that says to those who do not see it what it is."""
    return (
        element(
            "svg",
            "\n",
            element("title", escape(title)),
            "\n",
            element("desc", escape(about)),
            "\n",
            element("rect", width="100%", height="100%", fill=PAPER),
            "\n",
            *(f"{each}\n" for each in inside),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(width)} {number(height)}",
            width=width,
            height=height,
            role="img",
            font_family="Helvetica, Arial, Liberation Sans, sans-serif",
            font_size=13,
            fill=INK,
        )
        + "\n"
    )
