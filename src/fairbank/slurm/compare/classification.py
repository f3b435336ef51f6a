"""Slurm's accounting and the bank's books, run by run: what differs, and what to do about it.

Both sides lag: accounting is told of a start or an end seconds or, after an outage, hours late; so is the bank. What is younger than
`grace_seconds` and missing on one side is left for the next time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum

import msgspec

from fairbank.core.final_state import REQUEUED
from fairbank.slurm.compare.bank_records import BankRun, BankCluster
from fairbank.slurm.compare.price import ClusterPrices
from fairbank.slurm.parsers.values import UNFINISHED_STATES, AccountingJob, QueuedJob

START_TOLERANCE_SECONDS = 2
EPILOGS_SECONDS, REPORT_DELAY_SECONDS = 3_600, 60
REFUSED_START_SECONDS = 15
"""What accounting may count of a run that was refused when it was to start, before it was back in the queue or gone."""
PUT_BACK = frozenset({REQUEUED, "CANCELLED"})
DONE = frozenset({"COMPLETED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "DEADLINE"})
"""After these nothing is restarted (but by hand, which nobody does)."""


class FindingCategory(Enum):
    """What can be found of a run, and what is done about it."""

    MISSING = "ended in Slurm, unknown to the bank"
    OPEN = "ended in Slurm, still held in the bank"
    ORPHAN = "held in the bank, unknown to Slurm"
    RUNAWAY = "held in the bank, running in accounting, unknown to slurmctld"
    REFUSED = "ended in Slurm, its charge refused by the bank"
    INCOMPLETE = "ended in Slurm, its record in accounting is not whole"
    AMOUNT = "charged another amount than accounting tells"
    DUPLICATE = "charged twice"
    UNACCOUNTED = "charged in the bank, unknown to accounting"


CHARGED, RELEASED = (
    frozenset({FindingCategory.MISSING, FindingCategory.OPEN}),
    frozenset({FindingCategory.ORPHAN, FindingCategory.RUNAWAY}),
)
"""What is mended by a charge, and what by giving the hold back. The rest is for people to judge."""


class ReconcileFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A run that differs. `amount` is what would be charged or given back, or by how much the bank, less refunds, is above accounting
    (SU-minutes; None where nobody can say)."""

    category: FindingCategory
    job: AccountingJob | None = None
    run: BankRun | None = None
    amount: int | None = None


class ReconcileInput(msgspec.Struct, frozen=True, kw_only=True):
    """All that is compared. `jobs` are those that were there between `since` and `until`; `runs` those of the books that started then or
    are open; `refused` says when the bank last refused a report of a run, by job id and submission."""

    cluster: BankCluster
    since: int
    until: int
    now: int
    grace_seconds: int
    jobs: Sequence[AccountingJob]
    runs: Sequence[BankRun]
    queue: Sequence[QueuedJob]
    refused: Mapping[tuple[int, int], int] = {}


class ReconcileComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `matched` agree to the minute; `free` ran for no time, or were refused when they were to start, and are not in the
    books; `late` are not whole in accounting, or too young; `half` never became whole there, but the bank has heard the end itself."""

    matched: int
    free: int
    late: int
    findings: tuple[ReconcileFinding, ...]
    bank_only: int = 0


def compare(sides: ReconcileInput) -> ReconcileComparison:
    """Each job with its run in the books, once; then what is left over in the books."""
    books, prices = _Books(sides.runs), ClusterPrices(sides.cluster)
    matched = free = late = half = 0
    findings: list[ReconcileFinding] = []
    for job in sorted(
        _once(sides.jobs), key=lambda each: (each.job_id, each.submitted, each.start or 0)
    ):
        if not job.has_ended:
            books.note_running(job)
            continue
        run = books.take(job)
        filled = _filled(job, run)
        if run is None and (not job.elapsed or _never_began(job, sides)):
            free += 1
        elif not job.is_complete and run is not None and not run.is_open:
            half += 1
        elif not filled.is_complete or (not job.is_complete and _may_become_whole(job, sides)):
            lost = bool(job.elapsed) and not _may_become_whole(job, sides)
            findings += (
                [ReconcileFinding(category=FindingCategory.INCOMPLETE, job=job, run=run)] if lost else []
            )
            late += not lost
        elif _is_under_way(job, run, sides):
            late += 1
        elif run is None:
            findings.append(_missing(job, sides, prices))
        elif (found := _differs(filled, run, prices)) is not None:
            findings.append(found)
        else:
            matched += 1
    alive = {(each.job_id, each.submitted) for each in sides.queue if each.state in UNFINISHED_STATES}
    for run in books.left():
        kind = _leftover(run, books, sides, alive)
        if kind is not None:
            findings.append(
                ReconcileFinding(
                    category=kind, run=run, amount=run.held if run.is_open else run.charged - run.refunded
                )
            )
        elif run.state == "held":
            late += (run.job_id, run.submitted) not in alive
    return ReconcileComparison(
        matched=matched, free=free, late=late, findings=tuple(findings), bank_only=half
    )


def _once(jobs: Sequence[AccountingJob]) -> Collection[AccountingJob]:
    """Windows overlap, so that a job may have been read twice; what was read last is the newest."""
    return {(job.job_id, job.submitted, job.start): job for job in jobs}.values()


class _Books:
    """The runs by job id, each taken by one job at most."""

    def __init__(self, runs: Sequence[BankRun]) -> None:
        self._free: dict[int, list[BankRun]] = defaultdict(list)
        for run in runs:
            self._free[run.job_id].append(run)
        self.taken: set[tuple[int, int]] = set()
        self.running: set[tuple[int, int]] = set()

    def take(self, job: AccountingJob) -> BankRun | None:
        """The run of this job: of the same submission, and where a restart was quicker than a second, the one nearest in start. Else
        one that started at the same time: after a crash slurmctld may tell another submission than before it."""
        of_id = self._free.get(job.job_id, [])
        start = job.start or 0
        same = [run for run in of_id if run.submitted == job.submitted] or [
            run
            for run in of_id
            if abs(run.start - start) <= START_TOLERANCE_SECONDS and run.owner == job.owner
        ]
        if not same:
            return None
        found = min(same, key=lambda run: (abs(run.start - start), run.state == "released"))
        of_id.remove(found)
        self.taken.add((found.job_id, found.submitted))
        return found

    def note_running(self, job: AccountingJob) -> None:
        self.running.add((job.job_id, job.submitted))

    def left(self) -> Iterator[BankRun]:
        for runs in self._free.values():
            yield from runs


def _is_under_way(job: AccountingJob, run: BankRun | None, sides: ReconcileInput) -> bool:
    """Whether the agent's own word of the end may still be coming."""
    return (run is None or run.is_open) and (job.end or 0) > sides.now - min(
        REPORT_DELAY_SECONDS, sides.grace_seconds
    )


