"""Command `fairbank report usage`: usage in groups, also as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.bank.usage import LIMIT, add_filters, usage_listing
from fairbank.cli.commands.report.pictures import add_directory, bank_caption
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_option, row_limit
from fairbank.cli.framework.output import Listing, show, window
from fairbank.cli.framework.picture_files import write_pictures
from fairbank.core.usage_groups import UsageBy
from fairbank.report import usage
from fairbank.report.columns import instant_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.plots.figures import Figure


GROUPS_MAX = 12
"""Groups of a unit that are drawn by default: more are hard to read."""


def _add(parser: Parser) -> None:
    add_directory(parser)
    add_filters(parser)
    about = f"{LIMIT} (default: {GROUPS_MAX}, of times all)"
    add_option(parser, "--limit N", about, type=row_limit)


def _run(context: Context, options: Namespace) -> int:
    limit = options.limit
    if limit is None:
        limit = 0 if UsageBy(options.by).is_time else GROUPS_MAX
    listing = usage_listing(context, options, limit)
    if options.directory:
        figures = _figures(context, listing, options.by)
        drawn = write_pictures(options.directory, figures, as_png=options.png)
        files = [f"{picture.file}: {picture.caption.title}" for picture in drawn]
        listing = listing._replace(notes=[*listing.notes, *files])
    return show(context, listing)


def _figures(context: Context, listing: Listing, by: str) -> Iterator[tuple[str, Figure]]:
    from fairbank.report.plots import bank

    rows, more = listing.rows, listing.more
    since, until = (instant_of(str(more[name])) for name in ("since", "until"))
    span = window(context, since, until)
    shown = bank_caption(context, f"Usage by {by}", f"Charged SU of finished jobs by {by}", span)
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


COMMAND = Command(
    "show and draw usage by user, project and so on, or over time",
    (
        "{} --by project",
        "{} figures --by resource",
        "{} figures -A chem_qmc --by week -S now-180days --png",
    ),
    _add,
    _run,
    columns=lambda options: usage.columns(options.by),
)
