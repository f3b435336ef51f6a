"""Command `fairbank usage`: usage by user, time, partition and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.bank.efficiency import (
    average_wait,
    efficiency,
    idle,
    remarks,
    same_exit,
    wasted,
)
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import add_accounts, add_period, add_users, number
from fairbank.cli.framework.output import Listing, caption, show, shown_columns, watched
from fairbank.cli.framework.selectors import check_accounts, check_resources, spread
from fairbank.report.columns import Amount, Column, Look, Row, duration, su, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

BY = ("user", "day", "month", "partition", "allocation", "job", "qos")
BAR = 25
_SUMS = (
    "runs",
    "failed",
    "charged",
    "elapsed",
    "waited",
    "cpu_seconds",
    "cpu_given",
    "wasted",
    "failed_early",
)


def _share(row: Row, look: Look) -> str:
    permille = row["share_permille"]
    said = f"{permille // 10}.{permille % 10}%"
    if look.exact:
        return said
    bar = "" if look.short or "total" in row else "#" * (permille * BAR // 1000)
    return f"{said:>6} {bar}"


def columns(by: str) -> Sequence[Column]:
    """Return the columns; the first is the group."""
    return (
        Column(by.upper(), text("name")),
        Column("JOBS", text("runs"), right=True),
        Column("FAILED", text("failed"), right=True, drop=2),
        Column("SU", su("charged"), right=True),
        Column("SHARE%", _share, drop=1),
        Column("EFF%", efficiency, right=True, drop=4),
        Column("WASTED", Amount(idle), right=True, drop=3),
        Column("AVG-WAIT", average_wait, right=True, extra=True),
        Column("ELAPSED", duration("elapsed"), right=True, extra=True),
    )


def add(parser: Parser) -> None:
    add_accounts(parser)
    parser.add_argument(
        "--by", choices=BY, default="user", help="what the rows are (default: user)"
    )
    add_users(parser)
    parser.add_argument("--me", action="store_true", help="only what I used")
    parser.add_argument(
        "--alloc",
        metavar="ALLOC",
        type=number,
        help="only what this allocation paid for, of whatever project",
    )
    add_period(parser, "now-30days")


def run(context: Context, options: Namespace) -> int:
    if shown_columns(context, columns(options.by)):
        return 0
    return watched(context, lambda: _show(context, options))


def _show(context: Context, options: Namespace) -> int:
    query = {
        "by": options.by,
        "account": options.account,
        "resource": options.resource,
        "allocation": options.alloc,
        "owner_uid": owners_of(context, options),
        **context.period("now-30days"),
    }
    heard: set[object] = set()
    rows = usage(context, query, heard)
    check_accounts(context, options.account, heard, of_jobs=True)
    check_resources(context, options.resource, heard)
    told = _told(context, rows, options.by)
    show(
        context,
        Listing(
            "fairbank.usage/1",
            columns(options.by),
            told,
            caption(context),
            total=_total(told) if len(told) > 1 else None,
            notes=remarks(told, options.by),
            empty="No job ended in that time.",
        ),
    )
    return 0


def owners_of(context: Context, options: Namespace) -> list[int] | None:
    """Return whose jobs to count: -u, or one's own with --me; None for all."""
    if options.user:
        return [uid_of(user) for user in options.user]
    return [context.me()] if options.me else None


def usage(
    context: Context, query: Mapping[str, object], heard: set[object] | None = None
) -> list[Row]:
    """Return the groups with their sums over all listed values.

    Adds to `heard` the projects and resources that had rows.
    """
    groups: dict[object, dict[str, Any]] = {}
    for one in spread(query):
        for row in context.rows("/usage", one):
            if heard is not None:
                heard |= {one.get("account"), one.get("resource")}
            known = groups.setdefault(
                row["group"],
                {"group": row["group"], "early_exit_code": None, **dict.fromkeys(_SUMS, 0)},
            )
            known |= {
                "early_exit_code": same_exit(known, row),
                **{key: known[key] + row[key] for key in _SUMS},
            }
    return list(groups.values())


def _told(context: Context, rows: Sequence[Row], by: str) -> list[Row]:
    """Return the rows with names and shares, largest first; days and months in order."""
    whole = sum(row["charged"] for row in rows) or 1
    told = [
        {
            **row,
            "name": _name(context, row["group"], by),
            "share_permille": max(0, row["charged"]) * 1000 // whole,
            "wasted": wasted(row),
        }
        for row in rows
    ]
    return sorted(
        told,
        key=lambda row: (
            row["group"] if by in ("day", "month") else (-row["charged"], str(row["name"]))
        ),
    )


def _name(context: Context, group: object, by: str) -> str:
    return user_name(group) if by == "user" and isinstance(group, int) else str(group)


def _total(rows: Sequence[Row]) -> Row:
    sums = {key: sum(row[key] or 0 for row in rows) for key in _SUMS}
    return {
        "name": "TOTAL",
        "total": True,
        "share_permille": 1000 if sums["charged"] else 0,
        **sums,
        "wasted": wasted(sums),
    }


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
)
