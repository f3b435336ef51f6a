"""Command `fairbank report`: figures as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.planning.picture_files import PictureFile, write_picture
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.options import count, listed
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.selectors import spread
from fairbank.core.errors import FairbankError
from fairbank.core.time import DAY, iso
from fairbank.report import share_history
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.report.plots.figures import Figure

COLUMNS = (Column("FILE", text("file")), Column("SHOWS", text("about"), drop=1))


def _add_site_factor(parser: Parser) -> None:
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help=(
            "where to write them, in the place of those that are there; made if need be; "
            "needs fairbank[plots]"
        ),
    )
    parser.add_argument(
        "--agent-config",
        metavar="FILE",
        help="draw only the rule that these settings of an agent choose",
    )
    _add_png(parser)


def _add_png(parser: Parser) -> None:
    parser.add_argument(
        "--png",
        action="store_true",
        help="draw PNG files, for where SVG is not taken (default: SVG)",
    )


def _site_factor(context: Context, options: Namespace) -> int:
    if shown_columns(context, COLUMNS):
        return 0
    drawn = [
        PictureFile(
            write_picture(options.folder, name, figure, as_png=options.png), figure.caption.title
        )
        for name, figure in _site_factor_figures(options.agent_config, context.command_line)
    ]
    show(
        context,
        Listing(
            "fairbank.figure/1",
            COLUMNS,
            [{"file": each.file, "about": each.about} for each in drawn],
        ),
    )
    return 0


def _site_factor_figures(agent_config: str | None, command: str) -> Iterator[tuple[str, Figure]]:
    """Yield HADM's six figures, or only the rule of an agent's settings."""
    from fairbank.report.plots.site_factor import rule_figure, site_factor_figures

    if agent_config is None:
        for number, figure in enumerate(site_factor_figures(command), start=1):
            yield f"site-factor-{number}", figure
        return
    from pathlib import Path

    from fairbank.agent.settings import read_agent_settings
    from fairbank.priority.site_factor import rule_of

    try:
        settings = read_agent_settings(Path(agent_config)).site_factor
    except FairbankError as error:
        if error.field != "config":
            raise
        raise type(error)(
            error.message,
            field="agent_config",
            remedy="name an agent's settings, such as /etc/fairbank/agent.toml",
        ) from error
    rule = rule_of(settings.rule, settings.credit, settings.expiry)
    yield "site-factor", rule_figure(settings.rule, rule, agent_config, command)


DAYS = 30


def _add_fair_share(parser: Parser) -> None:
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="where to draw a figure of each cluster too; made if need be; needs fairbank[plots]",
    )
    parser.add_argument(
        "-A", "--accounts", metavar="ACCOUNT,...", type=listed, help="only these accounts"
    )
    parser.add_argument("--users", action="store_true", help="also the users in them")
    parser.add_argument("--cluster", metavar="NAME", help="only this cluster")
    parser.add_argument(
        "--days",
        metavar="N",
        type=count,
        default=DAYS,
        help=f"so many days up to today (default: {DAYS})",
    )
    _add_png(parser)


def _fair_share(context: Context, options: Namespace) -> int:
    if shown_columns(context, share_history.COLUMNS):
        return 0
    kept = _kept(context, options)
    drawn = _draw(context, options, kept) if options.folder else []
    notes = [f"{plain(each.file)}: {plain(each.about)}" for each in drawn]
    empty = "Nothing was recorded in that time. To begin, once a day: fairbank share record"
    show(
        context,
        Listing(
            "fairbank.fairshare/1",
            share_history.COLUMNS,
            share_history.rows_of(kept),
            notes=notes,
            empty=empty,
        ),
    )
    return 0


def _draw(context: Context, options: Namespace, kept: list[Row]) -> list[PictureFile]:
    """Draw one figure for each cluster."""
    drawn = []
    figures = share_history.figures(kept, context.command_line)
    for number, (cluster, figure) in enumerate(figures.items(), start=1):
        is_plain = cluster.isascii() and cluster.replace("-", "").replace("_", "").isalnum()
        name = f"fairshare-{cluster if is_plain else number}"
        file = write_picture(options.folder, name, figure, as_png=options.png)
        drawn.append(PictureFile(file, figure.caption.about))
    return drawn


def _kept(context: Context, options: Namespace) -> list[Row]:
    """Return the recorded figures of the requested days, in UTC."""
    tomorrow = (context.now() // DAY + 1) * DAY
    query = {
        "since": iso(max(tomorrow - options.days * DAY, 0)),
        "until": iso(tomorrow),
        "cluster": options.cluster,
        "account": options.accounts or None,
        "users": "true" if options.users else None,
    }
    names = ("cluster", "day", "account", "user", "partition")
    rows = [row for one in spread(query) for row in context.rows("/share", one)]
    return sorted(rows, key=lambda row: [row[name] or "" for name in names])


COMMAND = Noun(
    "figures of fair share and priorities",
    {
        "fairshare": Command(
            "draw recorded fair share by day",
            (
                "fairbank report fairshare",
                (
                    "fairbank report fairshare figures --days 365 -A chem_qmc --png   also as a"
                    " picture"
                ),
                "fairbank report fairshare --users --csv",
            ),
            _add_fair_share,
            _fair_share,
        ),
        "sitefactor": Command(
            "draw the site factor of remaining credit and time",
            (
                "fairbank report sitefactor figures             the rules, in six figures",
                "fairbank report sitefactor . --agent-config /etc/fairbank/agent.toml",
                "fairbank report sitefactor figures --json",
            ),
            _add_site_factor,
            _site_factor,
            asks=False,
        ),
    },
)
