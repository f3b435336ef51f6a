"""The same pictures as PNG: what is drawn is there, at its place, smooth at its edges; and other programs can read it."""

from __future__ import annotations

import zlib
from struct import unpack
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from fairbank.report.plots.letters import strokes
from fairbank.report.plots.picture import Box, Dot, Group, Mark, Path, Picture, Point, Text, line
from fairbank.report.plots.pixels import fill
from fairbank.report.plots.png import png

WHITE, BLACK = [255, 255, 255], [0, 0, 0]


class Read(NamedTuple):
    """A PNG file as a reader sees it: its texts, and red, green and blue of each pixel by row and column."""

    texts: dict[str, str]
    pixels: npt.NDArray[np.uint8]


def read(file: bytes) -> Read:
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, list[tuple[bytes, bytes]]()
    while at < len(file):
        (length,) = unpack(">I", file[at : at + 4])
        kind, data, check = (
            file[at + 4 : at + 8],
            file[at + 8 : at + 8 + length],
            file[at + 8 + length : at + 12 + length],
        )
        assert unpack(">I", check) == (zlib.crc32(kind + data),)
        chunks.append((kind, data))
        at += 12 + length
    assert [kind for kind, _ in chunks] == [b"IHDR", b"iTXt", b"iTXt", b"IDAT", b"IEND"]
    wide, high, *format_ = unpack(">IIBBBBB", chunks[0][1])
    assert format_ == [8, 2, 0, 0, 0], (
        "eight bits of each of three colours, neither filtered nor interlaced"
    )
    rows = np.frombuffer(zlib.decompress(chunks[3][1]), np.uint8).reshape(high, wide * 3 + 1)
    assert not rows[:, 0].any()
    texts = {
        data.split(b"\0")[0].decode(): data.split(b"\0", 5)[5].decode()
        for kind, data in chunks
        if kind == b"iTXt"
    }
    return Read(texts, rows[:, 1:].reshape(high, wide, 3))


def drawn(*marks: Mark, scale: float = 1.0) -> npt.NDArray[np.uint8]:
    return read(png(Picture("t", "a", 20, 10, marks), scale)).pixels


def ink(pixels: npt.NDArray[np.uint8]) -> float:
    """How many pixels are black, counting those that are so in part."""
    return float((255 - pixels[:, :, 0].astype(float)).sum() / 255)


def test_it_says_what_it_is() -> None:
    found = read(png(Picture("Fair share", "levels of é and \u221a", 20, 10, [])))
    assert found.texts == {"Title": "Fair share", "Description": "levels of é and \u221a"}
    assert (found.pixels.shape, found.pixels.min()) == ((20, 40, 3), 255)


def test_a_box_is_where_it_is_said() -> None:
    found = drawn(Box((2, 3), 4, 5, fill="#000000", stroke=None))
    assert (found[3:8, 2:6] == BLACK).all()
    assert ink(found) == pytest.approx(20)


def test_edges_between_pixels_are_covered_in_part() -> None:
    found = drawn(Box((2.5, 3.25), 4, 5, fill="#000000", stroke=None))
    assert (found[5, 2, 0], found[5, 6, 0], found[3, 4, 0], found[8, 4, 0]) == (128, 128, 64, 191)
    assert ink(found) == pytest.approx(20, abs=0.1)


def test_a_group_moves_its_marks_and_larger_files_have_more_pixels() -> None:
    found = drawn(
        Group((1, 2), [Group((1, 1), [Box((0, 0), 4, 5, fill="#000000", stroke=None)])]), scale=2
    )
    assert found.shape == (20, 40, 3)
    assert (found[6:16, 4:12] == BLACK).all()
    assert ink(found) == pytest.approx(80)


def test_a_line_is_as_wide_as_its_pen_and_ends_where_it_ends() -> None:
    found = drawn(line((4, 5), (14, 5), colour="#000000", width=2))
    assert (found[4:6, 4:14] == BLACK).all()
    assert ink(found) == pytest.approx(20)


def test_strokes_and_gaps_come_in_turn() -> None:
    found = drawn(line((0, 5), (20, 5), colour="#000000", width=2, dash=(4, 2)))
    assert [bool(cell) for cell in found[4, :, 0] == 0] == [column % 6 < 4 for column in range(20)]
    bent = drawn(line((0, 5), (6, 5), (6, 9), colour="#000000", width=2, dash=(7, 2)))
    assert ink(bent) < ink(drawn(line((0, 5), (6, 5), (6, 9), colour="#000000", width=2))), (
        "a stroke goes on around a corner"
    )
    assert (bent[8, 6] == BLACK).all() or (bent[8, 6] != WHITE).any()


