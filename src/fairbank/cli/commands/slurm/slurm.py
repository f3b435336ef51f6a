"""Command `fairbank slurm`: import from Slurm, sync to Slurm, and the prolog."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from functools import partial
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.import_result import (
    COVER_ABOUT,
    history_row,
    history_warnings,
    show_history,
)
from fairbank.cli.commands.slurm.slurm_options import GRACE_MINUTES, slurm_and_bank
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND, NOT_DONE
from fairbank.cli.framework.options import add_clusters, add_forms, add_option, add_writing
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import InvalidInput
from fairbank.core.units import counted
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.rest.client.bank_client import BankClient
    from fairbank.slurm.commands import SlurmCommands
    from fairbank.slurm.history_import import HistoryResult
    from fairbank.slurm.people_import import ImportResult
    from fairbank.slurm.reconcile.import_plan import ImportPlan, Step


def _gid(text: str) -> tuple[str, int]:
    account, _, number = text.partition("=")
    if account and number.isascii() and number.isdigit() and len(number) <= 10:
        return account, int(number)
    raise ArgumentTypeError(f"{text[:40]!r} is not ACCOUNT=NUMBER")


# --- import ---


def _add_import(parser: Parser) -> None:
    add_clusters(parser, "required name of this Slurm cluster (default: any)")
    about = "also import the history since then: every run that ended is charged"
    add_option(parser, "-S, --starttime TIME", about)
    add_option(parser, "--cover", f"with -S: {COVER_ABOUT}")
    about = "the group id of an account that is not named like its group"
    add_option(parser, "--gid ACCOUNT=N", about, type=_gid, action="append", default=[])
    about = (
        "do not import this account or user; runs of it that cannot be charged"
        " are left out silently"
    )
    add_option(parser, "--pass-over NAME", about, action="append", default=[])
    about = "write the lines for the bank's settings to this file (default: print them)"
    add_option(parser, "--settings FILE", about)
    add_forms(parser.add_argument_group("Output"), {"--json": "JSON, with a named schema"})
    add_writing(parser, reason="none", keyed=False)
    add_progress(parser)


def _import(context: Context, options: Namespace) -> int:
    if options.cover and not options.starttime:
        raise InvalidInput(
            "--cover needs a history to import",
            field="--cover",
            remedy="add -S TIME: -S now-90days",
        )
    from fairbank.slurm.people_import import import_people
    from fairbank.slurm.sync import replace_file

    slurm, bank = slurm_and_bank(context)
    people = partial(
        import_people,
        slurm,
        bank,
        cluster=context.settings.cluster,
        gids=dict(options.gid),
        passed_over=options.pass_over,
    )
    with Stages(options) as progress:
        planned = people(dry_run=True, progress=progress)
    is_text = options.form is None
    if is_text:
        _print_plan(context, planned)
    result = planned
    if not options.dry_run:
        if not _confirm_import(context, planned):
            context.note("Nothing was changed.")
            return NOT_DONE
        if options.settings:
            replace_file(Path(options.settings), planned.settings.encode())
            if is_text:
                context.print_text(f"written: {plain(options.settings)}")
        if planned.plan.steps:
            with Stages(options) as progress:
                result = people(progress=progress)
            if is_text:
                _print_entered(context, result)
    history = None
    if options.starttime:
        history = _import_history(context, options, (slurm, bank), result.plan)
    if not is_text:
        _print_import(context, result, history)
    elif history is not None:
        show_history(context, history, "history", dry_run=options.dry_run)
    return FOUND if _left_out(result) or (history and history.left_out) else 0


def _confirm_import(context: Context, planned: ImportResult) -> bool:
    """Ask once for all that the import writes; a new file alone needs no question."""
    options, steps = context.options, planned.plan.steps
    file = Path(options.settings) if options.settings else None
    replaces = (
        file is not None and file.is_file() and file.read_bytes() != planned.settings.encode()
    )
    if not steps and not replaces:
        return True
    question = f"Enter {_counted_steps(len(steps))}" if steps else ""
    if file is not None:
        verb = "replace" if replaces else "write"
        question += f" and {verb}" if steps else verb.capitalize()
        question += f" {plain(options.settings)}"
    if options.form is not None and not options.yes:  # stdout has only the result
        context.note(*map(_step, steps))
    return context.confirm(f"{question}?", needs_yes=replaces)


def _counted_steps(number: int) -> str:
    return counted(number, "project or member", "projects and members")


def _print_import(context: Context, result: ImportResult, history: HistoryResult | None) -> None:
    """Print the result, or its prediction, as JSON."""
    from msgspec import structs

    from fairbank.slurm.reconcile.import_plan import NewMember, PlannedProject

    dry_run, steps = context.options.dry_run, result.plan.steps
    row = {
        "cluster": result.cluster,
        "dry_run": dry_run,
        "projects": [structs.asdict(step) for step in steps if isinstance(step, PlannedProject)],
        "members": [structs.asdict(step) for step in steps if isinstance(step, NewMember)],
        "settings": result.settings,
        "refused": result.refused,
        "left_out": _left_out(result),
        "history": None if history is None else history_row(history, dry_run=dry_run),
    }
    unreadable = (f"not read: {line}" for line in result.unreadable)
    warnings = [*result.plan.notes, *(result.differences or ()), *unreadable, *result.refused]
    warnings += [] if history is None else history_warnings(history)
    context.cluster = result.cluster
    context.print_json("fairbank.slurm-import/2", [row], warnings)


def _print_entered(context: Context, result: ImportResult) -> None:
    context.note(*(f"! {refusal}" for refusal in result.refused))
    left = f"; left out: {_left_out(result)}" if _left_out(result) else ""
    done = len(result.plan.steps) - len(result.refused)
    context.print_text(f"entered: {_counted_steps(done)}{left}")


def _print_plan(context: Context, result: ImportResult) -> None:
    """Print the steps, and the lines for the bank's settings unless they are written to a file."""
    context.name_bank()  # before all, as the lines for the settings may go to a file
    context.print_lines(plain(_step(step)) for step in result.plan.steps)
    if not result.plan.steps and (left := _left_out(result)):
        context.print_text(f"Nothing to enter; left out of cluster {plain(result.cluster)}: {left}")
    elif not result.plan.steps:
        context.print_text(
            f"The bank has every account and user of cluster {plain(result.cluster)}."
        )
    context.note(*(f"! {note}" for note in (*result.plan.notes, *(result.differences or ()))))
    context.note(*(f"! not read: {line}" for line in result.unreadable))
    options = context.options
    to_file = options.settings and not options.dry_run
    if not to_file and (options.settings or result.differences is None):
        context.print_text("\nFor the bank's settings:\n")
        context.print_text(result.settings)


