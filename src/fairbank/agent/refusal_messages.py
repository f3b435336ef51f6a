"""Verdicts that the agent sends to slurmctld, with messages for the owner of the job."""

from __future__ import annotations

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


RUN = Verdict(action="run")


def refused(action: Action, result: ReportResult, account: str) -> Verdict:
    """Return the bank's refusal as a verdict carries it, with the account that it is about."""
    text = f"{account or 'no account'}: {result.text}"
    return Verdict(action=action, reason=result.reason, text=one_line(text))


def no_time_limit(action: Action) -> Verdict:
    """Return the refusal of a job without a finite limit, whose price is unknown."""
    text = "this job has no time limit, so its price is not known. Set one: -t HH:MM:SS"
    return Verdict(action=action, reason="No_time_limit", text=text)


def deferred(text: str, *, batch: bool) -> Verdict:
    """Return the refusal of a job that may start later; Slurm tries a batch job again."""
    retry = "the job is tried again by itself when it can" if batch else "try again later"
    return Verdict(action="hold", reason=BANK_DOWN, text=one_line(f"{text}; {retry}"))
