"""Command `fairbank slurm`: import from Slurm, sync to Slurm, and the prolog."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from functools import partial
from shlex import join
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.slurm.reconcile import GRACE_MINUTES
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND, NOT_DONE
from fairbank.cli.framework.options import add_clusters, add_writing
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import InvalidInput
from fairbank.core.units import show_su
from fairbank.report.cells import counted, plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.slurm.compare.import_plan import ImportPlan
    from fairbank.slurm.importer import ImportResult
    from fairbank.slurm.sync import SyncResult
    from fairbank.slurm.toolbox import SlurmToolbox


def _gid(said: str) -> tuple[str, int]:
    account, _, number = said.partition("=")
    if account and number.isascii() and number.isdigit() and len(number) <= 10:
        return account, int(number)
    raise ArgumentTypeError(f"{said[:40]!r} is not ACCOUNT=NUMBER")


def _beside(context: Context) -> SlurmToolbox:
    from fairbank.slurm.toolbox import SlurmToolbox

    return SlurmToolbox(context.client, context.cluster)


# --- import ---


def _add_import(parser: Parser) -> None:
    add_clusters(parser, "what this Slurm must be called (default: whatever it is)")
    parser.add_argument(
        "-S",
        "--starttime",
        metavar="TIME",
        help="also the history from here on: every run that ended is charged",
    )
    parser.add_argument(
        "--cover",
        action="store_true",
        help="with -S: open allocations of category history for what nobody would pay for",
    )
    parser.add_argument(
        "--gid",
        metavar="ACCOUNT=N",
        type=_gid,
        action="append",
        default=[],
        help="the group of an account that is not named like one",
    )
    parser.add_argument(
        "--pass-over",
        metavar="NAME",
        action="append",
        default=[],
        help=(
            "an account or user that is not to be entered: nothing is said of it, nor of runs of it"
            " that cannot be charged"
        ),
    )
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="write the lines for the bank's settings there (default: print them)",
    )
    add_writing(parser, reason="none", keyed=False)
    add_progress(parser)


def _import(context: Context, options: Namespace) -> int:
    if options.cover and not options.starttime:
        raise InvalidInput(
            "--cover is about the history, which was not asked for",
            field="--cover",
            remedy="add -S TIME: -S now-90days",
        )
    beside, gids = _beside(context), dict(options.gid)
    with Stages(options) as progress:
        found = beside.import_people(
            gids, passed_over=options.pass_over, dry_run=True, progress=progress
        )
    _tell_plan(context, found)
    if options.settings and not options.dry_run:
        beside.keep_settings(options.settings, found.settings)
        context.say(f"written: {plain(options.settings)}")
    elif options.settings or found.differences is None:
        context.say("\nFor the bank's settings:\n")
        context.say(found.settings)
    if found.plan.steps and not options.dry_run:
        if not context.confirm(f"Enter {counted(len(found.plan.steps), 'thing')}?"):
            context.note("Nothing was changed.")
            return NOT_DONE
        with Stages(options) as progress:
            entered = beside.import_people(
                gids, passed_over=options.pass_over, dry_run=False, progress=progress
            )
        for no in entered.refused:
            context.note(plain(f"! {no}"))
        left = f"; left out: {_left_out(entered)}" if _left_out(entered) else ""
        context.say(
            f"entered: {counted(len(found.plan.steps) - len(entered.refused), 'thing')}{left}"
        )
        found = entered
    past = _import_history(context, options, beside, found.plan) if options.starttime else 0
    return FOUND if _left_out(found) or past else 0


def _tell_plan(context: Context, found: ImportResult) -> None:
    for step in found.plan.steps:
        context.say(plain(_step(step)))
    if not found.plan.steps and (left := _left_out(found)):
        context.say(f"Nothing to enter; left out of cluster {plain(found.cluster)}: {left}")
    elif not found.plan.steps:
        context.say(f"The bank has every account and user of cluster {plain(found.cluster)}.")
    for note in [*found.plan.notes, *(found.differences or ())]:
        context.note(plain(f"! {note}"))
    for wrong in found.unreadable:
        context.note(plain(f"! not read: {wrong}"))


def _left_out(found: ImportResult) -> int:
    """Return the number of Slurm's accounts, users and lines that are not in the bank afterwards."""
    return len(found.plan.notes) + len(found.unreadable) + len(found.refused)


def _step(step: Any) -> str:
    if hasattr(step, "gid"):
        under = f", under {step.parent}" if step.parent else ""
        return f"project {step.account}: group {step.group} ({step.gid}){under}"
    return f"project {step.account}: {step.user} ({step.uid}) is {step.role}"


def _import_history(
    context: Context, options: Namespace, beside: SlurmToolbox, people: ImportPlan
) -> int:
    """Import runs. Returns the number of runs and lines that are left out."""
    since, until = int(context.moment(options.starttime, "--starttime") or 0), context.now()
    after = people if options.dry_run else None
    ask = partial(
        beside.import_history, since, until, grace_seconds=GRACE_MINUTES * 60, cover=options.cover
    )
    with Stages(options) as progress:
        past = ask(passed_over=options.pass_over, after=after, progress=progress)
    for cover in past.covers:
        runs = counted(cover.jobs, "run")
        context.say(
            plain(
                f"allocation for {cover.account}/{cover.resource}: {show_su(cover.amount)} SU for"
                f" {runs}, category history"
            )
        )
    would = "would be " if options.dry_run else ""
    context.say(
        f"history: {counted(len(past.charged), 'run')} {would}charged, {show_su(past.amount)} SU;"
        f" {past.known:,} known already"
    )
    if past.given_back:
        held = show_su(sum(each.amount or 0 for each in past.given_back))
        context.say(
            f"lost in Slurm: {counted(len(past.given_back), 'hold')} {would}given back, {held} SU"
        )
    for each in past.left:
        context.note(plain(f"! {_told(each)}"))
    for wrong in past.unreadable:
        context.note(plain(f"! not read: {wrong}"))
    return len(past.left) + len(past.unreadable)


