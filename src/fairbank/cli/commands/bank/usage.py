"""Command `fairbank usage`: usage by user, time, partition and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import add_accounts, add_option, add_period, add_users, number
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.selectors import check_accounts, check_resources, spread
from fairbank.core.time import show_duration
from fairbank.report.cells import plain
from fairbank.report.columns import Amount, Column, DisplayFormat, Row, duration, su, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

BY = ("user", "day", "month", "partition", "allocation", "job", "qos")
BY_TIME = ("day", "month")
BAR = 25
_SUMS = "runs failed charged elapsed waited cpu_seconds cpu_given wasted failed_early".split()
LOW_PERCENT = 25
"""An efficiency that gets a mark."""

EARLY_LEAST = 3
"""Minimum number of jobs that failed early for a remark; most of a user's jobs must have too."""

UNKNOWN = "-"
WASTED = "WASTED = charged but idle, of the jobs whose processor time is known."


def _share(row: Row, form: DisplayFormat) -> str:
    permille = row["share_permille"]
    percent = f"{permille // 10}.{permille % 10}%"
    if form.exact:
        return percent
    bar = "" if form.short or "total" in row else "#" * (permille * BAR // 1000)
    return f"{percent:>6} {bar}"


def _known(row: Row) -> bool:
    """Return whether the use of its processors is known."""
    return bool(row["cpu_given"])


def _wasted(row: Row) -> int | None:
    """Return wasted SU-minutes; None if unknown."""
    return row["wasted"] if _known(row) else None


def _idle(row: Row, form: DisplayFormat) -> str:
    """Return the amount charged for idle resources."""
    if row["wasted"] is None:
        return "" if form.exact else UNKNOWN
    return form.su(row["wasted"])


def _efficiency(row: Row, form: DisplayFormat) -> str:
    """Return the efficiency in percent, marked if low; empty for a total."""
    if not _known(row) or "total" in row:
        return "" if form.exact or "total" in row else UNKNOWN
    percent = (200 * row["cpu_seconds"] + row["cpu_given"]) // (2 * row["cpu_given"])
    return f"{percent}%" if form.exact else f"{percent}% {'!' if percent < LOW_PERCENT else ' '}"


def _average_wait(row: Row, form: DisplayFormat) -> str:
    """Return the average time from submission to start."""
    if not row["runs"]:
        return "" if form.exact else UNKNOWN
    return show_duration(row["waited"] // row["runs"])


def _columns(options: Namespace, zone: str = "") -> Sequence[Column]:
    """Return the columns; the first is the group.

    For programs each day or month names its zone, which the caption of a table tells people.
    """
    is_zoned = options.by in BY_TIME and options.form in ("csv", "parsable")
    return (
        Column(options.by.upper(), text("name")),
        Column("JOBS", text("runs"), right=True),
        Column("FAILED", text("failed"), right=True, drop=2),
        Column("SU", su("charged"), right=True),
        Column("SHARE%", _share, drop=1),
        Column("EFF%", _efficiency, right=True, drop=4),
        Column("WASTED", Amount(_idle), right=True, drop=3),
        Column("AVG-WAIT", _average_wait, right=True, extra=True),
        Column("ELAPSED", duration("elapsed"), right=True, extra=True),
        *([Column("ZONE", lambda row, form: zone)] if is_zoned else []),
    )


def add(parser: Parser) -> None:
    add_accounts(parser)
    add_option(parser, "--by", "what the rows are (default: user)", choices=BY, default="user")
    add_users(parser)
    add_option(parser, "--me", "only what I used")
    about = "only what this allocation paid for, of whatever project"
    add_option(parser, "--alloc ALLOC", about, type=number)
    add_period(parser, "now-30days")


def run(context: Context, options: Namespace) -> int:
    query = {
        "by": options.by,
        "account": options.account,
        "resource": options.resource,
        "allocation": options.alloc,
        "owner_uid": _owners(context, options),
        **context.period("now-30days"),
    }
    zone = {"zone": context.zone_name} if options.by in BY_TIME else {}
    query |= zone
    seen: set[object] = set()
    groups = _usage(context, query, seen)
    check_accounts(context, options.account, seen, of_jobs=True)
    check_resources(context, options.resource, seen)
    rows = _named_rows(groups, options.by)
    listing = Listing(
        "fairbank.usage/1",
        _columns(options, context.zone_name),
        rows,
        "   ".join([caption(context), *(f"zone {name}" for name in zone.values())]),
        total=_total(rows) if len(rows) > 1 else None,
        notes=remarks(rows, options.by),
        empty="No job ended in that time.",
        more=zone,
    )
    return show(context, listing)


def _owners(context: Context, options: Namespace) -> list[int] | None:
    """Return whose jobs to count: -u, or one's own with --me; None for all."""
    if options.user:
        return [uid_of(user) for user in options.user]
    return [context.me()] if options.me else None


def _usage(context: Context, query: Mapping[str, object], seen: set[object]) -> list[Row]:
    """Return the groups with their sums over all listed values.

    Adds to `seen` the projects and resources that had rows.
    """
    groups: dict[object, dict[str, Any]] = {}
    for one in spread(query):
        for row in context.rows("/usage", one):
            seen |= {one.get("account"), one.get("resource")}
            nothing = {"group": row["group"], "early_exit_code": None, **dict.fromkeys(_SUMS, 0)}
            sums = groups.setdefault(row["group"], nothing)
            sums["early_exit_code"] = same_exit(sums, row)
            for key in _SUMS:
                sums[key] += row[key]
    return list(groups.values())


def _named_rows(rows: Sequence[Row], by: str) -> list[Row]:
    """Return the rows with names and shares, largest first; days and months in order."""
    whole = sum(row["charged"] for row in rows) or 1
    named = [
        {
            **row,
            "name": _name(row["group"], by),
            "share_permille": (2000 * max(0, row["charged"]) + whole) // (2 * whole),
            "wasted": _wasted(row),
        }
        for row in rows
    ]
    if by in BY_TIME:
        return sorted(named, key=lambda row: row["group"])
    return sorted(named, key=lambda row: (-row["charged"], str(row["name"])))


def _name(group: object, by: str) -> str:
    return user_name(group) if by == "user" and isinstance(group, int) else str(group)


def _total(rows: Sequence[Row]) -> Row:
    sums = {key: sum(row[key] or 0 for row in rows) for key in _SUMS}
    return {
        "name": "TOTAL",
        "total": True,
        "share_permille": 1000 if sums["charged"] else 0,
        **sums,
        "wasted": _wasted(sums),
    }


def remarks(rows: Iterable[Row], by: str) -> list[str]:
    """Return notes: the meaning of WASTED, and users whose jobs mostly fail within two minutes."""
    rows = list(rows)
    notes = [WASTED] if any(map(_known, rows)) else []
    return notes + [
        _early(row)
        for row in rows
        if by == "user" and row["failed_early"] >= max(EARLY_LEAST, row["runs"] // 2 + 1)
    ]


def _early(row: Row) -> str:
    from shlex import quote  # 1 ms, only for this note

    exited = f" (exit {row['early_exit_code']})" if row["early_exit_code"] else ""
    name = plain(str(row["name"]))
    failed = f"{row['failed_early']} of {row['runs']} jobs failed within 2 minutes of start{exited}"
    return f"{name}: {failed}: fairbank jobs -u {quote(name)} --failed"


def same_exit(one: Row, other: Row) -> int | None:
    """Return the exit code of both groups' early failures, if it is the same."""
    codes = {row["early_exit_code"] for row in (one, other) if row["failed_early"]}
    return codes.pop() if len(codes) == 1 else None


COMMAND = Command(
    "show usage of finished jobs by user, time, partition or QOS",
    (
        "fairbank usage -A chem_qmc                     by user, the last 30 days",
        "fairbank usage -A chem_qmc --by month -S 2026-07-01",
        "fairbank usage --me --by day -S now-7days",
    ),
    add,
    run,
    watch=True,
    columns=_columns,
)
