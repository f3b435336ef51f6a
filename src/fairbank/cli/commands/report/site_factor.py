"""Command `fairbank report sitefactor`: the rules of the site factor, as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.report.pictures import add_pictures, show_pictures
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import add_option
from fairbank.cli.framework.picture_files import FILE_COLUMNS
from fairbank.core.errors import FairbankError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.plots.figures import Figure


def _add(parser: Parser) -> None:
    add_pictures(parser)
    about = "draw only the rule that these settings of an agent choose"
    add_option(parser, "--agent-config FILE", about)


def _run(context: Context, options: Namespace) -> int:
    figures = _figures(options.agent_config, context.command_line)
    return show_pictures(context, options, figures)


def _figures(agent_config: str | None, command: str) -> Iterator[tuple[str, Figure]]:
    """Yield HADM's six figures, or only the rule of an agent's settings."""
    from fairbank.report.plots.site_factor import rule_figure, site_factor_figures

    if agent_config is None:
        for number, figure in enumerate(site_factor_figures(command), start=1):
            yield f"site-factor-{number}", figure
        return
    from pathlib import Path

    from fairbank.priority.site_factor import rule_of
    from fairbank.slurm.agent_settings import read_agent_settings

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


COMMAND = Command(
    "draw the site factor of remaining credit and time",
    (
        "{} figures             the rules, in six figures",
        "{} . --agent-config /etc/fairbank/agent.toml",
        "{} figures --json",
    ),
    _add,
    _run,
    asks=False,
    columns=FILE_COLUMNS,
)
