"""Command `fairbank usage`: usage by user, project, resource, time and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.host import uid_of, user_name
from fairbank.cli.framework.options import (
    add_accounts,
    add_limit,
    add_option,
    add_period,
    add_users,
    number,
)
from fairbank.cli.framework.output import Listing, caption, show, window
from fairbank.cli.framework.selectors import check_accounts, check_payer, check_resources
from fairbank.core.time import MINUTE, iso
from fairbank.core.usage_groups import OTHERS, UsageBy
from fairbank.report import usage
from fairbank.report.cells import plain
from fairbank.report.columns import Column, instant_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row


PERIOD = "now-30days"
"""Default start of the time whose usage is shown, also that of `report centre`."""
EARLY_LEAST = 3
"""Minimum number of jobs that failed early for a remark; most of a user's jobs must have too."""

WASTED = "WASTED = charged but idle, of the jobs whose processor time is known."


def _columns(options: Namespace, zone: str = "") -> Sequence[Column]:
    """Return the columns; the first is the group.

    For programs each day, week or month names its zone, which the caption of a table tells people.
    """
    is_zoned = UsageBy(options.by).is_time and options.form in ("csv", "parsable")
    zones = [Column("ZONE", lambda row, form: zone)] if is_zoned else []
    return [*usage.columns(options.by), *zones]


GROUPS = [by.value for by in UsageBy if by is not UsageBy.ALLOCATION_USER]
"""Values of --by. `sproject` shows the users of allocations."""
LIMIT = "only the N largest rows of each unit, of times the latest"
"""Help of --limit, without its default."""


def add(parser: Parser) -> None:
    add_filters(parser)
    add_limit(parser, 0, LIMIT)


def add_filters(parser: Parser) -> None:
    """Add the options that select usage and group it, without --limit."""
    add_accounts(parser)
    about = "what the rows are (default: user)"
    add_option(parser, "--by", about, choices=GROUPS, default="user")
    add_users(parser)
    add_option(parser, "--me", "only what I used")
    about = "only what this allocation paid for, of whatever project"
    add_option(parser, "--alloc ALLOC", about, type=number)
    add_period(parser, PERIOD)


def run(context: Context, options: Namespace) -> int:
    return show(context, usage_listing(context, options, options.limit))


def usage_listing(context: Context, options: Namespace, limit: int) -> Listing:
    """Return the list that the options of `add_filters` select.

    Args:
        context: the command, which sends the requests.
        options: values of the options.
        limit: maximum number of rows of each unit; 0: all.
    """
    period = context.period(PERIOD)
    query = {
        "account": options.account,
        "resource": options.resource,
        "allocation": options.alloc,
        "owner_uid": _owners(context, options),
        **period,
    }
    table, until = _read_usage(context, query, options.by, limit)
    # The zone is not looked up without need: that takes 10 ms.
    zone = {"zone": context.zone_name} if UsageBy(options.by).is_time else {}
    since = int(period["since"] or 0)
    span = window(context, since, until)
    first = "   ".join([caption(context), *(f"zone {name}" for name in zone.values())])
    return Listing(
        "fairbank.usage/2",
        _columns(options, zone.get("zone", "")),
        table.rows,
        f"{first}\n{span}",
        totals=table.totals if len(table.rows) > len(table.totals) else (),
        notes=remarks(table.rows, options.by),
        empty=f"No job ended in that time, {span}.",
        more={**zone, "since": iso(since), "until": iso(until), "totals": table.totals},
    )


def _owners(context: Context, options: Namespace) -> list[int] | None:
    """Return whose jobs to count: -u, or one's own with --me; None for all."""
    if options.user:
        return [uid_of(user) for user in options.user]
    return [context.me()] if options.me else None


def _read_usage(
    context: Context, query: dict[str, object], by: str, limit: int
) -> tuple[usage.UsageTable, int]:
    """Return the usage of all listed values, with the total of each unit, and the end of its time.

    Raises NotFound if an account or a resource that has no usage does not exist.
    """
    more = {**query, "by": by, "zone": context.zone_name if UsageBy(by).is_time else None}
    if limit:
        # The bank sorts: there may be a million jobs.
        pages = [context.get("/usage", {**more, "order": "largest", "limit": limit})]
    else:
        pages = list(context.pages("/usage", more))
    rows = [row for page in pages for row in page["data"]]
    totals = pages[0]["totals"]
    accounts, resources = query["account"], query["resource"]
    # The sums do not say which of several accounts they are of.
    seen = accounts if totals and isinstance(accounts, list) and len(accounts) == 1 else ()
    check_accounts(context, accounts, seen, of_jobs=True)  # type: ignore[arg-type]
    billed = {row["resource"] for row in totals}
    check_resources(context, resources, billed)  # type: ignore[arg-type]
    if not totals:
        check_payer(context, context.options.alloc)
    users = {row["group"] for row in rows} - {OTHERS} if by == "user" else set()
    # Measured use has no user; jobs of users who have no uid here have the same number.
    unknown = {None: usage.UNKNOWN}
    names = {uid: user_name(uid) or unknown.get(uid, str(uid)) for uid in users}
    return usage.usage_table(rows, by, names, totals), instant_of(pages[0]["until"])


def remarks(rows: Sequence[Row], by: str) -> list[str]:
    """Return notes: units, the meaning of WASTED, and users whose jobs mostly fail early."""
    notes = _of_units(rows)
    notes += [WASTED] if any(row["cpu_given"] for row in rows) else []
    return notes + [
        _early(row)
        for row in rows
        if by == "user"
        and row["group"] is not None
        and row["failed_early"] >= max(EARLY_LEAST, row["runs"] // 2 + 1)
    ]


def _of_units(rows: Sequence[Row]) -> list[str]:
    """Return a note that names the units of the rows, if there are several, and why a resource has
    two.
    """
    units = sorted({str(row["resource_name"]) for row in rows})
    if len(units) < 2:
        return []
    *first, last = units
    resources = [unit.partition("@")[0] for unit in units]  # cpu of cpu@alpha
    priced = sorted({name for name in resources if resources.count(name) > 1})
    why = f": the clusters have different prices of {' and '.join(priced)}" if priced else ""
    return [plain(f"SU of {', '.join(first)} and {last} cannot be added{why}.")]


def _early(row: Row) -> str:
    from shlex import quote  # 1 ms, only for this note

    from fairbank.bank.efficiency import EARLY_SECONDS

    exited = f" (exit {row['early_exit_code']})" if row["early_exit_code"] else ""
    name = plain(str(row["name"]))
    failed = f"{row['failed_early']} of {row['runs']} jobs failed"
    early = f"within {EARLY_SECONDS // MINUTE} minutes of start{exited}"
    return f"{name}: {failed} {early}: fairbank jobs -u {quote(name)} --failed"


COMMAND = Command(
    "show usage of finished jobs by user, project, resource, time and more",
    (
        "fairbank usage -A chem_qmc                     by user, the last 30 days",
        "fairbank usage --by project --limit 10 -S 2026-01-01",
        "fairbank usage --me --by week -S now-60days --csv",
    ),
    add,
    run,
    watch=True,
    columns=_columns,
)
