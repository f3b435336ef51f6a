"""Comparison of Slurm's accounting with the ledger, run by run.

Both sides lag. Accounting receives a start or an end seconds later or, after an outage, hours;
so does the bank. A difference younger than `grace_seconds` is left for the next comparison.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain

import msgspec

from fairbank.bank.records import BankCluster, BankRun
from fairbank.bank.run import RunState
from fairbank.cluster.accounting_job import RESIZING, UNFINISHED_STATES, AccountingJob
from fairbank.cluster.job import NO_DETAILS
from fairbank.core.errors import NotFound
from fairbank.core.final_state import LOST, REQUEUED
from fairbank.slurm.parsers.values import QueuedJob
from fairbank.slurm.reconcile.prices import ClusterPrices

START_TOLERANCE_SECONDS = 2  # slurmctld and slurmdbd each cut their times to seconds
REPORT_DELAY_SECONDS = 60  # the agent reports an end within seconds, if the bank answers
REFUSED_START_SECONDS = 15
"""Time after a refusal in which Slurm requeues or cancels the job. Before it, the job may have
waited for any time: for an agent that was away."""
REFUSED_START_STATES = frozenset({REQUEUED, "CANCELLED"})
"""States that Slurm records for a run that was refused at its start."""


class Category(Enum):
    """Result of a comparison. The value is what people read."""

    # Counted only.
    MATCHED = "agree to the minute"
    FREE = "ran for no time and cost nothing"
    LATE = "are not yet complete, and left for the next time"
    BANK_ONLY = "are incomplete in accounting, but the bank received their ends"
    # Findings.
    MISSING = "ended in Slurm, unknown to the bank"
    OPEN = "ended in Slurm, still held in the bank"
    # The hold has no job any more: neither slurmctld nor accounting has one that could be running.
    ORPHAN = "held in the bank, unknown to Slurm"
    # slurmctld lost the job, and accounting never received its end: what sacctmgr calls runaway.
    RUNAWAY = "held in the bank, running in accounting, unknown to slurmctld"
    REFUSED = "ended in Slurm, its charge refused by the bank"
    INCOMPLETE = "ended in Slurm, its record in accounting is incomplete"
    AMOUNT = "charged amount differs from accounting"
    DUPLICATE = "charged twice"
    UNACCOUNTED = "charged in the bank, unknown to accounting"


COUNTED = frozenset({Category.MATCHED, Category.FREE, Category.LATE, Category.BANK_ONLY})
REPAIRED_BY_CHARGE = frozenset({Category.MISSING, Category.OPEN})
REPAIRED_BY_RELEASE = frozenset({Category.ORPHAN, Category.RUNAWAY})
"""All other findings are for an administrator to decide."""


class ReconcileFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Run that differs.

    `amount` (SU-minutes) is what a repair would charge or release; of an AMOUNT, by how much the
    charge less refunds exceeds accounting's price. None: the bank does not price the partition, or
    the record is incomplete. `resource` is what the bank bills the run on; empty if it has no
    price.
    """

    category: Category
    job: AccountingJob | None = None
    run: BankRun | None = None
    amount: int | None = None
    resource: str = ""


