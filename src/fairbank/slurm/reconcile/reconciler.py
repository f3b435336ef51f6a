"""Reconciliation: fetch accounting and the ledger, compare them, and repair if that was requested.

`reconcile.compare` decides, `reconcile.repair` posts.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from fairbank.bank.records import BankCluster, BankFunds, BankRun
from fairbank.bank.refusals import Reason
from fairbank.cluster.accounting_job import AccountingJob, UnreadableLine
from fairbank.core.errors import InvalidInput
from fairbank.core.progress import StageProgress, no_progress
from fairbank.core.time import DAY
from fairbank.rest.client.bank_client import BankClient, StoredRefusal
from fairbank.slurm.commands import IDS_PER_COMMAND, SlurmCommands
from fairbank.slurm.parsers.values import JobEnd, JobGroup, ParsedRows
from fairbank.slurm.reconcile.compare import (
    REPAIRED_BY_CHARGE,
    REPAIRED_BY_RELEASE,
    Category,
    ReconcileComparison,
    ReconcileInput,
    compare,
)
from fairbank.slurm.reconcile.repair import Repairer, RepairOutcome
from fairbank.slurm.reconcile.resized import is_later_piece, join_resized

GRACE_SECONDS = 3_600
"""Time for which either side may lag before what is missing there counts as lost."""

PERIOD_MARGIN_SECONDS = DAY
"""Margin around a period in which its runs are searched in the ledger. There a run starts when its
hold was requested, by another clock; a slurmctld that was down requests it again."""

MAY_BE_CHARGED = frozenset({*REPAIRED_BY_CHARGE, Category.REFUSED})
NEEDS_HISTORY = frozenset(
    {*REPAIRED_BY_CHARGE, *REPAIRED_BY_RELEASE, Category.REFUSED, Category.UNACCOUNTED}
)

Refusals = Mapping[tuple[int, int], StoredRefusal]
"""Last refusal of a run, by job id and submission."""


class ReconcileResult(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a cluster, and the outcome of each finding."""

    cluster: str
    compared: int
    comparison: ReconcileComparison
    outcomes: tuple[RepairOutcome, ...]
    unreadable: tuple[UnreadableLine, ...]
    seconds: float

    @property
    def is_clean(self) -> bool:
        """True if nothing is left to repair or to check."""
        return not self.unreadable and all(outcome.is_repaired for outcome in self.outcomes)


