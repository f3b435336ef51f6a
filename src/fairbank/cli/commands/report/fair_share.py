"""Command `fairbank report fairshare`: recorded fair share by day, also as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.report.pictures import add_directory
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.listed_values import spread
from fairbank.cli.framework.options import add_option, count, split_list
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.picture_files import write_pictures
from fairbank.cli.framework.selectors import not_visible
from fairbank.core.time import DAY, iso
from fairbank.report import share_history

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.report.plots.figures import Figure


DAYS = 30


def _add(parser: Parser) -> None:
    add_directory(parser, "a figure of each cluster too")
    add_option(parser, "-A, --accounts ACCOUNT,...", "only these accounts", type=split_list)
    add_option(parser, "--users", "also the users in them")
    add_option(parser, "--cluster NAME", "only this cluster")
    about = f"N days up to today (default: {DAYS})"
    add_option(parser, "--days N", about, type=count, default=DAYS)


def _run(context: Context, options: Namespace) -> int:
    kept, notes = _kept(context, options), []
    _check_names(context, options, kept)
    if options.directory:
        figures = share_history.figures(kept, context.command_line)
        drawn = write_pictures(options.directory, _named(figures), as_png=options.png)
        notes = [f"{picture.file}: {picture.caption.about}" for picture in drawn]
    empty = "Nothing was recorded in that time. To begin, once a day: fairbank share record"
    heading, columns = caption(context, unit=False), share_history.COLUMNS
    listing = Listing("fairbank.share-day/1", columns, kept, heading, notes=notes, empty=empty)
    return show(context, listing)


def _named(figures: Mapping[str, Figure]) -> Iterator[tuple[str, Figure]]:
    """Yield the figures with file names: the clusters, or numbers where their names are unsafe."""
    for number, (cluster, figure) in enumerate(figures.items(), start=1):
        is_plain = cluster.isascii() and cluster.replace("-", "").replace("_", "").isalnum()
        yield f"fairshare-{cluster if is_plain else number}", figure


def _kept(context: Context, options: Namespace) -> list[Row]:
    """Return the recorded figures of the requested days, in UTC."""
    query = {
        **_days(context),
        "cluster": options.cluster,
        "account": options.accounts or None,
        "users": "true" if options.users else None,
    }
    names = ("cluster", "day", "account", "user", "partition")
    rows = [row for one in spread(query) for row in context.rows("/share", one)]
    return sorted(rows, key=lambda row: [row[name] or "" for name in names])


def _days(context: Context) -> dict[str, object]:
    """Return the query for the requested days."""
    tomorrow = (context.now() // DAY + 1) * DAY
    since = max(tomorrow - context.options.days * DAY, 0)
    return {"since": iso(since), "until": iso(tomorrow)}


def _check_names(context: Context, options: Namespace, kept: Sequence[Row]) -> None:
    """Check that accounts and cluster have figures of these days, as others have. Raises NotFound.

    Slurm's accounts need not be projects of the bank.
    """
    named = [("account", "--accounts", name) for name in options.accounts or ()]
    named += [("cluster", "--cluster", options.cluster)] if options.cluster else []
    missing = [
        selection for selection in named if all(row[selection[0]] != selection[2] for row in kept)
    ]
    recorded = context.rows("/share", _days(context)) if missing else []
    for what, option, name in missing:
        known = sorted({str(row[what]) for row in recorded})
        if known and name not in known:
            raise not_visible(what, name, option, known, "")


COMMAND = Command(
    "show and draw recorded fair share by day",
    ("{}", "{} figures --days 365 -A chem_qmc --png   also as a picture", "{} --users --csv"),
    _add,
    _run,
    columns=share_history.COLUMNS,
)
