"""Entries of a slurm.conf with the files that it includes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from posixpath import dirname, join, normpath

from fairbank.core.errors import InvalidInput
from fairbank.core.settings_file import decode_text
from fairbank.slurm.parsers.conf_lines import INCLUDE, conf_lines
from fairbank.slurm.parsers.words import quote_unknown
from fairbank.wlm.config.entries import (
    FileEntry,
    Record,
    find_keyword,
    invalid,
    slurm_conf_keywords,
    unknown,
)
from fairbank.wlm.config.keyword import NAMES, NODES, PARTITIONS, TOP

ReadFile = Callable[[str], bytes]
"""Reader of a file by name. It raises OSError, or InvalidInput for a file that is too large."""

ErrorAt = Callable[..., InvalidInput]
"""Builder of an error from its message and `remedy`."""

FILES_MAX = 100
_PAIR = re.compile(r"\s*([\w.]+)\s*=\s*(?:\"([^\"]*)\"(?=\s|$)|(\S+))", re.ASCII)
_FIRST = {NAMES[group].lower(): group for group in (NODES, PARTITIONS)}


def read_content(name: str, read: ReadFile, error: ErrorAt = InvalidInput) -> bytes:
    """Return the content of a file.

    Args:
        read: reader of files.
        error: builder of an error with the place that names the file.

    Raises:
        InvalidInput: the file cannot be read.
    """
    try:
        return read(name)
    except (OSError, ValueError) as bad:  # ValueError: a name with a NUL character
        reason = bad.strerror if isinstance(bad, OSError) else bad
        what = f"cannot read {quote_unknown(name)}: {reason}"
        raise error(what, remedy="name a file that is there") from bad
    except InvalidInput as bad:
        raise error(bad.message, remedy=bad.remedy) from bad


def read_slurm_conf(name: str, content: bytes, read: ReadFile) -> Iterator[Record]:
    """Yield the lines of a slurm.conf, and in their places those of included files.

    Args:
        name: name of the file; relative names of included files begin in its directory.
        read: reader of the included files.

    Raises:
        InvalidInput: the text is damaged, a keyword is unknown, or a file is included twice.
    """
    return _lines(name, content, read, dirname(name), {normpath(name)})


def _lines(
    name: str, content: bytes, read: ReadFile, directory: str, names: set[str]
) -> Iterator[Record]:
    for number, line in conf_lines(decode_text(content, name, field="slurm_conf")):
        place = f"{name}, line {number}"
        if include := INCLUDE.fullmatch(line):
            error = partial(invalid, place, field="Include")
            path = normpath(join(directory, include[1]))
            if path in names:
                what = f"{quote_unknown(include[1])} is included twice, or includes itself"
                raise error(what, remedy="include each file once")
            if len(names) == FILES_MAX:
                raise error(f"more than {FILES_MAX} files", remedy="include fewer files")
            names.add(path)
            included = read_content(path, read, error)
            yield from _lines(path, included, read, directory, names)
        else:
            yield _record(line, place)


def _record(line: str, place: str) -> Record:
    pairs = list(_pairs(line, place))
    group = _FIRST.get(pairs[0][0].lower(), TOP)
    known = slurm_conf_keywords(group)
    entries = []
    for written, text in pairs:
        keyword = find_keyword(written.lower(), known)
        if keyword is None:
            others = [
                f"on a line that begins with {NAMES[other]}"
                for other in (NODES, PARTITIONS)
                if written.lower() in slurm_conf_keywords(other)
            ]
            if group and written.lower() in slurm_conf_keywords(TOP):
                others = ["on a line of its own"]
            names = [keyword.name for keyword in known.values()]
            raise unknown(place, written, names, others[0] if others else "")
        entries.append(FileEntry(keyword, place, written, text))
    return Record(group, place, tuple(entries))


def _pairs(line: str, place: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(line):
        match = _PAIR.match(line, at)
        if match is None:
            rest = line[at:].strip()
            raise invalid(
                place,
                "is not KEYWORD=VALUE",
                field=quote_unknown(rest),
                remedy='write KEYWORD=VALUE, with quotes if the value has blanks: Reason="no fan"',
            )
        yield match[1], match[3] if match[2] is None else match[2]
        at = match.end()