class Reconciler:
    """Reconciliation of one Slurm with one bank.

    Raises Unavailable if either fails; then nothing is posted, or as much as was confirmed.
    """

    def __init__(
        self,
        slurm: SlurmCommands,
        bank: BankClient,
        *,
        grace_seconds: int = GRACE_SECONDS,
        now: int | None = None,
    ) -> None:
        self._slurm, self._bank, self._grace_seconds = slurm, bank, grace_seconds
        self._now = int(time.time()) if now is None else now

    def reconcile(
        self,
        since: int,
        until: int,
        *,
        cluster: str | None = None,
        fix: bool = False,
        retry_refused: bool = False,
        funds: BankFunds | None = None,
        progress: StageProgress = no_progress,
    ) -> ReconcileResult:
        """Compare every run that ended between two instants, and repair what differs.

        Args:
            since: start of the period.
            until: end of the period, not included.
            cluster: required name of the cluster; None for any.
            fix: charge what is missing and release what is lost.
            retry_refused: with `fix`, retry also what the bank refused before.
            funds: without `fix`, assume these projects and allocations instead of the bank's.
            progress: called with the stage, and how much of how much is done.
        """
        begun = time.monotonic()
        prices = self._bank.cluster(self._slurm.check_cluster(cluster))
        sides, refusals, unreadable = self._read_input(prices, since, until, progress)
        first = compare(sides)
        history = self._history(first, progress)
        sides = self._with_history(sides, first, history)
        comparison = compare(sides)
        unreadable = (*dict.fromkeys((*unreadable, *history.unreadable)), *_gaps(comparison))
        repairer = Repairer(
            self._bank,
            prices,
            join_resized(history.rows),
            sides.runs,
            self._now,
            retry_refused=retry_refused,
            doubt=self._doubt(unreadable),
            funds=funds,
        )
        if fix:
            repairer.add_job_ends(self._job_ends(comparison))
            outcomes = repairer.repair(comparison.findings, progress)
        else:
            outcomes = _predicted(repairer, comparison, is_assumed=funds is not None)
        return ReconcileResult(
            cluster=prices.name,
            compared=sum(1 for job in sides.jobs if job.has_ended),
            comparison=comparison,
            outcomes=tuple(_with_refusal(outcome, refusals) for outcome in outcomes),
            unreadable=unreadable,
            seconds=time.monotonic() - begun,
        )

    def _read_input(
        self, prices: BankCluster, since: int, until: int, progress: StageProgress
    ) -> tuple[ReconcileInput, Refusals, tuple[UnreadableLine, ...]]:
        # The queue is read before accounting and the ledger: a run that ends meanwhile is then
        # alive, not lost.
        queue = self._slurm.queue()
        jobs, unreadable = read_jobs(self._slurm, since, until, progress)
        unreadable += queue.unreadable
        first = min((job.start for job in jobs if job.start is not None), default=since)
        start = min(first, since)
        runs = read_runs(self._bank, prices.name, start, until, progress, len(jobs))
        refusals = self._bank.refusals(prices.name, since)
        sides = ReconcileInput(
            cluster=prices,
            since=since,
            until=until,
            now=self._now,
            grace_seconds=self._grace_seconds,
            jobs=[job for job in jobs if _is_in_period(job, since, until)],
            runs=runs,
            queue=queue.rows,
            refused={
                run: stored.at
                for run, stored in refusals.items()
                # Not the end of another job than that of the hold: a repair counts it by itself.
                # else the report was of another job than the hold
                if stored.refusal.reason != Reason.REPORT_MISMATCH.name
            },
            unreadable=_job_ids_of(unreadable),
        )
        return sides, refusals, unreadable

    def _history(
        self, comparison: ReconcileComparison, progress: StageProgress
    ) -> ParsedRows[AccountingJob]:
        """Return all executions of the jobs that differ.

        They give the restarts of what is missing, and the ends of what was held long ago.
        """
        return read_history(self._slurm, _job_ids(comparison, NEEDS_HISTORY), progress)

    def _with_history(
        self,
        sides: ReconcileInput,
        comparison: ReconcileComparison,
        history: ParsedRows[AccountingJob],
    ) -> ReconcileInput:
        """Add the ends of runs that seem lost, and the earlier pieces of resized jobs.

        Both may lie before the period.
        """
        doubtful = {
            (finding.run.job_id, finding.run.submitted)
            for finding in comparison.findings
            if finding.run is not None and finding.job is None
        }
        joined = join_resized(history.rows)
        resized = {job.job_id for job in joined if job.pieces}
        more = [
            job
            for job in joined
            if (job.job_id, job.submitted) in doubtful
            or (job.job_id in resized and _is_in_period(job, sides.since, sides.until))
        ]
        # A piece that was listed without those before it is not a run.
        kept = [job for job in sides.jobs if job.job_id not in resized]
        runs = sides.runs
        first = min((job.start for job in more if job.pieces and job.start), default=sides.since)
        if first < min((job.start for job in sides.jobs if job.start), default=sides.since):
            runs = read_runs(self._bank, sides.cluster.name, first, sides.until)
        return msgspec.structs.replace(
            sides,
            jobs=[*kept, *more],
            runs=runs,
            unreadable={*sides.unreadable, *_job_ids_of(history.unreadable)},
        )

    def _job_ends(self, comparison: ReconcileComparison) -> list[JobEnd]:
        """Return exit codes and processor times. No price needs them, so gaps are accepted."""
        numbers = _job_ids(comparison, MAY_BE_CHARGED)
        ends: list[JobEnd] = []
        for first in range(0, len(numbers), IDS_PER_COMMAND):
            ends += self._slurm.job_ends(numbers[first : first + IDS_PER_COMMAND]).rows
        return ends

    def _doubt(self, unreadable: Sequence[UnreadableLine]) -> InvalidInput | None:
        """Return the reason why a run that Slurm did not list may exist nevertheless."""
        if any(line.job_id is None for line in unreadable):
            text = "not released: a line of Slurm's output may belong to it and could not be read"
            return InvalidInput(text, remedy="see the lines above that were not read")
        if not self._slurm.can_see_all_jobs:
            text = "not released: Slurm may hide other users' jobs"
            return InvalidInput(text, remedy="run this as root or as SlurmUser")
        return None


def read_runs(
    bank: BankClient,
    cluster: str,
    since: int,
    until: int,
    progress: StageProgress = no_progress,
    expected: int = 0,
) -> list[BankRun]:
    """Return the runs of the ledger that may belong to jobs of a period, and those still held.

    Args:
        bank: client that may see all runs.
        cluster: the runs' cluster.
        since: start of the first job.
        until: end of the period, not included.
        progress: called after each run with the stage "bank".
        expected: number of runs to expect.
    """
    runs: dict[int, BankRun] = {}
    start = max(0, since - PERIOD_MARGIN_SECONDS)
    for run in bank.runs(cluster, start, until + PERIOD_MARGIN_SECONDS):
        runs[run.id] = run
        progress("bank", len(runs), max(expected, len(runs)))
    return list(runs.values())


