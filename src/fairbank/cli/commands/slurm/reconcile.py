"""Command `fairbank reconcile`: compare finished runs with Slurm's accounting, and repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.options import add_clusters, add_period, count
from fairbank.cli.framework.output import Listing, show, shown_columns
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import counted, plain
from fairbank.report.columns import UNITS, Column, moment, su, text

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import Look, Row
    from fairbank.slurm.bank import ReportObjection
    from fairbank.slurm.compare.classification import ReconcileFinding
    from fairbank.slurm.reconciler import ReconcileResult
    from fairbank.slurm.repair import RepairOutcome

GRACE_MINUTES = 60

MENDED_BY = {
    "MISSING": ("would charge", "charged"),
    "OPEN": ("would charge", "charged"),
    "ORPHAN": ("would give back", "gave back"),
    "RUNAWAY": ("would give back", "gave back"),
}
ADVICE = {
    "RUNAWAY": "what accounting takes for running is mended by: sacctmgr show runawayjobs",
    "REFUSED": "once its project can pay, charge it with: fairbank reconcile --fix --again",
    "PARTIAL": (
        "see what accounting has: sacct -D -j JOBID; the bank has not heard of it, so nobody can"
        " say what it cost"
    ),
    "AMOUNT": (
        "what the bank is above accounting is given back by: fairbank refund JOBID SU --reason TEXT"
    ),
    "TWICE": "one of the two is given back by: fairbank refund JOB --reason TEXT",
    "UNHEARD": "see whether slurmdbd has lost records: sacct -D -j JOBID",
}


def _done(row: Row, look: Look) -> str:
    """Return the field or the figures of a refusal, in short. Its reason stands before them, in full."""
    refusal = row["refusal"]
    if refusal is None or look.exact:
        return str(row["done"])
    reason, _, about = str(refusal["detail"]).removesuffix(".").partition(": ")
    return about if about and refusal["reason"] else reason


COLUMNS = (
    Column("JOBID", text("job_id"), right=True),
    Column("PROJECT", text("account")),
    Column("USER", text("user"), drop=2),
    Column("STARTED", moment("start"), drop=1),
    Column("SU", su("amount"), right=True),
    Column("WHAT", text("what"), least=24),
    Column("DONE", _done),
    Column("SUBMITTED", moment("submitted"), extra=True),
    Column("JOB", text("job"), right=True, extra=True),
)


def add(parser: Parser) -> None:
    add_period(parser, "now-2days")
    add_clusters(parser, "what this Slurm must be called (default: whatever it is)")
    parser.add_argument(
        "--fix",
        action="store_true",
        help="charge what is missing, give back what is held for jobs that are gone",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="with --fix: also try again what the bank has refused before",
    )
    parser.add_argument(
        "--grace",
        metavar="MINUTES",
        type=count,
        default=GRACE_MINUTES,
        help=(
            "how long accounting may lag before what it lacks counts as lost (default:"
            f" {GRACE_MINUTES})"
        ),
    )
    add_progress(parser)


def run(context: Context, options: Namespace) -> int:
    if shown_columns(context, COLUMNS):
        return 0
    if options.again and not options.fix:
        raise InvalidInput(
            "--again does nothing by itself",
            field="--again",
            remedy="fairbank reconcile --fix --again",
        )
    from fairbank.slurm.toolbox import SlurmToolbox

    since, until = period_of(context, "now-2days")
    with Stages(options) as progress:
        done = SlurmToolbox(context.client, context.cluster).reconcile(
            since,
            until,
            grace_seconds=options.grace * 60,
            fix=options.fix,
            again=options.again,
            progress=progress,
        )
    tell(context, done, fix=options.fix)
    return 0 if done.clean else FOUND


def period_of(context: Context, default: str) -> tuple[int, int]:
    """Return -S and -E in seconds since 1970 (default: until now). Raises InvalidInput if empty."""
    period = context.period(default)
    since, until = int(period["since"] or 0), int(period["until"] or context.now())
    if until <= since:
        raise InvalidInput(
            "the period ends before it begins",
            field="--endtime",
            remedy="a period goes from -S up to, without, -E",
        )
    return since, until


def tell(context: Context, done: ReconcileResult, *, fix: bool) -> None:
    """The figures, then each run that differs, then what helps."""
    comparison = done.comparison
    figures = {
        "compared": done.compared,
        **{name: getattr(comparison, name) for name in ("matched", "free", "late", "half")},
    }
    if context.options.form is None:
        context.say(
            f"Compared {counted(done.compared, 'finished run')} of cluster {plain(done.cluster)} in"
            f" {done.seconds:.1f} s"
        )
        for line in [*_agreeing(done), *_differing(context, done, fix=fix)]:
            context.say(f"  {line}")
        if done.outcomes:
            context.say()
    for each in done.unreadable:
        context.note(plain(f"! not read: {each}"))
    show(
        context,
        Listing(
            "fairbank.reconciled/1",
            COLUMNS,
            [_row(each) for each in done.outcomes],
            f"unit {UNITS[context.format.units]}",
            notes=_notes(done, fix=fix),
            empty="" if done.unreadable else "The books and accounting agree.",
            more={"summary": figures, "unreadable": [str(each) for each in done.unreadable]},
        ),
    )


def _agreeing(done: ReconcileResult) -> list[str]:
    comparison = done.comparison
    lines = [
        (f"{comparison.matched:>9,}", "agree to the minute"),
        (f"{comparison.free:>9,}", "ran for no time and cost nothing"),
    ]
    lines += (
        [(f"{comparison.late:>9,}", "are not yet whole, and left for the next time")]
        if comparison.late
        else []
    )
    half = "have half a record in accounting, and the bank has heard their ends itself"
    lines += [(f"{comparison.half:>9,}", half)] if comparison.half else []
    return [f"{number}  {what}" for number, what in lines]


def _differing(context: Context, done: ReconcileResult, *, fix: bool) -> list[str]:
    by_kind: dict[str, list[RepairOutcome]] = {}
    for each in done.outcomes:
        by_kind.setdefault(each.finding.kind.name, []).append(each)
    lines = []
    for name, found in by_kind.items():
        amount = sum(each.finding.amount or 0 for each in found if not fix or each.said is None)
        verb = MENDED_BY[name][fix] if name in MENDED_BY else ""
        sum_ = (
            f"   {verb} {context.format.su(amount)} {UNITS[context.format.units]}" if verb else ""
        )
        lines.append(f"{len(found):>9,}  {found[0].finding.kind.value}{sum_}")
    return lines


def _notes(done: ReconcileResult, *, fix: bool) -> list[str]:
    kinds = {each.finding.kind.name for each in done.outcomes if each.said is not None}
    notes = [advice for name, advice in ADVICE.items() if name in kinds]
    return notes + (
        ["post what can be mended with: fairbank reconcile --fix"]
        if kinds & set(MENDED_BY) and not fix
        else []
    )


def _row(outcome: RepairOutcome) -> Row:
    finding = outcome.finding
    return {
        **_whose(finding),
        "kind": finding.kind.name,
        "what": finding.kind.value,
        "amount": finding.amount,
        "job": finding.run.id if finding.run else None,
        "done": "yes" if outcome.said is None else outcome.said or "no",
        "refusal": _refusal(outcome.against),
    }


def _refusal(no: ReportObjection | None) -> Row | None:
    """Return the bank's refusal, with the field that has to change."""
    return (
        None
        if no is None
        else {"reason": no.reason, "field": no.field, "detail": no.detail, "remedy": no.remedy}
    )


def _whose(finding: ReconcileFinding) -> Row:
    if (job := finding.job) is not None:
        about = {
            "job_id": job.job_id,
            "submitted": job.submitted,
            "start": job.start,
            "account": job.account,
            "user": job.user,
        }
        return {**about, "state": job.state, "elapsed": job.elapsed}
    if (run := finding.run) is not None:
        return {
            "job_id": run.job_id,
            "submitted": run.submitted,
            "start": None,
            "account": run.account,
            "user": user_name(run.owner),
            "state": run.state,
            "elapsed": None,
        }
    return {}


COMMAND = Command(
    "compare every finished run with Slurm's accounting; 8 when they differ",
    (
        "fairbank reconcile                         the last two days, changing nothing",
        "fairbank reconcile -S now-7days --fix      charge what is missing, release what is lost",
        "fairbank reconcile --json | jq .summary",
    ),
    add,
    run,
)
