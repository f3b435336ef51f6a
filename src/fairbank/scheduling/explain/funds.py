"""Credit that a job needs, as the bank reports it."""

from __future__ import annotations

import msgspec

from fairbank.core.units import show_shortfall, show_su
from fairbank.scheduling.explain.answer import JobCheck


class CreditCheckInput(msgspec.Struct, frozen=True, kw_only=True):
    """Credit in SU-minutes: the hold when the job starts, and what is available.

    `observed`: the bank only observes, and lets jobs start without credit.
    """

    project: str
    resource: str
    wanted: int
    available: int
    observed: bool = False

    @property
    def is_enough(self) -> bool:
        return self.observed or self.wanted <= self.available

    @property
    def evidence(self) -> str:
        left = f"available {show_su(self.available, down=True, separators=True)} of {self.project}/{self.resource}"
        figures = f"a hold of {show_su(self.wanted, separators=True)} SU, {left}"
        if self.wanted <= self.available:
            return figures
        short = f"{figures}: short by {show_shortfall(self.wanted, self.available)}"
        return f"{short}, and let through" if self.observed else short


def credit_check(funds: CreditCheckInput) -> JobCheck:
    """Check that the bank can pay for the job now."""
    return JobCheck("funds", funds.is_enough, f"needs {funds.evidence}")