def _told(left: Any) -> str:
    """Return the run that is left unchanged, and the reason, in the words of `fairbank reconcile`."""
    finding = left.finding
    job = finding.job or finding.run
    which = "a run" if job is None else f"job {job.job_id} of {job.account}"
    return f"{which}: {left.said or f'{finding.kind.value}; left as it is'}"


# --- sync ---


def _add_sync(parser: Parser) -> None:
    add_clusters(parser, "what this Slurm must be called (default: whatever it is)")
    parser.add_argument(
        "--site",
        metavar="FILE",
        help="the site's rules of submission (default: /etc/fairbank/slurm.toml)",
    )
    parser.add_argument(
        "--accounts",
        action="store_true",
        help="also give projects accounts, and members associations, in Slurm",
    )
    parser.add_argument(
        "--fence",
        action="store_true",
        help="with --accounts: GrpTRESMins follows the balances, as a second fence",
    )
    parser.add_argument(
        "--remove",
        action="store_true",
        help="with --accounts: take associations away from those who are no members",
    )
    parser.add_argument("--no-policy", action="store_true", help="leave the policy file as it is")
    add_writing(parser, reason="none", keyed=False)
    add_progress(parser)


def _sync(context: Context, options: Namespace) -> int:
    _demand_accounts(options)
    beside = _beside(context)
    if not options.no_policy:
        with Stages(options) as progress:
            _tell_files(
                context,
                beside.sync_policy(options.site, dry_run=options.dry_run, progress=progress),
                dry_run=options.dry_run,
            )
    if not options.accounts:
        return 0
    with Stages(options) as progress:
        found = beside.sync_accounts(
            fence=options.fence, remove=options.remove, dry_run=True, progress=progress
        )
    for change in found.changes:
        context.say(plain(f"sacctmgr -i {join(change.words)}   # {change.why}"))
    for note in found.skipped:
        context.note(plain(f"! {note}"))
    if not found.changes:
        context.say(f"Slurm has every account and member of {counted(found.projects, 'project')}.")
        return 0
    if options.dry_run:
        return 0
    if not context.confirm(f"Make {counted(len(found.changes), 'change')} in Slurm's accounting?"):
        context.note("Nothing was changed in Slurm.")
        return NOT_DONE
    with Stages(options) as progress:
        beside.sync_accounts(
            fence=options.fence, remove=options.remove, dry_run=False, progress=progress
        )
    context.say(f"made: {counted(len(found.changes), 'change')}")
    return 0


def _demand_accounts(options: Namespace) -> None:
    """Raise InvalidInput for options about Slurm's accounts without --accounts, and for no option."""
    if options.accounts:
        return
    for name, given in (("--fence", options.fence), ("--remove", options.remove)):
        if given:
            remedy = (
                f"fairbank slurm sync --accounts {name}; with --dry-run it shows beforehand what it"
                " changes"
            )
            raise InvalidInput(
                f"{name} changes Slurm's accounts, which were not asked for",
                field=name,
                remedy=remedy,
            )
    if options.no_policy:
        remedy = "leave it away, or add --accounts"
        raise InvalidInput(
            "without the policy there is nothing to do", field="--no-policy", remedy=remedy
        )


def _add_prolog(parser: Parser) -> None:
    about = "when the bank cannot be asked: let the job run, or refuse it (default: closed)"
    parser.add_argument("--silence", choices=("open", "closed"), default="closed", help=about)


def _prolog(context: Context, options: Namespace) -> int:
    refused = _beside(context).prolog(os.environ, open_=options.silence == "open")
    if refused is not None:
        context.note(f"refused: {plain(refused)}")
    return 0


def _tell_files(context: Context, synced: SyncResult, *, dry_run: bool) -> None:
    for path in synced.files:
        verb, projects = (
            "would write" if dry_run else "written",
            counted(synced.projects, "project"),
        )
        context.say(plain(f"{verb}: {path}, {projects} of cluster {synced.cluster}"))
    for note in synced.skipped:
        context.note(plain(f"! {note}"))


COMMAND = Noun(
    "the bank and Slurm, brought into line with each other",
    {
        "import": Command(
            "enter Slurm's accounts, users and history into the bank; 8 when something is left out",
            (
                "fairbank slurm import --dry-run",
                "fairbank slurm import --settings /tmp/cluster.toml",
                "fairbank slurm import -S now-90days --cover",
            ),
            _add_import,
            _import,
            reads=False,
        ),
        "prolog": Command(
            "ask the bank as PrologSlurmctld, where the plug-in cannot be built",
            (
                (
                    "fairbank slurm prolog                          in the script that"
                    " PrologSlurmctld names"
                ),
                "fairbank slurm prolog --silence open           jobs run while the bank is away",
                "fairbank slurm prolog --server http://bank:8080",
            ),
            _add_prolog,
            _prolog,
            reads=False,
        ),
        "sync": Command(
            "write the submission policy, and Slurm's accounts, from the bank",
            (
                "fairbank slurm sync",
                "fairbank slurm sync --accounts --dry-run",
                "fairbank slurm sync --accounts --fence --yes",
            ),
            _add_sync,
            _sync,
            reads=False,
        ),
    },
)
