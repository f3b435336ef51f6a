"""Runs of jobs, refused jobs, and prices. Those are exact decimals or fractions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct

from fairbank.bank.efficiency import efficiency
from fairbank.bank.entry import Entry
from fairbank.bank.quote import Quote
from fairbank.bank.refusals import NOTHING_KNOWN, Refusal, RemedyFacts, remedies, sentence
from fairbank.bank.run import ReportedRun, RunEnd, RunRecord, RunState
from fairbank.cluster.job import NO_DETAILS, JobDetails, Run, join_status, split_status
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import iso, parse_instant
from fairbank.core.units import exact_decimal
from fairbank.rest.schemas.answers import Amounts
from fairbank.rest.schemas.envelope import convert_to, set_texts

if TYPE_CHECKING:
    from fairbank.service.quotes import QuotedJob

Status = Literal["executing", "completed"]


class JobRow(Amounts, frozen=True, kw_only=True):
    """A run.

    It ran for `project` and `account`. `allocation` pays, with SU of its `resource`; it may belong
    to a parent that shares it.
    `status` is HADM's word for the state. `set_by` is the entry that set the hold or closed it.
    `elapsed`, `time_limit` and `cpu_seconds` (of all processors together) are seconds. Processors
    were busy for `cpu_seconds` of `cpu_given`, if both are known; `wasted` are the SU-minutes
    charged for the idle rest. `occupied` is what the ended run had of the capacity, at the price of
    its partition without the factor of its QOS; null: its cost, `charged` and `written_off`, or
    not known if it cost nothing. Measured use has no `owner_uid`. Unknown values are null, such as
    `cpus` and `tres` of an ended run whose processors or GPUs changed.
    """

    schema_name: ClassVar[str] = "fairbank.job/1"
    id: int
    cluster: str
    job_id: int
    submitted: str
    restart: int
    project: int
    account: str
    allocation: int
    resource: str
    owner_uid: int | None
    partition: str
    state: Literal["held", "charged", "released", "lapsed"]
    status: Status
    held: int
    charged: int
    refunded: int
    written_off: int
    start: str
    until: str
    ended: str | None
    outcome: str | None
    elapsed: int | None
    set_by: int
    name: str | None
    qos: str | None
    nodes: int | None
    cpus: int | None
    tres: str | None
    time_limit: int | None
    exit_code: int | None
    exit_signal: int | None
    cpu_seconds: int | None
    cpu_given: int | None
    wasted: int | None
    occupied: int | None


def job_row(record: RunRecord, account: str, resource: str) -> JobRow:
    """Return a run as a row of the API.

    Args:
        record: the run.
        account: the account that it ran for.
        resource: resource of its allocation.
    """
    reported, end = record.reported, record.end
    details = reported.job_details or NO_DETAILS
    exit_code, exit_signal = split_status(details.exit_status)
    used = efficiency(record)
    return convert_to(
        JobRow,
        record,
        cluster=reported.run.cluster,
        job_id=reported.run.job_id,
        submitted=iso(reported.run.submitted),
        restart=reported.run.restart,
        project=reported.project,
        account=account,
        resource=resource,
        owner_uid=record.user,
        partition=reported.partition,
        state=record.state.value,
        status=hadm_status(record),
        start=iso(reported.start),
        until=iso(reported.until),
        ended=None if end is None else iso(end.ended),
        outcome=None if end is None else end.outcome,
        elapsed=None if end is None else end.elapsed_seconds,
        name=details.name,
        qos=details.qos,
        nodes=details.nodes,
        cpus=details.cpus or None,
        tres=details.tres or None,
        time_limit=details.limit_seconds,
        exit_code=exit_code,
        exit_signal=exit_signal,
        cpu_seconds=details.cpu_seconds,
        cpu_given=used.given or None,
        wasted=used.wasted if used.given else None,
        occupied=details.occupied,
    )


def run_record(row: JobRow) -> RunRecord:
    """Return the run of a row, as `job_row` had it. Raises InvalidInput for what is no time."""
    details = convert_to(
        JobDetails,
        row,
        limit_seconds=row.time_limit,
        exit_status=join_status(row.exit_code, row.exit_signal),
    )
    reported = ReportedRun(
        run=Run(
            row.cluster, row.job_id, parse_instant(row.submitted, field="submitted"), row.restart
        ),
        project=row.project,
        partition=row.partition,
        start=parse_instant(row.start, field="start"),
        until=parse_instant(row.until, field="until"),
        job_details=None if details == NO_DETAILS else details,
    )
    end = None
    if row.outcome is not None and row.elapsed is not None and row.ended is not None:
        end = RunEnd(row.outcome, row.elapsed, parse_instant(row.ended, field="ended"))
    owner = OVERFLOW_UID if row.owner_uid is None else row.owner_uid
    return convert_to(
        RunRecord, row, reported=reported, owner=owner, state=RunState(row.state), end=end
    )


def hadm_status(record: RunRecord) -> Status:
    """Return HADM's word for the state of a run."""
    return "executing" if record.state.value == "held" else "completed"


