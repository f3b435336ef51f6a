"""Refusal messages that the agent sends to slurmctld for the owner of a job."""

from __future__ import annotations

import msgspec

from fairbank.agent.protocol.codec import one_line
from fairbank.agent.protocol.messages import Action, Verdict
from fairbank.agent.reports.results import ReportResult

BANK_DOWN = "Fairbank_does_not_answer"
"""Reason of jobs that plugins/prep releases by itself when it connects to an agent."""


class PrologRefusal(msgspec.Struct, frozen=True):
    """Refusal of a prolog request: the parts of its verdict."""

    action: Action
    reason: str
    text: str


_RETRY = {True: "the job is tried again by itself when it can", False: "try again later"}


def verdict(number: int, refusal: PrologRefusal | None) -> Verdict:
    """Return the verdict on the request with this number: the refusal, or run if there is none."""
    if refusal is None:
        return Verdict(number=number, action="run")
    return Verdict(number=number, action=refusal.action, reason=refusal.reason, text=refusal.text)


def refused(action: Action, result: ReportResult, account: str) -> PrologRefusal:
    """Return the bank's refusal as a verdict carries it, with the account that it is about."""
    return PrologRefusal(
        action, result.reason, one_line(f"{account or 'no account'}: {result.text}")
    )


def no_time_limit(action: Action) -> PrologRefusal:
    """Return the refusal of a job without a finite limit, whose price is unknown."""
    return PrologRefusal(
        action,
        "No_time_limit",
        "this job has no time limit, so its price is not known. Set one: -t HH:MM:SS",
    )


def bank_down(*, batch: bool) -> PrologRefusal:
    """Return the refusal while the bank is down, where the partition waits for it."""
    return _deferred("the allocation bank cannot be reached just now", batch=batch)


def never_started(*, batch: bool) -> PrologRefusal:
    """Return the refusal of a run that is closed, so that its job must come as another run."""
    return _deferred("this start of the job was given up before", batch=batch)


def beyond_known_credit(account: str, *, batch: bool) -> PrologRefusal:
    """Return the refusal while the bank is down and the credit that was last known is too small."""
    return _deferred(
        f"the allocation bank cannot be reached just now, and {account} had too little credit left",
        batch=batch,
    )


def not_understood(*, batch: bool) -> PrologRefusal:
    """Return the refusal of a request that cannot be decoded, so the bank cannot be asked."""
    return _deferred(
        "Fairbank's plug-in and agent do not understand each other; tell your operators",
        batch=batch,
    )


def _deferred(text: str, *, batch: bool) -> PrologRefusal:
    return PrologRefusal("hold", BANK_DOWN, one_line(f"{text}; {_RETRY[batch]}"))
