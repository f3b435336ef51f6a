"""Allocation: credit of one project on one resource for one period, and its states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

if TYPE_CHECKING:
    from fairbank.bank.run import UserSums


class IdentityEnum(Enum):
    """Enumeration hashed by identity: the hash of Enum calls Python code at each lookup."""

    __hash__ = object.__hash__


NO_LINK = bytes(32)
"""Link before the first entry of a journal."""


class AllocationState(Enum):
    """State of an allocation as it is stored. `ShownState` follows from it and the time.

    CANCELLED: staff ended it by its start. It is shown as ended and pays nothing. It keeps a period
    of one second, because no period is empty.
    """

    ACTIVE = "active"
    FROZEN = "frozen"
    ENDED = "ended"
    CANCELLED = "cancelled"
    REMOVED = "removed"


class AllocationEvent(Enum):
    FREEZE = "freeze"
    THAW = "thaw"
    END = "end"
    REOPEN = "reopen"
    REMOVE = "remove"


_S, _E = AllocationState, AllocationEvent

# All transitions of an allocation, which is active at first. A pair that is not listed is refused.
# Upkeep records the end of a period late, so events start from `Allocation.state_at`, and only the
# period decides whether a run may draw on an allocation. An allocation that is frozen at its end
# stays frozen in the table: a late report meets the freeze as it would have in time. CANCELLED
# counts as ended here.
NEXT: Mapping[tuple[AllocationState, AllocationEvent], AllocationState] = {
    (_S.ACTIVE, _E.FREEZE): _S.FROZEN,
    (_S.FROZEN, _E.THAW): _S.ACTIVE,
    (_S.ACTIVE, _E.END): _S.ENDED,
    (_S.FROZEN, _E.END): _S.ENDED,
    (_S.ENDED, _E.REOPEN): _S.ACTIVE,
    # Only while no credit has moved in it. Only an undo brings it back.
    (_S.ACTIVE, _E.REMOVE): _S.REMOVED,
    (_S.FROZEN, _E.REMOVE): _S.REMOVED,
    (_S.ENDED, _E.REMOVE): _S.REMOVED,
}


class ShownState(IdentityEnum):
    """State of an allocation at a time, as it is shown to users and programs."""

    PLANNED = "planned"
    ACTIVE = "active"
    FROZEN = "frozen"
    ENDED = "ended"
    REMOVED = "removed"


_SHOWN_STATES: Mapping[AllocationState, ShownState] = {
    _S.ACTIVE: ShownState.ACTIVE,
    _S.FROZEN: ShownState.FROZEN,
    _S.ENDED: ShownState.ENDED,
    _S.REMOVED: ShownState.REMOVED,
}


def diagram() -> str:
    """Return the table of states in Mermaid's notation; the reference page includes it."""
    edges = (
        f"    {before.value} --> {after.value}: {event.value}"
        for (before, event), after in NEXT.items()
    )
    return "\n".join(["stateDiagram-v2", f"    [*] --> {_S.ACTIVE.value}", *edges])


class AllocationTerms(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Terms of an allocation, which is valid at `t` if start <= t < end.

    All runs of its project may draw on it, and those of the child projects if it is `shared`. Times
    are seconds since 1970, the credit limit is in SU-minutes. A short-term allocation (HADM) has a
    Slurm partition, a reservation or both, where all jobs of its project run during its period, and
    no others.
    """

    project: int
    resource: str
    category: str
    start: Instant
    end: Instant
    shared: bool = False
    partition: str | None = None
    reservation: str | None = None
    credit_limit: SuMinutes = SuMinutes(0)


class Allocation(msgspec.Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """Row of an allocation: its terms and the sums of its journal, in SU-minutes.

    `overrun` is the furthest below zero that policy let `remaining` go, for usage beyond the
    credit. Invariant at every commit: deposited + credit_limit + overrun >= charged + held. `seq`
    and `link` are those of the last entry.
    """

    id: int
    terms: AllocationTerms
    state: AllocationState = AllocationState.ACTIVE
    deposited: SuMinutes = SuMinutes(0)
    charged: SuMinutes = SuMinutes(0)
    held: SuMinutes = SuMinutes(0)
    overrun: SuMinutes = SuMinutes(0)
    seq: int = 0
    link: bytes = NO_LINK

    @property
    def remaining(self) -> int:
        """Credit that is left. It is negative only if policy records overruns."""
        return self.deposited + self.terms.credit_limit - self.charged - self.held

    @property
    def withdrawable(self) -> int:
        """Credit that may be withdrawn or transferred: the credit limit is not part of it."""
        return self.deposited - self.charged - self.held

    @property
    def is_short_term(self) -> bool:
        """Return True if it has a partition or a reservation of its own."""
        return self.terms.partition is not None or self.terms.reservation is not None

    def is_in_period(self, at: int) -> bool:
        """Return whether the period contains `at`."""
        return self.terms.start <= at < self.terms.end

    def is_open_at(self, start: int) -> bool:
        """Return whether a run that starts at `start` may draw on it, however late the run is
        reported.

        Only the period counts, unless staff ended the allocation by its start or removed it.
        """
        return self.is_in_period(start) and self.state not in (_S.CANCELLED, _S.REMOVED)

    def may_pay(self, project: int, start: int) -> bool:
        """Return whether it may pay for a run if it has credit. It may have ended since.

        Args:
            project: project of the run. The allocation is its own, or a parent's.
            start: start of the run.
        """
        return self.is_open_at(start) and (self.terms.project == project or self.terms.shared)

    def available_credit(self, sums: UserSums) -> int:
        """Return the credit available to a user: what remains, within the cap; 0 if frozen."""
        return 0 if self.state is AllocationState.FROZEN else sums.within(self.remaining)

    def available_now(self, sums: UserSums, now: int) -> int:
        """Return the credit available to a user now; 0 unless the allocation is active.

        Args:
            sums: charges, holds and cap of the user in it.
            now: time in seconds since 1970.
        """
        is_active = self.shown_state(now) is ShownState.ACTIVE
        return self.available_credit(sums) if is_active else 0

    def state_at(self, now: int) -> AllocationState:
        """Return the state that events start from: ended after its end, recorded or not."""
        is_over = self.terms.end <= now and self.state is not AllocationState.REMOVED
        return _S.ENDED if is_over or self.state is _S.CANCELLED else self.state

    def shown_state(self, now: int) -> ShownState:
        """Return the state by the clock: an active allocation that has not begun is planned."""
        state = self.state_at(now)
        if state is AllocationState.ACTIVE and now < self.terms.start:
            return ShownState.PLANNED
        return _SHOWN_STATES[state]


def overlapping(start: int, end: int, others: Iterable[Allocation]) -> Allocation | None:
    """Return the first allocation whose period overlaps [start, end), or None; not a removed one.

    Args:
        start: first second of the period.
        end: first second after it.
        others: allocations of one project and resource.
    """
    for other in others:
        overlaps = other.terms.start < end and start < other.terms.end
        if overlaps and other.state is not AllocationState.REMOVED:
            return other
    return None