def _left_out(result: ImportResult) -> int:
    """Return the number of accounts, users and lines of Slurm that the bank will not have."""
    return len(result.plan.notes) + len(result.unreadable) + len(result.refused)


def _step(step: Step) -> str:
    from fairbank.slurm.reconcile.import_plan import PlannedProject

    if isinstance(step, PlannedProject):
        under = f", under {step.parent}" if step.parent else ""
        return f"project {step.account}: group {step.group} ({step.gid}){under}"
    return f"project {step.account}: {step.user} ({step.uid}) is {step.role}"


def _import_history(
    context: Context, options: Namespace, sides: tuple[SlurmCommands, BankClient], plan: ImportPlan
) -> HistoryResult:
    """Import the finished runs and return the result.

    With --dry-run nothing is charged: the result is predicted, as if the plan were carried out.
    """
    from fairbank.slurm.history_import import import_history

    with Stages(options) as progress:
        return import_history(
            *sides,
            int(context.moment(options.starttime, "--starttime") or 0),
            context.now(),
            grace_seconds=GRACE_MINUTES * 60,
            cluster=context.settings.cluster,
            cover=options.cover,
            passed_over=options.pass_over,
            after=plan if options.dry_run else None,
            progress=progress,
        )


# --- sync ---


def _add_sync(parser: Parser) -> None:
    add_clusters(parser, "required name of this Slurm cluster (default: any)")
    about = "the site's rules for submissions (default: /etc/fairbank/slurm.toml)"
    add_option(parser, "--site FILE", about)
    about = "also create accounts for projects and associations for members in Slurm"
    add_option(parser, "--accounts", about)
    about = "with --accounts: set GrpTRESMins to the balances, as a second limit"
    add_option(parser, "--fence", about)
    about = "with --accounts: remove the associations of users who are no members"
    add_option(parser, "--remove", about)
    add_option(parser, "--no-policy", "leave the policy file as it is")
    add_writing(parser, reason="none", keyed=False)
    add_progress(parser)


