"""Command `fairbank restore`: fill a store from a backup."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.backup import verify
from fairbank.cli.commands.admin.init import add_config
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import NOT_DONE
from fairbank.cli.framework.progress import Progress, add_progress
from fairbank.report.cells import counted, plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def add(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a backup")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="drop what is in the store; without it only an empty one is filled",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only read the file to its end, as fairbank backup verify does",
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask before --replace (only a terminal is asked)"
    )
    add_config(parser)
    add_progress(parser)


def run(context: Context, options: Namespace) -> int:
    from pathlib import Path

    from fairbank.service.ops.backup import Backups
    from fairbank.setup.bank_settings import SystemClock, opened_store

    if options.check:
        return verify(context, options)
    name = plain(options.file)
    with Progress("restore", options) as progress:
        if options.replace and not context.confirm(
            f"Drop everything in the store, and put {name} in its place?"
        ):
            context.note("Nothing was changed.")
            return NOT_DONE
        with opened_store(options.config) as store:
            rows = Backups(store, SystemClock()).restore(
                Path(options.file), replace=options.replace, progress=progress
            )
    context.say(f"{name}: {counted(rows, 'row')} restored")
    which = f" --config {quote(options.config)}" if options.config else ""
    context.note(f"Check the books with: fairbank audit verify{which}")
    return 0


COMMAND = Command(
    "restore a backup into a store, in one transaction",
    (
        "fairbank restore monday.fbk",
        "fairbank restore monday.fbk --replace",
        "fairbank restore --check monday.fbk",
    ),
    add,
    run,
    reads=False,
    asks=False,
)
