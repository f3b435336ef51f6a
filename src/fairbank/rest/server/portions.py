"""What all askers share (places, connections, memory), divided so that whoever comes new finds some."""

from __future__ import annotations

from collections.abc import Hashable


class Portions:
    """So much of something, and who has how much of it.

    Nobody gets more than is left for all others then: one greedy asker ends at half, n of them leave an n-plus-first part over.
    """

    def __init__(self, total: int) -> None:
        self.total, self.taken = total, 0
        self._of: dict[Hashable, int] = {}

    def of(self, who: Hashable) -> int:
        """What `who` has now."""
        return self._of.get(who, 0)

    def take(self, who: Hashable, amount: int = 1) -> bool:
        """Whether `who` gets `amount` more."""
        mine = self.of(who) + amount
        if mine > self.total - self.taken:
            return False
        self._of[who] = mine
        self.taken += amount
        return True

    def give_back(self, who: Hashable, amount: int = 1) -> None:
        """Of what `take` gave."""
        self.taken -= amount
        if left := self.of(who) - amount:
            self._of[who] = left
        else:
            self._of.pop(who, None)
