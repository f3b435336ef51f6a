"""Options and notes that `share`, `prio` and `why` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.exit_codes import FOUND
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import folded, plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

LINES_MAX = 10
"""Unreadable lines that are printed one by one."""


def add_folder(parser: Parser) -> None:
    parser.add_argument(
        "--from",
        dest="folder",
        metavar="FOLDER",
        help="read Slurm's earlier output from files there (default: run its commands)",
    )


def fit(options: Namespace, form: str, without: Mapping[str, str]) -> None:
    """Raise InvalidInput for an option that changes nothing in this form.

    Args:
        options: of the command.
        form: option that selects the form.
        without: options that it ignores, by attribute.
    """
    for name, word in without.items():
        if getattr(options, name):
            raise InvalidInput(
                f"it changes nothing with {form}", field=word, remedy=f"leave it out, or {form}"
            )


def print_unreadable(context: Context, unreadable: Sequence[str], command: str) -> int:
    """Print the lines that could not be read and return the exit code, 8 if there are any.

    Args:
        context: of the command.
        unreadable: the lines.
        command: that shows them in Slurm.
    """
    for line in unreadable[:LINES_MAX]:
        context.note(f"! not read: {line}")
    if len(unreadable) > LINES_MAX:
        context.note(f"! not read: {len(unreadable) - LINES_MAX} further lines")
    if unreadable:
        context.note(f"These lines are left out. To see what Slurm has there: {command}")
    return FOUND if unreadable else 0


def note(context: Context, sentences: Sequence[str]) -> None:
    for sentence in sentences:
        for line in folded(plain(sentence), context.width):
            context.note(line)