class FailureRow(Amounts, frozen=True, kw_only=True):
    """A refused job, with the amounts and remedies.

    HADM's schema 6: activity_id is `id`, allocation_id `allocation`, amount `requested`. `comments`
    are the job's, otherwise the reason in words. `available` and `shortfall` are null unless the
    reason is missing credit (INSUFFICIENT_CREDIT, CAPPED, NO_ALLOCATION, FROZEN): the bank did not
    look them up. Then `requested` is null too, unless the job had an amount: the cost of a run
    without a hold is kept. `later_state` is the state of the job's first run of the same user that
    was accepted since, such as after a deposit, if credit was missing; or of the run whose new time
    limit was refused, if its hold was changed or closed since. Then there are no `remedies`, unless
    the bank only observes.
    """

    schema_name: ClassVar[str] = "fairbank.failure/1"
    id: int
    at: str
    allocation: int | None
    project: int | None
    account: str | None
    resource: str | None
    owner_uid: int | None
    cluster: str | None
    job_id: int | None
    run: str | None
    reason: str
    detail: str
    comments: str
    requested: int | None
    available: int | None
    shortfall: int | None
    remedies: list[str]
    later_state: Literal["held", "charged", "released", "lapsed"] | None = None


def failure_row(
    entry: Entry,
    refusal: Refusal,
    account: str | None,
    known: RemedyFacts = NOTHING_KNOWN,
    later: RunState | None = None,
) -> FailureRow:
    """Return a refusal with its message, amounts and remedies.

    Args:
        entry: the journal entry of the refusal.
        account: the account that the job named.
        known: facts that make the remedies more precise.
        later: state of the job's run if it was accepted since, so that nothing is to do.
    """
    cluster, job_id = refused_job(refusal)
    return convert_to(
        FailureRow,
        refusal,
        id=entry.id,
        at=iso(entry.at),
        project=refusal.project or None,
        account=account,
        owner_uid=refusal.owner,
        cluster=cluster,
        job_id=job_id,
        reason=refusal.reason.name,
        detail=sentence(refusal, known),
        comments=entry.comment if entry.comment is not None else refusal.reason.info.message,
        **refusal.figures._asdict(),
        remedies=[] if later and not refusal.observed else list(remedies(refusal, known)),
        later_state=None if later is None else later.value,
    )


def refused_job(refusal: Refusal) -> tuple[str | None, int | None]:
    """Return cluster and job id of the refused run; (None, None) if the request had no run."""
    return (None, None) if refusal.run is None else Run.parse(refusal.run)[:2]


class QuoteLine(Struct, frozen=True, kw_only=True):
    """One TRES: count x weight = weighted. `counts` if this line is part of the price."""

    what: str
    count: str
    weight: str
    weighted: str
    counts: bool


