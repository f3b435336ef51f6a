"""Model of run times from those of ended jobs (docs/decisions/0030).

The history keeps the ratio of run time to time limit of each ended job. A job that has not ended
gets a ratio of its user, times its own limit. A running job gets only a ratio that it has not
exceeded yet. Jobs of one user are similar: in one simulated run all are short, in another all are
long.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Hashable
from math import ceil
from random import Random
from typing import Generic, TypeVar

U = TypeVar("U", bound=Hashable)

REMEMBERED = 100
"""Number of last jobs of a user that count, because habits change."""
ENOUGH = 5
"""Users with fewer ended jobs get the ratios of all users."""
OF_EVERYBODY = 1_000


class RunTimeRatios:
    """Last ratios, in the order of the ends and in the order of size."""

    def __init__(self, capacity: int) -> None:
        self._recent: deque[float] = deque()
        self._most = capacity
        self.in_order: list[float] = []

    def __len__(self) -> int:
        return len(self._recent)

    def add(self, ratio: float) -> None:
        if len(self._recent) == self._most:
            del self.in_order[bisect_right(self.in_order, self._recent.popleft()) - 1]
        self._recent.append(ratio)
        insort(self.in_order, ratio)

    def copy(self) -> RunTimeRatios:
        other = RunTimeRatios(self._most)
        other._recent, other.in_order = self._recent.copy(), self.in_order.copy()
        return other


class RunTimeHistory(Generic[U]):
    """Ratios of ended jobs, added in the order of their ends."""

    def __init__(self) -> None:
        self._by_user: dict[U, RunTimeRatios] = {}
        self._everybody = RunTimeRatios(OF_EVERYBODY)

    def add(self, user: U, run: int, limit: int) -> None:
        """Add a job that ended.

        Args:
            run: run time in seconds; beyond the limit it counts as the whole limit.
            limit: time limit in seconds, above 0.
        """
        ratio = min(max(run, 0) / limit, 1.0)
        self._everybody.add(ratio)
        ratios = self._by_user.get(user)
        if ratios is None:
            ratios = self._by_user[user] = RunTimeRatios(REMEMBERED)
        ratios.add(ratio)

    def copy(self) -> RunTimeHistory[U]:
        other: RunTimeHistory[U] = RunTimeHistory()
        other._by_user = {user: ratios.copy() for user, ratios in self._by_user.items()}
        other._everybody = self._everybody.copy()
        return other

    def ratios(self, user: U) -> list[float]:
        """Return the ratios of a user, else of all users, sorted; [1.0] if no job has ended."""
        own = self._by_user.get(user)
        ratios = own if own is not None and len(own) >= ENOUGH else self._everybody
        return ratios.in_order or [1.0]


class Middle(Random):
    """Random numbers for one typical run: all jobs take the middle ratio of their users."""

    def random(self) -> float:
        return 0.5


class RunTimeSampler(Generic[U]):
    """Sample of the run times of all jobs: one quantile for each user."""

    def __init__(self, history: RunTimeHistory[U], rng: Random) -> None:
        self._history, self._rng = history, rng
        self._quantiles: dict[U, float] = {}

    def run_time(self, user: U, limit: int, elapsed: int = 0) -> int:
        """Return the whole run time of a job in seconds.

        Args:
            limit: time limit in seconds.
            elapsed: seconds that it has run.

        Returns:
            More than `elapsed`, and no more than the limit unless that has passed.
        """
        quantile = self._quantiles.get(user)
        if quantile is None:
            quantile = self._quantiles[user] = self._rng.random()
        ratios = self._history.ratios(user)
        first = bisect_right(ratios, elapsed / limit) if elapsed else 0
        if first == len(ratios):  # it has outlasted all that are known
            return elapsed + 1 + int(quantile * max(limit - elapsed - 1, 0))
        ratio = ratios[first + int(quantile * (len(ratios) - first))]
        return max(ceil(ratio * limit), elapsed + 1)
