"""sprio and sshare: priorities of pending jobs, and fair share of associations."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairbank.core.errors import InvalidInput
from fairbank.report.slurm import sprio, sshare
from fairbank.report.slurm.layout import SlurmColumn
from fairbank.report.slurm.notation import NULL
from fairbank.report.slurm.sprio import PriorityRow, WeightRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.unix_users import user_name
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import CommandLine, CommandOption, read_command_line
from fairbank.wlm.commands.tables.rows import (
    check_cluster,
    fetch,
    read_fields,
    separators,
    users_of,
)

SPRIO_OPTIONS = (
    CommandOption("noheader", "h", "", "print no header"),
    CommandOption("jobs", "j", "JOBS", "only these jobs"),
    CommandOption("long", "l", "", "all factors"),
    CommandOption("clusters", "M", "NAMES", "name of this cluster", "SLURM_CLUSTERS"),
    CommandOption("norm", "n", "", "factors from 0 to 1, without weights"),
    CommandOption(
        "format", "o", "FORMAT", "columns by letters, such as '%.15i %9r'", "SPRIO_FORMAT"
    ),
    CommandOption("partition", "p", "NAMES", "only jobs in these partitions"),
    CommandOption("sort", "S", "COLUMNS", "letters of columns, - reverses; default: i"),
    CommandOption("user", "u", "NAMES", "only jobs of these users"),
    CommandOption("verbose", "v", "", "no effect"),
    CommandOption("weights", "w", "", "the weights of the factors"),
)
SSHARE_OPTIONS = (
    CommandOption("all", "a", "", "all users"),
    CommandOption("accounts", "A", "NAMES", "only these accounts"),
    CommandOption("helpformat", "e", "", "list the columns"),
    CommandOption("noheader", "n", "", "print no header"),
    CommandOption("noheader", "h", "", "the same"),
    CommandOption("long", "l", "", "more columns"),
    CommandOption("partition", "m", "", "show the partition"),
    CommandOption("clusters", "M", "NAMES", "name of this cluster", "SLURM_CLUSTERS"),
    CommandOption("format", "o", "COLUMNS", "columns such as account%30,user"),
    CommandOption("parsable", "p", "", "separate cells by |, also after the last"),
    CommandOption("parsable2", "P", "", "separate cells by |"),
    CommandOption("users", "u", "NAMES", "only these users"),
    CommandOption("Users", "U", "", "no accounts, only users"),
    CommandOption("verbose", "v", "", "no effect"),
)
_WEIGHTS = ("Age", "Assoc", "FairShare", "JobSize", "Partition", "QOS")
"""Settings PriorityWeight*, in the order of WeightRow."""


def run(name: str, words: Sequence[str]) -> int:
    """Print priorities as sprio or fair share as sshare, and return the exit code."""
    is_sprio = name == "sprio"
    line = read_command_line(
        name, "[OPTIONS]", SPRIO_OPTIONS if is_sprio else SSHARE_OPTIONS, words
    )
    if line is None:
        return 0
    show: Callable[[Controller, CommandLine], int] = _show_priorities if is_sprio else _show_shares
    with Controller() as controller:
        return show(controller, line)


# --- sprio ---


def _show_priorities(controller: Controller, line: CommandLine) -> int:
    options = line.options
    weights = _weights(requests.settings(controller))
    form = (
        sprio.parse_format(options["format"])
        if "format" in options
        else sprio.default_format(
            weights, long="long" in options, norm="norm" in options, named=True,
            users="user" in options,
        )
    )  # fmt: skip
    header = "noheader" not in options
    if "weights" in options:
        print("\n".join(sprio.weight_lines(weights, form, header=header)))
        return 0
    jobs, users, partitions = line.items("jobs"), users_of(line), line.items("partition")
    matching = {"jobs": jobs, "users": users, "partitions": partitions}
    listing = fetch(controller, "priorities", PriorityRow, PriorityRow._fields, matching)
    check_cluster(line, listing.cluster)
    # The columns of a job are few, and its whole class has the sum of its factors.
    rows = sprio.select_rows(
        [PriorityRow(**row._asdict()) for row in listing.rows],
        partitions=partitions or None,
        users=users or None,
    )
    if not rows and (jobs or users or partitions):
        print(f"{sprio.NO_JOBS} user/id(s) specified")
        return 0
    try:
        rows = sprio.sort_rows(rows, weights, options.get("sort", "i"))
    except InvalidInput as bad:
        raise InvalidInput(
            f"Invalid sort specification: {options['sort']}", remedy=bad.remedy
        ) from bad
    for text in sprio.lines(rows, weights, form, header=header):
        print(text)
    return 0


def _weights(settings: Mapping[str, str]) -> WeightRow:
    """Return the weights in the settings."""
    numbers = [int(settings.get(f"PriorityWeight{name}") or 0) for name in _WEIGHTS]
    weights = WeightRow._make([*numbers, {}, ""])
    text = settings.get("PriorityWeightTRES", NULL)
    if text == NULL:
        return weights
    pairs = (item.partition("=") for item in text.split(","))
    tres = {name.lower(): float(number) for name, _, number in pairs if number}
    return weights._replace(tres=tres, tres_text=text)


# --- sshare ---


def _show_shares(controller: Controller, line: CommandLine) -> int:
    options = line.options
    if "helpformat" in options:
        print(" ".join(sshare.COLUMNS))
        return 0
    fields = _columns(controller, line)
    names = [column.field for column in fields]
    listing = fetch(
        controller, "shares", ShareRow, dict.fromkeys(["account", "user", "parent", *names])
    )
    check_cluster(line, listing.cluster)
    rows: Any = [_finite(row) for row in listing.rows]
    rows = sshare.select_rows(
        rows,
        users=_users(line),
        accounts=line.items("accounts") or None,
        users_only="Users" in options,
    )
    for text in sshare.lines(rows, fields, **separators(line)):
        print(text)
    return 0


def _columns(controller: Controller, line: CommandLine) -> list[SlurmColumn]:
    if form := line.options.get("format"):
        return read_fields(form, sshare.COLUMNS)
    is_long = "long" in line.options
    flags = requests.settings(controller).get("PriorityFlags", "") if is_long else ""
    return sshare.default_fields(
        long=is_long, partitions="partition" in line.options, fair_tree="NO_FAIR_TREE" not in flags
    )


def _finite(row: Any) -> Any:
    """Return the row with its level as a number: JSON has no infinite ones."""
    level = getattr(row, "level", None)
    return row._replace(level=float(level)) if isinstance(level, str) else row


def _users(line: CommandLine) -> list[str] | None:
    """Return the users whose rows are shown; None for all. Without a selection, the caller."""
    if "all" in line.options:
        return None
    return line.items("users") or [user_name(os.getuid())]