class PartitionQuote(Amounts, frozen=True, kw_only=True):
    """The price of a job in one of its partitions, as in the whole quote.

    `tres` is what the job gets there, with whole nodes and default memory.
    """

    partition: str
    resource: str
    tres: str
    lines: list[QuoteLine]
    billing: str
    amount: int
    total: int
    allocation: int | None
    available: int
    fits: bool
    longest_seconds: int


class CheaperChange(Amounts, frozen=True, kw_only=True):
    """Change of one option of a job: its new value, and the price `total` of all tasks then.

    In `nodes` each node keeps its tasks, CPUs, GPUs and memory. `mem` is the memory of each node
    with which another TRES sets the price; nothing is known of what the job needs.
    """

    change: Literal["time_limit", "nodes", "partition", "qos", "mem"]
    value: str
    total: int


class JobQuote(PartitionQuote, frozen=True, kw_only=True):
    """A price and its calculation: amount = billing x factor x seconds / 60, rounded up once.

    `amount` is the price of one task, `total` that of all `tasks` of an array; `after` and `fits`
    are about the total. `longest_seconds` is the longest time limit that the credit allows. `fits`
    is also true if a bank that only observes lets the job through without credit. `notes` say so,
    and name what the price leaves out. `reason`, `detail` and `remedies` are those of the refusal
    that the job would get now; null and empty if the credit can be used.

    A short-term allocation of the project decides on partition and `reservation`. A job in several
    `partitions`, listed by resource from the cheapest to the dearest, must be
    paid in each: the quote is of the one in which the job fits least, or costs most. The bank holds
    and charges for the one where it starts. `cheaper` are changes that cost less: a partition of
    these, and, for a job that is refused for its price, what would fit.
    """

    schema_name: ClassVar[str] = "fairbank.quote/1"
    account: str
    cluster: str
    reservation: str | None
    factor: str
    seconds: int
    tasks: int
    after: int
    reason: str | None
    detail: str | None
    remedies: list[str]
    notes: list[str]
    partitions: list[PartitionQuote]
    cheaper: list[CheaperChange]


def job_quote(quoted: QuotedJob, known: RemedyFacts, account: str, cluster: str) -> JobQuote:
    """Return a quote with its lines.

    Args:
        quoted: prices, and what the bank would answer to the job now.
        known: facts that make the remedies more precise.
        account: account that would pay.
        cluster: cluster of the job.
    """
    quote, refusal = quoted.quote, quoted.refusal
    partitions = [_partition_quote(offer) for offer in quoted.partitions]
    cheaper = [CheaperChange(**change._asdict()) for change in quoted.cheaper]
    set_texts(*partitions, *cheaper)
    own = next(partition for partition in partitions if partition.partition == quote.bill.partition)
    return convert_to(
        JobQuote,
        own,
        account=account,
        cluster=cluster,
        reservation=quoted.reservation,
        factor=exact_decimal(quote.bill.factor),
        seconds=quote.bill.seconds,
        tasks=quote.tasks,
        after=quote.after,
        reason=None if refusal is None else refusal.reason.name,
        detail=None if refusal is None else sentence(refusal, known),
        remedies=[] if refusal is None else list(remedies(refusal, known)),
        notes=list(quoted.notes),
        partitions=partitions,
        cheaper=cheaper,
    )


def _partition_quote(quote: Quote) -> PartitionQuote:
    bill = quote.bill
    return PartitionQuote(
        partition=bill.partition,
        resource=bill.resource,
        tres=",".join(
            f"{name}={exact_decimal(count)}{'M' if name == 'mem' else ''}"
            for name, count in bill.counts.items()
        ),
        lines=[
            QuoteLine(
                what=line.what,
                count=exact_decimal(line.count),
                weight=exact_decimal(line.weight),
                weighted=exact_decimal(line.weighted),
                counts=line.sets_price,
            )
            for line in bill.lines
        ],
        billing=exact_decimal(bill.billing),
        amount=bill.amount,
        total=quote.total,
        allocation=quote.allocation,
        available=quote.available,
        fits=quote.fits,
        longest_seconds=quote.longest_seconds,
    )
