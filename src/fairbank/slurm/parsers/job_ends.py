"""How jobs ended and what processor time they used: `sacct` in columns once more, for few jobs, since each step has a line."""

from __future__ import annotations

import re

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.delimited import DELIMITER, read, records
from fairbank.slurm.parsers.values import ParsedRows, Spent

COLUMNS = ("JobIDRaw", "Submit", "ExitCode", "TotalCPU")
"""Without steps TotalCPU is always 0, sacct(1) says. Nothing of this is for users to write."""

_EXIT = re.compile(r"(\d{1,3}):(\d{1,3})", re.ASCII)
_TIME = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d{2})(?:\.(\d{3}))?", re.ASCII)


def read_spent(text: str, delimiter: str = DELIMITER) -> ParsedRows[Spent]:
    """The lines of `sacct --noheader --parsable2 --duplicates`, times in UTC; those of steps are passed over."""
    return read("sacct", records("sacct", text, COLUMNS, delimiter), _spent)


def _spent(cells: dict[str, str]) -> Spent | None:
    if "." in cells["JobIDRaw"]:
        return None
    return Spent(
        job_id=words.number(cells["JobIDRaw"], "JobIDRaw", most=ids.JOB_ID_MAX),
        submitted=words.submitted(words.instant(cells["Submit"], "Submit"), "Submit"),
        exit_code=_exit(cells["ExitCode"]),
        cpu_seconds=_seconds(cells["TotalCPU"]),
    )


def _exit(text: str) -> tuple[int, int] | None:
    """Exit code and signal. Raises InvalidInput."""
    match = _EXIT.fullmatch(text)
    if match is None or int(match[1]) > 255 or int(match[2]) > 127:
        if not text:
            return None
        raise InvalidInput(f"{words.shown(text)} is no exit code", field="ExitCode")
    return int(match[1]), int(match[2])


def _seconds(text: str) -> int | None:
    """A part of a second counts as one. None for no time at all: that is what a Slurm says that does not gather it. Raises InvalidInput."""
    match = _TIME.fullmatch(text)
    if match is None:
        if not text:
            return None
        raise InvalidInput(f"{words.shown(text)} is no time", field="TotalCPU")
    days, hours, minutes, seconds, thousandths = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + (thousandths > 0) or None
