"""Entries of a wlm.toml. Their texts are those of slurm.conf, so that both have one reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fairbank.core.settings_file import decode_text, parse_toml
from fairbank.wlm.config.entries import (
    KEYWORDS,
    FileEntry,
    Record,
    find_keyword,
    invalid,
    toml_keywords,
    unknown,
)
from fairbank.wlm.config.keyword import NAMES, TABLES, TOP

_LONG_STRING = re.compile(r'""".*?"""|\'\'\'.*?\'\'\'', re.DOTALL)
_HEADER = re.compile(r"\s*\[\[?\s*[\"']?([\w-]+)[\"']?\s*\]", re.ASCII)
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*=", re.ASCII)
_Lines = Mapping[tuple[str, int, str], int]
"""Line of each key, by table, number of the table of this name, and key; empty: of the table."""


def read_toml(name: str, content: bytes) -> Iterator[Record]:
    """Yield the tables of a wlm.toml.

    Args:
        name: name of the file, for messages.

    Raises:
        InvalidInput: the text is damaged, or a table or key is unknown.
    """
    document = parse_toml(content, name, field=name)
    lines = _line_numbers(decode_text(content, name, field=name))
    top = {key: value for key, value in document.items() if not _is_table(value)}
    yield _record(name, lines, TOP, 0, top)
    for group, value in document.items():
        if group in top:
            continue
        place = _place(name, lines, group, 0, "")
        if group not in (*TABLES, *NAMES):
            raise unknown(place, group, (*TABLES, *NAMES), "")
        if (group in NAMES) is not isinstance(value, list):
            form = f"[[{group}]]" if group in NAMES else f"[{group}]"
            raise invalid(place, "is another kind of table", field=group, remedy=f"write {form}")
        for number, table in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(table, dict):
                raise invalid(place, "is not a list of tables", field=group, remedy=f"[[{group}]]")
            yield _record(name, lines, group, number, table)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(item, dict) for item in value)
    )


def _record(
    name: str, lines: _Lines, group: str, number: int, table: Mapping[str, object]
) -> Record:
    known = toml_keywords(group)
    entries = []
    for key, value in table.items():
        place = _place(name, lines, group, number, key)
        keyword = known.get(key)
        if keyword is None:
            other = next((keyword for keyword in KEYWORDS if keyword.key == key), None)
            keyword = None if other else find_keyword(key, known)
        if keyword is None:
            elsewhere = f"in {_title(other.group)}" if other else ""
            raise unknown(place, key, known, elsewhere)
        text = _text(value)
        if text is None:
            words = keyword.form.words if keyword.form else "text"
            raise invalid(place, "is neither text nor a number nor a list", field=key, remedy=words)
        entries.append(FileEntry(keyword, place, key, text))
    return Record(group, _place(name, lines, group, number, ""), tuple(entries))


def _title(group: str) -> str:
    return f"[[{group}]]" if group in NAMES else f"[{group}]" if group else "front of all tables"


def _text(value: Any) -> str | None:
    """Return a value as slurm.conf would have it; None for tables, dates and lists of lists."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() if abs(value) < 2**64:
            return str(value)
        case float():
            return str(value)
        case list():
            texts = [None if isinstance(item, list) else _text(item) for item in value]
            known = [text for text in texts if text is not None]
            return ",".join(known) if len(known) == len(texts) else None
    return None


def _place(name: str, lines: _Lines, group: str, number: int, key: str) -> str:
    line = lines.get((group, number, key)) or lines.get((group, number, ""))
    return f"{name}, line {line}" if line else name


def _line_numbers(text: str) -> _Lines:
    """Return the lines of keys and tables, for messages; an inline table has that of its key."""
    blanked = _LONG_STRING.sub(lambda match: "\n" * match[0].count("\n"), text)
    lines: dict[tuple[str, int, str], int] = {}
    counts: dict[str, int] = {}
    group, number = TOP, 0
    for at, line in enumerate(blanked.split("\n"), 1):
        if header := _HEADER.match(line):
            group = header[1]
            number = counts.get(group, 0)
            counts[group] = number + 1
            lines.setdefault((group, number, ""), at)
        elif key := _KEY.match(line):
            lines.setdefault((group, number, key[1]), at)
            if group == TOP:
                lines.setdefault((key[1], 0, ""), at)
    return lines
