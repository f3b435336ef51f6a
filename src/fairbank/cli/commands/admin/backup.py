"""Command `fairbank backup`: create and verify backups."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.init import add_config
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.progress import Progress, add_progress
from fairbank.report.cells import counted, plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add_create(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write; whole, or not at all")
    parser.add_argument(
        "--force", action="store_true", help="put it in the place of a file that is there already"
    )
    add_config(parser)
    add_progress(parser)


def _create(context: Context, options: Namespace) -> int:
    from pathlib import Path

    from fairbank.service.ops.backup import Backups
    from fairbank.setup.bank_settings import SystemClock, opened_store

    with Progress("backup", options) as progress, opened_store(options.config) as store:
        first = partial(progress.wait, "first whether the store's file is sound")
        rows = Backups(store, SystemClock()).create(
            Path(options.file), progress, at_work=first, replace=options.force
        )
    context.say(f"{plain(options.file)}: {counted(rows, 'row')}")
    return 0


def _add_verify(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a backup")
    add_progress(parser)


def verify(context: Context, options: Namespace) -> int:
    """Read a backup to its end and print its size; also used by `restore --check`."""
    from pathlib import Path

    from fairbank.service.ops.backup_file import verify_file

    with Progress("backup", options) as progress:
        rows = verify_file(Path(options.file), progress)
    context.say(f"{plain(options.file)}: whole, {counted(rows, 'row')}")
    return 0


COMMAND = Noun(
    "backups of the bank",
    {
        "create": Command(
            "write a backup while the bank runs",
            (
                "fairbank backup create monday.fbk",
                "fairbank backup create /backup/$(date +%F).fbk",
                "fairbank backup create x.fbk -q",
            ),
            _add_create,
            _create,
            reads=False,
            asks=False,
        ),
        "verify": Command(
            "check a backup without restoring it",
            (
                "fairbank backup verify monday.fbk",
                "fairbank backup verify monday.fbk -q",
                "fairbank backup verify /backup/2026-11-21.fbk",
            ),
            _add_verify,
            verify,
            reads=False,
            asks=False,
        ),
    },
)
