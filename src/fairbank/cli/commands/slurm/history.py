"""Result of an import of finished runs: what was charged, released and left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.units import show_su
from fairbank.report.cells import counted, plain

if TYPE_CHECKING:
    from fairbank.cli.framework.context import Context
    from fairbank.slurm.importer import HistoryResult
    from fairbank.slurm.reconcile.repair import RepairOutcome

COVER_ABOUT = "create allocations of category history where no allocation would pay"


def show_history(context: Context, history: HistoryResult, *, dry_run: bool) -> int:
    """Print the result and return the number of runs and lines that are left out.

    Args:
        context: the command.
        history: result, or its prediction.
        dry_run: it is a prediction.
    """
    context.print_lines(
        plain(
            f"allocation for {allocation.account}/{allocation.resource}:"
            f" {show_su(allocation.deposited)} SU for {counted(allocation.jobs, 'run')},"
            f" category {allocation.category}"
        )
        for allocation in history.allocations
    )
    would = "would be " if dry_run else ""
    context.print_text(
        f"history: {counted(len(history.charged), 'run')} {would}charged, "
        f"{show_su(history.amount)} SU; {history.known:,} known already"
    )
    if history.released:
        held = show_su(sum(finding.amount or 0 for finding in history.released))
        holds = counted(len(history.released), "hold")
        context.print_text(f"lost in Slurm: {holds} {would}released, {held} SU")
    context.note(*(f"! {_left_run(outcome)}" for outcome in history.left))
    context.note(*(f"! not read: {line}" for line in history.unreadable))
    return len(history.left) + len(history.unreadable)


def _left_run(outcome: RepairOutcome) -> str:
    """Return which run was left as it is, and why, in the words of `fairbank reconcile`."""
    finding = outcome.finding
    record = finding.job or finding.run
    name = "a run" if record is None else f"job {record.job_id} of {record.account}"
    reason = outcome.problem or outcome.objection or f"{finding.category.value}; left as it is"
    return f"{name}: {reason}"