def _sync(context: Context, options: Namespace) -> int:
    _check_options(options)
    slurm, bank = slurm_and_bank(context)
    context.name_bank()  # before all, as the lines of --accounts may go to a shell
    if not options.no_policy:
        _sync_policy(context, options, slurm, bank)
    return _sync_accounts(context, options, slurm, bank) if options.accounts else 0


def _sync_policy(
    context: Context, options: Namespace, slurm: SlurmCommands, bank: BankClient
) -> None:
    """Write the submission policy, and print its files."""
    from fairbank.slurm.policy import read_site_rules
    from fairbank.slurm.sync import sync_policy

    site = read_site_rules(options.site)
    with Stages(options) as progress:
        synced = sync_policy(
            slurm,
            bank,
            site,
            cluster=context.settings.cluster,
            dry_run=options.dry_run,
            progress=progress,
        )
    verb = "would write" if options.dry_run else "written"
    projects = counted(synced.projects, "project")
    context.print_lines(
        plain(f"{verb}: {path}, {projects} of cluster {synced.cluster}") for path in synced.files
    )
    context.note(*(f"! {note}" for note in synced.skipped))


def _sync_accounts(
    context: Context, options: Namespace, slurm: SlurmCommands, bank: BankClient
) -> int:
    """Change the accounts and members of Slurm's accounting, after a question."""
    from fairbank.slurm.sync import sync_accounts

    accounts = partial(
        sync_accounts,
        slurm,
        bank,
        cluster=context.settings.cluster,
        fence=options.fence,
        remove=options.remove,
    )
    with Stages(options) as progress:
        result = accounts(dry_run=True, progress=progress)
    context.print_lines(
        plain(f"sacctmgr -i {join(change.words)}   # {change.why}") for change in result.changes
    )
    context.note(*(f"! {note}" for note in result.skipped))
    if not result.changes:
        context.print_text(
            f"Slurm has every account and member of {counted(result.projects, 'project')}."
        )
        return 0
    if options.dry_run:
        return 0
    changes = counted(len(result.changes), "change")
    question = f"Make {changes} in Slurm's accounting?"
    if not context.confirm(question, needs_yes=options.remove):
        context.note("Nothing was changed in Slurm.")
        return NOT_DONE
    with Stages(options) as progress:
        accounts(progress=progress)
    context.print_text(f"made: {changes}")
    return 0


def _check_options(options: Namespace) -> None:
    """Raise InvalidInput for options that need --accounts, and if nothing is left to do."""
    if options.accounts:
        return
    for name, given in (("--fence", options.fence), ("--remove", options.remove)):
        if given:
            remedy = f"fairbank slurm sync --accounts {name}; --dry-run shows what it would change"
            raise InvalidInput(
                f"{name} changes Slurm's accounts and needs --accounts", field=name, remedy=remedy
            )
    if options.no_policy:
        remedy = "leave it out, or add --accounts"
        raise InvalidInput(
            "without the policy there is nothing to do", field="--no-policy", remedy=remedy
        )


def _add_prolog(parser: Parser) -> None:
    about = "if the bank does not answer: let the job run, or refuse it (default: closed)"
    add_option(parser, "--outage-policy", about, choices=("open", "closed"), default="closed")


def _prolog(context: Context, options: Namespace) -> int:
    from fairbank.slurm.commands import SlurmCommands
    from fairbank.slurm.prolog import run_prolog

    refusal = run_prolog(
        SlurmCommands(), context.client, os.environ, fail_open=options.outage_policy == "open"
    )
    if refusal is not None:
        context.note(f"refused: {refusal}")
    return 0


COMMAND = Noun(
    "import from Slurm, synchronise Slurm with the bank, and the prolog",
    {
        "import": Command(
            "import Slurm's accounts, users and history; exit code 8 if something is left out",
            ("{} --dry-run", "{} --settings /tmp/cluster.toml", "{} -S now-90days --cover"),
            _add_import,
            _import,
            reads=False,
        ),
        "prolog": Command(
            "ask the bank as PrologSlurmctld, where the plug-in cannot be built",
            (
                "{}                          in the script that PrologSlurmctld names",
                "{} --outage-policy open           jobs run while the bank is away",
                "{} --server http://bank:8080",
            ),
            _add_prolog,
            _prolog,
            reads=False,
        ),
        "sync": Command(
            "write the submission policy, and Slurm's accounts, from the bank",
            ("{}", "{} --accounts --dry-run", "{} --accounts --fence --yes"),
            _add_sync,
            _sync,
            reads=False,
        ),
    },
)
