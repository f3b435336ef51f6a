"""Command `fairbank reconcile`: compare finished runs with Slurm's accounting, and repair."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.import_result import of_resources
from fairbank.cli.commands.slurm.slurm_options import GRACE_MINUTES, period_of, slurm_and_bank
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.host import user_name
from fairbank.cli.framework.options import add_clusters, add_option, add_period, count
from fairbank.cli.framework.output import Listing, caption, show
from fairbank.cli.framework.progress import Stages, add_progress
from fairbank.core.errors import InvalidInput
from fairbank.core.units import counted
from fairbank.report.cells import plain
from fairbank.report.columns import Column, moment, su, text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser
    from fairbank.report.columns import DisplayFormat, Row
    from fairbank.slurm.reconcile.compare import ReconcileComparison, ReconcileFinding
    from fairbank.slurm.reconcile.reconciler import ReconcileResult
    from fairbank.slurm.reconcile.repair import RepairOutcome

REPAIRS = {
    "MISSING": ("would charge", "charged"),
    "OPEN": ("would charge", "charged"),
    "ORPHAN": ("would release", "released"),
    "RUNAWAY": ("would release", "released"),
}
"""Findings that --fix repairs, with the verb before and after."""
ADVICE = {
    "RUNAWAY": "accounting takes these jobs for running; fix it with: sacctmgr show runawayjobs",
    "REFUSED": "when the project can pay, charge it with: fairbank reconcile --fix --again",
    "INCOMPLETE": (
        "check what accounting has: sacct -D -j JOBID; the bank received no report, "
        "so the cost is unknown"
    ),
    "AMOUNT": (
        "refund what the bank charged above accounting: fairbank refund JOBID SU --reason TEXT"
    ),
    "DUPLICATE": "refund one of the two charges: fairbank refund JOB --reason TEXT",
    "UNACCOUNTED": "check whether slurmdbd has lost records: sacct -D -j JOBID",
}


def _done(row: Row, form: DisplayFormat) -> str:
    """Return what was done, or the refusal without its remedy."""
    refusal = row["refusal"]
    if row["written_off"] and not form.exact:
        return f"{form.su(row['charged'])} charged, {form.su(row['written_off'])} written off"
    return str(row["done"] if refusal is None or form.exact else form.sentence(refusal["detail"]))


COLUMNS = (
    Column("JOBID", text("job_id"), right=True),
    Column("PROJECT", text("account")),
    Column("USER", text("user"), drop=2),
    Column("STARTED", moment("start"), drop=1),
    Column("SU", su("amount"), right=True),
    Column("WHAT", text("what"), min_width=24),
    Column("DONE", _done, min_width=24, wraps=True),
    Column("SUBMITTED", moment("submitted"), extra=True),
    Column("JOB", text("job"), right=True, extra=True),
)


def add(parser: Parser) -> None:
    add_period(parser, "now-2days")
    add_clusters(parser, "required name of this Slurm cluster (default: any)")
    add_option(parser, "--fix", "charge what is missing, release the holds of jobs that are gone")
    add_option(parser, "--again", "with --fix: also retry what the bank refused before")
    about = (
        "time that accounting may lag before a missing record counts as lost "
        f"(default: {GRACE_MINUTES})"
    )
    add_option(parser, "--grace MINUTES", about, type=count, default=GRACE_MINUTES)
    add_progress(parser)


def run(context: Context, options: Namespace) -> int:
    if options.again and not options.fix:
        raise InvalidInput(
            "--again does nothing by itself",
            field="--again",
            remedy="fairbank reconcile --fix --again",
        )
    from fairbank.slurm.reconcile.reconciler import Reconciler

    since, until = period_of(context, "now-2days")
    slurm, bank = slurm_and_bank(context)
    reconciler = Reconciler(slurm, bank, grace_seconds=options.grace * 60, now=context.now())
    with Stages(options) as progress:
        result = reconciler.reconcile(
            since,
            until,
            cluster=context.settings.cluster,
            fix=options.fix,
            retry_refused=options.again,
            progress=progress,
        )
    show_differences(context, result, fix=options.fix)
    return 0 if result.is_clean else FOUND


def show_differences(context: Context, result: ReconcileResult, *, fix: bool) -> None:
    """Print the counts, then each run that differs, then advice.

    Args:
        context: the command, whose options choose the format.
        result: the comparison of the ledger with accounting, and what was posted for each run.
        fix: --fix was given: the lines tell what was repaired, not what would be.
    """
    context.cluster = result.cluster
    comparison = result.comparison
    summary = {
        "compared": result.compared,
        **{name: getattr(comparison, name) for name in ("matched", "free", "late", "bank_only")},
    }
    if context.options.form is None:
        context.print_text(
            f"Compared {counted(result.compared, 'finished run')} "
            f"of cluster {plain(result.cluster)} in {result.seconds:.1f} s"
        )
        context.print_lines(f"  {line}" for line in _counts(comparison))
        context.print_lines(f"  {line}" for line in _differences(context, result, fix=fix))
        if result.outcomes:
            context.print_text()
    context.note(*(f"! not read: {line}" for line in result.unreadable))
    show(
        context,
        Listing(
            "fairbank.reconciled/1",
            COLUMNS,
            [_row(outcome) for outcome in result.outcomes],
            caption(context),
            notes=_notes(result, fix=fix),
            empty="" if result.unreadable else "The ledger and accounting agree.",
            more={"summary": summary, "unreadable": [str(line) for line in result.unreadable]},
        ),
    )


def _counts(comparison: ReconcileComparison) -> list[str]:
    from fairbank.slurm.reconcile.compare import Category

    lines = [(comparison.matched, Category.MATCHED), (comparison.free, Category.FREE)]
    # These two are rare, and a zero would only raise questions.
    lines += [(comparison.late, Category.LATE)] if comparison.late else []
    lines += [(comparison.bank_only, Category.BANK_ONLY)] if comparison.bank_only else []
    return [f"{number:>9,}  {category.value}" for number, category in lines]


def _differences(context: Context, result: ReconcileResult, *, fix: bool) -> list[str]:
    by_category: dict[str, list[RepairOutcome]] = {}
    for outcome in result.outcomes:
        by_category.setdefault(outcome.finding.category.name, []).append(outcome)
    lines = []
    for name, outcomes in by_category.items():
        line = f"{len(outcomes):>9,}  {outcomes[0].finding.category.value}"
        if name in REPAIRS:
            amounts = of_resources(outcomes, partial(_repaired, context, fix=fix))
            line += f"   {REPAIRS[name][fix]} {amounts}"
        lines.append(line)
    return lines


def _repaired(context: Context, outcomes: Sequence[RepairOutcome], *, fix: bool) -> str:
    """Return the price of what would be repaired, or what the bank posted for it, of one resource.

    A missing end may also release a hold, such as after NODE_FAIL: this is no charge.
    """
    from fairbank.slurm.reconcile.compare import REPAIRED_BY_RELEASE

    form = context.format
    if not fix:
        payable = [outcome.finding for outcome in outcomes if outcome.problem is None]
        price = sum(finding.amount or 0 for finding in payable)
        return form.su_text(price)
    posted = [outcome.amounts for outcome in outcomes if outcome.amounts is not None]
    is_release = outcomes[0].finding.category in REPAIRED_BY_RELEASE
    amount = form.su_text(sum(one.released if is_release else one.charged for one in posted))
    written_off = sum(amounts.written_off for amounts in posted)
    beyond = f", {form.su_text(written_off)} beyond the credit written off"
    return f"{amount}{beyond if written_off else ''}"


def _notes(result: ReconcileResult, *, fix: bool) -> list[str]:
    open_findings = {
        outcome.finding.category.name for outcome in result.outcomes if not outcome.is_repaired
    }
    notes = [advice for name, advice in ADVICE.items() if name in open_findings]
    # What has a problem cannot be repaired by --fix either.
    repairable = {
        outcome.finding.category.name
        for outcome in result.outcomes
        if not outcome.is_repaired and outcome.problem is None
    }
    if repairable & set(REPAIRS) and not fix:
        notes.append("repair them with: fairbank reconcile --fix")
    return notes


def _row(outcome: RepairOutcome) -> Row:
    finding, refusal = outcome.finding, outcome.refusal
    return {
        **_run_facts(finding),
        "kind": finding.category.name,
        "what": finding.category.value,
        "amount": finding.amount,
        "charged": outcome.amounts and outcome.amounts.charged,
        "written_off": outcome.amounts and outcome.amounts.written_off,
        "job": finding.run.id if finding.run else None,
        "done": "yes" if outcome.is_repaired else outcome.problem or "no",
        # The field is the one that would have to differ.
        "refusal": refusal and _fields(refusal, "reason", "field", "detail", "remedy"),
    }


def _run_facts(finding: ReconcileFinding) -> Row:
    if (job := finding.job) is not None:
        names = ("job_id", "submitted", "start", "account", "user", "state", "elapsed")
        return _fields(job, *names)
    if (run := finding.run) is not None:
        return {
            "job_id": run.job_id,
            "submitted": run.submitted,
            "start": None,
            "account": run.account,
            "user": user_name(run.owner),
            "state": run.state.value,
            "elapsed": None,
        }
    return {}


def _fields(record: object, *names: str) -> Row:
    return {name: getattr(record, name) for name in names}


COMMAND = Command(
    "compare every finished run with Slurm's accounting; exit code 8 if they differ",
    (
        "{}                         the last two days, changing nothing",
        "{} -S now-7days --fix      charge what is missing, release what is lost",
        "{} --json | jq .summary",
    ),
    add,
    run,
    columns=COLUMNS,
)
