"""Message and remedies of a refusal, made from the record of its reason."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from string import Formatter
from typing import Any

import msgspec

from fairbank.bank.pricing import longest_paid
from fairbank.bank.refusals.reasons import Case, Detail, Reason
from fairbank.bank.refusals.refusal import NOTHING_KNOWN, Refusal, RemedyFacts
from fairbank.cluster.job import Run
from fairbank.core.time import iso, show_duration
from fairbank.core.units import MINUTES_IN_SU, exact_su, show_shortfall, show_su


class _Templates(Formatter):
    """Format amounts with `:su` and `:su_down`, times with `:time`."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        match format_spec:
            case "su":
                return show_su(value)
            case "su_down":
                return show_su(value, down=True)
            case "time":
                return iso(value)
        return super().format_field(value, format_spec)


_format = _Templates().vformat


def sentence(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> str:
    """Return the message; a second sentence says if the bank only observed."""
    text = refusal.reason.info.message
    if message := _case(refusal, known).message:
        text += f": {_format(message, (), values_of(refusal, known))}"
    return f"{text}. The bank only observes: the job ran." if refusal.observed else f"{text}."


def longest_that_fits(refusal: Refusal) -> int:
    """Return the longest time limit that the available credit pays, in seconds of whole minutes."""
    return longest_paid(Fraction(refusal.billing), refusal.available) if refusal.billing else 0


def remedies(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> tuple[str, ...]:
    """Return what the user can do, the best first, each with the command or option to type."""
    advice = []
    seconds = longest_that_fits(refusal)
    if refusal.limit_seconds and 0 < seconds < refusal.limit_seconds:
        advice.append(f"a shorter time limit: -t {show_duration(seconds)}")
    advice += [
        f"another project: -A {other.account} ({show_su(other.available, down=True)} SU available)"
        for other in known.alternatives
    ]
    template = _case(refusal, known).remedy or refusal.reason.info.remedy
    return (*advice, _format(template, (), values_of(refusal, known)))


def _case(refusal: Refusal, known: RemedyFacts) -> Case:
    return refusal.reason.info.details.get(_detail(refusal, known), Case())


def _detail(refusal: Refusal, known: RemedyFacts) -> Detail:
    """Return the detail of the rule, or what follows from the figures or the nearest allocation."""
    # First, because a rule cannot advise to withdraw a rest that does not exist. An undone refund
    # withdraws nothing: its remedy is a deposit.
    if (
        refusal.reason is Reason.NOT_ENOUGH
        and refusal.available <= 0
        and refusal.detail is not Detail.WHOLE_REFUND
    ):
        return Detail.NOTHING_LEFT
    if refusal.detail is not Detail.NONE:
        return refusal.detail
    if refusal.reason is Reason.NO_ALLOCATION and refusal.start is not None:
        if known.nearest is None:
            return Detail.STARTED
        too_early = refusal.start < known.nearest.start
        return Detail.STARTED_TOO_EARLY if too_early else Detail.STARTED_TOO_LATE
    return Detail.NONE


def values_of(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> Mapping[str, Any]:
    """Return the values that templates may name."""
    allocation, near = refusal.allocation, known.nearest
    values = {
        **msgspec.structs.asdict(refusal),
        "short": show_shortfall(refusal.asked, refusal.available),
        "missing": -(-refusal.shortfall // MINUTES_IN_SU),
        "most": exact_su(max(0, refusal.available)),
        "payer": known.account or refusal.project or "ACCOUNT",
        "begin": "..." if refusal.start is None else iso(refusal.start),
        "show": (
            "fairbank jobs -a -l" if allocation is None else f"fairbank alloc show {allocation}"
        ),
        "statement": (
            "fairbank project users PROJECT"
            if allocation is None
            else f"fairbank statement {allocation}"
        ),
        "job": "JOBID" if refusal.run is None else Run.parse(refusal.run).job_id,
    }
    if near is not None:
        values |= {"near": near.id, "near_start": near.start, "near_end": near.end}
    return values | dict(refusal.facts or {})
