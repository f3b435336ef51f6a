"""`fairbank report`: figures as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command, Noun
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.report.columns import Column, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser

COLUMNS = (Column("FILE", text("file")), Column("SHOWS", text("about"), drop=1))


def _add_site_factor(parser: Parser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="where to write them, in the place of those that are there; made if need be")
    parser.add_argument("--agent-config", metavar="FILE", help="draw only the rule that these settings of an agent choose")


def _site_factor(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    drawn = desk.works.figures.site_factor(options.folder, agent=options.agent_config)
    show(desk, Listing("fairbank.figure/1", COLUMNS, [{"file": each.file, "about": each.about} for each in drawn]))
    return 0


COMMAND = Noun(
    "figures as SVG files",
    {
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
