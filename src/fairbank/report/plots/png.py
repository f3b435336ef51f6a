"""A picture as PNG, for where SVG is not taken: mails, slides, old viewers. The title and what it is about are in the file as texts."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import cycle, pairwise
from math import ceil, cos, hypot, pi, sin

import numpy as np

from fairbank.report.plots import letters
from fairbank.report.plots.picture import PAPER, Box, Dot, Group, Mark, Path, Picture, Point, Text
from fairbank.report.plots.pixels import Paper

SCALE = 2.0
"""Pixels of the file for one of the picture."""
_ROUND = 24  # corners of a dot


def png(picture: Picture, scale: float = SCALE) -> bytes:
    """The whole file."""
    paper = Paper(ceil(picture.wide * scale), ceil(picture.high * scale), PAPER)
    for mark in picture.marks:
        _Brush(paper, scale).draw(mark)
    return _file(paper, picture)


class _Brush:
    """Draws on paper, moved to the right and down by `by`, and larger by `scale`."""

    def __init__(self, paper: Paper, scale: float, by: Point = (0.0, 0.0)) -> None:
        self._paper, self._scale, self._by = paper, scale, by

    def draw(self, mark: Mark) -> None:
        match mark:
            case Group(by, marks):
                moved = _Brush(self._paper, self._scale, (self._by[0] + by[0], self._by[1] + by[1]))
                for each in marks:
                    moved.draw(each)
            case Path(lines, stroke, width, dash, filled):
                if filled:
                    self._fill(lines, filled)
                elif stroke:
                    self._pen(
                        [part for each in lines for part in _dashed(each, dash)], width, stroke
                    )
            case Box((x, y), wide, high, filled, stroke, width):
                corners = [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)]
                if filled:
                    self._fill([corners], filled)
                if stroke:
                    self._pen([[*corners, corners[0]]], width, stroke, round_ends=True)
            case Dot((x, y), radius, colour):
                turns = [2 * pi * corner / _ROUND for corner in range(_ROUND)]
                self._fill(
                    [[(x + radius * cos(turn), y + radius * sin(turn)) for turn in turns]], colour
                )
            case Text():
                self._text(mark)

    def _text(self, text: Text) -> None:
        ways, width = letters.strokes(text), letters.pen(text)
        if text.edge:
            self._pen(ways, width + text.edge_width, text.edge, round_ends=True)
        self._pen(ways, width, text.colour, round_ends=True)

    def _pen(
        self,
        lines: Sequence[Sequence[Point]],
        width: float,
        colour: str,
        *,
        round_ends: bool = False,
    ) -> None:
        self._paper.draw(
            map(self._placed, lines), width * self._scale, colour, round_ends=round_ends
        )

    def _fill(self, rings: Sequence[Sequence[Point]], colour: str) -> None:
        self._paper.fill(map(self._placed, rings), colour)

    def _placed(self, line: Sequence[Point]) -> list[Point]:
        return [((x + self._by[0]) * self._scale, (y + self._by[1]) * self._scale) for x, y in line]


def _dashed(line: Sequence[Point], dash: Sequence[float]) -> Iterator[list[Point]]:
    """The strokes of a line, without its gaps."""
    if not dash:
        yield list(line)
        return
    lengths = cycle([*dash, *dash] if len(dash) % 2 else dash)
    left, inked, stroke = next(lengths), True, [line[0]]
    for one, other in pairwise(line):
        length, gone = hypot(other[0] - one[0], other[1] - one[1]), 0.0
        while length - gone > left:
            gone += left
            at = (
                one[0] + (other[0] - one[0]) * gone / length,
                one[1] + (other[1] - one[1]) * gone / length,
            )
            if inked:
                yield [*stroke, at]
            left, inked, stroke = next(lengths), not inked, [at]
        left -= length - gone
        stroke.append(other)
    if inked:
        yield stroke


def _file(paper: Paper, picture: Picture) -> bytes:
    """As the specification of PNG has it: signature, head, texts, rows of pixels each behind the number of its filter, end."""
    pixels = paper.bytes
    high, wide, _ = pixels.shape
    rows = np.zeros((high, wide * 3 + 1), np.uint8)
    rows[:, 1:] = pixels.reshape(high, -1)
    chunks = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)),
        _said(b"Title", picture.title),
        _said(b"Description", picture.about),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _said(keyword: bytes, text: str) -> bytes:
    return _chunk(b"iTXt", keyword + b"\0\0\0\0\0" + text.encode())


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
