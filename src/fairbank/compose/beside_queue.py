"""What an explanation has from elsewhere than the snapshot: what accounting knows of users, what the bank says, which jobs it waits for.
Where accounting or bank are silent, a note tells so, and the rest is explained without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairbank.cli.slurm_queue import Quote
from fairbank.core.errors import Trouble
from fairbank.scheduling.explain.dependencies import OpenDependencies
from fairbank.scheduling.explain.funds import CreditCheckInput
from fairbank.scheduling.explain.run_times import RunTimeHistory
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.offline import Said
from fairbank.slurm.parsers.ended_jobs import read_ended
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.dependencies import awaiting
from fairbank.slurm.queue_snapshot.run_times import DAYS, FILE, QUESTION, history_of, read_past
from fairbank.slurm.queue_snapshot.snapshot import Live, requests

PATIENCE_SECONDS = 10.0
"""So long accounting may take: whoever asks why a job waits does so at a terminal."""


def past_of(
    job: PendingJob, folder: str | None, now: int, notes: list[str]
) -> RunTimeHistory[str] | None:
    """What users' jobs of the last weeks took of their time limits; None where nobody tells. Of a job that is held nobody is asked: it has
    no range, whatever there is to draw from."""
    if job.held is not None:
        return RunTimeHistory()
    try:
        text = (
            Said(folder).answer(FILE)
            if folder
            else SlurmCommands(patience_seconds=PATIENCE_SECONDS).answer(QUESTION)
        )
    except Trouble as silent:
        notes.append(f"no likely start: {silent.message}")
        return None
    found = read_past(text, now)
    if found.unreadable:
        many = len(found.unreadable)
        notes.append(
            f"{many:,} {'line' if many == 1 else 'lines'} of accounting could not be read; the first: {found.unreadable[0]}"
        )
    if not found.rows:
        notes.append(
            f"no likely start: accounting has no job with a time limit that ended in the last {DAYS} days"
        )
        return None
    return history_of(found.rows)


def awaited(job: PendingJob, there: Live, answer: str) -> OpenDependencies:
    """The jobs that it depends on. `answer` is that about jobs, where those are found that are over and not forgotten yet."""
    numbers = {each.job for each in there.told[job.number].depends.items if each.job is not None}
    return awaiting(job, there.told, read_ended(answer, numbers))


def funds_of(
    job: PendingJob, told: SlurmJob, cluster: str | None, quote: Quote, notes: list[str]
) -> CreditCheckInput | None:
    """What the bank would hold for the job, and has; of several partitions the one for which it has least. None where no bank tells."""
    try:
        cards = [
            card for request in requests(job, told, cluster) if (card := quote(request)) is not None
        ]
    except Trouble as silent:
        notes.append(f"nothing is known of its funds: {silent.message}")
        return None
    return min(map(_funds, cards), key=lambda each: each.available - each.wanted, default=None)


def _funds(card: Mapping[str, Any]) -> CreditCheckInput:
    lets_through = bool(card["fits"]) and card["amount"] > card["available"]
    return CreditCheckInput(
        project=card["account"],
        resource=card["resource"],
        wanted=card["amount"],
        available=card["available"],
        observed=lets_through,
    )
