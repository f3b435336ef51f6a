"""Usage of users on processors and their shares, period by period, and the priorities that follow
for pending jobs (slurm-rules.md, "Usage", "Job priority").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log
from typing import Generic, NamedTuple

import msgspec
import numpy as np

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.fair_tree import EqualShares, fair_tree
from fairbank.priority.fairshare.tree import ShareAssociation, Tree, build_tree
from fairbank.priority.multifactor.combination import Priorities, priorities
from fairbank.priority.multifactor.pending_jobs import PendingColumns, scale
from fairbank.priority.settings import Algorithm, MultifactorSettings, PriorityWeights
from fairbank.priority.site_factor import LINEAR, CurveRule, Floats, RemainingCredit, site_factors
from fairbank.scheduling.machines.priority_queue import Integers, PriorityQueue, User
from fairbank.scheduling.machines.processor_queue import FEW
from fairbank.scheduling.machines.processors import ProcessorJob, W
from fairbank.scheduling.snapshot import RunningJob

ROOT = "root"


class ShareAccounts(NamedTuple):
    """Shares of users, or with `by_group` of groups, whose users have one share each of the
    group's. Accounts that are not named have none.
    """

    shares: Mapping[int, int]
    by_group: bool = False

    def user_of(self, job: ProcessorJob) -> User:
        return (job.group, job.user) if self.by_group else (-1, job.user)

    def check(self) -> None:
        """Raise InvalidInput for shares that no tree accepts: those of slurmctld are integers of 32
        bits, and so is their sum.
        """
        try:
            self.tree([(account, 0) if self.by_group else (-1, account) for account in self.shares])
        except InvalidInput as bad:
            raise InvalidInput(
                f"Slurm takes no such shares: {bad.message}",
                field="shares",
                remedy="divide all of them by the same",
            ) from bad

    def tree(self, people: Sequence[User]) -> Tree:
        """Return the tree: root, groups if they count, then these users, in this order."""
        if not self.by_group:
            return build_tree(
                [
                    ShareAssociation(ROOT),
                    *(
                        ShareAssociation(ROOT, user=str(user), shares=self.shares.get(user, 0))
                        for _, user in people
                    ),
                ]
            )
        groups = [
            ShareAssociation(
                str(group_number), parent=ROOT, shares=self.shares.get(group_number, 0)
            )
            for group_number in groups_of(people)
        ]
        return build_tree(
            [
                ShareAssociation(ROOT),
                *groups,
                *(ShareAssociation(str(group), user=str(user)) for group, user in people),
            ]
        )

    def usage(self, people: Sequence[User], used: Sequence[float]) -> list[float]:
        """Return the usage of each row with all below it, from the usage of the users."""
        if not self.by_group:
            return [sum(used), *used]
        of_groups = dict.fromkeys(groups_of(people), 0.0)
        for (group, _), user_usage in zip(people, used, strict=True):
            of_groups[group] += user_usage
        return [sum(used), *of_groups.values(), *used]


def groups_of(people: Sequence[User]) -> list[int]:
    """Return each group once, in the order of the users."""
    return list(dict.fromkeys(group for group, _ in people))


_REBASE = 500.0
"""Maximum of the logarithm of growth. A double overflows at about 709."""


class PriorityRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of priorities: weights, fair-share algorithm, decay of usage, and seconds between
    computations.

    Slurm's default weights of zero would leave the queue in its order. Here fair share counts most.
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
    """Weight of full credit that ends now. Any weight needs a bank."""


class UsageState(Generic[W]):
    """Usage of all users: it grows while jobs run, and always decays. Each user has one share of
    the machine, unless shares are given.

    Usage counts from the begin of one period until the next. Priorities computed in between, or not
    at all, change nothing.

    Invariants: `_used` is the usage of each known user as it would have decayed at `_base_time`.
    `_computed_at` is the begin of the last period, up to which running jobs are charged; `_ended`
    has the jobs that ended since. `_factor` returns fair-share factors for `_user_count` users;
    None: not computed yet.
    """

    def __init__(
        self, rules: PriorityRules, processors: int, shares: ShareAccounts | None = None
    ) -> None:
        self._rules = rules
        self._shares = shares
        self._scale = scale(nodes=processors, cpus=processors)
        self._decay_rate = -log(rules.decay.a_second) if rules.decay.half_life else 0.0
        self._used: dict[User, float] = {}
        self._ended: list[tuple[RunningJob[W, int], int]] = []
        self._base_time = self._computed_at = 0
        self._factor: Callable[[User], float] | None = None
        self._user_count = 0
        self.credit: Callable[[W, int], RemainingCredit] | None = None
        """Function that returns the remaining credit for a job at a time, if there is a bank."""

    def record_end(self, running: RunningJob[W, int], now: int) -> None:
        """Record a job that ended now. Its usage counts from the next period on."""
        self._ended.append((running, now))

    def update(
        self, queue: PriorityQueue[W], running: Iterable[RunningJob[W, int]], now: int
    ) -> None:
        """Compute priorities: all if a period has begun since the last time, else of new jobs.

        Args:
            queue: pending jobs, which get the priorities.
            running: running jobs, whose usage is charged when a period has begun.
            now: time in seconds of the trace.
        """
        period = self._rules.calc_period
        begun = now // period * period
        if begun > self._computed_at:
            self._charge(running, begun)
            self._computed_at = begun
            self._factor = None
            queue.clear_priorities()
        if rows := queue.unranked():
            queue.set_priorities(rows, self._priorities(queue, rows))

    def _priorities(self, queue: PriorityQueue[W], rows: Sequence[int]) -> Priorities:
        jobs = queue.columns(rows)
        nothing, first = np.zeros(len(rows)), np.zeros(len(rows), np.intp)
        columns = PendingColumns(
            accrued_at=jobs.accrued_at,
            association=nothing,
            fairshare=self._fair_shares(queue.users, jobs.user),
            nodes=jobs.processors,
            cpus=jobs.processors,
            limit_minutes=jobs.limit_minutes,
            nice=nothing,
            site=(
                nothing
                if self.credit is None or not self._rules.site_weight
                else site_factors(
                    [self.credit(job, self._computed_at) for job in queue.jobs_of(rows)],
                    self._rules.site_rule,
                    self._rules.site_weight,
                ).astype(np.float64)
            ),
            partition=first,
            qos=first,  # the scale has only that of jobs without one
            tres=np.zeros((0, len(rows))),
        )
        return priorities(columns, self._scale, self._rules.settings, self._computed_at + 1)

    def _fair_shares(self, users: Sequence[User], places: Integers) -> Floats:
        """Return the fair-share factor of the user at each place. New users join in the order in
        which they first occur.
        """
        # A table of factors pays off for long queues only.
        is_short = len(places) <= FEW
        needed = places.tolist() if is_short else np.flatnonzero(np.bincount(places)).tolist()
        if is_short or not all(users[place] in self._used for place in needed):
            for place in places.tolist():
                self._used.setdefault(users[place], 0.0)
        if self._factor is None or self._user_count < len(self._used):
            self._factor, self._user_count = self._fair_share_factors(), len(self._used)
        factors = [self._factor(users[place]) for place in needed]
        if is_short:
            return np.array(factors)
        table = np.zeros(len(users))
        table[needed] = factors
        return table[places]

    def user_of(self, job: W) -> User:
        return (-1, job.user) if self._shares is None else self._shares.user_of(job)

    def _fair_share_factors(self) -> Callable[[User], float]:
        """Return the function from a user to the fair-share factor."""
        used, rule = self._used, self._rules.algorithm
        if self._shares is None and rule is Algorithm.FAIR_TREE:
            even = EqualShares(used.values())
            return lambda who: even.factor(used[who])
        people, own = list(used), list(used.values())
        shares = self._shares or ShareAccounts(dict.fromkeys((user for _, user in people), 1))
        tree, usage = shares.tree(people), shares.usage(people, own)
        if rule is Algorithm.FAIR_TREE:
            factors = fair_tree(tree, usage).factor
        else:
            oblivious = rule is Algorithm.DEPTH_OBLIVIOUS
            factors = classic(
                tree, usage, dampening=self._rules.dampening, depth_oblivious=oblivious
            ).factor
        factor_of: Mapping[User, float] = dict(
            zip(people, factors.tolist()[-len(people) :], strict=True)
        )
        return factor_of.__getitem__

    def _charge(self, running: Iterable[RunningJob[W, int]], begun: int) -> None:
        """Add the usage from the last computation until a period begins."""
        self._rebase(begun)
        since, until = self._growth(self._computed_at), self._growth(begun)
        for job_running in running:
            self._add(job_running, since, until)
        ended, self._ended = self._ended, []
        for job_running, end in ended:
            self._add(job_running, since, self._growth(end) if end < begun else until)
            if end > begun:
                self._ended.append((job_running, end))

    def _add(self, running: RunningJob[W, int], since: float, until: float) -> None:
        who, processors = self.user_of(running.job), running.placement
        begin = self._growth(running.started) if running.started > self._computed_at else since
        if begin < until:
            self._used[who] = self._used.get(who, 0.0) + processors * (until - begin) / (
                self._decay_rate or 1.0
            )

    def _growth(self, at: int) -> float:
        """Return the weight of usage at a time, summed over time since `_base_time`: later usage
        counts more, by as much as earlier usage decays.
        """
        return exp((at - self._base_time) * self._decay_rate) if self._decay_rate else float(at)

    def _rebase(self, at: int) -> None:
        if (at - self._base_time) * self._decay_rate > _REBASE:
            shrink = exp((self._base_time - at) * self._decay_rate)
            self._used = {who: used * shrink for who, used in self._used.items()}
            self._base_time = at
