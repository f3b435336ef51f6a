"""Options, sources and output that commands of Slurm share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.options import add_option
from fairbank.cli.framework.selectors import not_visible
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.time import iso
from fairbank.report.columns import DisplayFormat
from fairbank.report.tables import JsonSource, as_json, envelope

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Iterable, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Row
    from fairbank.rest.client.bank_client import BankClient
    from fairbank.slurm.commands import SlurmCommands

GRACE_MINUTES = 60
LINES_MAX = 10
"""Unreadable lines that are printed one by one."""


def add_directory(parser: Parser) -> None:
    about = "read Slurm's earlier output from files there (default: run its commands)"
    add_option(parser, "--from DIRECTORY", about, dest="directory")


def fit(options: Namespace, form: str, unused: Iterable[str]) -> None:
    """Raise InvalidInput for an option that changes nothing in this form.

    Args:
        form: option that selects the form.
        unused: options that it ignores, by their long names.
    """
    for name in unused:
        if getattr(options, name):
            text, remedy = f"it changes nothing with {form}", f"leave it out, or {form}"
            raise InvalidInput(text, field=f"--{name}", remedy=remedy)


def check_partitions(
    context: Context, shown: Collection[str], names: Callable[[], Collection[str]]
) -> None:
    """Check that Slurm has the partitions of -p. Raises NotFound with those that it has.

    Args:
        shown: the partitions of the jobs, which need no further command of Slurm.
        names: returns all; not called if those of the jobs are enough.
    """
    named = context.options.partition or ()
    if set(shown).issuperset(named):
        return
    try:
        known, recording = {*shown, *names()}, ""
    except NotFound as missing:  # a recording may lack the file
        known, recording = {*shown}, f"; for partitions without jobs {missing.remedy}"
    try:
        check_names("partition", named, known)
    except NotFound as unknown:
        unknown.remedy = f"{unknown.remedy}{recording}"
        raise


def check_names(what: str, named: Iterable[str], known: Collection[str]) -> None:
    """Check that Slurm has the names of an option. Raises NotFound with those that it has.

    Args:
        what: noun for a name, which is also the option without `--`: "partition".
        named: the names that the user typed.
        known: all names that Slurm shows.
    """
    for name in named:
        if name not in known:
            remedy = f"Slurm shows no {what}"
            raise not_visible(what, name, f"--{what}", sorted(known), remedy)


def print_unreadable(context: Context, unreadable: Sequence[object], command: str) -> int:
    """Print the lines that could not be read and return the exit code, 8 if there are any.

    Args:
        unreadable: the lines; their text says what is wrong.
        command: the command that shows them in Slurm.
    """
    context.note(*(f"! not read: {line}" for line in unreadable[:LINES_MAX]))
    if len(unreadable) > LINES_MAX:
        context.note(f"! not read: {len(unreadable) - LINES_MAX} further lines")
    if unreadable:
        context.note(f"These lines are left out. To see what Slurm has there: {command}")
    return FOUND if unreadable else 0


def print_json(
    context: Context,
    schema: str,
    as_of: int,
    cluster: str | None,
    data: Sequence[Row],
    warnings: Sequence[str],
) -> None:
    """Print data of Slurm as JSON.

    Args:
        schema: its name and version.
        as_of: time of the data.
        cluster: its name, if known.
        data: the rows.
        warnings: what was left out.
    """
    context.print_text(
        as_json(
            envelope(
                schema,
                JsonSource(context.bank, iso(as_of), cluster),
                data,
                warnings,
                DisplayFormat(),
            )
        )
    )


def slurm_and_bank(context: Context) -> tuple[SlurmCommands, BankClient]:
    """Return the Slurm of this host and the bank.

    Raises Forbidden for users who may not see all runs: the others would seem to be missing.
    """
    from fairbank.rest.client.bank_client import BankClient
    from fairbank.slurm.commands import SlurmCommands

    bank = BankClient(context.client)
    bank.require_full_view()
    return SlurmCommands(), bank


def period_of(context: Context, default: str) -> tuple[int, int]:
    """Return -S and -E as seconds since 1970, by default until now. Raises InvalidInput."""
    period = context.period(default)
    since, until = int(period["since"] or 0), int(period["until"] or context.now())
    if until <= since:
        raise InvalidInput(
            "the period ends before it begins",
            field="--endtime",
            remedy="a period goes from -S up to, without, -E",
        )
    return since, until
