"""What the users of a trace have used so far, and the priorities that follow for those who wait (facts, sections 2.1 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log

import msgspec
import numpy as np

from fairbank.priority.decay import Decay
from fairbank.priority.fairtree import fair_tree
from fairbank.priority.multifactor.composing import priorities
from fairbank.priority.multifactor.pending import NO_QOS, Pending, scale
from fairbank.priority.multifactor.settings import Settings, Weights
from fairbank.priority.tree import Association, Tree, planted
from fairbank.scheduling.machine import Running
from fairbank.simulator.jobs import Job

_REBASE = 500.0
"""So many times the logarithm of a double may grow before usage is counted anew."""


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """How priorities are made: the weights of the factors, how usage fades, and every how many seconds all are worked out anew.

    Weights of zero, as Slurm has them where nobody says anything, would leave the queue as it is. Here fair share counts most.
    """

    settings: Settings = Settings(weights=Weights(age=1_000, fairshare=10_000, job_size=1_000))
    decay: Decay = Decay()
    calc_period: int = 300


class Standing:
    """Usage by user, each with one share of the machine: it grows while jobs run, and fades all the time.

    As it was when a period began, so it counts until the next one. Who asks for priorities in between, or not at all, changes nothing.
    """

    def __init__(self, ranking: Ranking, processors: int) -> None:
        self._ranking = ranking
        self._scale = scale(nodes=processors, cpus=processors)
        self._fading = -log(ranking.decay.a_second) if ranking.decay.half_life else 0.0
        self._rows: dict[int, int] = {}
        self._used: list[float] = []
        """As much as would be left of it at `_zero`."""
        self._gone: list[tuple[Running[Job, int], int]] = []
        """Who ended, and when, since usage was last looked at."""
        self._tree: Tree | None = None
        self._zero = self._worked_out = 0
        self._factors: list[float] = []

    def ended(self, running: Running[Job, int], now: int) -> None:
        """A job has run until now: what it was not yet charged for counts from the next period on."""
        self._gone.append((running, now))

    def bring_up_to_date(self, known: dict[int, int], waiting: Sequence[Job], running: Iterable[Running[Job, int]], now: int) -> None:
        """Work out priorities: all of them where a period has begun since that was last done, else those of who came since."""
        period = self._ranking.calc_period
        begun = now // period * period
        if begun > self._worked_out:
            for each in running:
                self._charge(each, begun)
            for each, end in self._gone:
                self._charge(each, min(end, begun))
            self._gone = [(each, end) for each, end in self._gone if end > begun]
            self._worked_out = begun
            self._factors = []
            known.clear()
        todo = [job for job in waiting if job.number not in known]
        if todo:
            known.update(zip((job.number for job in todo), self._priorities(todo), strict=True))

    def _priorities(self, jobs: Sequence[Job]) -> list[int]:
        rows = [self._row(job.user) for job in jobs]
        if not self._factors:
            self._factors = self._fair_shares()
        came = np.array([job.submitted + 1 for job in jobs], np.float64)
        wide = np.array([job.processors for job in jobs], np.float64)
        limits = np.array([-(-job.limit // 60) for job in jobs], np.float64)
        nothing, first = np.zeros_like(came), np.zeros(len(jobs), np.intp)
        columns = Pending(
            accrued_at=came,
            association=nothing,
            fairshare=np.array([self._factors[row] for row in rows]),
            nodes=wide,
            cpus=wide,
            limit_minutes=limits,
            nice=nothing,
            site=nothing,
            partition=first,
            qos=first + NO_QOS,
            tres=np.zeros((0, len(jobs))),
        )
        found: list[int] = priorities(columns, self._scale, self._ranking.settings, self._worked_out + 1).tolist()
        return found

    def _row(self, user: int) -> int:
        row = self._rows.get(user)
        if row is None:
            row = self._rows[user] = len(self._used)
            self._used.append(0.0)
            self._tree, self._factors = None, []
        return row

    def _fair_shares(self) -> list[float]:
        if self._tree is None:
            self._tree = planted([Association("root"), *(Association("root", user=str(user)) for user in self._rows)])
        used = np.array([sum(self._used), *self._used])
        factors: list[float] = fair_tree(self._tree, used).factor.tolist()
        return factors[1:]

    def _charge(self, running: Running[Job, int], until: int) -> None:
        begin = max(running.started, self._worked_out)
        if begin >= until:
            return
        row = self._row(running.job.user)
        if not self._fading:
            self._used[row] += running.placement * (until - begin)
            return
        if (until - self._zero) * self._fading > _REBASE:
            shrink = exp((self._zero - until) * self._fading)
            self._used = [used * shrink for used in self._used]
            self._zero = until
        grown = [exp((at - self._zero) * self._fading) for at in (begin, until)]
        self._used[row] += running.placement * (grown[1] - grown[0]) / self._fading
