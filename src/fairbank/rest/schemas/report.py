"""Reports of clusters about runs of jobs: bodies, and their conversion to reports of the bank."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from msgspec import Meta, Raw

from fairbank.cluster.job import JobDetails, Run
from fairbank.cluster.run_report import LimitChanged, RunEnded, RunReport, RunStarted
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import FINAL_STATES, PATTERN, final_state
from fairbank.core.ids import JOB_ID_MAX, JOB_NAME_MAX
from fairbank.core.slurm_numbers import CPU_SECONDS_MAX, CPUS_MAX, NODES_MAX
from fairbank.core.time import Instant
from fairbank.core.tres import Counts, parse_counts, parse_job_tres
from fairbank.rest.schemas.requests import (
    Body,
    Comment,
    Epoch,
    Limit,
    Name,
    NameOrNone,
    Seconds,
    Tres,
    Uid,
    Word,
)

REPORTS_MAX = 1_000
JobName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=JOB_NAME_MAX,
        description="name of the job; one line of printable text",
    ),
]
Nodes = Annotated[
    int, Meta(ge=1, le=NODES_MAX, description="number of nodes; default: the nodes in tres")
]
CpuSeconds = Annotated[
    int,
    Meta(ge=0, le=CPU_SECONDS_MAX, description="CPU time in seconds, of all processors together"),
]
Billing = Annotated[
    Decimal,
    Meta(
        description="billing units, exact; as a number or as its text",
        extra_json_schema={"type": ["number", "string"]},
    ),
]
Key = Annotated[str, Meta(max_length=128, extra_json_schema={"pattern": "^[!-~]+$"})]
_CLOCK_STEP_SECONDS = 3_600
"""Tolerance between the times of a run. Schedulers measure its duration, and clocks get
corrected."""

_BILLING_MAX, _BILLING_PLACES = 10**12, 30


class ReportBody(Body, frozen=True, kw_only=True, tag_field="do"):
    """Fields of all reports of a run.

    The price comes from the first of `amount`, `billing` and `tres` that is present. The latest
    name, nodes, tres and time limit are kept, whatever sets the price.
    """

    cluster: Name
    job_id: Annotated[int, Meta(ge=1, le=JOB_ID_MAX)]
    submitted: Epoch
    restart: Annotated[int, Meta(ge=0, le=65_535)] = 0
    owner_uid: Uid
    account: Name
    partition: NameOrNone = ""
    resource: Word | None = None
    qos: Name | None = None
    start: Epoch
    billing: Billing | None = None
    tres: Tres | None = None
    amount: Limit | None = None
    name: JobName | None = None
    nodes: Nodes | None = None
    key: Key | None = None
    comment: Comment | None = None


class HoldReport(ReportBody, frozen=True, kw_only=True, tag="hold"):
    """A run is about to start, for at most `time_limit` seconds (at least 1)."""

    time_limit: Seconds


class AdjustReport(ReportBody, frozen=True, kw_only=True, tag="adjust"):
    """The time limit of a run is now `time_limit` seconds (at least 1)."""

    time_limit: Seconds


class CompleteReport(ReportBody, frozen=True, kw_only=True, tag="complete"):
    """A run ended after `elapsed` seconds, as the scheduler counts them, in the final Slurm state
    `state`.

    It costs nothing in a free state, and with 0 seconds unless `amount` is given. An end with more
    `cpu_seconds` than its processors could have had is accepted: the value is kept, usage counts
    processors x `elapsed`, and the response says so (`cpu_counted`).
    """

    time_limit: Seconds = 0
    end: Epoch
    elapsed: Seconds
    state: Annotated[
        str, Meta(max_length=48, extra_json_schema={"pattern": PATTERN}, examples=["COMPLETED"])
    ]
    exit_code: Annotated[int, Meta(ge=0, le=255)] | None = None
    exit_signal: Annotated[int, Meta(ge=0, le=127, description="signal that ended it")] | None = (
        None
    )
    cpu_seconds: CpuSeconds | None = None


AnyReport = HoldReport | AdjustReport | CompleteReport


class ReportBatch(Body, frozen=True, kw_only=True):
    """Reports of runs, applied in order in one transaction.

    Each report is parsed separately: an invalid one does not affect the others.
    """

    reports: Annotated[list[Raw], Meta(min_length=1, max_length=REPORTS_MAX)]


def run_report(body: AnyReport) -> RunReport:
    """Convert a body to a report of the bank.

    Raises:
        InvalidInput: a name, time or number is invalid; `field` names it.
    """
    facts = _facts(body)
    _check_times(body)
    match body:
        case HoldReport():
            return RunStarted(**facts)
        case AdjustReport():
            return LimitChanged(**facts)
        case CompleteReport():
            return RunEnded(
                **facts,
                ended=Instant(body.end),
                outcome=_final_state(body.state),
                elapsed_seconds=body.elapsed,
            )


def _facts(body: AnyReport) -> dict[str, Any]:
    """Return the fields of all reports."""
    counts = None if body.tres is None else _tres_counts(body, body.tres)
    qos = None if body.qos is None else ids.name(body.qos, field="qos")
    return {
        "run": Run(ids.cluster(body.cluster), body.job_id, body.submitted, body.restart),
        "owner": body.owner_uid,
        "account": ids.name(body.account, field="account"),
        "partition": body.partition and ids.name(body.partition, field="partition"),
        "resource": body.resource,
        "qos": qos,
        "start": body.start,
        "limit_seconds": body.time_limit,
        "amount": body.amount,
        "billing": None if body.billing is None else exact_fraction(body.billing),
        "counts": counts,
        "key": None if body.key is None else ids.key(body.key),
        "comment": None if body.comment is None else ids.comment(body.comment),
        "job_details": _job_details(body, qos, counts),
    }


def _check_times(body: AnyReport) -> None:
    """Check that a run starts after its submission and ends after its start."""
    if isinstance(body, CompleteReport):  # an end is never refused for its submission time
        _check_end(body)
    elif body.submitted > body.start + _CLOCK_STEP_SECONDS:
        raise InvalidInput(
            f"the run starts {body.submitted - body.start} s before it was submitted",
            field="submitted",
            remedy=(
                "send submitted and start in seconds since 1970, in that order; "
                f"up to {_CLOCK_STEP_SECONDS} s are allowed for clock corrections"
            ),
        )


def _check_end(body: CompleteReport) -> None:
    if body.end < body.start:
        raise InvalidInput(
            "the run ends before it starts",
            field="end",
            remedy="send start and end in seconds since 1970, in that order",
        )
    if body.elapsed > body.end - body.start + _CLOCK_STEP_SECONDS:
        raise InvalidInput(
            f"elapsed is {body.elapsed} s, but start to end is only {body.end - body.start} s",
            field="elapsed",
            remedy=f"send the run time in seconds: at most end - start + {_CLOCK_STEP_SECONDS}",
        )


def _tres_counts(body: AnyReport, tres: str) -> Counts:
    # An end is never refused for its TRES: the run used them already.
    if isinstance(body, CompleteReport):
        return parse_counts(tres)
    return parse_job_tres(tres, prices=body.amount is None and body.billing is None)


def _job_details(body: AnyReport, qos: str | None, counts: Counts | None) -> JobDetails | None:
    """Return the job details, which do not affect the price."""
    status = cpu_seconds = None
    if isinstance(body, CompleteReport):
        cpu_seconds = body.cpu_seconds
        if body.exit_code is not None or body.exit_signal is not None:
            status = (body.exit_code or 0) * 256 + (body.exit_signal or 0)
    return JobDetails(
        name=None if body.name is None else ids.job_name(body.name),
        qos=qos,
        nodes=body.nodes or _whole_count(counts, "node", NODES_MAX),
        cpus=_whole_count(counts, "cpu", CPUS_MAX),
        tres=None if body.tres is None else ",".join(part.strip() for part in body.tres.split(",")),
        limit_seconds=body.time_limit or None,
        exit_status=status,
        cpu_seconds=cpu_seconds,
    )


def _whole_count(counts: Counts | None, tres: str, most: int) -> int | None:
    """Return the count of a TRES if it is a whole number in a plausible range."""
    count = counts.get(tres) if counts else None
    return (
        int(count) if count is not None and count.denominator == 1 and 1 <= count <= most else None
    )


def _final_state(state: str) -> str:
    # A state that is not final would close a run that continues.
    final = final_state(state)
    if final is None:
        raise InvalidInput(
            f"{state[:64]!r} is not a final job state",
            field="state",
            remedy=f"one of {', '.join(FINAL_STATES)}; report the end of a run after it has ended",
        )
    return final


def exact_fraction(number: Decimal, *, field: str = "billing") -> Fraction:
    """Convert a decimal exactly.

    Raises:
        InvalidInput: it is not finite or has too many digits (1e999999 would fill the memory).
    """
    exponent = number.as_tuple().exponent
    if (
        not isinstance(exponent, int)
        or not -_BILLING_PLACES <= exponent <= _BILLING_PLACES
        or not 0 <= number <= _BILLING_MAX
    ):
        raise InvalidInput(
            "this is not a price",
            field=field,
            remedy=f"a number from 0 to {_BILLING_MAX}, at most {_BILLING_PLACES} decimals",
        )
    return Fraction(number)
