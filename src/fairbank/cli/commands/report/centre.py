"""Verbs of `fairbank report` about the bank: the centre, balances and usage, also as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.usage import LIMIT, PERIOD, add_filters, usage_listing
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.listed_values import spread
from fairbank.cli.framework.options import add_accounts, add_option, add_period, row_limit
from fairbank.cli.framework.output import Listing, caption, show, window
from fairbank.cli.framework.picture_files import FILE_COLUMNS, add_png, write_pictures
from fairbank.cli.framework.selectors import check_accounts, check_resources
from fairbank.core.errors import FairbankError, NotFound
from fairbank.core.time import Instant
from fairbank.core.usage_groups import UsageBy
from fairbank.report import centre, usage
from fairbank.report.columns import instant_of
from fairbank.report.plots.figures import Caption

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.report.plots.bank import BalanceAt, Term
    from fairbank.report.plots.figures import Figure

POINTS = 59
"""Earlier balances that are read for a burn-down, evenly over the term."""

GROUPS_MAX = 12
"""Groups of a unit that are drawn by default: more are hard to read."""


def _add_directory(parser: Parser, what: str) -> None:
    add_option(
        parser,
        "directory DIRECTORY",
        f"where to draw {what}; created if missing; needs matplotlib",
        nargs="?",
    )
    add_png(parser)


def _caption(context: Context, title: str, about: str, period: str) -> Caption:
    """Return the text of a figure, which names the time that it shows, the bank and the command."""
    bank = f"bank {context.bank}" if context.bank else "the bank"
    source = f"{bank}, as of {context.format.as_of(context.bank_time)}"
    return Caption(title, f"{about}, {period}", source, context.command_line, period)


# --- the centre ---


def _add_centre(parser: Parser) -> None:
    _add_directory(parser, "a figure too")
    add_period(parser, PERIOD)


def _centre(context: Context, options: Namespace) -> int:
    figures = context.get("/centre", context.period(PERIOD, begins_later=True))["data"]
    since, until = instant_of(figures["since"]), instant_of(figures["until"])
    figures, down = _with_slurm(context, figures, since, until)
    rows = centre.centre_rows(figures["resources"], down)
    totals = {key: figures[key] for key in centre.TOTALS}
    form = context.format
    span = window(context, since, until)
    notes = centre.notes(rows, totals, form)
    if until > context.bank_time:
        notes.append(
            "The period ends in the future: CAPACITY, DOWN, IDLE and utilisation are of all of it."
        )
    if options.directory:
        about = "Granted, used, down and idle capacity of each resource"
        shown = _caption(context, "Use of the centre", about, span)
        figures = [("centre", centre.figure(rows, shown))]
        drawn = write_pictures(options.directory, figures, as_png=options.png)
        notes += [f"{picture.file}: {picture.caption.about}" for picture in drawn]
    listing = Listing(
        "fairbank.centre-resource/1",
        centre.COLUMNS,
        rows,
        f"{caption(context)}\n{span}",
        warnings=centre.warnings(rows, form),
        notes=notes,
        empty="There is no resource: neither in the settings, nor granted or used.",
        more={"totals": totals},
    )
    return show(context, listing)


def _with_slurm(
    context: Context, figures: Row, since: int, until: int
) -> tuple[Row, Mapping[tuple[str, str], int]]:
    """Return the figures with the nodes of this host's cluster where the settings have none, and
    its down SU-minutes by resource and clusters; as it is without Slurm.
    """
    from shutil import which

    if which("scontrol") is None:
        return figures, {}
    from fairbank.rest.client.bank_client import BankClient
    from fairbank.slurm.capacity import read_capacity
    from fairbank.slurm.commands import SlurmCommands

    slurm = SlurmCommands()
    try:
        name = slurm.cluster
        known = BankClient(context.client).cluster(name)
        own, unreadable = read_capacity(slurm, known, since, until)
    except FairbankError as error:
        # Many hosts have Slurm's commands without a cluster. The table says what is not known.
        context.detail(f"Slurm's nodes are not known: {error.message}")
        return figures, {}
    context.note(*(f"! not read: {line}" for line in unreadable))
    import msgspec

    from fairbank.bank.centre import ClusterSize, with_nodes
    from fairbank.rest.schemas.usage import CentreFigures, centre_figures, use_of_figures

    use = with_nodes(
        use_of_figures(msgspec.convert(figures, CentreFigures)),
        ClusterSize(name, own.cpus, own.gpus),
        {resource: units for resource, (units, _) in own.by_resource.items()},
        until - since,
    )
    down = {(resource, name): minutes for resource, (_, minutes) in own.by_resource.items()}
    return msgspec.to_builtins(centre_figures(use, Instant(since), Instant(until))), down


CENTRE = Command(
    "show capacity, granted, used, down and idle credit of the whole centre",
    ("{}", "{} figures -S 2026-01-01 -E 2027-01-01   a year, also as a picture", "{} --json"),
    _add_centre,
    _centre,
    columns=centre.COLUMNS,
)


# --- usage ---


def _add_report_usage(parser: Parser) -> None:
    add_option(parser, "directory DIRECTORY", "where to draw; created if missing; needs matplotlib")
    add_png(parser)
    add_filters(parser)
    about = f"{LIMIT} (default: {GROUPS_MAX}, of times all)"
    add_option(parser, "--limit N", about, type=row_limit)


def _usage(context: Context, options: Namespace) -> int:
    limit = options.limit
    if limit is None:
        limit = 0 if UsageBy(options.by).is_time else GROUPS_MAX
    listing = usage_listing(context, options, limit)
    figures = _usage_figures(context, listing, options.by)
    drawn = write_pictures(options.directory, figures, as_png=options.png)
    files = [f"{picture.file}: {picture.caption.title}" for picture in drawn]
    return show(context, listing._replace(notes=[*listing.notes, *files]))


def _usage_figures(context: Context, listing: Listing, by: str) -> Iterator[tuple[str, Figure]]:
    from fairbank.report.plots import bank

    rows, more = listing.rows, listing.more
    since, until = (instant_of(str(more[name])) for name in ("since", "until"))
    span = window(context, since, until)
    shown = _caption(context, f"Usage by {by}", f"Charged SU of finished jobs by {by}", span)
    timed = [row for row in rows if row["group"] is not None]
    if not UsageBy(by).is_time:
        for number, (unit, figure) in enumerate(bank.usage_by_group(rows, by, shown), start=1):
            yield f"usage-{unit if unit.isalnum() and unit.isascii() else number}", figure
    elif timed:
        day, end = context.format.day, min(until, context.bank_time + 1)
        of_period = bank.calendar_names(day(since), day(max(since, end - 1)), by)
        # Where a cluster's clock is ahead, jobs may end after the period.
        names = sorted({*of_period, *(row["group"] for row in timed)})
        yield "usage", bank.usage_over_time(timed, names, by, shown)


USAGE = Command(
    "draw usage by user, project and so on, or over time",
    (
        "{} figures --by project",
        "{} figures --by resource",
        "{} figures -A chem_qmc --by week -S now-180days --png",
    ),
    _add_report_usage,
    _usage,
    columns=lambda options: usage.columns(options.by),
)


# --- balances ---


def _add_balance(parser: Parser) -> None:
    add_option(parser, "directory DIRECTORY", "where to draw; created if missing; needs matplotlib")
    add_png(parser)
    add_accounts(parser)


def _balance(context: Context, options: Namespace) -> int:
    queries = spread({"account": options.account, "resource": options.resource})
    balances = [row for one in queries for row in context.rows("/balance", one)]
    rows = [row for row in balances if row["state"] != "planned"]
    check_accounts(context, options.account, {row["account"] for row in rows})
    check_resources(context, options.resource, {row["resource"] for row in rows})
    if not rows:
        raise NotFound(
            "no allocation that you may see has begun",
            remedy="list all, also planned ones, with: fairbank alloc list",
        )
    drawn = write_pictures(
        options.directory, (_burn_down(context, row) for row in rows), as_png=options.png
    )
    files = [{"file": picture.file, "about": picture.caption.title} for picture in drawn]
    return show(
        context, Listing("fairbank.figure/1", FILE_COLUMNS, files, caption(context, unit=False))
    )


def _burn_down(context: Context, row: Row) -> tuple[str, Figure]:
    from fairbank.report.plots.bank import burn_down

    term = projected_term(row)
    title = f"Credit of {row['account']}/{row['resource']}, allocation {row['id']}"
    about = "Available and held credit over the term, even use, and the present pace"
    shown = _caption(context, title, about, context.format.days(*term[:2]))
    figure = burn_down(term, _balances(context, row), context.format.day, shown)
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


def _balances(context: Context, row: Row) -> list[BalanceAt]:
    """Return the balances at even distances of time, and the present one."""
    from fairbank.report.plots.bank import BalanceAt

    now = min(context.bank_time, instant_of(row["end"]))
    series = context.get(f"/alloc/{row['id']}/series", {"points": POINTS})["data"]
    return [
        *(BalanceAt(instant_of(at["at"]), at["remaining"], at["held"]) for at in series),
        BalanceAt(now, row["remaining"], row["held"]),
    ]


BALANCE = Command(
    "draw the credit of allocations over their terms: held, even use, projection",
    ("{} figures", "{} figures -A chem_qmc", "{} figures -r gpu --png"),
    _add_balance,
    _balance,
    columns=FILE_COLUMNS,
)
