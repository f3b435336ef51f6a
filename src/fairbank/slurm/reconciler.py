"""Reconciliation: fetch accounting and ledger, compare them, and repair what was requested.

`compare.classification` compares, `repair` posts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.slurm.bank import BankClient, Progress, StoredRefusal, silent
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.compare.bank_records import BankFunds, BankRun, BookedCluster
from fairbank.slurm.compare.classification import (
    CHARGED,
    RELEASED,
    FindingCategory,
    ReconcileComparison,
    ReconcileFinding,
    Sides,
    compare,
)
from fairbank.slurm.parsers.values import AccountingJob, ParsedRows, Spent, Unreadable
from fairbank.slurm.repair import Mender, RepairOutcome

GRACE_SECONDS = 3_600
"""How long either side may lag before what is missing there counts as lost."""

MARGIN_SECONDS = DAY
"""How far around a period its runs are looked for in the books: there a run starts when its hold was asked for, by another clock, and a
slurmctld that was away asks again."""

IDS_AT_ONCE = 500
TOLD = frozenset({*CHARGED, FindingCategory.REFUSED})
DOUBTFUL = frozenset({*CHARGED, *RELEASED, FindingCategory.REFUSED, FindingCategory.UNHEARD})


class ReconcileResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared, and what came of it."""

    cluster: str
    compared: int
    comparison: ReconcileComparison
    outcomes: tuple[RepairOutcome, ...]
    unreadable: tuple[Unreadable, ...]
    seconds: float

    @property
    def clean(self) -> bool:
        """Whether nothing is left to mend or to look at."""
        return not self.unreadable and all(each.said is None for each in self.outcomes)


class Reconciler:
    """Slurm's accounting and one bank. Raises Unavailable, and then nothing is posted, or as much as was confirmed."""

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
        again: bool = False,
        foretold: BankFunds | None = None,
        progress: Progress = silent,
    ) -> ReconcileResult:
        """Compare every run that ended between two instants; with `fix` charge what is missing and give back what is lost, with `again`
        also what the bank has refused before. Without it the outcomes may be `foretold`, with projects and allocations as they will be."""
        begun = time.monotonic()
        prices = self._bank.cluster(self._slurm.check(cluster))
        sides, kept, unreadable = self._sides(prices, since, until, progress)
        comparison = compare(sides)
        history = self._history(comparison, progress)
        comparison, sides = _with_history(sides, comparison, history.rows)
        unreadable += history.unreadable
        outcomes = [RepairOutcome(finding=each) for each in comparison.findings]
        mender = Mender(
            self._bank,
            prices,
            history.rows,
            self._now,
            again=again,
            doubt=self._doubt(unreadable),
            funds=foretold,
        )
        if fix:
            mender.know(self._spent(comparison))
            outcomes = mender.mend(comparison.findings, progress)
        elif foretold is not None:
            outcomes = mender.foretell(comparison.findings)
        return ReconcileResult(
            cluster=prices.name,
            compared=sum(1 for job in sides.jobs if job.ended),
            comparison=comparison,
            outcomes=tuple(_with_refusal(each, kept) for each in outcomes),
            unreadable=unreadable,
            seconds=time.monotonic() - begun,
        )

    # --- fetching ---

    def _sides(
        self, prices: BookedCluster, since: int, until: int, progress: Progress
    ) -> tuple[Sides, Mapping[tuple[int, int], StoredRefusal], tuple[Unreadable, ...]]:
        """Both sides, and what the bank refused. The queue comes before accounting and the books: a run that ends meanwhile is then alive,
        not lost."""
        queue = self._slurm.queue()
        jobs, unreadable = read_jobs(self._slurm, since, until, progress)
        first = min((job.start for job in jobs if job.start is not None), default=since)
        runs = self._runs(
            prices.name,
            max(0, min(first, since) - MARGIN_SECONDS),
            until + MARGIN_SECONDS,
            len(jobs),
            progress,
        )
        kept = self._bank.refused(prices.name, since)
        sides = Sides(
            cluster=prices,
            since=since,
            until=until,
            now=self._now,
            grace_seconds=self._grace_seconds,
            jobs=[job for job in jobs if job.end is None or since <= job.end < until],
            runs=runs,
            queue=queue.rows,
            refused={run: each.at for run, each in kept.items()},
        )
        return sides, kept, unreadable + queue.unreadable

    def _runs(
        self, cluster: str, since: int, until: int, about: int, progress: Progress
    ) -> list[BankRun]:
        found: dict[int, BankRun] = {}
        for run in self._bank.runs(cluster, since, until):
            found[run.id] = run
            progress("bank", len(found), max(about, len(found)))
        return list(found.values())

    def _history(
        self, comparison: ReconcileComparison, progress: Progress
    ) -> ParsedRows[AccountingJob]:
        """All executions of the jobs that differ: for the restarts of what is missing, and for the ends of what is held since long."""
        numbers = sorted({_job_id(each) for each in comparison.findings if each.kind in DOUBTFUL})
        rows: list[AccountingJob] = []
        unreadable: list[Unreadable] = []
        for first in range(0, len(numbers), IDS_AT_ONCE):
            answer = self._slurm.history_of(numbers[first : first + IDS_AT_ONCE])
            rows += answer.rows
            unreadable += answer.unreadable
            progress("history", min(first + IDS_AT_ONCE, len(numbers)), len(numbers))
        return ParsedRows(tuple(rows), tuple(unreadable))

    def _spent(self, comparison: ReconcileComparison) -> list[Spent]:
        """How those ended whose ends the bank is to be told. What cannot be read of it is not told: it changes no price."""
        numbers = sorted(
            {
                each.job.job_id
                for each in comparison.findings
                if each.job is not None and each.kind in TOLD
            }
        )
        found: list[Spent] = []
        for first in range(0, len(numbers), IDS_AT_ONCE):
            found += self._slurm.spent_by(numbers[first : first + IDS_AT_ONCE]).rows
        return found

    def _doubt(self, unreadable: Sequence[Unreadable]) -> InvalidInput | None:
        """Why a run of which Slurm said nothing may be there all the same."""
        if unreadable:
            return InvalidInput(
                "not given back: some of what Slurm said could not be read",
                remedy="mend those lines first",
            )
        if not self._slurm.sees_everything:
            return InvalidInput(
                "not given back: Slurm may hide jobs of others from us",
                remedy="run this as root or as SlurmUser",
            )
        return None


