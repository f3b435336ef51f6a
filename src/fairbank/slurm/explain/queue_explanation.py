"""Explanation why a job waits at Slurm, from the queue of this host or a directory of earlier
output.

The scheduler's model explains the job. Accounting gives the real run times of the users' jobs, and
the bank the price of the job. If either does not answer, a note says so and the rest is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import Conflict, FairbankError, InvalidInput, NotFound
from fairbank.core.units import counted
from fairbank.report.explanation import JobExplanation
from fairbank.scheduling.explain.answer import Explanation
from fairbank.scheduling.explain.checks import JobCredit
from fairbank.scheduling.explain.explanation import ANY_CHANGE, explain_on_nodes
from fairbank.scheduling.explain.job_changes import AllowedChanges
from fairbank.scheduling.explain.run_times import RunTimeHistory
from fairbank.scheduling.explain.start_range import RunProgress, SimulatedRuns, typical_starts
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.slurm.commands import TIMEOUT_SECONDS, output_of
from fairbank.slurm.explain.allowed_changes import (
    QOS_FILE,
    SiteChanges,
    qos_command,
    qos_priorities,
    read_policy,
)
from fairbank.slurm.explain.job_credit import QuoteRequest, job_credit
from fairbank.slurm.explain.job_facts import job_facts
from fairbank.slurm.explain.queue_input import read_queue
from fairbank.slurm.explain.waiting_job import find_pending, not_waiting
from fairbank.slurm.output import cluster_missing
from fairbank.slurm.parsers.sacctmgr import ASSOCIATION_QOS
from fairbank.slurm.queue_snapshot.answers import QueueAnswers
from fairbank.slurm.queue_snapshot.run_times import (
    ACCOUNTING_TIMEOUT_SECONDS,
    BRIEF_TIMEOUT_SECONDS,
    COMMAND,
    DAYS,
    FILE_NAME,
    read_history,
    run_time_history,
)
from fairbank.slurm.queue_snapshot.settings import usage_thresholds
from fairbank.slurm.queue_snapshot.snapshot import LiveQueue, build_queue


class QueueExplanation(NamedTuple):
    """Explanation of one job, lines that could not be read, and notes."""

    cluster: str | None
    row: JobExplanation
    unreadable: Sequence[UnreadableLine]
    notes: Sequence[str]


class LikelyStarts(NamedTuple):
    """Likely starts of jobs by their names in squeue (of an array, its next task), lines that could
    not be read, and notes.
    """

    by_name: Mapping[str, int]
    unreadable: Sequence[UnreadableLine]
    notes: Sequence[str]


def explain(
    job_id: str,
    directory: str | None,
    *,
    advice: bool,
    likely: bool,
    quote: QuoteRequest | None,
    progress: Callable[[str, int, int], None] | None,
) -> QueueExplanation:
    """Explain why a job waits.

    Args:
        job_id: number, or array and task, as squeue prints it.
        directory: directory with Slurm's earlier output; None to run Slurm's commands.
        advice: look for changes that would start the job sooner.
        likely: draw a range for the start from what accounting knows of users.
        quote: asks the bank for the price of the job; None: there is no bank.
        progress: called with the stage, and how much of how much is done.

    Raises:
        NotFound: a file of the directory is missing.
        NotListed: there is no such job.
        NotPending: the job does not wait.
        Conflict: the job can start now.
        Unavailable: Slurm does not answer.
    """
    texts, snapshot, unreadable = read_queue(job_id, directory)
    queue = build_queue(snapshot)
    cluster = snapshot.config.get("ClusterName") or None
    job, notes = find_pending(job_id, queue), list(queue.notes)
    if job is None:
        raise not_waiting(job_id, queue, cluster, unreadable, texts["jobs"])
    plan = run_passes(queue.snapshot, queue.parameters, queue.now)
    credit = _credit(job, queue, cluster, directory, quote, notes)
    try:
        facts = job_facts(job, queue, plan, credit, texts["jobs"])
    except Conflict as error:
        raise _with_unreadable(error, unreadable) from error
    allowed, runs = None, None
    if advice and facts.stated is None:
        # Without a price here the bank has none elsewhere, or would have to be awaited again.
        price = None if facts.credit is None else quote
        allowed = _allowed_changes(job, queue, snapshot, directory, price, notes)
    if likely and (facts.stated is None or facts.stated.is_simulated):
        tick = progress and partial(progress, "simulated runs")
        runs = _simulated_runs(job, queue, directory, notes, tick)
    where = (queue.snapshot, queue.parameters, job.number, queue.now)
    why = explain_on_nodes(*where, plan=plan, facts=facts, runs=runs, allowed=allowed)
    return QueueExplanation(cluster, _row(job, why, queue), unreadable, notes)


def _simulated_runs(
    job: PendingJob,
    queue: LiveQueue,
    directory: str | None,
    notes: list[str],
    tick: RunProgress | None,
) -> SimulatedRuns | None:
    """Return the runs for the likely start of a job, which is that of `likely_starts`; None, with a
    note, without run times.
    """
    if job.held is not None:  # it has no range of starts, so accounting is not asked
        return SimulatedRuns(RunTimeHistory())
    history = _run_times(directory, queue.now, notes)
    if history is None:
        return None
    typical = typical_starts(queue.snapshot, queue.parameters, history, queue.now)
    return SimulatedRuns(history, tick=tick, typical=typical.get(job.number))


def likely_starts(directory: str | None, most: int | None = None) -> LikelyStarts | None:
    """Return the likely starts of all waiting jobs, in one simulated run; empty without run times,
    None if more jobs wait than `most`.

    Args:
        directory: directory with Slurm's earlier output; None to run Slurm's commands.
        most: maximum number of waiting jobs, for starts that were not requested: each command has
            little time to answer. None: no maximum.

    Raises:
        Unavailable: Slurm does not answer.
    """
    is_brief = most is not None
    _, snapshot, unreadable = read_queue(
        "", directory, BRIEF_TIMEOUT_SECONDS if is_brief else TIMEOUT_SECONDS
    )
    # Of an array squeue's line, which is cut, does not tell how many tasks wait.
    waiting = sum(max(len(job.tasks), 1) for job in snapshot.jobs if job.is_pending)
    if most is not None and waiting > most:
        return None
    queue = build_queue(snapshot)
    notes, starts = list(queue.notes), dict[str, int]()
    timeout = BRIEF_TIMEOUT_SECONDS if is_brief else ACCOUNTING_TIMEOUT_SECONDS
    history = _run_times(directory, queue.now, notes, timeout)
    if history is not None:
        typical = typical_starts(queue.snapshot, queue.parameters, history, queue.now)
        for number, at in typical.items():
            name = queue.slurm_jobs[number].squeue_name
            starts[name] = min(at, starts.get(name, at))
    return LikelyStarts(starts, unreadable, notes)


def _run_times(
    directory: str | None,
    now: int,
    notes: list[str],
    timeout_seconds: float = ACCOUNTING_TIMEOUT_SECONDS,
) -> RunTimeHistory[str] | None:
    """Return what the users' jobs of the last weeks used of their time limits.

    None, with a note, if accounting does not answer or knows no such job.
    """
    try:
        text = output_of(directory, timeout_seconds).text(FILE_NAME, *COMMAND)
    except FairbankError as error:
        notes.append(f"no likely start: {error.message}")
        return None
    past = read_history(text, now)
    if past.unreadable:
        notes.append(_unreadable_lines("of accounting", past.unreadable))
    if not past.rows:
        notes.append(
            "no likely start: accounting has no job with a time limit that ended "
            f"in the last {DAYS} days"
        )
        return None
    return run_time_history(past.rows)


def _allowed_changes(
    job: PendingJob,
    queue: LiveQueue,
    snapshot: QueueAnswers,
    directory: str | None,
    quote: QuoteRequest | None,
    notes: list[str],
) -> AllowedChanges:
    """Return the changes of the job that the site allows, with a note on what could not be read."""
    if job.held is not None:
        return ANY_CHANGE  # none is searched
    cluster = snapshot.config.get("ClusterName") or None
    try:
        policy = read_policy(snapshot.config, directory)
    except InvalidInput as error:
        policy = None
        notes.append(f"the submission policy is not used: {error.message}; {error.remedy}")
    try:
        priorities = _qos_priorities(job, snapshot, directory, cluster, notes)
    except FairbankError as error:
        priorities = {}
        if directory is None or not isinstance(error, NotFound):  # a directory may lack the file
            notes.append(f"no other QOS is tried: {error.message}")
    return SiteChanges(
        queue.slurm_jobs[job.number],
        cluster,
        queue.now,
        rules=queue.snapshot.machine.cluster.rules,
        policy=policy,
        quote=quote,
        qos_priorities=priorities,
        qos_flags={qos.name: qos.flags for qos in snapshot.qos},
        thresholds=usage_thresholds(snapshot.qos),
        notes=notes,
    )


def _qos_priorities(
    job: PendingJob,
    snapshot: QueueAnswers,
    directory: str | None,
    cluster: str | None,
    notes: list[str],
) -> dict[str, int]:
    """Return the priority of the job with each QOS that it may have. Raises FairbankError."""
    source = output_of(directory, ACCOUNTING_TIMEOUT_SECONDS)
    answer = ASSOCIATION_QOS.read(source.text(QOS_FILE, *qos_command(cluster, job.user)))
    if answer.unreadable:
        notes.append(_unreadable_lines("of associations", answer.unreadable))
    return qos_priorities(job, answer.rows, snapshot.qos, source.priority_settings())


def _unreadable_lines(where: str, lines: Sequence[object]) -> str:
    """Return a note on lines that could not be read."""
    return f"{counted(len(lines), 'line')} {where} could not be read; the first: {lines[0]}"


def _with_unreadable(error: Conflict, lines: Sequence[UnreadableLine]) -> Conflict:
    """Return the error that a job can start, with the lines that may have said otherwise."""
    if not lines:
        return error
    text = f"{error.message}; {_unreadable_lines('of Slurm', lines)}"
    return Conflict(text, field=error.field, remedy=error.remedy)


def _credit(
    job: PendingJob,
    queue: LiveQueue,
    cluster: str | None,
    directory: str | None,
    quote: QuoteRequest | None,
    notes: list[str],
) -> JobCredit | None:
    """Return the credit of the job; None without a bank, or with a note if it cannot be known."""
    if quote is None:
        return None
    rules = queue.snapshot.machine.cluster.rules
    try:
        if cluster is None:
            raise cluster_missing(directory)
        return job_credit(job, queue.slurm_jobs[job.number], cluster, rules, quote)
    except FairbankError as error:
        remedy = f"; {error.remedy}" if error.remedy else ""
        notes.append(f"nothing is known of its credit: {error.message}{remedy}")
        return None


def _row(job: PendingJob, why: Explanation, queue: LiveQueue) -> JobExplanation:
    slurm_job = queue.slurm_jobs[job.number]
    names = {other.number: other.name for other in queue.snapshot.queue.jobs()}
    facts = {
        "name": slurm_job.name,
        "user": job.user,
        "account": job.account,
        "qos": job.qos,
        "partitions": job.partitions,
        "nodes": job.wanted.nodes,
        "cpus": slurm_job.tres.get("cpu", job.wanted.cpus),
        "limit_seconds": job.limit,
    }
    return JobExplanation(
        job=job.name,
        facts=facts,
        submitted=job.submitted,
        as_of=queue.now,
        why=why,
        ahead=[names[number] for number in why.ahead],
        reason=slurm_job.reason,
        # That of a held job is only the time from which it might start.
        expected_start=slurm_job.expected if slurm_job.priority else None,
    )
