"""What a job waits for beside nodes, as somebody else knows it: credit, and other jobs. It is handed in, and judged here."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from fairbank.scheduling.explain.answer import Check
from fairbank.values.units import show_short, show_su


class Funds(msgspec.Struct, frozen=True, kw_only=True):
    """Credit in SU-minutes, as the bank tells it: what is held when the job starts, and what is available.

    `observed`: the bank only looks on, and lets jobs start without credit.
    """

    project: str
    resource: str
    wanted: int
    available: int
    observed: bool = False

    @property
    def enough(self) -> bool:
        return self.observed or self.wanted <= self.available

    @property
    def said(self) -> str:
        left = f"available {show_su(self.available, down=True, separators=True)} of {self.project}/{self.resource}"
        figures = f"a hold of {show_su(self.wanted, separators=True)} SU, {left}"
        if self.wanted <= self.available:
            return figures
        short = f"{figures}: short by {show_short(self.wanted, self.available)}"
        return f"{short}, and let through" if self.observed else short


class Met(Enum):
    """How far a dependency has come, in the word that scontrol has for it."""

    YES = "fulfilled"
    NOT_YET = "unfulfilled"
    NEVER = "failed"


class Dependency(msgspec.Struct, frozen=True):
    """One of the things that a job depends on: `kind` is afterok or the like; `on` the job, None where the kind has none (singleton)."""

    kind: str
    on: int | None
    met: Met

    @property
    def said(self) -> str:
        what = _KINDS.get(self.kind, f"{self.kind} {{}}").format(f"job {self.on}")
        return f"{what}: {_MET[self.met]}"


_MET = {Met.YES: "done", Met.NOT_YET: "not yet", Met.NEVER: "can never be any more"}
_KINDS = {
    "after": "{} has begun",
    "afterany": "{} has ended",
    "afterburstbuffer": "{} has ended, and its files were copied",
    "aftercorr": "the same task of {} has ended well",
    "afternotok": "{} has failed",
    "afterok": "{} has ended well",
    "expand": "{} runs, to be given more",
    "singleton": "no other job of this name and user runs",
}


def credit(funds: Funds) -> Check:
    """Whether the bank can pay for the job now."""
    return Check("funds", funds.enough, f"needs {funds.said}")


def depends(on: Sequence[Dependency], *, any_of: bool = False) -> Check:
    """Whether all of these are done, or with `any_of` one (`--dependency=a?b`)."""
    done = [each.met is Met.YES for each in on]
    return Check("dependencies", (any(done) if any_of else all(done)) or not done, "; ".join(each.said for each in on) or "it has none")