def read_jobs(
    slurm: SlurmCommands, since: int, until: int, progress: StageProgress = no_progress
) -> tuple[list[AccountingJob], tuple[UnreadableLine, ...]]:
    """Return accounting's jobs of a period, read day by day; pieces of resized ones are joined.

    Args:
        slurm: commands of the cluster.
        since: start of the period.
        until: end of the period, not included.
        progress: called with the stage, and how much of how much is done.
    """
    jobs: dict[tuple[int, int, int | None], AccountingJob] = {}
    unreadable: list[UnreadableLine] = []
    days = list(_days(since, until))
    for done, (start, end) in enumerate(days, 1):
        answer = slurm.jobs(start, end)
        # A job that ran over midnight is listed on both days.
        jobs |= {(job.job_id, job.submitted, job.start): job for job in answer.rows}
        unreadable += answer.unreadable
        progress("sacct", done, len(days))
    joined = join_resized(jobs.values())
    cut = {job.job_id for job in joined if is_later_piece(job)}
    history = read_history(slurm, cut)
    whole = {job.job_id for job in history.rows}
    joined = [job for job in joined if job.job_id not in whole]
    joined += [job for job in join_resized(history.rows) if _is_overlapping(job, since, until)]
    return joined, tuple(dict.fromkeys((*unreadable, *history.unreadable)))


def _is_overlapping(job: AccountingJob, since: int, until: int) -> bool:
    return (job.end is None or job.end >= since) and (job.start or job.submitted) < until


def read_history(
    slurm: SlurmCommands, job_ids: Collection[int], progress: StageProgress = no_progress
) -> ParsedRows[AccountingJob]:
    """Return all executions that accounting has under these job ids.

    Args:
        slurm: Slurm's commands; sacct is run for IDS_PER_COMMAND job ids at a time.
        job_ids: Slurm's job ids, in any order.
        progress: called after each command with the stage "history", in job ids.
    """
    numbers = sorted(job_ids)
    rows: list[AccountingJob] = []
    unreadable: list[UnreadableLine] = []
    for first in range(0, len(numbers), IDS_PER_COMMAND):
        answer = slurm.jobs_by_id(numbers[first : first + IDS_PER_COMMAND])
        rows += answer.rows
        unreadable += answer.unreadable
        progress("history", min(first + IDS_PER_COMMAND, len(numbers)), len(numbers))
    return ParsedRows(tuple(rows), tuple(unreadable))


def read_job_groups(
    slurm: SlurmCommands, since: int, until: int, progress: StageProgress = no_progress
) -> ParsedRows[JobGroup]:
    """Return the Unix groups of a period's jobs, read day by day.

    Args:
        slurm: Slurm's commands; sacct is run once for each day.
        since: the start of the period, in seconds since 1970.
        until: its end, which is excluded.
        progress: called after each day with the stage "Unix groups", in days.
    """
    groups: list[JobGroup] = []
    unreadable: list[UnreadableLine] = []
    days = list(_days(since, until))
    for done, (start, end) in enumerate(days, 1):
        answer = slurm.job_groups(start, end)
        groups += answer.rows
        unreadable += answer.unreadable
        progress("Unix groups", done, len(days))
    return ParsedRows(tuple(groups), tuple(dict.fromkeys(unreadable)))


def _days(since: int, until: int) -> Iterator[tuple[int, int]]:
    for start in range(since, until, DAY):
        yield start, min(start + DAY, until)


def _job_ids(comparison: ReconcileComparison, categories: Collection[Category]) -> list[int]:
    records = [
        finding.job or finding.run
        for finding in comparison.findings
        if finding.category in categories
    ]
    return sorted({record.job_id for record in records if record is not None})


def _gaps(comparison: ReconcileComparison) -> Iterator[UnreadableLine]:
    """Yield the cells for which a job cannot be priced."""
    for finding in comparison.findings:
        if finding.category is Category.INCOMPLETE and finding.job is not None:
            yield from finding.job.price_gaps


def _predicted(
    repairer: Repairer, comparison: ReconcileComparison, *, is_assumed: bool
) -> list[RepairOutcome]:
    """Return the predicted outcomes: those of a repair that is assumed, else none is attempted; a
    reason why one fails stays.
    """
    outcomes = repairer.predict(comparison.findings)
    if is_assumed:
        return outcomes
    return [msgspec.structs.replace(outcome, is_repaired=False) for outcome in outcomes]


def _with_refusal(outcome: RepairOutcome, refusals: Refusals) -> RepairOutcome:
    """Add the bank's earlier refusal to an end that was not reported now."""
    job = outcome.finding.job
    if job is None or outcome.is_repaired or outcome.problem is not None:
        return outcome
    stored = refusals.get((job.job_id, job.submitted))
    if stored is None or stored.at < (job.end or 0):
        return outcome
    return msgspec.structs.replace(outcome, refusal=stored.refusal)


def _is_in_period(job: AccountingJob, since: int, until: int) -> bool:
    return job.end is None or since <= job.end < until


def _job_ids_of(lines: Sequence[UnreadableLine]) -> frozenset[int]:
    return frozenset(line.job_id for line in lines if line.job_id is not None)
