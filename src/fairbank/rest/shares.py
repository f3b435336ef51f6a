"""What all askers share (places, connections, memory), divided so that whoever comes new finds some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class Shares:
    """So much of something, and who has how much of it.

    Nobody gets more than is left for all others then: one greedy asker ends at half, n of them leave an n-plus-first part over.
    """

    def __init__(self, total: int) -> None:
        self.total, self.taken = total, 0
        self._of: Counter[Hashable] = Counter()

    def of(self, who: Hashable) -> int:
        """What `who` has now."""
        return self._of[who]

    def take(self, who: Hashable, amount: int = 1) -> bool:
        """Whether `who` gets `amount` more."""
        if self._of[who] + amount > self.total - self.taken:
            return False
        self._of[who] += amount
        self.taken += amount
        return True

    def give_back(self, who: Hashable, amount: int = 1) -> None:
        """Of what `take` gave."""
        self.taken -= amount
        self._of[who] -= amount
        if not self._of[who]:
            del self._of[who]
