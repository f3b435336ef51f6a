"""Lines of slurm.conf: without comments, continued lines joined, escapes resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)
"""Line that includes another file."""

_UP_TO_COMMENT = re.compile(r"(?:[^\\#]|\\.|\\$)*")
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


class ConfLine(NamedTuple):
    """Line with the number of its first part in the file, from 1."""

    number: int
    text: str


def conf_lines(text: str) -> Iterator[ConfLine]:
    r"""Yield the lines that are not blank, without the blanks at their ends.

    As in slurmctld, a comment ends with its own line, also behind a backslash, and continued lines
    are joined without a blank. `\#` begins no comment, and `\\` continues no line.

    >>> list(conf_lines("A=1,\\\n2 # two \\\n\nC=x\\#y"))
    [ConfLine(number=1, text='A=1,2'), ConfLine(number=4, text='C=x#y')]
    """
    first = 1
    parts: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        match = _UP_TO_COMMENT.match(line)
        content = match[0].rstrip() if match else ""
        backslashes = len(content) - len(content.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        parts.append(content[:-1] if is_continued else content)
        if is_continued and number < len(lines):
            continue
        if complete := _ESCAPE.sub(r"\1", "".join(parts)).strip():
            yield ConfLine(first, complete)
        first, parts = number + 1, []
