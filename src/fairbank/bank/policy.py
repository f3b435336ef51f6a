"""Settings of the bank's rules. With the defaults no allocation goes below zero."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec

from fairbank.core.final_state import FinalState
from fairbank.core.ids import UID_MAX
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.units import AMOUNT_MAX, MINUTES_IN_SU, SUM_MAX


class Overrun(Enum):
    """Treatment of usage beyond the available credit. By default the centre bears it, so that no
    allocation goes below zero.
    """

    WRITE_OFF = "write_off"  # charge what is available, record the rest in the entry
    RECORD = "record"  # charge it all; `remaining` goes below zero by the overrun


class GrantRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lowest and highest grant of a resource, in SU; without `highest`, any amount."""

    lowest: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX // MINUTES_IN_SU)] = 0
    highest: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX // MINUTES_IN_SU)] | None = None


class GrantCategory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Category of grants.

    `purpose`: what it is for, in a few words. `resources`: the resources that it grants, each with
    the `lowest` and `highest` grant in SU; empty: any resource and amount. The credit limit is a
    part of the grant. `longest_days`: longest term, such as 366 for a year. `granters`: uids of the
    superusers who may grant in it, also of a superuser acted as; empty: all of them.
    """

    purpose: str | None = None
    resources: dict[str, GrantRange] = {}
    longest_days: Annotated[int, msgspec.Meta(ge=1, le=36_600)] | None = None
    granters: frozenset[Annotated[int, msgspec.Meta(ge=0, le=UID_MAX)]] = frozenset()


HISTORY_CATEGORY = "history"
"""Category of the allocations that imports create for jobs of the past."""
DEFAULT_CATEGORIES = {"research": GrantCategory(), HISTORY_CATEGORY: GrantCategory()}
"""Categories of settings without any, so that a typing error creates none."""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of the bank that differ between centres.

    `enforce`: false refuses no job, and only records what would have been refused; without an
    allocation nothing is held. Usage beyond the credit is then recorded, whatever `overrun` says.
    `late_charges`: a finished run without a hold is charged; otherwise it is refused, and the
    refusal is kept. `free_states`: final job states that cost nothing; with all but COMPLETED and
    TIMEOUT the bank charges like Maui's DEBITSUCCESSFULWC, for which a job that exceeds its time
    limit is a successful one. `hold_grace_seconds`: time after its limit at which the hold of a run
    lapses without a report, long enough for an outage of a day; a report that comes later is
    charged all the same. `clock_tolerance_seconds`: how far the times of a report may be ahead of
    the bank's clock; a report from further in the future is refused. `categories`: the categories
    of allocations, by name; settings without any have research and history, without limits.
    """

    enforce: bool = True
    overrun: Overrun = Overrun.WRITE_OFF
    late_charges: bool = True
    free_states: frozenset[FinalState] = frozenset({"NODE_FAIL", "BOOT_FAIL"})
    hold_grace_seconds: Annotated[int, msgspec.Meta(ge=1)] = 86_400
    clock_tolerance_seconds: Annotated[int, msgspec.Meta(ge=0)] = 300
    categories: dict[str, GrantCategory] = {}

    def hold_end(self, start: int, limit_seconds: int) -> Instant:
        """Return the time at which the hold of a run lapses without a report."""
        return Instant(min(start + limit_seconds + self.hold_grace_seconds, LAST_INSTANT))

    def split(self, cost: int, available: int) -> Split:
        """Split the cost of a run that an allocation can pay only in part.

        The usage has happened, so it is never refused, and no other allocation pays the rest.

        Args:
            cost: SU-minutes of the run.
            available: SU-minutes that may be charged: the credit that is left, and the run's hold.
        """
        if cost <= available:
            return Split(cost)
        beyond = cost - max(0, available)
        if self.overrun is Overrun.WRITE_OFF and self.enforce:
            return Split(cost - beyond, written_off=beyond)
        return Split(cost, overrun=beyond)


class Split(msgspec.Struct, frozen=True, gc=False):
    """Parts of a cost: `charged` and `written_off`. `overrun` is the part of `charged` that exceeds
    the credit of the allocation.
    """

    charged: int
    overrun: int = 0
    written_off: int = 0


def is_countable(total: int) -> bool:
    """Return whether a sum is small enough that every program counts it exactly."""
    return total <= SUM_MAX