def test_an_area_has_holes_where_rings_overlap() -> None:
    outer, inner = (
        [(2.0, 1.0), (12.0, 1.0), (12.0, 9.0), (2.0, 9.0)],
        [(5.0, 3.0), (8.0, 3.0), (8.0, 6.0), (5.0, 6.0)],
    )
    found = drawn(Path([outer, inner], fill="#000000"))
    assert (found[4, 6] == WHITE).all()
    assert ink(found) == pytest.approx(80 - 9)


def test_a_dot_is_as_large_as_its_radius() -> None:
    assert ink(drawn(Dot((8, 5), 3, "#000000"))) == pytest.approx(np.pi * 9, rel=0.03)


def test_what_lies_outside_is_not_painted() -> None:
    assert ink(drawn(Dot((-8, 5), 3, "#000000"), line((0, -9), (20, -9)), Box((30, 30), 1, 1))) == 0
    assert ink(drawn(Dot((0, 5), 3, "#000000"))) == pytest.approx(np.pi * 9 / 2, rel=0.05)
    assert ink(drawn(Path([], width=2), Path([[]], width=2), Path([[]], fill="#000000"))) == 0


def test_colours_cover_each_other_in_order() -> None:
    found = drawn(
        Box((0, 0), 9, 9, fill="#0072b2", stroke=None),
        Box((2, 2), 3, 3, fill="#d55e00", stroke=None),
    )
    assert (found[1, 1].tolist(), found[3, 3].tolist()) == ([0x00, 0x72, 0xB2], [0xD5, 0x5E, 0x00])


# ---------------------------------------------------------------- letters


def reach(text: Text) -> tuple[Point, Point]:
    """The left upper and the right lower corner of what the pen touches."""
    points = [point for way in strokes(text) for point in way]
    return (min(x for x, _ in points), min(y for _, y in points)), (
        max(x for x, _ in points),
        max(y for _, y in points),
    )


def test_a_text_stands_on_its_line_and_begins_or_ends_where_it_is_said() -> None:
    (left, top), (right, bottom) = reach(Text("EH", (100, 50)))
    assert (left, bottom) == (100, 50)
    assert 8 < 50 - top < 10, "capitals are about seven tenths of the size"
    assert reach(Text("EH", (100, 50), "end"))[1][0] == pytest.approx(100)
    (begin, _), (end, _) = reach(Text("EH", (100, 50), "middle"))
    assert (begin + end) / 2 == pytest.approx(100)
    assert end - begin == pytest.approx(right - left)


def test_a_text_may_be_read_from_below() -> None:
    (left, top), (right, bottom) = reach(Text("EH", (100, 50), upwards=True))
    assert (right, bottom) == (100, 50)
    assert right - left < bottom - top


def test_every_letter_of_a_keyboard_is_there_and_others_are_boxes() -> None:
    shapes = {
        each: tuple(map(tuple, strokes(Text(each, (0, 0))))) for each in map(chr, range(33, 127))
    }
    assert len(set(shapes.values())) == len(shapes), "no two look alike"
    assert strokes(Text("\u4e2d", (0, 0))) == strokes(Text("\u03a9", (0, 0)))
    assert strokes(Text("Jos\u00e9", (0, 0))) == strokes(Text("Jose", (0, 0)))


def test_a_gap_around_letters_hides_what_is_beneath() -> None:
    beneath = Box((0, 0), 20, 10, fill="#000000", stroke=None)
    plain, hidden = (
        drawn(beneath, Text("I", (10, 9), colour="#000000", edge=edge, size=9))
        for edge in (None, "#ffffff")
    )
    assert ink(hidden) < ink(plain) - 20


def test_areas_of_many_rings_are_never_negative_nor_more_than_all() -> None:
    chance = np.random.default_rng(5)
    for _ in range(20):
        cover = np.zeros((12, 17))
        fill(
            cover,
            [[(float(x), float(y)) for x, y in chance.uniform(-5, 22, (6, 2))] for _ in range(3)],
        )
        assert cover.min() >= 0
        assert cover.max() <= 1 + 1e-12
