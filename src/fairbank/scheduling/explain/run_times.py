"""How long jobs really run: what is known of those that have ended, and from it how long others may run (docs/decisions/0030).

Of each job that ended its ratio of run time to time limit is kept. A job that has not ended is given a ratio of its user's, times its own
limit; one that runs already only such a ratio as it has not outlasted. Jobs of one user are much alike: in one future they are all short,
in another all long.
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
"""So many of a user's last jobs count: habits change."""
ENOUGH = 5
"""Who has fewer of them is taken to be like everybody."""
OF_EVERYBODY = 1_000


class RunTimeRatios:
    """The last so many, in the order in which they came and in that of their size."""

    def __init__(self, most: int) -> None:
        self._came: deque[float] = deque()
        self._most = most
        self.in_order: list[float] = []

    def __len__(self) -> int:
        return len(self._came)

    def add(self, ratio: float) -> None:
        if len(self._came) == self._most:
            del self.in_order[bisect_right(self.in_order, self._came.popleft()) - 1]
        self._came.append(ratio)
        insort(self.in_order, ratio)

    def copy(self) -> RunTimeRatios:
        other = RunTimeRatios(self._most)
        other._came, other.in_order = self._came.copy(), self.in_order.copy()
        return other


class RunTimeHistory(Generic[U]):
    """The jobs that have ended, told in the order in which they did."""

    def __init__(self) -> None:
        self._by_user: dict[U, RunTimeRatios] = {}
        self._everybody = RunTimeRatios(OF_EVERYBODY)

    def ended(self, user: U, run: int, limit: int) -> None:
        """A job with this limit ran for so many seconds. Beyond its limit counts as all of it."""
        ratio = min(max(run, 0) / limit, 1.0)
        self._everybody.add(ratio)
        known = self._by_user.get(user)
        if known is None:
            known = self._by_user[user] = RunTimeRatios(REMEMBERED)
        known.add(ratio)

    def copy(self) -> RunTimeHistory[U]:
        other: RunTimeHistory[U] = RunTimeHistory()
        other._by_user = {user: ratios.copy() for user, ratios in self._by_user.items()}
        other._everybody = self._everybody.copy()
        return other

    def of(self, user: U) -> list[float]:
        """The ratios of a user, or of everybody, from the least on. Where nobody has ended yet all time limits are used up."""
        own = self._by_user.get(user)
        ratios = own if own is not None and len(own) >= ENOUGH else self._everybody
        return ratios.in_order or [1.0]


class RunTimeSampler(Generic[U]):
    """One of the futures that the past makes likely."""

    def __init__(self, history: RunTimeHistory[U], chance: Random) -> None:
        self._history, self._chance = history, chance
        self._lucks: dict[U, float] = {}

    def lasts(self, user: U, limit: int, elapsed: int = 0) -> int:
        """How many seconds a job runs in all, of which so many are past: more than these, and no more than its limit unless it is past."""
        luck = self._lucks.get(user)
        if luck is None:
            luck = self._lucks[user] = self._chance.random()
        ratios = self._history.of(user)
        first = bisect_right(ratios, elapsed / limit) if elapsed else 0
        if first == len(ratios):  # it has outlasted all that are known
            return elapsed + 1 + int(luck * max(limit - elapsed - 1, 0))
        ratio = ratios[first + int(luck * (len(ratios) - first))]
        return max(ceil(ratio * limit), elapsed + 1)
