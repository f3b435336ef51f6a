"""Letters for pictures made of pixels: our own, drawn with a pen, so that they are smooth at any size and in any direction.

A letter is a text of strokes; a point is two figures: how far right, and how high. Capitals stand on 2 and end at 9, small letters end at
7. A stroke that begins with `~` is bent at its points instead of broken; it is closed where it ends as it began. Accents are left out,
and what we have no letter for is a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from unicodedata import combining, normalize

from fairbank.report.plots.picture import Point, Text

_LETTERS = {
    "0": "~0242490902", "1": "072922", "2": "~0709494602 0242", "3": "~0809494626 ~2646420203", "4": "32390444",
    "5": "490906 ~0647420203", "6": "~0242460602 ~040839", "7": "094912", "8": "~0646490906 ~0242460602", "9": "~0545490905 ~474312",
    "A": "022942 1434", "B": "0209 ~09494606 ~06464202", "C": "~575909025254", "D": "0209 ~09595202", "E": "49090242 0636",
    "F": "490902 0636", "G": "~575909025255 5535", "H": "0209 5259 0656", "I": "0209", "J": "~39320204", "K": "0209 4904 1542",
    "L": "090242", "M": "0209346962", "N": "02095259", "O": "~0252590902", "P": "0209 ~09494505", "Q": "~0252590902 3451",
    "R": "0209 ~09494505 2542", "S": "~4849090645420203", "T": "0949 2922", "U": "~090502424549", "V": "092249", "W": "0912385269",
    "X": "0942 0249", "Y": "0925 4925 2522", "Z": "09490242",
    "a": "~0242470702 4247", "b": "0209 ~0242470702", "c": "~464707024243", "d": "4249 ~0242470702", "e": "0444 ~444707024243",
    "f": "~12171939 0737", "g": "~0242470702 ~4742400001", "h": "0209 ~05074742", "i": "0207 0909", "j": "~17121000 1919",
    "k": "0209 4704 1542", "l": "~09040212", "m": "0207 ~05073732 ~35376762", "n": "0207 ~05074742", "o": "~0242470702",
    "p": "0007 ~0242470702", "q": "4047 ~0242470702", "r": "0207 ~050737", "s": "~4647070544420203", "t": "~19141232 0737",
    "u": "~07024244 4742", "v": "072247", "w": "0712375267", "x": "0742 0247", "y": "0722 4710", "z": "07470242",
    " ": "", "!": "0904 0202", '"': "0907 2907", "#": "1218 3238 0444 0646", "$": "~4849090645420203 2921",
    "%": "0249 ~0727290907 ~2444422224", "&": "~420709393604024245", "'": "0907", "(": "~29070420", ")": "~09272400",
    "*": "2925 0846 0648", "+": "2723 0545", ",": "1201", "-": "0535", ".": "0202", "/": "0139", ":": "0202 0606", ";": "1616 1201",
    "<": "470543", "=": "0646 0444", ">": "074503", "?": "~080949462524 2222", "@": "~2444462624 ~46436469090151", "[": "29090020",
    "\\": "0931", "]": "09292000", "^": "072947", "_": "0151", "`": "0918", "{": "~391705 ~051330", "|": "0900", "}": "~092735 ~353300",
    "~": "~04074447", "\u2026": "0202 2222 4242", "\u00b2": "~08092806 0626", "\u221a": "05122969",
}  # fmt: skip
_BOX = "0242490902"
_BASELINE, _HIGH = 2, 9.8
_GAP, _BLANK = 1.9, 1.2
_PEN, _BOLD = 0.85, 1.35
_ROUNDS = 3


def strokes(text: Text) -> list[list[Point]]:
    """Where the pen goes, in the picture's pixels; a stroke of one point twice is a dot."""
    step, wide = text.size / _HIGH, _width(text.said)
    begin = {"start": 0.0, "middle": -wide / 2, "end": -wide}[text.anchor]
    found, at = [], begin
    for letter in _known(text.said):
        ways, advance = _letter(letter)
        found += [
            [_placed(text, (at + x) * step, (y - _BASELINE) * step) for x, y in way] for way in ways
        ]
        at += advance
    return found


def pen(text: Text) -> float:
    """How wide it is, in the picture's pixels."""
    return text.size / _HIGH * (_BOLD if text.bold else _PEN)


def _placed(text: Text, right: float, up: float) -> Point:
    x, y = text.at
    return (x - up, y - right) if text.upwards else (x + right, y - up)


def _known(said: str) -> Sequence[str]:
    return [each for each in normalize("NFD", said) if not combining(each)]


def _width(said: str) -> float:
    return sum(_letter(each)[1] for each in _known(said)) - _GAP


@cache
def _letter(letter: str) -> tuple[list[list[Point]], float]:
    """Its strokes, and how far it is to the next letter."""
    ways = []
    for stroke in _LETTERS.get(letter, _BOX).split():
        figures = stroke.removeprefix("~")
        points = [(float(x), float(y)) for x, y in zip(figures[::2], figures[1::2], strict=True)]
        ways.append(_bent(points) if stroke != figures else points)
    wide = max((x for way in ways for x, _ in way), default=_BLANK)
    return ways, wide + _GAP


def _bent(points: list[Point]) -> list[Point]:
    """With its corners cut off, again and again: a curve through the middles of its sides (Chaikin 1974)."""
    closed = points[0] == points[-1]
    for _ in range(_ROUNDS):
        cut = [
            _between(one, other, part) for one, other in pairwise(points) for part in (0.25, 0.75)
        ]
        points = [*cut, cut[0]] if closed else [points[0], *cut[1:-1], points[-1]]
    return points


def _between(one: Point, other: Point, part: float) -> Point:
    return one[0] + (other[0] - one[0]) * part, one[1] + (other[1] - one[1]) * part
