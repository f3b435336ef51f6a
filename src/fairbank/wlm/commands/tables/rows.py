"""Rows from the controller, with no more of their fields than a table shows."""

import os
import sys
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.report.slurm.layout import (
    Columns,
    SlurmColumn,
    TableFormat,
    cells_of,
    field_lines,
    lines,
    parse_fields,
)
from fairbank.report.slurm.notation import JOB_FLAGS, JOB_STATES, PIPE, Notation, date_line
from fairbank.unix_users import find_uid, user_name
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import CommandLine

ACTIVE_STATES = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")
"""States of the jobs that squeue shows without --states."""


class ShownRows(NamedTuple):
    """Rows, with the time of the controller and the name of its cluster."""

    rows: list[Any]
    now: int
    cluster: str


def stored_fields(line: type, names: Iterable[str]) -> list[str]:
    """Return the stored fields of a named tuple from which these fields and properties of it
    follow.
    """
    stored: dict[str, None] = {}
    for name in names:
        value = vars(line).get(name)
        if isinstance(value, property) and value.fget is not None:
            # The names in the code of a property are all that it can read.
            used = (other for other in value.fget.__code__.co_names if hasattr(line, other))
            stored |= dict.fromkeys(stored_fields(line, used))
        elif name in getattr(line, "_fields", ()):
            stored[name] = None
    return list(stored)


def fetch(
    controller: Controller,
    of: str,
    line: type,
    names: Iterable[str],
    matching: Mapping[str, Any] | None = None,
) -> ShownRows:
    """Return rows of the controller that have these fields and properties of their line class.

    `of` is the kind of the rows, as in a request for rows, and `matching` a filter.
    """
    wanted = stored_fields(line, names)
    matching = {name: value for name, value in (matching or {}).items() if value}
    answer = requests.rows(controller, of, wanted, matching=matching)
    make = _row_type(line, answer.columns)
    return ShownRows([*map(make, answer.rows or ())], answer.now, answer.cluster)


def _row_type(line: type, columns: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """Return the maker of rows with some fields of a line class, and its properties.

    A row of the class itself would have up to a hundred defaults, for 10,000 jobs.
    """
    fields = namedtuple("fields", columns)  # type: ignore[misc]
    own = {name: value for name, value in vars(line).items() if isinstance(value, property)}
    row: Any = type(line.__name__, (fields,), {"__slots__": (), **own})
    return partial(tuple.__new__, row)  # what `_make` does, without a call of Python code


def notation(*, shortens: bool = True) -> Notation:
    """Return how values are written: in the zone of TZ, times in the form of SLURM_TIME_FORMAT."""
    form = os.environ.get("SLURM_TIME_FORMAT", "standard")
    default = Notation(zone=None, shortens=shortens, now=int(time.time()))
    return default if form in ("", "standard") else default._replace(time_format=form)


def check_cluster(line: CommandLine, cluster: str) -> None:
    """Check that no other cluster is asked for. Raises InvalidInput."""
    for name in line.items("clusters"):
        if name not in (cluster, "all"):
            raise InvalidInput(
                f"there is no cluster {name[:40]!r} here", remedy=f"this one is {cluster}"
            )


def users_of(line: CommandLine, *options: str) -> list[str]:
    """Return the names of the users in options, or with --me one's own; none for all.

    Raises InvalidInput.
    """
    if "me" in line.options:
        return [user_name(os.getuid())]
    items = [item for option in options or ("user",) for item in line.items(option)]
    return [user_name(int(item)) if item.isdigit() else _user(item) for item in items]


def _user(name: str) -> str:
    if find_uid(name) is None:
        raise InvalidInput(f"Invalid user: {name}")
    return name


def states_of(text: str | None, default: Sequence[str] = ()) -> list[str]:
    """Return the states of an option, without it the default; none for all. Raises InvalidInput."""
    if text is None:
        return list(default)
    long = {short: name for name, short in (JOB_STATES | JOB_FLAGS).items()}
    states: list[str] = []
    for item in filter(None, text.split(",")):
        word = item.upper()
        if word == "ALL":
            return []
        if word not in long and word not in long.values():
            raise InvalidInput(
                f"Invalid job state specified: {item}",
                remedy=f"Valid job states include: {','.join(long.values())}",
            )
        states.append(long.get(word, word))
    return states


def read_fields(form: str, columns: Columns) -> list[SlurmColumn]:
    """Return the columns of --format, with Slurm's error for one that does not exist."""
    try:
        return parse_fields(form, columns)
    except InvalidInput as bad:
        raise InvalidInput(bad.message) from bad


def print_rows(line: CommandLine, rows: Sequence[Any], form: TableFormat, now: int) -> None:
    """Print rows as squeue and sinfo do, with the options that both have.

    `now` is the time of the controller, for the line with the date.
    """
    writes = notation(shortens="noconvert" not in line.options)
    has_header = "noheader" not in line.options
    if has_header and {"long", "verbose", "iterate"} & line.options.keys():
        print(date_line(now, writes))
    _print_lines(lines(rows, form, writes, header=has_header))


def _print_lines(shown: Iterable[str]) -> None:
    """Print lines at once, which takes less time than one after the other."""
    if text := "".join(f"{line}\n" for line in shown):
        sys.stdout.write(text)


def separators(line: CommandLine) -> dict[str, Any]:
    """Return arguments of `field_lines`: --parsable, --parsable2, --delimiter and --noheader."""
    options = line.options
    is_parsable = {"parsable", "parsable2"} & options.keys()
    return {
        "delimiter": options.get("delimiter", PIPE) if is_parsable else "",
        "is_ended": "parsable2" not in options,
        "header": "noheader" not in options,
    }


def print_fields(
    line: CommandLine, rows: Iterable[Any], fields: Sequence[SlurmColumn], writes: Notation
) -> None:
    """Print rows as sacct and sacctmgr do."""
    _print_lines(field_lines(cells_of(rows, fields, writes), fields, **separators(line)))


def report_unknown(name: str, message: str, columns: Iterable[str]) -> None:
    """Print an error for each column that does not exist. The command goes on without it."""
    for column in columns:
        print(f"{name}: error: {message.format(column)}", file=sys.stderr)


def repeat(line: CommandLine, show: Callable[[], int]) -> int:
    """Show a table once, or with --iterate again and again until a signal ends the process.

    Return the exit code.
    """
    seconds = line.options.get("iterate")
    if seconds is None:
        return show()
    if not seconds.isdigit() or int(seconds) == 0:
        raise InvalidInput(f"invalid --iterate value {seconds[:40]!r}", remedy="write seconds")
    while True:
        show()
        print(flush=True)
        time.sleep(int(seconds))