def read_jobs(
    slurm: SlurmCommands, since: int, until: int, progress: Progress = silent
) -> tuple[list[AccountingJob], tuple[Unreadable, ...]]:
    """What accounting has of a period, a day at a time."""
    jobs: dict[tuple[int, int, int | None], AccountingJob] = {}
    unreadable: list[Unreadable] = []
    days = list(_days(since, until))
    for done, (start, end) in enumerate(days, 1):
        answer = slurm.jobs(start, end)
        jobs |= {
            (job.job_id, job.submitted, job.start): job for job in answer.rows
        }  # one that went on over midnight is told twice
        unreadable += answer.unreadable
        progress("sacct", done, len(days))
    return list(jobs.values()), tuple(dict.fromkeys(unreadable))


def _days(since: int, until: int) -> Iterator[tuple[int, int]]:
    for start in range(since, until, DAY):
        yield start, min(start + DAY, until)


def _job_id(finding: ReconcileFinding) -> int:
    found = finding.job or finding.run
    return found.job_id if found is not None else 0


def _with_refusal(
    outcome: RepairOutcome, kept: Mapping[tuple[int, int], StoredRefusal]
) -> RepairOutcome:
    """An end that nobody wanted told now, with what the bank said against it before. What was said now stands as it is."""
    job = outcome.finding.job
    known = None if job is None or outcome.said != "" else kept.get((job.job_id, job.submitted))
    if known is None or job is None or known.at < (job.end or 0):
        return outcome
    return msgspec.structs.replace(outcome, against=known.against)


def _with_history(
    sides: Sides, comparison: ReconcileComparison, history: Sequence[AccountingJob]
) -> tuple[ReconcileComparison, Sides]:
    """Once more, with the ends of runs that are in doubt: they may lie before the period, and were not looked for."""
    doubtful = {
        (each.run.job_id, each.run.submitted)
        for each in comparison.findings
        if each.run is not None and each.job is None
    }
    more = [job for job in history if (job.job_id, job.submitted) in doubtful]
    if not more:
        return comparison, sides
    sides = msgspec.structs.replace(sides, jobs=[*sides.jobs, *more])
    return compare(sides), sides
