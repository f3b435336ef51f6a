"""Command `fairbank report balance`: the credit of allocations over their terms, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.balance import balances
from fairbank.cli.commands.report.pictures import add_pictures, bank_caption, show_pictures
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_accounts
from fairbank.cli.framework.output import caption
from fairbank.cli.framework.picture_files import FILE_COLUMNS
from fairbank.cli.framework.selectors import check_accounts, check_resources
from fairbank.core.errors import NotFound
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.report.plots.bank import BalanceAt, Term
    from fairbank.report.plots.figures import Figure


POINTS = 59
"""Earlier balances that are read for a burn-down, evenly over the term."""


def _add(parser: Parser) -> None:
    add_pictures(parser)
    add_accounts(parser)


def _run(context: Context, options: Namespace) -> int:
    query = {"account": options.account, "resource": options.resource}
    rows = [row for row in balances(context, query) if row["state"] != "planned"]
    check_accounts(context, options.account, {row["account"] for row in rows})
    check_resources(context, options.resource, {row["resource"] for row in rows})
    if not rows:
        raise NotFound(
            "no allocation that you may see has begun",
            remedy="list all, also planned ones, with: fairbank alloc list",
        )
    figures = (_burn_down(context, row) for row in rows)
    return show_pictures(context, options, figures, caption(context, unit=False))


def _burn_down(context: Context, row: Row) -> tuple[str, Figure]:
    from fairbank.report.plots.bank import burn_down

    term = projected_term(row)
    title = f"Credit of {row['account']}/{row['resource']}, allocation {row['id']}"
    about = "Available and held credit over the term, even use, and the present pace"
    shown = bank_caption(context, title, about, context.format.days(*term[:2]))
    figure = burn_down(term, _series(context, row), context.format.day, shown)
    return f"balance-{row['id']}", figure


def projected_term(row: Row) -> Term:
    """Return the term of an allocation of `/balance`, with the projection of its use."""
    from fairbank.report.plots.bank import Term

    start, end = instant_of(row["start"]), instant_of(row["end"])
    ends_with = None
    if row["runs_out"] is not None:
        ends_with = instant_of(row["runs_out"]), 0
    elif row["available_at_end"] is not None:
        ends_with = end, row["available_at_end"]
    return Term(start, end, row["deposited"], ends_with)


def _series(context: Context, row: Row) -> list[BalanceAt]:
    """Return the balances at even distances of time, and the present one."""
    from fairbank.report.plots.bank import BalanceAt

    now = min(context.bank_time, instant_of(row["end"]))
    series = context.get(f"/alloc/{row['id']}/series", {"points": POINTS})["data"]
    return [
        *(BalanceAt(instant_of(at["at"]), at["remaining"], at["held"]) for at in series),
        BalanceAt(now, row["remaining"], row["held"]),
    ]


COMMAND = Command(
    "draw the credit of allocations over their terms: held, even use, projection",
    ("{} figures", "{} figures -A chem_qmc", "{} figures -r gpu --png"),
    _add,
    _run,
    columns=FILE_COLUMNS,
)
