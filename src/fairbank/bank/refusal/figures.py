"""A no with its figures, and the sentence that says it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.refusal.helping import NOTHING_KNOWN, Help
from fairbank.bank.refusal.reason import KINDS, Reason
from fairbank.bank.run import RunState
from fairbank.core.refusal_kind import RefusalKind
from fairbank.core.time import iso
from fairbank.core.units import show_shortfall, show_su

# Where the reason is how much there is: of credit for a job, of credit to take out, of a charge to give back.
_LOOKED = frozenset(
    {
        Reason.OVERDRAWN,
        Reason.CAPPED,
        Reason.NO_ALLOCATION,
        Reason.FROZEN,
        Reason.NOT_ENOUGH,
        Reason.TOO_MUCH_BACK,
    }
)


class Figures(NamedTuple):
    """What a refusal tells in SU-minutes; None where nobody looked what there is, and `asked` where nothing was asked then either."""

    asked: int | None
    available: int | None
    shortfall: int | None


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a run: its state in the books, its final job state and its seconds, as far as its cluster told them."""

    state: RunState
    outcome: str | None = None
    elapsed_seconds: int | None = None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A no with its figures, in SU-minutes. `entry` is where it is kept, if it is.

    `account` is the one that was reported where no project has it. `billing` is the price of one hour in SU, exact, `limit_seconds`
    the time limit of the job concerned, and `start` when it started, where nothing pays at that time. `observed`: the bank only
    observes, so the job ran all the same. `about` says which name, state or period it was, where that is the reason. `resolution` is
    for RUN_RESOLVED, which no journal keeps.
    """

    reason: Reason
    asked: int = 0
    available: int = 0
    allocation: int | None = None
    project: int | None = None
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    run: str | None = None
    start: int | None = None
    billing: str | None = None
    limit_seconds: int | None = None
    observed: bool = False
    entry: int | None = None
    about: str | None = None
    resolution: Resolution | msgspec.UnsetType = msgspec.UNSET

    @property
    def shortfall(self) -> int:
        return max(0, self.asked - self.available)

    @property
    def figures(self) -> Figures:
        """The figures that people are told: where the reason is another than how much there is, nobody looked."""
        if self.reason in _LOOKED:
            return Figures(self.asked, self.available, self.shortfall)
        return Figures(self.asked or None, None, None)

    @property
    def kind(self) -> RefusalKind:
        return KINDS[self.reason]


def refusal_of(entry: Entry) -> Refusal:
    """The refusal that a journal entry keeps."""
    return msgspec.structs.replace(
        msgspec.json.decode(entry.details or "{}", type=Refusal), entry=entry.id
    )


def sentence(no: Refusal, known: Help = NOTHING_KNOWN) -> str:
    """The refusal in one sentence with its figures; a second one says that the bank only observed."""
    said = no.reason.value
    if no.reason in (Reason.OVERDRAWN, Reason.CAPPED, Reason.NOT_ENOUGH):
        available = show_su(no.available, down=True)
        said += f": asked {show_su(no.asked)} SU, available {available} SU, short by {show_shortfall(no.asked, no.available)} SU"
    elif no.reason is Reason.TOO_MUCH_BACK:
        said += f": asked {show_su(no.asked)} SU, left of its charge {show_su(no.available)} SU"
    elif no.reason is Reason.NO_ALLOCATION and no.start is not None:
        said += f": the job started at {iso(no.start)}{_missed(known.nearest, no.start)}"
    elif no.about:
        said += f": {no.about}"
    return (
        f"{said}. The bank only observes: the job was let through." if no.observed else f"{said}."
    )


def _missed(nearest: Allocation | None, start: int) -> str:
    if nearest is None:
        return ""
    return f", allocation {nearest.id} " + (
        f"begins at {iso(nearest.start)}"
        if start < nearest.start
        else f"ended at {iso(nearest.end)}"
    )
