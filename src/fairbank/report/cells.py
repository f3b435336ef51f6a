"""One cell: how wide it is on a terminal, and how foreign text is made harmless there and in a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import wrap
from unicodedata import category, east_asian_width

_NUMBER = re.compile(r"-?[\d,]+(\.\d+)?%?", re.ASCII)
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)  # spreadsheets also read the full-width forms
_NO_WIDTH = frozenset({"Mn", "Me"})


def plain(text: str) -> str:
    """`text` with everything spelt out that is not printable: control characters, terminal escapes, marks that turn the line around."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def width(text: str) -> int:
    """How many columns of a terminal `text` takes: wide East Asian characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_width_of(each) for each in text)


def _width_of(character: str) -> int:
    if category(character) in _NO_WIDTH:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """`text` filled with blanks to at least `columns`, on its left when it is to stand `right`."""
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks


def cut(text: str, columns: int) -> str:
    """`text` in at most `columns` (at least one); what was cut short ends in +, as in Slurm's tables."""
    if width(text) <= columns:
        return text
    taken, room = "", columns - 1
    for each in text:
        room -= _width_of(each)
        if room < 0:
            break
        taken += each
    return taken + "+"


def without(delimiter: str, text: str) -> str:
    """A cell that cannot be taken for two: the delimiter in it is spelt out."""
    return (
        "".join(f"\\x{ord(each):02x}" for each in delimiter).join(text.split(delimiter))
        if delimiter in text
        else text
    )


def for_spreadsheet(text: str) -> str:
    """A CSV cell: quoted where it must be, and with ' before what a spreadsheet would take for a formula. Plain numbers stay."""
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return (
        '"' + text.replace('"', '""') + '"' if any(each in text for each in '",;\n\r\t') else text
    )


def csv_line(cells: Iterable[str]) -> str:
    """A line of CSV, without its end."""
    return ",".join(map(for_spreadsheet, cells))


def counted(number: int, thing: str, things: str | None = None) -> str:
    """`1 row`, `2,000 rows`; `things` where the plural has no plain s."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def folded(line: str, columns: int) -> list[str]:
    """`line` in lines of at most `columns`, the later ones set in; words are not broken."""
    if len(line) <= columns:
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + "    "
    return wrap(
        line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
