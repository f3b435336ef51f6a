"""Table cells: width on a terminal, escapes for terminals, scripts and spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import wrap
from unicodedata import category, east_asian_width

_NUMBER = re.compile(r"-?[\d,]+(\.\d+)?%?", re.ASCII)
# Spreadsheets also read the full-width forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NO_WIDTH = frozenset({"Mn", "Me"})


def plain(text: str) -> str:
    """Return `text` with control characters, terminal escapes and direction marks escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def width(text: str) -> int:
    """Return the columns on a terminal: 2 for wide East Asian, 0 for combining characters."""
    if text.isascii():
        return len(text)
    return sum(_width_of(character) for character in text)


def _width_of(character: str) -> int:
    if category(character) in _NO_WIDTH:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """Return a text padded with blanks.

    Args:
        text: text; one that is wider stays as it is.
        columns: least width in columns of the terminal.
        right: align right.
    """
    blanks = " " * max(0, columns - width(text))
    return blanks + text if right else text + blanks


def cut(text: str, columns: int) -> str:
    """Return `text` truncated to `columns` (at least 1); a + marks the cut, as Slurm does."""
    if width(text) <= columns:
        return text
    prefix, left = "", columns - 1
    for character in text:
        left -= _width_of(character)
        if left < 0:
            break
        prefix += character
    return prefix + "+"


def wrapped(text: str, columns: int) -> list[str]:
    """Return lines of at most `columns` (at least 1), broken at blanks; longer words are broken."""
    lines = [""]
    for word in text.split():
        line = f"{lines[-1]} {word}" if lines[-1] else word
        if width(line) <= columns:
            lines[-1] = line
            continue
        lines += [] if lines[-1] == "" else [""]
        for character in word:
            if lines[-1] and width(lines[-1] + character) > columns:
                lines.append("")
            lines[-1] += character
    return lines


def without(delimiter: str, text: str) -> str:
    """Return the cell with the delimiter escaped, so that it cannot be read as two cells."""
    return (
        "".join(f"\\x{ord(character):02x}" for character in delimiter).join(text.split(delimiter))
        if delimiter in text
        else text
    )


def for_spreadsheet(text: str) -> str:
    """Return a CSV cell: quoted if needed, with ' before text that would be read as a formula."""
    if text.startswith(_FORMULA) and text != "-" and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return (
        '"' + text.replace('"', '""') + '"'
        if any(character in text for character in '",;\n\r\t')
        else text
    )


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV without line end."""
    return ",".join(map(for_spreadsheet, cells))


def ordinal_ending(number: int) -> str:
    """Return `st`, `nd`, `rd` or `th`."""
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def folded(line: str, columns: int) -> list[str]:
    """Wrap a line to `columns`; continuation lines are indented, words are not broken."""
    if len(line) <= columns:
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + "    "
    return wrap(
        line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
