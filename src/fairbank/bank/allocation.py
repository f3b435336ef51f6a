"""An allocation: credit of one project on one resource for one period; its life, and who else draws on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from fairbank.core.time import Instant
from fairbank.core.types import IdentityEnum
from fairbank.core.units import SuMinutes

NO_LINK = bytes(32)
"""What the first entry of a book is chained to."""


class AllocationState(Enum):
    ACTIVE = "active"
    FROZEN = "frozen"
    ENDED = "ended"


class AllocationEvent(Enum):
    FREEZE = "freeze"
    THAW = "thaw"
    END = "end"
    REOPEN = "reopen"


_S, _E = AllocationState, AllocationEvent

# The whole life of an allocation; it is born active. What is not in the table does not happen. Whether an active
# allocation may be drawn on at an instant is for its period to say, exactly; the sweep that ends it may lag behind, so
# events are judged by `Allocation.state_at`. What is frozen when it ends is stored so: the clock tells that it is over, and what
# is told late meets the freeze as it would have in time.
NEXT: Mapping[tuple[AllocationState, AllocationEvent], AllocationState] = {
    (_S.ACTIVE, _E.FREEZE): _S.FROZEN,
    (_S.FROZEN, _E.THAW): _S.ACTIVE,
    (_S.ACTIVE, _E.END): _S.ENDED,
    (_S.FROZEN, _E.END): _S.ENDED,
    (_S.ENDED, _E.REOPEN): _S.ACTIVE,
}


class Standing(IdentityEnum):
    """How an allocation stands at an instant: what people and programs are told as its state."""

    PLANNED = "planned"
    ACTIVE = "active"
    FROZEN = "frozen"
    ENDED = "ended"


_STANDING: Mapping[AllocationState, Standing] = {
    _S.ACTIVE: Standing.ACTIVE,
    _S.FROZEN: Standing.FROZEN,
    _S.ENDED: Standing.ENDED,
}


def diagram() -> str:
    """The table as Mermaid; the reference page includes this, so it cannot drift."""
    edges = (
        f"    {before.value} --> {after.value}: {event.value}"
        for (before, event), after in NEXT.items()
    )
    return "\n".join(["stateDiagram-v2", f"    [*] --> {_S.ACTIVE.value}", *edges])


class Allocation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The terms of an allocation and the sums of its journal. Valid at `t` when start <= t < end.

    `overrun` is how far below zero policy ever let `available` go (usage that happened beyond what was left), so that
    deposited + credit_limit + overrun >= charged + held holds at every commit. `seq` and `link` are those of the last entry.
    """

    id: int
    project: int
    resource: str
    category: str
    start: Instant
    end: Instant
    state: AllocationState = AllocationState.ACTIVE
    shared: bool = False
    credit_limit: SuMinutes = SuMinutes(0)
    deposited: SuMinutes = SuMinutes(0)
    charged: SuMinutes = SuMinutes(0)
    held: SuMinutes = SuMinutes(0)
    overrun: SuMinutes = SuMinutes(0)
    seq: int = 0
    link: bytes = NO_LINK

    @property
    def available(self) -> int:
        """The one number shown as "left": negative only by what policy let happen."""
        return self.deposited + self.credit_limit - self.charged - self.held

    @property
    def own_available(self) -> int:
        """What may leave the allocation again: a credit limit is not money."""
        return self.deposited - self.charged - self.held

    def covers(self, at: int) -> bool:
        """Whether `at` lies in the period."""
        return self.start <= at < self.end

    def pays_at(self, start: int) -> bool:
        """Whether a run that starts then may draw on it: the period alone says so, whenever the run is told of.

        One second is what is left of an allocation that staff ended before it began, as no period is empty; it pays nothing.
        """
        return self.start <= start < self.end and not (
            self.end == self.start + 1 and self.state is AllocationState.ENDED
        )

    def state_at(self, now: int) -> AllocationState:
        """The state that the table of events starts from: past its end it is ended, whether or not the sweep came by."""
        return AllocationState.ENDED if self.end <= now else self.state

    def standing(self, now: int) -> Standing:
        """The state by the clock: planned is what would be active, and has not begun."""
        state = self.state_at(now)
        return (
            Standing.PLANNED
            if state is AllocationState.ACTIVE and now < self.start
            else _STANDING[state]
        )


def overlapping(start: int, end: int, others: Iterable[Allocation]) -> Allocation | None:
    """The first of `others` (one project and resource) whose period shares an instant with [start, end)."""
    return next((other for other in others if other.start < end and start < other.end), None)
