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

TOLD_MAX = 10
"""Lines that could not be read: so many are told one by one."""


def add_folder(parser: Parser) -> None:
    parser.add_argument(
        "--from",
        dest="folder",
        metavar="FOLDER",
        help="what Slurm said before, from the files there (default: ask it)",
    )


def fit(options: Namespace, form: str, without: Mapping[str, str]) -> None:
    """Raise InvalidInput for an option without effect in this form; `without` lists them by dest."""
    for name, word in without.items():
        if getattr(options, name):
            raise InvalidInput(
                f"it changes nothing with {form}", field=word, remedy=f"leave it out, or {form}"
            )


def told(context: Context, unreadable: Sequence[str], command: str) -> int:
    """Print the unreadable lines and the command to check. Returns the exit code: 8 if there are any."""
    for line in unreadable[:TOLD_MAX]:
        context.note(f"! not read: {line}")
    if len(unreadable) > TOLD_MAX:
        context.note(f"! not read: {len(unreadable) - TOLD_MAX} further lines")
    if unreadable:
        context.note(f"What is told above is left out. To see what Slurm has there: {command}")
    return FOUND if unreadable else 0


def note(context: Context, sentences: Sequence[str]) -> None:
    for sentence in sentences:
        for line in folded(plain(sentence), context.width):
            context.note(line)
