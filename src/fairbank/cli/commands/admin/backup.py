"""Commands `fairbank backup` and `fairbank restore`: create, verify and restore backups."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Noun, host_command
from fairbank.cli.framework.exit_codes import NOT_DONE
from fairbank.cli.framework.options import add_config, add_json, add_option
from fairbank.cli.framework.progress import ProgressBar, add_progress
from fairbank.core.units import counted
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add_create(parser: Parser) -> None:
    add_option(parser, "file FILE", "the file to write; whole, or not at all")
    add_option(parser, "--force", "put it in the place of a file that is there already")
    add_config(parser)
    add_json(parser)
    add_progress(parser)


def _create(context: Context, options: Namespace) -> int:
    from fairbank.service.ops.backup import Backups
    from fairbank.setup.bank_settings import SystemClock, bank_places, opened_store, settings_of

    config = options.config
    settings = settings_of(config)
    places = bank_places(config, settings)
    _note_bank(context, settings.server.name, places)
    with ProgressBar("backup", options) as progress, opened_store(config, settings) as store:
        first = partial(progress.wait, "first whether the store's file is sound")
        rows = Backups(store, SystemClock(), settings.server.name).create(
            Path(options.file), progress, at_work=first, replace=options.force
        )
    _print(context, rows, counted(rows, "row"), places)
    return 0


def _note_bank(context: Context, bank: str, places: Mapping[str, str]) -> None:
    context.note_places(places)
    context.bank = bank


def _print(
    context: Context, rows: int, result: str, places: Mapping[str, str] | None = None
) -> None:
    """Print the backup and its rows. JSON also has the settings and the store, if one was used."""
    file = context.options.file
    if context.options.form:
        context.print_json("fairbank.backup-result/1", {"file": file, "rows": rows}, more=places)
    else:
        context.print_text(f"{plain(file)}: {result}")


def _add_verify(parser: Parser) -> None:
    add_option(parser, "file FILE", "a backup")
    add_json(parser)
    add_progress(parser)


def _verify(context: Context, options: Namespace) -> int:
    from fairbank.service.ops.backup_file import bank_of, verify_file

    file = Path(options.file)
    with ProgressBar("backup", options) as progress:
        rows = verify_file(file, progress)
    context.bank = bank_of(file)
    _print(context, rows, f"whole, {counted(rows, 'row')}")
    return 0


COMMAND = Noun(
    "backups of the bank",
    {
        "create": host_command(
            "write a backup while the bank runs",
            ("{} monday.fbk", "{} /backup/$(date +%F).fbk", "{} x.fbk -q"),
            _add_create,
            _create,
        ),
        "verify": host_command(
            "check a backup without restoring it",
            ("{} monday.fbk", "{} monday.fbk -q", "{} /backup/2026-11-21.fbk"),
            _add_verify,
            _verify,
        ),
    },
)


def _add_restore(parser: Parser) -> None:
    add_option(parser, "file FILE", "a backup")
    about = "drop what is in the store; without it only an empty one is filled"
    add_option(parser, "--replace", about)
    about = "only read the file to its end, as fairbank backup verify does"
    add_option(parser, "--check", about)
    about = "do not ask before --replace; required with it if there is no terminal to ask on"
    add_option(parser, "--yes", about)
    add_config(parser)
    add_json(parser)
    add_progress(parser)


def _restore(context: Context, options: Namespace) -> int:
    from fairbank.service.ops.backup import Backups
    from fairbank.setup import bank_settings
    from fairbank.setup.bank_settings import SystemClock, opened_store, settings_of

    if options.check:
        return _verify(context, options)
    name, settings = plain(options.file), settings_of(options.config)
    places = bank_settings.bank_places(options.config, settings)
    _note_bank(context, settings.server.name, places)
    if bank_settings.is_served(settings):
        context.note(
            f"! the bank's server is running at unix:{settings.server.socket}: jobs and users use"
            " what is restored at once; stop it first to keep them out"
        )
    with ProgressBar("restore", options) as progress:
        question = f"Drop everything in {places['store']}, and put {name} in its place?"
        if options.replace and not context.confirm(question, needs_yes=True):
            context.note("Nothing was changed.")
            return NOT_DONE
        with opened_store(options.config, settings) as store:
            rows = Backups(store, SystemClock()).restore(
                Path(options.file), replace=options.replace, progress=progress
            )
    _print(context, rows, f"{counted(rows, 'row')} restored", places)
    which = f" --config {quote(options.config)}" if options.config else ""
    context.note(f"Check the ledger with: fairbank audit verify{which}")
    return 0


RESTORE = host_command(
    "restore a backup into a store, in one transaction",
    ("{} monday.fbk", "{} monday.fbk --replace", "{} --check monday.fbk"),
    _add_restore,
    _restore,
)
