"""Credit of a waiting job: what the bank would answer at its start, and why the bank holds it.

The plug-in holds a job that the bank refused, and writes the refusal into its AdminComment. What
the bank says now comes from a quote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fairbank.agent.outage_policy import DEFERRED_REASON
from fairbank.agent.reports.report import BANK_REASONS
from fairbank.bank.quote import decision_order
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.scheduling.explain.answer import BankRefusal
from fairbank.scheduling.explain.checks import JobCredit
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.parsers.squeue import COMMENT_PREFIX, REASONS
from fairbank.slurm.queue_snapshot.jobs import is_held_by_bank

QuoteRequest = Callable[[Mapping[str, object]], Mapping[str, Any]]
"""Request to the bank for the price of a job."""

PartitionsByName = Mapping[str, PartitionRules]
"""Partitions, by name."""


def quote_requests(
    job: PendingJob, slurm_job: SlurmJob, cluster: str | None, rules: PartitionsByName
) -> Iterator[dict[str, object]]:
    """Yield the body of `POST /quote` for each partition in which the job may run.

    A job without a limit has the partition's default, else its maximum. A partition without either
    is left out: the hold would have no end. So is one without a maximum for a job that requests no
    limit (`--time=UNLIMITED`).

    Args:
        job: the job as the passes see it: TRES, limit in seconds, partitions and QOS.
        slurm_job: the same job as Slurm shows it: account and user.
        cluster: name of the cluster in the bank; None: the bank's only one.
        rules: the limits of the partitions, by name; a partition that is missing has none.
    """
    for partition in job.partitions:
        there = rules.get(partition, PartitionRules(name=partition))
        limit = job.limit or there.default_seconds or there.max_seconds
        if limit == UNLIMITED_SECONDS and there.max_seconds is None:
            limit = None
        if limit is None:
            continue
        yield {
            "account": slurm_job.account,
            "cluster": cluster,
            "partition": partition,
            "waiting": True,
            **_resources(job, is_exclusive=there.is_exclusive(job.wanted)),
            "time_limit": limit,
            "qos": job.qos or None,
            "owner_uid": slurm_job.uid,
        }


def _resources(job: PendingJob, *, is_exclusive: bool) -> dict[str, object]:
    """Return the TRES that the job requests, and whether it gets whole nodes."""
    by_cpu = job.wanted.memory_per_cpu if is_exclusive else None
    tres = ",".join(
        f"{name}={count}{'M' if name == 'mem' else ''}"
        for name, count in job.tres.items()
        if name != "mem" or by_cpu is None  # whole nodes have more CPUs, each with its memory
    )
    memory = {} if by_cpu is None else {"mem_per_cpu": f"{by_cpu}M"}
    return {"tres": tres, "exclusive": is_exclusive, **memory}


def _answer(request: Mapping[str, object], quote: QuoteRequest) -> Mapping[str, Any]:
    """Return the bank's answer. Raises FairbankError.

    A bank that does not know the size of the nodes may still refuse what the job requests.
    """
    try:
        return quote(request)
    except InvalidInput as error:
        if error.field != "exclusive":
            raise
        data = quote({**request, "exclusive": False})
        if data["fits"]:  # the whole nodes may cost more
            raise
        return data


def quotes(
    job: PendingJob,
    slurm_job: SlurmJob,
    cluster: str | None,
    rules: PartitionsByName,
    quote: QuoteRequest,
) -> Iterator[JobCredit]:
    """Yield the bank's answer for each partition in which the job may start with a limit. Those
    whose nodes cannot run the job are passed over, unless all of them are such.

    Raises FairbankError.

    Args:
        job: as of `quote_requests`.
        slurm_job: as of `quote_requests`.
        cluster: as of `quote_requests`.
        rules: as of `quote_requests`.
        quote: sends the body of a request to the bank and returns its `data`.
    """
    unfit, answers = None, 0
    for request in quote_requests(job, slurm_job, cluster, rules):
        try:
            data = _answer(request, quote)
        except InvalidInput as error:
            if error.field != "partition":
                raise
            unfit = error
            continue
        answers += 1
        yield JobCredit(
            project=data["account"],
            resource=data["resource"],
            requested=data["amount"],
            available=data["available"],
            accepted=bool(data["fits"]),
            reason=data["reason"],
            detail=data["detail"],
            remedies=tuple(data["remedies"]),
            longest_seconds=data["longest_seconds"],
        )
    if unfit is not None and not answers:
        raise unfit


def job_credit(
    job: PendingJob,
    slurm_job: SlurmJob,
    cluster: str | None,
    rules: PartitionsByName,
    quote: QuoteRequest,
) -> JobCredit:
    """Return what the bank would hold for the job and what is available (arguments: `quotes`).

    If the job names several partitions, the same one decides as in `fairbank quote`. Raises
    FairbankError; InvalidInput without a time limit, since the hold would have no end.
    """
    credit = min(
        quotes(job, slurm_job, cluster, rules, quote),
        key=lambda one: decision_order(one.is_enough, one.longest_seconds, one.requested),
        default=None,
    )
    if credit is None:
        raise InvalidInput(
            "its price cannot be known without a time limit, and neither the job nor partition"
            f" {','.join(job.partitions)} has one",
            field="time_limit",
            remedy=f"set one: scontrol update jobid={slurm_job.squeue_name} timelimit=HH:MM:SS",
        )
    return credit


def bank_refusal(slurm_job: SlurmJob, credit: JobCredit | None) -> BankRefusal | None:
    """Return the refusal of a job that the bank holds, or would refuse at its start; else None.

    A refusal of today replaces that of the last start, whose figures may have changed. That one is
    the text of the job's AdminComment, which has the remedies of that time.
    """
    refused_now = None if credit is None or credit.is_enough else credit
    word = slurm_job.reason if is_held_by_bank(slurm_job) else None
    if refused_now is not None:
        reason, detail, remedies = refused_now.reason, refused_now.detail, refused_now.remedies
    elif word is not None:
        reason, remedies = BANK_REASONS.get(word), ()
        detail = slurm_job.admin_comment.removeprefix(COMMENT_PREFIX)
    else:
        return None
    return BankRefusal(
        held_as=word,
        reason=reason,
        detail=detail or "the bank refuses this job",
        remedies=remedies,
        release=None if word is None else _release(word, _released_name(slurm_job), credit),
    )


def _released_name(slurm_job: SlurmJob) -> str:
    """Return the name for scontrol: the components of a heterogeneous job are released together."""
    return slurm_job.squeue_name if slurm_job.het_job is None else str(slurm_job.het_job)


_BY_STAFF = frozenset({"JobHeldAdmin", "JobHoldMaxRequeue"})
"""Reasons of holds that a user cannot release."""


def release_of(slurm_job: SlurmJob) -> str | None:
    """Return the command that releases a held job, and who may run it; None if it is not held, or
    held by the bank (`bank_refusal`).
    """
    if slurm_job.priority != 0 or is_held_by_bank(slurm_job):
        return None
    who = "an administrator" if slurm_job.reason in _BY_STAFF else "its owner, or an administrator"
    return f"scontrol release {_released_name(slurm_job)}, by {who}"


def _release(word: str, name: str, credit: JobCredit | None) -> str:
    """Return who releases a job that the bank holds, and with which command."""
    if word == DEFERRED_REASON:
        return "by the plug-in, as soon as the bank answers"
    is_payable = credit is not None and credit.is_enough
    when = "the bank would accept it now" if is_payable else "then"
    by_agent = ", or by the agent if its settings have when_paid = true" if word in REASONS else ""
    return f"{when}: by an operator with scontrol release {name}{by_agent}"
