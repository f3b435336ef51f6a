"""Message of a refusal, and what the user can do."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from fractions import Fraction
from string import Formatter
from typing import Any

import msgspec

from fairbank.bank.pricing import longest_paid
from fairbank.bank.refusals.reason_info import Case, Detail
from fairbank.bank.refusals.refusal import NOTHING_KNOWN, Reason, Refusal, RemedyFacts
from fairbank.cluster.job import Run
from fairbank.core.time import iso, show_duration
from fairbank.core.units import IN_SU, MINUTES_IN_SU, show_shortfall, show_su, show_sums


class _Templates(Formatter):
    """Format amounts with `:su`, times with `:time`, words of commands with `:word`."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        match format_spec:
            case "su":
                return show_su(value)
            case "time":
                return iso(value)
            case "word":
                return shlex.quote(str(value))
        return super().format_field(value, format_spec)


_format = _Templates().vformat


def sentence(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> str:
    """Return the message; a second sentence says if the bank only observed."""
    info = refusal.reason.info
    text = info.message
    if message := _case(refusal, known).message or info.specific:
        text += f": {_format(message, (), values_of(refusal, known))}"
    text += _why_stopped(refusal, known) + _what_is_held(refusal, known)
    return f"{text}. The bank only observes: the job ran." if refusal.observed else f"{text}."


def _why_stopped(refusal: Refusal, known: RemedyFacts) -> str:
    """Return since when the allocation is not active, and the reason that staff gave, if known, or
    that of the grant if the allocation begins later.
    """
    if known.inactive_since is None:
        return ""
    reason = known.inactive_since.reason
    if known.nearest is not None:  # the message has its period
        is_planned = _detail(refusal, known) is Detail.STARTED_TOO_EARLY
        about = "Reason of the grant" if is_planned else "Reason given by staff"
        return f". {about}: {reason}" if reason else ""
    return f". Frozen since {iso(known.inactive_since.at)}{f': {reason}' if reason else ''}"


def _what_is_held(refusal: Refusal, known: RemedyFacts) -> str:
    """Return what of the credit is used, and what is held by how many jobs until when; "" if
    nothing is.
    """
    facts = refusal.facts or {}
    if "granted" not in facts:
        return ""
    granted, charged, held = facts["granted"], facts["charged"], facts["held"]
    if charged == held == 0:
        return ""  # all is available, which the message says already
    shown = show_sums(granted, charged, held, granted - charged - held)
    of = "the cap of " if refusal.reason is Reason.CAPPED else ""
    text = f". Of {of}{shown.granted} SU {shown.used} are used, {shown.held} held"
    holds = known.holds
    # Other jobs hold credit by now if the sum differs or a hold was set after the refusal.
    if holds is None or known.jobs_end is None or holds.held != held:
        return text
    if refusal.entry and holds.set_by > refusal.entry:
        return text
    jobs, end = ("job", "ends") if holds.runs == 1 else ("jobs", "end")
    return (
        f"{text} by {holds.runs} running {jobs}, which {end} by {iso(known.jobs_end)} at the latest"
    )


def longest_that_fits(refusal: Refusal) -> int:
    """Return the longest time limit that the available credit pays, in seconds of whole minutes; 0
    if no limit helps, as for a frozen allocation.
    """
    if not refusal.billing or not refusal.reason.info.shorter_limit_helps:
        return 0
    return longest_paid(Fraction(refusal.billing), refusal.available)


def remedies(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> tuple[str, ...]:
    """Return what the user can do, the best first, each with the command or option to type."""
    advice = []
    present = known.present or refusal
    seconds = longest_that_fits(present)
    if refusal.limit_seconds and 0 < seconds < refusal.limit_seconds:
        changed = present.available != refusal.available
        credit = f" ({show_su(present.available)} SU are available now)" if changed else ""
        advice.append(f"a shorter time limit: -t {show_duration(seconds)}{credit}")
    advice += [
        f"another project: -A {shlex.quote(other.account)}"
        f" ({show_su(other.available)} SU available)"
        for other in known.alternatives
        if present.detail is not Detail.PAID_NOW
    ]
    template = _case(present, known).remedy or present.reason.info.remedy
    values = {**values_of(present, known), "again": _again(refusal, present.available)}
    return (*advice, _format(template, (), values))


def _again(refusal: Refusal, available: int) -> str:
    """Return what the user does once the allocation can pay, with the credit of now."""
    if refusal.observed:
        return "nothing is to do"
    is_change = refusal.detail is Detail.LIMIT_CHANGED
    action = "change its time limit again" if is_change else "submit the job again"
    return f"{action}: {show_su(available)} SU are available now"


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
        too_early = refusal.start < known.nearest.terms.start
        return Detail.STARTED_TOO_EARLY if too_early else Detail.STARTED_TOO_LATE
    return Detail.NONE


def values_of(refusal: Refusal, known: RemedyFacts = NOTHING_KNOWN) -> Mapping[str, Any]:
    """Return the values that templates may name."""
    allocation, near = refusal.allocation, known.nearest
    facts = refusal.facts or {}
    values = {
        **msgspec.structs.asdict(refusal),
        "short": show_shortfall(refusal.requested, refusal.available),
        # An argument of a command has no commas: `parse_su` would not know their meaning.
        "missing": _whole_su(facts.get("missing_credit", refusal.shortfall)),
        "higher": _higher_cap(refusal),
        "most": show_su(max(0, refusal.available)),
        "most_typed": show_su(max(0, refusal.available), IN_SU),
        "payer": shlex.quote(str(known.account or refusal.project or "ACCOUNT")),
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
        values |= {"near": near.id, "near_start": near.terms.start, "near_end": near.terms.end}
    return values | dict(facts)


def _higher_cap(refusal: Refusal) -> str:
    """Return the least cap that would pay the job, in whole SU."""
    facts = refusal.facts or {}
    if "needed_cap" in facts:
        return _whole_su(facts["needed_cap"])
    return "AMOUNT" if "granted" not in facts else _whole_su(facts["granted"] + refusal.shortfall)


def _whole_su(minutes: int) -> str:
    return str(-(-minutes // MINUTES_IN_SU))
