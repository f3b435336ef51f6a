"""Why a job waits at Slurm: its answers as a snapshot, what the scheduler makes of that, and the explanation as a row (cli.slurm_queue)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from fairbank.cli.slurm_queue import Asked, Quote
from fairbank.compose.beside_queue import awaited, funds_of, past_of
from fairbank.compose.ranges import without_range
from fairbank.core.errors import Conflict, Unknown
from fairbank.core.time import iso
from fairbank.report.explanation import JobExplanation
from fairbank.scheduling.explain.answer import Explanation
from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.offline import Said
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.queries import QUESTIONS, read_answers
from fairbank.slurm.queue_snapshot.snapshot import Live, live

OF_QUEUE = f"the folder has {', '.join(f'{name}.txt' for name in QUESTIONS)}; docs/howto/explain-a-waiting-job.md says what to ask"


class Explained(NamedTuple):
    cluster: str | None
    row: JobExplanation
    unreadable: Sequence[str]
    warnings: Sequence[str]


class SlurmQueue:
    """The Slurm of this host, or what one said before."""

    def why(
        self, asked: Asked, *, quote: Quote, progress: Callable[[str, int, int], None] | None
    ) -> Explained:
        answers = _answers(asked.folder)
        said, unread = read_answers(answers)
        there = live(said)
        found = _wanted(asked.job, there)
        plan = run_passes(there.snapshot, there.parameters, there.now)
        if any(start.job.number == found.number for start in plan.starts):
            what = f"job {asked.job} can start: nothing that is known here keeps it waiting"
            raise Conflict(
                what,
                field="JOBID",
                remedy="slurmctld starts it with its next pass; ask again if it still waits in a minute",
            )
        notes, cluster, told = (
            list(there.notes),
            said.config.get("ClusterName") or None,
            there.told[found.number],
        )
        history = past_of(found, asked.folder, there.now, notes) if asked.likely else None
        explained = explain_on_nodes(
            there.snapshot,
            there.parameters,
            found.number,
            there.now,
            plan=plan,
            advice=asked.advice,
            history=history,
            funds=funds_of(found, told, cluster, quote, notes),
            awaiting=awaited(found, there, answers["jobs"]),
            tick=progress and partial(progress, "rehearsals"),
        )
        return Explained(
            cluster,
            _row(found, told, explained, there),
            unread,
            [*notes, *without_range(explained)],
        )


def _answers(folder: str | None) -> dict[str, str]:
    if folder:
        before = Said(folder, OF_QUEUE)
        return {name: before.answer(name) for name in QUESTIONS}
    slurm = SlurmCommands()
    return {name: slurm.answer(command) for name, command in QUESTIONS.items()}


def _wanted(job: str, there: Live) -> PendingJob:
    """The job of this name; of an array the task that is next."""
    waiting = list(there.snapshot.queue.jobs())
    named = [
        each
        for each in waiting
        if each.name == job or str(each.array) == job or str(each.number) == job
    ]
    if named:
        return min(named, key=lambda each: (each.name != job, each.task))
    for told in there.told.values():
        if not told.waits and job in (told.squeue_name, str(told.job_id)):
            since = "" if told.started is None else f" since {iso(told.started)}"
            nodes = ", ".join(name for given in told.given for name in given.nodes)
            what = f"job {job} does not wait: it is {told.state.lower()}{since}{f' on {nodes}' if nodes else ''}"
            raise Conflict(
                what, field="JOBID", remedy="ask for one that waits: squeue --states=PENDING"
            )
    remedy = (
        "give a job that waits, as squeue --states=PENDING has it; sacct knows those that are over"
    )
    raise Unknown(f"slurmctld has no job {job} that waits", field="JOBID", remedy=remedy)


def _row(job: PendingJob, told: SlurmJob, found: Explanation, there: Live) -> JobExplanation:
    names = {each.number: each.name for each in there.snapshot.queue.jobs()}
    facts = {
        "name": told.name,
        "user": job.user,
        "account": job.account,
        "qos": job.qos,
        "partitions": job.partitions,
        "nodes": job.wanted.nodes,
        "cpus": told.tres.get("cpu", job.wanted.cpus),
        "limit_seconds": job.limit,
    }
    return JobExplanation(
        job=job.name,
        facts=facts,
        submitted=job.submitted,
        as_of=there.now,
        why=found,
        ahead=[names[number] for number in found.ahead],
        reason=told.reason,
        told=told.expected,
    )
