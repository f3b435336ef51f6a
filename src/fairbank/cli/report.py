"""`fairbank report`: figures as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.choosing import spread
from fairbank.cli.command import Command, Noun
from fairbank.cli.options import count, listed
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.core.time import DAY, iso
from fairbank.report import share_history
from fairbank.report.cells import plain
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser

COLUMNS = (Column("FILE", text("file")), Column("SHOWS", text("about"), drop=1))


def _add_site_factor(parser: Parser) -> None:
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help="where to write them, in the place of those that are there; made if need be",
    )
    parser.add_argument(
        "--agent-config",
        metavar="FILE",
        help="draw only the rule that these settings of an agent choose",
    )
    _add_png(parser)


def _add_png(parser: Parser) -> None:
    parser.add_argument(
        "--png", action="store_true", help="draw PNG files, for where SVG is not taken (usual: SVG)"
    )


def _site_factor(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    drawn = desk.works.figures.site_factor(
        options.folder, agent=options.agent_config, as_png=options.png
    )
    show(
        desk,
        Listing(
            "fairbank.figure/1",
            COLUMNS,
            [{"file": each.file, "about": each.about} for each in drawn],
        ),
    )
    return 0


DAYS = 30


def _add_fair_share(parser: Parser) -> None:
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        help="where to draw a figure of each cluster too; made if need be",
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
        help=f"so many days up to today (usual: {DAYS})",
    )
    _add_png(parser)


def _fair_share(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, share_history.COLUMNS):
        return 0
    kept = _kept(desk, options)
    drawn = (
        desk.works.history.draw(options.folder, kept, as_png=options.png) if options.folder else ()
    )
    notes = [f"{plain(each.file)}: {plain(each.about)}" for each in drawn]
    empty = "Nothing was recorded in that time. To begin, once a day: fairbank share record"
    show(
        desk,
        Listing(
            "fairbank.fairshare/1",
            share_history.COLUMNS,
            share_history.rows_of(kept),
            notes=notes,
            empty=empty,
        ),
    )
    return 0


def _kept(desk: Desk, options: Namespace) -> list[share_history.ShareHistoryRow]:
    """The figures of so many days up to today, in UTC."""
    tomorrow = (desk.now() // DAY + 1) * DAY
    query = {
        "since": iso(max(tomorrow - options.days * DAY, 0)),
        "until": iso(tomorrow),
        "cluster": options.cluster,
        "account": options.accounts or None,
        "users": "true" if options.users else None,
    }
    return sorted(
        share_history.kept_of(row) for one in spread(query) for row in desk.rows("/share", one)
    )


COMMAND = Noun(
    "figures of fair share and priorities",
    {
        "fairshare": Command(
            "fair share from day to day, as it was recorded",
            (
                "fairbank report fairshare",
                "fairbank report fairshare figures --days 365 -A chem_qmc --png   also as a picture",
                "fairbank report fairshare --users --csv",
            ),
            _add_fair_share,
            _fair_share,
        ),
        "sitefactor": Command(
            "draw what credit left and closeness of its end add to priorities",
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
