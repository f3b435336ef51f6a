"""Refusal messages that the agent sends to slurmctld for the owner of a job."""

from __future__ import annotations

import msgspec

from fairbank.agent.protocol.codec import one_line
from fairbank.agent.protocol.messages import Action, Verdict
from fairbank.agent.reports.results import ReportResult

BANK_DOWN = "Fairbank_does_not_answer"
"""Reason of jobs that plugins/prep releases by itself when it connects to an agent."""

BANK_DOWN_TEXT = "the allocation bank cannot be reached now"
NEVER_STARTED_TEXT = "this start of the job was given up before"
UNREADABLE_TEXT = (
    "Fairbank's plug-in and agent do not understand each other; tell your administrators"
)


class PrologRefusal(msgspec.Struct, frozen=True):
    """Refusal of a prolog request: the parts of its verdict."""

    action: Action
    reason: str
    text: str


def verdict(number: int, refusal: PrologRefusal | None) -> Verdict:
    """Return the verdict on the request with this number: the refusal, or run if there is none."""
    if refusal is None:
        return Verdict(number=number, action="run")
    return Verdict(number=number, action=refusal.action, reason=refusal.reason, text=refusal.text)


def refused(action: Action, result: ReportResult, account: str) -> PrologRefusal:
    """Return the bank's refusal as a verdict carries it, with the account that it is about."""
    text = f"{account or 'no account'}: {result.text}"
    return PrologRefusal(action, result.reason, one_line(text))


def no_time_limit(action: Action) -> PrologRefusal:
    """Return the refusal of a job without a finite limit, whose price is unknown."""
    text = "this job has no time limit, so its price is not known. Set one: -t HH:MM:SS"
    return PrologRefusal(action, "No_time_limit", text)


def deferred(text: str, *, batch: bool) -> PrologRefusal:
    """Return the refusal of a job that may start later; a batch job is then tried again by itself."""
    retry = "the job is tried again by itself when it can" if batch else "try again later"
    return PrologRefusal("hold", BANK_DOWN, one_line(f"{text}; {retry}"))