class ReconcileInput(msgspec.Struct, frozen=True, kw_only=True):
    """Both sides of a comparison.

    jobs      jobs of accounting that existed between `since` and `until`
    runs      runs of the ledger that started then, and all that are open
    queue     jobs that slurmctld knows
    refused   time of the bank's last refusal of a run, by job id and submission
    unreadable  ids of jobs with a line that could not be read: their runs are not judged
    """

    cluster: BankCluster
    since: int
    until: int
    now: int
    grace_seconds: int
    jobs: Sequence[AccountingJob]
    runs: Sequence[BankRun]
    queue: Sequence[QueuedJob]
    refused: Mapping[tuple[int, int], int] = {}
    unreadable: Collection[int] = frozenset()

    def is_recent(self, job: AccountingJob) -> bool:
        """Return True while the agent's report of the end may still be on its way."""
        delay = min(REPORT_DELAY_SECONDS, self.grace_seconds)
        return (job.end or 0) > self.now - delay

    def is_in_grace_period(self, job: AccountingJob) -> bool:
        """Return True while slurmdbd may still receive the rest of the record."""
        return (job.end or 0) >= self.now - self.grace_seconds

    def was_refused_at_start(self, job: AccountingJob) -> bool:
        """Return True if the bank refused the start and Slurm then requeued or cancelled the job.

        Had the job run nevertheless, the agent would have reported its end.
        """
        refused = self.refused.get((job.job_id, job.submitted))
        if refused is None or job.start is None or job.end is None:
            return False
        return (
            job.state in REFUSED_START_STATES
            and job.end - refused <= REFUSED_START_SECONDS
            and job.start - START_TOLERANCE_SECONDS <= refused <= job.end
        )

    def was_refused_after_end(self, job: AccountingJob) -> bool:
        """Return True if the bank refused the charge. An earlier refusal was one of the hold."""
        refused = self.refused.get((job.job_id, job.submitted))
        return refused is not None and refused >= (job.end or 0)


class ReconcileComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Findings, and the number of runs in each category that needs nothing (see Category)."""

    matched: int
    free: int
    late: int
    findings: tuple[ReconcileFinding, ...]
    bank_only: int = 0


def compare(sides: ReconcileInput) -> ReconcileComparison:
    """Compare each finished job with its run in the ledger, then judge the runs left over."""
    runs, prices = _RunIndex(sides.runs), ClusterPrices(sides.cluster)
    counts = Counter[Category]()
    findings: list[ReconcileFinding] = []
    # Periods overlap, so a job may have been read twice. The row that was read last is the newest.
    jobs = {(job.job_id, job.submitted, job.start): job for job in sides.jobs}.values()
    alive = {(job.job_id, job.submitted) for job in sides.queue if job.state in UNFINISHED_STATES}
    # Of one submission those that ran come first: a start that the bank refused has no run, and
    # must not take that of a restart within the same second.
    for job in sorted(
        jobs, key=lambda job: (job.job_id, job.submitted, not job.elapsed, job.start or 0)
    ):
        if not job.has_ended and not _is_cut_off(job, sides, alive):
            runs.running.add((job.job_id, job.submitted))
            continue
        run = runs.take(job)
        category = classify(job, run, sides, prices)
        if category in COUNTED:
            counts[category] += 1
        else:
            findings.append(_with_resource(_finding(category, job, run, prices), sides.cluster))
    for run in runs.left():
        leftover = classify_leftover(run, runs, sides, alive)
        if leftover is not None:
            amount = run.held if run.is_open else run.charged - run.refunded
            finding = ReconcileFinding(category=leftover, run=run, amount=amount)
            findings.append(_with_resource(finding, sides.cluster))
        elif run.state is RunState.HELD:
            counts[Category.LATE] += (run.job_id, run.submitted) not in alive
    return ReconcileComparison(
        matched=counts[Category.MATCHED],
        free=counts[Category.FREE],
        late=counts[Category.LATE],
        bank_only=counts[Category.BANK_ONLY],
        findings=tuple(findings),
    )


def _is_cut_off(
    job: AccountingJob, sides: ReconcileInput, alive: Collection[tuple[int, int]]
) -> bool:
    """Return True for a resized job whose next record slurmdbd never received."""
    return (
        job.state == RESIZING
        and job.end is not None
        and (job.job_id, job.submitted) not in alive
        and not sides.is_in_grace_period(job)
    )


def classify(
    job: AccountingJob, run: BankRun | None, sides: ReconcileInput, prices: ClusterPrices
) -> Category:
    """Compare a finished job of Slurm's accounting with its run in the ledger.

    Args:
        job: one execution that has ended.
        run: its run in the ledger; None if there is none.
        sides: times of the comparison, and what the bank refused.
        prices: the prices of the cluster, as the bank has them.
    """
    # The order is the rule: what costs nothing, then what cannot be judged yet, then differences.
    # So no charge is proposed from a record that may still change.
    if run is None and (not job.elapsed or sides.was_refused_at_start(job)):
        return Category.FREE
    if job.job_id in sides.unreadable and (run is None or run.submitted != job.submitted):
        return Category.LATE  # it may be a piece of a resized job, with one that was not read
    if not job.is_complete and run is not None and not run.is_open:
        return Category.BANK_ONLY  # slurmdbd lost a part, but the agent reported the end
    if not job.is_complete and sides.is_in_grace_period(job):
        return Category.LATE  # slurmdbd may still receive the rest
    if not complete_record(job, run).is_complete:
        # Nothing more will arrive. With elapsed time an administrator must decide on the charge.
        return Category.INCOMPLETE if job.elapsed else Category.LATE
    if (run is None or run.is_open) and sides.is_recent(job):
        return Category.LATE  # the agent's report may still be in its outbox
    if run is None:
        # A charge that the bank refused after the end would be refused again.
        return Category.REFUSED if sides.was_refused_after_end(job) else Category.MISSING
    if run.is_open:
        return Category.OPEN
    is_right = _is_price_right(complete_record(job, run), run, prices)
    return Category.MATCHED if is_right else Category.AMOUNT


def classify_leftover(
    run: BankRun, runs: _RunIndex, sides: ReconcileInput, alive: Collection[tuple[int, int]]
) -> Category | None:
    """Judge a run that no finished job of the period belongs to; None if nothing is wrong.

    Args:
        runs: the index, after all jobs took theirs.
        sides: times of the comparison.
        alive: jobs, by id and submission, that slurmctld has not finished.
    """
    # First what cannot be judged, then holds, which still keep credit, then charges.
    job = (run.job_id, run.submitted)
    grace_start = sides.now - sides.grace_seconds
    if run.job_id in sides.unreadable:
        return None
    if run.state is RunState.HELD:
        if job in alive or run.reported.start > grace_start:
            return None
        return Category.RUNAWAY if job in runs.running else Category.ORPHAN
    if run.state is not RunState.CHARGED or run.charged <= run.refunded:
        return None
    if job in runs.taken:
        return Category.DUPLICATE
    # Only a run that lies within the period must have a job: accounting was asked for no other.
    until = min(sides.until, grace_start)
    start = run.reported.start
    is_in_period = sides.since <= start and (run.end.ended if run.end else start) < until
    return Category.UNACCOUNTED if is_in_period and job not in runs.running else None


def complete_record(job: AccountingJob, run: BankRun | None) -> AccountingJob:
    """Return the job, an incomplete record completed by what the bank has from the start.

    A slurmctld may die before accounting has received a start, or the bank an end.
    """
    details = NO_DETAILS if run is None else run.reported.job_details or NO_DETAILS
    if job.is_complete or run is None or not details.tres:
        return job
    return msgspec.structs.replace(
        job,
        account=job.account or run.account,
        partition=job.partition or run.reported.partition,
        tres=job.tres or details.tres,
        qos=job.qos or details.qos,
        limit_seconds=job.limit_seconds or details.limit_seconds,
        gaps=(),
    )


def _finding(
    category: Category, job: AccountingJob, run: BankRun | None, prices: ClusterPrices
) -> ReconcileFinding:
    if category is Category.INCOMPLETE:
        return ReconcileFinding(category=category, job=job, run=run)
    job = complete_record(job, run)
    amount = prices.end_price(job)
    if category is Category.AMOUNT and run is not None:
        amount = run.charged + run.written_off - run.refunded - (amount or 0)
    return ReconcileFinding(category=category, job=job, run=run, amount=amount)


def _with_resource(finding: ReconcileFinding, cluster: BankCluster) -> ReconcileFinding:
    """Return the finding with the resource that the bank bills its run on."""
    if finding.job is not None:
        partition, qos = finding.job.partition, finding.job.qos
    elif finding.run is not None:
        details = finding.run.reported.job_details or NO_DETAILS
        partition, qos = finding.run.reported.partition, details.qos
    else:
        return finding
    try:
        resource = cluster.resource(partition, qos)
    except NotFound:
        return finding
    return msgspec.structs.replace(finding, resource=resource)


def _is_price_right(job: AccountingJob, run: BankRun, prices: ClusterPrices) -> bool:
    cost = prices.end_price(job)
    posted = run.charged + run.written_off
    # A refund may have corrected the charge, or may have another reason: either sum may be right.
    paid = posted - run.refunded
    if paid == (cost or 0):
        return True
    # The bank may have had another policy when it knew the same state: then either is right.
    knew_state = run.end is not None and run.end.outcome == job.state
    if run.state is RunState.RELEASED:
        return knew_state or not cost
    if cost == 0 and not knew_state:  # free, which the bank did not know
        return False
    return prices.is_right_price(posted, job) or prices.is_right_price(paid, job)


class _RunIndex:
    """Runs of the ledger by job id. Each is taken by one job at most.

    `running` are the jobs that have not ended in accounting, by id and submission.
    """

    def __init__(self, runs: Sequence[BankRun]) -> None:
        self._free: dict[int, list[BankRun]] = defaultdict(list)
        for run in runs:
            self._free[run.job_id].append(run)
        self.taken: set[tuple[int, int]] = set()
        self.running: set[tuple[int, int]] = set()

    def take(self, job: AccountingJob) -> BankRun | None:
        """Take the run of this job: the one of the same submission and the nearest start.

        A restart can be quicker than a second: then the final state tells runs apart. After a crash
        slurmctld may report another submission than before it; then the run of the same owner and
        start is the one.
        """
        runs = [
            run
            for run in self._free.get(job.job_id, [])
            if not is_of_another_job(run, job) and not _begins_later(run, job)
        ]
        start = job.start or 0
        candidates = [run for run in runs if run.submitted == job.submitted] or [
            run
            for run in runs
            if abs(run.reported.start - start) <= START_TOLERANCE_SECONDS and run.owner == job.owner
        ]
        if not candidates:
            return None
        nearest = min(
            candidates,
            key=lambda run: (
                abs(run.reported.start - start),
                run.end is not None and run.end.outcome != job.state,
                run.state is RunState.RELEASED,
            ),
        )
        self._free[job.job_id].remove(nearest)
        self.taken.add((nearest.job_id, nearest.submitted))
        return nearest

    def left(self) -> Iterator[BankRun]:
        """Return the runs that no job took."""
        return chain.from_iterable(self._free.values())


def _begins_later(run: BankRun, job: AccountingJob) -> bool:
    """Return True if the run begins after the end of the job: it is one of a later restart."""
    if job.end is None:
        return False
    # A clock that was set back has ended jobs before their start.
    last = max(job.end, job.start or 0)
    return run.reported.start > last + START_TOLERANCE_SECONDS


def is_of_another_job(run: BankRun, job: AccountingJob) -> bool:
    """Return True if a hold names another user, project or partition than a job under its id.

    The number and the submission do not distinguish all jobs: tasks of an array are numbered when
    they start, and a slurmctld that has lost its last changes numbers them again. So the number of
    a task may go to one of another array of the same second. Accounting then has the later one.
    The bank refuses its end, because it contradicts the hold.

    Closed runs are not compared, because the uid of a user may have changed since. A run that
    `reconcile` released as LOST is compared, because it was released for want of a job.
    """
    if not run.is_open and (run.end is None or run.end.outcome != LOST):
        return False
    named = ((job.account, run.account), (job.partition, run.reported.partition))
    return job.owner not in (None, run.owner) or any(
        recorded and held and recorded != held for recorded, held in named
    )
