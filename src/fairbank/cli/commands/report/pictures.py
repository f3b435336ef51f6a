"""Pictures of `fairbank report`: the directory where to draw, captions, and the list of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.options import add_option
from fairbank.cli.framework.output import Listing, show
from fairbank.cli.framework.picture_files import FILE_COLUMNS, add_png, write_pictures
from fairbank.report.plots.figures import Caption

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.plots.figures import Figure


def add_directory(parser: Parser, what: str = "a figure too") -> None:
    """Add the options of a verb that prints a table, and draws only if a directory is given."""
    about = f"where to draw {what}; created if missing; needs matplotlib"
    add_option(parser, "directory DIRECTORY", about, nargs="?")
    add_png(parser)


def add_pictures(parser: Parser) -> None:
    """Add the options of a verb that only draws."""
    about = "where to draw; created if missing, existing files are replaced; needs matplotlib"
    add_option(parser, "directory DIRECTORY", about)
    add_png(parser)


def bank_caption(context: Context, title: str, about: str, period: str) -> Caption:
    """Return the text of a figure, which names the time that it shows, the bank and the command.

    Args:
        context: the command, with the bank's name and time.
        title: title of the figure.
        about: what it shows.
        period: the time that it shows.
    """
    bank = f"bank {context.bank}" if context.bank else "the bank"
    source = f"{bank}, as of {context.format.as_of(context.bank_time)}"
    return Caption(title, f"{about}, {period}", source, context.command_line, period)


def show_pictures(
    context: Context,
    options: Namespace,
    figures: Iterable[tuple[str, Figure]],
    heading: str | None = None,
) -> int:
    """Draw the figures and list their files; return the exit code.

    Args:
        context: the command.
        options: values of the options, with the directory.
        figures: what to draw, with file names without the ending.
        heading: caption of the list.
    """
    drawn = write_pictures(options.directory, figures, as_png=options.png)
    files = [{"file": picture.file, "about": picture.caption.title} for picture in drawn]
    return show(context, Listing("fairbank.figure/1", FILE_COLUMNS, files, heading))
