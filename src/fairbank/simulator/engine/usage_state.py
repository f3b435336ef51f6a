"""What the users of a trace have used so far, and the priorities that follow for those who wait.

Source: docs/reference/slurm-rules.md, "Usage decay" and "Job priority".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.equal_shares import Even
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.settings import Algorithm
from fairbank.priority.fairshare.tree import ShareAssociation, Tree, planted
from fairbank.priority.multifactor.combination import priorities
from fairbank.priority.multifactor.pending_jobs import NO_QOS, PendingColumns, scale
from fairbank.priority.multifactor.settings import MultifactorSettings, PriorityWeights
from fairbank.priority.site_factor import (
    LINEAR,
    CurveRule,
    Floats,
    credit_factor,
    expiry_factor,
    scaled,
)
from fairbank.scheduling.machines.machine import RunningJob
from fairbank.scheduling.machines.priority_queue import PriorityQueue
from fairbank.simulator.engine.share_accounts import ROOT, ShareAccounts, Who
from fairbank.simulator.traces.workload import TraceJob

if TYPE_CHECKING:  # who simulates no bank does not wait for it
    from fairbank.simulator.engine.simulated_bank import RemainingCredit

_REBASE = 500.0
"""So many times the logarithm of a double may grow before usage is counted anew."""


class PriorityRules(msgspec.Struct, frozen=True, kw_only=True):
    """How priorities are made: the weights of the factors, by which rule users are ranked, how usage fades, and every how many seconds all
    are worked out anew.

    Weights of zero, as Slurm has them where nobody says anything, would leave the queue as it is. Here fair share counts most.
    """

    settings: MultifactorSettings = MultifactorSettings(
        weights=PriorityWeights(age=1_000, fairshare=10_000, job_size=1_000)
    )
    decay: Decay = Decay()
    calc_period: int = 300
    algorithm: Algorithm = Algorithm.FAIR_TREE
    dampening: int = 1
    site_rule: CurveRule = LINEAR
    site_weight: int = 0
    """What full credit that ends this instant adds to a priority. Any weight needs a bank that tells what is left."""


class UsageState:
    """Usage of everybody: it grows while jobs run, and fades all the time. Each user has one share of the machine, where nobody says other
    shares.

    As it was when a period began, so it counts until the next one. Who asks for priorities in between, or not at all, changes nothing.
    """

    def __init__(
        self, ranking: PriorityRules, processors: int, entitled: ShareAccounts | None = None
    ) -> None:
        self._ranking = ranking
        self._entitled = entitled
        self._scale = scale(nodes=processors, cpus=processors)
        self._fading = -log(ranking.decay.a_second) if ranking.decay.half_life else 0.0
        self._used: dict[Who, float] = {}
        """As much as would be left of it at `_zero`, of everybody who was seen."""
        self._gone: list[tuple[RunningJob[TraceJob, int], int]] = []
        """Who ended, and when, since usage was last looked at."""
        self._zero = self._worked_out = 0
        self._factor: Callable[[Who], float] | None = None
        self._people = 0
        self.credit: Callable[[TraceJob, int], RemainingCredit] | None = None
        """Where there is a bank: the allocation that would pay for a job at a second."""

    def ended(self, running: RunningJob[TraceJob, int], now: int) -> None:
        """A job has run until now: what it was not yet charged for counts from the next period on."""
        self._gone.append((running, now))

    def bring_up_to_date(
        self, queue: PriorityQueue[TraceJob], running: Iterable[RunningJob[TraceJob, int]], now: int
    ) -> None:
        """Work out priorities: all of them where a period has begun since that was last done, else those of who came since."""
        period = self._ranking.calc_period
        begun = now // period * period
        if begun > self._worked_out:
            self._charge(running, begun)
            self._worked_out = begun
            self._factor = None
            queue.forget()
        if todo := queue.unranked():
            queue.rank(todo, self._priorities(todo))

    def _priorities(self, jobs: Sequence[TraceJob]) -> list[int]:
        people = [self._who(job) for job in jobs]
        for each in people:
            self._used.setdefault(each, 0.0)
        if self._factor is None or self._people < len(self._used):
            self._factor, self._people = self._by_usage(), len(self._used)
        wide = np.array([job.processors for job in jobs], np.float64)
        nothing, first = np.zeros(len(jobs)), np.zeros(len(jobs), np.intp)
        columns = PendingColumns(
            accrued_at=np.array([job.submitted + 1 for job in jobs], np.float64),
            association=nothing,
            fairshare=np.array([self._factor(each) for each in people]),
            nodes=wide,
            cpus=wide,
            limit_minutes=np.array([-(-job.limit // 60) for job in jobs], np.float64),
            nice=nothing,
            site=nothing
            if self.credit is None or not self._ranking.site_weight
            else self._site(jobs, self.credit),
            partition=first,
            qos=first + NO_QOS,
            tres=np.zeros((0, len(jobs))),
        )
        found: list[int] = priorities(
            columns, self._scale, self._ranking.settings, self._worked_out + 1
        ).tolist()
        return found

    def _site(
        self, jobs: Sequence[TraceJob], credit_of: Callable[[TraceJob, int], RemainingCredit]
    ) -> Floats:
        """What the credit left, and the closeness of its end, add."""
        left = [credit_of(job, self._worked_out) for job in jobs]
        credit = credit_factor([each.deposited for each in left], [each.used for each in left])
        expiry = expiry_factor([each.seconds for each in left], [each.longest for each in left])
        return scaled(self._ranking.site_rule.of(credit, expiry), self._ranking.site_weight).astype(
            np.float64
        )

    def _who(self, job: TraceJob) -> Who:
        return (-1, job.user) if self._entitled is None else self._entitled.who(job)

    def _by_usage(self) -> Callable[[Who], float]:
        """The fair-share factor of everybody."""
        used, rule = self._used, self._ranking.algorithm
        if self._entitled is None and rule is Algorithm.FAIR_TREE:
            even = Even(used.values())
            return lambda who: even.factor(used[who])
        people, own = list(used), list(used.values())
        if self._entitled is None:
            tree, usage = _with_a_share_each(people), [sum(own), *own]
        else:
            tree, usage = self._entitled.tree(people), self._entitled.usage(people, own)
        if rule is Algorithm.FAIR_TREE:
            factors = fair_tree(tree, usage).factor
        else:
            oblivious = rule is Algorithm.DEPTH_OBLIVIOUS
            factors = classic(
                tree, usage, dampening=self._ranking.dampening, depth_oblivious=oblivious
            ).factor
        found: Mapping[Who, float] = dict(
            zip(people, factors.tolist()[-len(people) :], strict=True)
        )
        return found.__getitem__

    def _charge(self, running: Iterable[RunningJob[TraceJob, int]], begun: int) -> None:
        """Add what was used since the last time until a period begins."""
        self._rebase(begun)
        since, until = self._grown(self._worked_out), self._grown(begun)
        for each in running:
            self._add(each, since, until)
        gone, self._gone = self._gone, []
        for each, end in gone:
            self._add(each, since, self._grown(end) if end < begun else until)
            if end > begun:
                self._gone.append((each, end))

    def _add(self, running: RunningJob[TraceJob, int], since: float, until: float) -> None:
        who, processors = self._who(running.job), running.placement
        begin = self._grown(running.started) if running.started > self._worked_out else since
        if begin < until:
            self._used[who] = self._used.get(who, 0.0) + processors * (until - begin) / (
                self._fading or 1.0
            )

    def _grown(self, at: int) -> float:
        """What is used at this instant counts so much more than at `_zero`, by as much as it has to fade; summed up over time."""
        return exp((at - self._zero) * self._fading) if self._fading else float(at)

    def _rebase(self, at: int) -> None:
        if (at - self._zero) * self._fading > _REBASE:
            shrink = exp((self._zero - at) * self._fading)
            self._used = {who: used * shrink for who, used in self._used.items()}
            self._zero = at


def _with_a_share_each(people: Sequence[Who]) -> Tree:
    return planted(
        [ShareAssociation(ROOT), *(ShareAssociation(ROOT, user=str(user)) for _, user in people)]
    )
