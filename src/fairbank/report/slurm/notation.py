"""Special words of Slurm's output, and how its commands write single values.

Source: docs/reference/slurm-rules.md, "Output of Slurm's commands".
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple

from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.core.time import DAY, show_duration

PIPE = "|"
"""Delimiter of sacct, sacctmgr and sshare with --parsable; sacctmgr knows no other."""

NULL = "(null)"
"""Text that was never set, as C prints it."""
NOT_APPLICABLE = "N/A"
UNKNOWN = "Unknown"
NONE = "None"
NO_DEFAULT = "NONE"
"""Time of a partition that sets none, in scontrol."""
NONE_ASSIGNED = "None assigned"
"""Nodes of a job without any, in accounting."""
UNLIMITED = "UNLIMITED"
INFINITE = "infinite"
"""Unlimited time of a partition, in sinfo."""
UNLIMITED_WORDS = frozenset({UNLIMITED, INFINITE.upper()})
"""Words for no limit; settings have both."""
INVALID = "INVALID"
"""Time below 0 or above a year, in squeue."""
NOT_SET = "NOT_SET"
PARTITION_LIMIT = "Partition_Limit"
"""Time limit of a job without --time that has not started, in sacct and scontrol."""
ALL = "ALL"
ANY = "*"
PARENT = "parent"
"""Shares of an association that uses those of its parent."""
REASON_NONE = "none"
YES, NO = "YES", "NO"

JOB_STATES = {
    "PENDING": "PD",
    "RUNNING": "R",
    "SUSPENDED": "S",
    "COMPLETED": "CD",
    "CANCELLED": "CA",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "PREEMPTED": "PR",
    "BOOT_FAIL": "BF",
    "DEADLINE": "DL",
    "OUT_OF_MEMORY": "OOM",
}
"""Short forms of the states of jobs."""
JOB_FLAGS = {
    "COMPLETING": "CG",
    "STAGE_OUT": "SO",
    "CONFIGURING": "CF",
    "RESIZING": "RS",
    "REQUEUED": "RQ",
    "REQUEUE_FED": "RF",
    "REQUEUE_HOLD": "RH",
    "SPECIAL_EXIT": "SE",
    "STOPPED": "ST",
    "REVOKED": "RV",
    "RESV_DEL_HOLD": "RD",
    "SIGNALING": "SI",
}
"""Short forms of flags that are shown instead of the state. The first that is set counts."""
NODE_STATES = {
    "ALLOCATED": "alloc",
    "COMPLETING": "comp",
    "DOWN": "down",
    "DRAINED": "drain",
    "DRAINING": "drng",
    "FAIL": "fail",
    "FAILING": "failg",
    "FUTURE": "futr",
    "IDLE": "idle",
    "MAINT": "maint",
    "MIXED": "mix",
    "PLANNED": "plnd",
    "REBOOT": "boot",
    "RESERVED": "resv",
    "UNKNOWN": "unk",
}
"""Short forms of the states of nodes. sinfo prints both forms in lower case."""
NODE_SIGNS = "*~#!%$@^-+"
"""Signs after the state of a node: not responding, powered off, powering up, and so on."""


RELATIVE = "relative"
"""Form of times that leaves out what is near."""
_NEAR_DAYS = {-1: "Ystday %H:%M", 0: "%H:%M:%S", 1: "Tomorr %H:%M"}


class Notation(NamedTuple):
    """Form in which a command writes values: time zone, times, and whether it shortens numbers.

    Without a zone, times are those of TZ.
    """

    zone: tzinfo | None = UTC
    time_format: str = "%Y-%m-%dT%H:%M:%S"
    """Form of SLURM_TIME_FORMAT, or RELATIVE."""
    now: int = 0
    """Time to which relative times refer."""
    shortens: bool = True
    """False with --noconvert."""
    unit: str = ""
    """Unit of all sizes and counts, with --units; empty: the largest that keeps them."""


class Uncut(str):
    """Text that Slurm never cuts on its right: it widens its column."""


class Unmarked(str):
    """Text that is cut without the + that marks a cut."""


class EndKept(str):
    """Text whose last character stays when it is cut, such as the * of the default partition."""


Written = str | int | float | None
"""Cell. Tables with dashes under the header leave None blank and treat texts and numbers apart."""
Writer = Callable[[Any, Notation], Written]


# Control characters, line separators and direction marks. Other characters may not be printable
# either, such as bytes of a file name that are no UTF-8, but they break no line.
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def in_one_line(words: str) -> str:
    """Return a text with `\\n` and the like for what would break its line, or forge another."""
    if words.isprintable():
        return words
    return _BREAKING.sub(lambda match: match[0].encode("unicode_escape").decode(), words)


def text(value: object, notation: Notation) -> str:
    """Return a text or a number."""
    return NULL if value is None else in_one_line(str(value))


def plain(value: Written, notation: Notation) -> Written:
    """Return the value in one line: of accounting, where None stands for a blank cell."""
    return in_one_line(value) if isinstance(value, str) else value


def else_word(word: str, write: Writer = text) -> Writer:
    """Return the writer with a word for what is not set."""

    def write_or(value: object, notation: Notation) -> Written:
        return word if value is None else write(value, notation)

    return write_or


def constant(word: Written) -> Writer:
    """Return a writer of the same word for everything, of what Fairbank does not have."""
    return lambda value, notation: word


def flag(value: bool, notation: Notation) -> str:
    """Return 0 or 1."""
    return str(int(value))


def yes_no(value: bool, notation: Notation) -> str:
    """Return YES or NO."""
    return YES if value else NO


def licenses_text(counts: Mapping[str, int]) -> str | None:
    """Return licenses such as `matlab:2,ansys:1`; None if there are none."""
    return ",".join(f"{name}:{count}" for name, count in counts.items()) or None


def names(value: Sequence[str], notation: Notation) -> str:
    """Return names with commas between them."""
    return ",".join(value) or NULL


@lru_cache(maxsize=4_096)  # rows of a list share many times
def time(at: int | None, notation: Notation) -> str:
    """Return the time in the zone of the user; Unknown if it has not come."""
    if at is None:
        return UNKNOWN
    when = datetime.fromtimestamp(at, notation.zone)
    if notation.time_format != RELATIVE:
        return when.strftime(notation.time_format)
    today = datetime.fromtimestamp(notation.now, notation.zone).date()
    days = (when.date() - today).days
    if days in _NEAR_DAYS:
        return when.strftime(_NEAR_DAYS[days])
    if abs(days) > 365:
        return when.strftime("%-d %b %Y")
    return when.strftime("%a %H:%M" if 1 < days < 7 else "%-d %b %H:%M")


def date_line(now: int, notation: Notation) -> str:
    """Return the line before the table of squeue -l and sinfo -l."""
    return datetime.fromtimestamp(now, notation.zone).strftime("%a %b %d %H:%M:%S %Y")


def clock(seconds: int, notation: Notation) -> str:
    """Return `5:00`, `1:00:00` or `1-00:00:00`, as squeue and sinfo write times."""
    days, rest = divmod(seconds, DAY)
    hours, rest = divmod(rest, 3600)
    tail = f"{rest // 60:02}:{rest % 60:02}"
    if days:
        return f"{days}-{hours:02}:{tail}"
    return f"{hours}:{tail}" if hours else f"{rest // 60}:{rest % 60:02}"


def queue_clock(seconds: int, notation: Notation) -> str:
    """Return the time as squeue writes it, which distrusts what is above a year."""
    return clock(seconds, notation) if 0 <= seconds <= UNLIMITED_SECONDS else INVALID


def duration(seconds: int | None, notation: Notation) -> str:
    """Return `[d-]hh:mm:ss`, or UNLIMITED for None."""
    return UNLIMITED if seconds is None else show_duration(seconds)


def exit_code(code: tuple[int, int], notation: Notation) -> str:
    """Return the exit status and the signal."""
    return f"{code[0]}:{code[1]}"


UNITS = "KMGTP"


def shortened(
    value: float, *, unit: str = "", exact: bool = True, step: int = 1024, shown: str = ""
) -> str:
    """Return a number with the largest unit that keeps it.

    Half a unit is kept as `2.50G`.

    Args:
        value: the number.
        unit: its unit, of UNITS; empty for none.
        exact: False always takes the largest unit, with two decimals.
        step: the factor between two units.
        shown: unit of the result; empty: that which fits.
    """
    if int(value) == 0:
        return "0"
    units = ["", *UNITS]
    place = units.index(unit)
    if shown:
        value *= step ** (place - units.index(shown))
        return f"{int(value)}{shown}" if value == int(value) else f"{value:.2f}{shown}"
    while value >= step and place < len(UNITS) and not (exact and int(value) % (step // 2)):
        value, place = value / step, place + 1
    return f"{int(value)}{units[place]}" if value == int(value) else f"{value:.2f}{units[place]}"


def count(value: int, notation: Notation) -> str:
    """Return a number of things, such as 2K for 2,048."""
    return shortened(value, shown=notation.unit) if notation.shortens else str(value)


def mebibytes(value: int, notation: Notation) -> str:
    """Return a size in MiB, such as 1000M or 64G."""
    if not notation.shortens:
        return f"{value}M" if value else "0"
    return shortened(value, unit="M", shown=notation.unit)