def _may_become_whole(job: AccountingJob, sides: ReconcileInput) -> bool:
    """Whether the other half of a record may still come."""
    return (job.end or 0) >= sides.now - sides.grace_seconds


def _filled(job: AccountingJob, run: BankRun | None) -> AccountingJob:
    """Half a record with what the bank was told when the run started. A slurmctld may die before accounting has heard of a start, or we of
    an end."""
    if job.is_complete or run is None or not run.tres:
        return job
    return msgspec.structs.replace(
        job,
        partition=job.partition or run.partition,
        tres=job.tres or run.tres,
        qos=job.qos or run.qos,
        limit_seconds=job.limit_seconds or run.limit_seconds,
    )


def _never_began(job: AccountingJob, sides: ReconcileInput) -> bool:
    """Whether the bank refused it when it was to start, and it was put back into the queue or ended: for those seconds nobody pays. Had it
    begun all the same, its end would have been told."""
    refused = sides.refused.get((job.job_id, job.submitted))
    if refused is None or job.start is None or job.end is None or job.state not in PUT_BACK:
        return False
    return (
        job.elapsed <= REFUSED_START_SECONDS and job.start - START_TOLERANCE_SECONDS <= refused <= job.end
    )


def _missing(job: AccountingJob, sides: ReconcileInput, prices: ClusterPrices) -> ReconcileFinding:
    """A charge that was refused already would be refused again; a hold that was refused before says nothing of the charge."""
    refused = sides.refused.get((job.job_id, job.submitted))
    kind = (
        FindingCategory.REFUSED
        if refused is not None and refused >= (job.end or 0)
        else FindingCategory.MISSING
    )
    return ReconcileFinding(category=kind, job=job, amount=prices.end_price(job))


def _differs(job: AccountingJob, run: BankRun, prices: ClusterPrices) -> ReconcileFinding | None:
    if run.is_open:
        return ReconcileFinding(
            category=FindingCategory.OPEN, job=job, run=run, amount=prices.end_price(job)
        )
    cost = prices.end_price(job) or 0
    booked = run.charged + run.written_off
    paid = (
        booked - run.refunded
    )  # whoever gave back what was too much has mended it; other refunds are nobody's business here
    let_off = run.state == "released" and (
        run.outcome == job.state or not cost
    )  # as policy was, or is
    if let_off or paid == cost or prices.is_right_price(booked, job) or prices.is_right_price(paid, job):
        return None
    return ReconcileFinding(category=FindingCategory.AMOUNT, job=job, run=run, amount=paid - cost)


def _leftover(
    run: BankRun, books: _Books, sides: ReconcileInput, alive: Collection[tuple[int, int]]
) -> FindingCategory | None:
    here = (run.job_id, run.submitted)
    old = sides.now - sides.grace_seconds
    if run.state == "held":
        if here in alive or run.start > old:
            return None
        return FindingCategory.RUNAWAY if here in books.running else FindingCategory.ORPHAN
    if run.state != "charged" or run.charged <= run.refunded:
        return None
    if here in books.taken:
        return FindingCategory.DUPLICATE
    ended = run.ended or run.start
    looked_for = sides.since <= run.start and ended < min(sides.until, old)
    return FindingCategory.UNACCOUNTED if looked_for and here not in books.running else None


def restart_count(job: AccountingJob, history: Sequence[AccountingJob]) -> int:
    """How often the job was restarted before this execution, by all that accounting has under its number."""
    if job.restart is not None:
        return job.restart
    count = 0
    before: AccountingJob | None = None
    for each in sorted(history, key=lambda one: (one.submitted, one.start or 0)):
        this = count + 1 if before is not None and _continues(before, each) else 0
        if (each.submitted, each.start) == (job.submitted, job.start):
            return this
        if (
            each.start is not None or each.end is not None
        ):  # 24.11 leaves one that waits for ever when a job is put back in its prolog
            count, before = this, each
    return 0


def _continues(before: AccountingJob, job: AccountingJob) -> bool:
    """A requeued job is submitted again once its epilogs are done. The same number of somebody else, later, or after a job that was done,
    is another job: slurmctld has begun to count anew."""
    if before.end is None or before.owner != job.owner or before.state in DONE:
        return False
    return before.state == REQUEUED or -1 <= job.submitted - before.end <= EPILOGS_SECONDS
