"""Reports of a cluster about a run: it starts, its time limit or resources changed, it ended.

The structs are the JSON bodies of `POST /job`, which clients encode and the bank reads, and the
reports that the bank turns into requests. Decoding checks types and bounds, `check_report` the
rest.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fairbank.cluster.fields import (
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
from fairbank.cluster.job import UNKNOWN_CPUS, UNKNOWN_TRES, JobDetails, Run, join_status
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import FINAL_STATES, PATTERN, final_state
from fairbank.core.ids import JOB_ID_MAX, JOB_NAME_MAX
from fairbank.core.slurm_numbers import CPU_SECONDS_MAX, CPUS_MAX, NODES_MAX
from fairbank.core.tres import Counts, gpu_count, parse_counts, parse_job_tres

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
CLOCK_STEP_SECONDS = 3_600
"""Tolerance between the times of a run. Schedulers measure its duration, and clocks get
corrected."""

_BILLING_MAX, _BILLING_PLACES = 10**12, 30


class RunPiece(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Part of a run before a change of its resources, priced by the first of `billing` and `tres`
    that is present.
    """

    seconds: Seconds
    billing: Billing | None = None
    tres: Tres | None = None


PIECES_MAX = 1_000
Pieces = Annotated[
    tuple[RunPiece, ...],
    Meta(
        max_length=PIECES_MAX,
        description="parts of a resized run before its last change, in their order",
    ),
]


class BaseReport(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="do",
):
    """Fields of all reports of a run.

    The price comes from the first of `amount`, `billing` and `tres` that is present. The latest
    name, nodes, tres and time limit are kept, whatever sets the price. Of a run whose resources
    changed, `billing` and `tres` are those since the last change, `pieces` those before.
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
    pieces: Pieces = ()
    name: JobName | None = None
    nodes: Nodes | None = None
    key: Key | None = None
    comment: Comment | None = None

    @property
    def run(self) -> Run:
        return Run(self.cluster, self.job_id, self.submitted, self.restart)


class HoldReport(BaseReport, frozen=True, kw_only=True, tag="hold"):
    """A run is about to start, for at most `time_limit` seconds (at least 1). One that has started
    may have been `suspended` for some seconds, which are no part of them.
    """

    time_limit: Seconds
    suspended: Seconds = 0


class OpenEndedHold(HoldReport, frozen=True, kw_only=True, tag="hold"):
    """A run is about to start. The amount is held for `time_limit` seconds at most, which is no
    time limit of the job.

    No request is decoded into it: only a pre-debit becomes one.
    """


class AdjustReport(BaseReport, frozen=True, kw_only=True, tag="adjust"):
    """The time limit of a run is now `time_limit` seconds (at least 1), or its resources have
    changed, or it was suspended: `suspended` are the seconds for which it has not run so far.
    """

    time_limit: Seconds
    suspended: Seconds = 0


class CompleteReport(BaseReport, frozen=True, kw_only=True, tag="complete"):
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


RunReport = HoldReport | AdjustReport | CompleteReport


class PredebitReport(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="do",
    tag="predebit",
):
    """HADM's pre-debit: a job is about to start and costs at most `amount`, or with the status
    `completed` it has ended and cost `amount`. `project` is the account, not the number of the
    project, and `do` may be left out.

    The bank takes the current time as the start and the end, and holds the amount for 30 days at
    most; it knows no time limit of the job. It finds the run by `job_id`: the newest one of the
    cluster, unless that has ended and another starts. `cluster` may be left out if the user reports
    for one cluster only. 65534, which stands for a user without a uid, is refused as `owner_uid`.
    """

    job_id: Annotated[int, Meta(ge=1, le=JOB_ID_MAX)]
    owner_uid: Uid
    amount: Limit
    resource: Word
    project: Name
    status: Literal["executing", "completed"] = "executing"
    cluster: Name | None = None


AnyReport = RunReport | PredebitReport
"""Bodies of `POST /job`."""

encode_report = msgspec.json.Encoder().encode
_packed = msgspec.msgpack.Encoder().encode


def fingerprint(report: RunReport) -> bytes:
    """Return 16 bytes that identify the content of a report. Key and comment are left out."""
    content = msgspec.structs.replace(report, key=None, comment=None)
    return hashlib.blake2b(_packed(content), digest_size=16).digest()


def check_report(report: RunReport) -> None:
    """Check the names, texts and times of a report.

    Raises:
        InvalidInput: one of them is invalid; `field` names it.
    """
    ids.cluster(report.cluster)
    for field, name in (
        ("qos", report.qos),
        ("account", report.account),
        ("partition", report.partition or None),
    ):
        if name is not None:
            ids.name(name, field=field)
    if report.key is not None:
        ids.key(report.key)
    if report.comment is not None:
        ids.comment(report.comment)
    if report.name is not None:
        ids.job_name(report.name)
    if isinstance(report, CompleteReport):  # an end is never refused for its submission time
        _check_end(report)
    elif report.submitted > report.start + CLOCK_STEP_SECONDS:
        raise InvalidInput(
            f"the run starts {report.submitted - report.start} s before it was submitted",
            field="submitted",
            remedy=(
                "send submitted and start in seconds since 1970, in that order; "
                f"up to {CLOCK_STEP_SECONDS} s are allowed for clock corrections"
            ),
        )


def _check_end(report: CompleteReport) -> None:
    if report.end < report.start:
        raise InvalidInput(
            "the run ends before it starts",
            field="end",
            remedy="send start and end in seconds since 1970, in that order",
        )
    span = report.end - report.start
    if report.elapsed > span + CLOCK_STEP_SECONDS:
        raise InvalidInput(
            f"elapsed is {report.elapsed} s, but start to end is only {span} s",
            field="elapsed",
            remedy=f"send the run time in seconds: at most end - start + {CLOCK_STEP_SECONDS}",
        )


def tres_counts(report: RunReport, piece: RunPiece | None = None) -> Counts | None:
    """Return the quantities of the TRES of a report, or of a piece. Raises InvalidInput."""
    priced = piece or report
    if priced.tres is None:
        return None
    # An end is never refused for its TRES: the run used them already.
    if isinstance(report, CompleteReport):
        return parse_counts(priced.tres)
    return parse_job_tres(priced.tres, prices=report.amount is None and priced.billing is None)


def job_details(report: RunReport, counts: Counts | None) -> JobDetails:
    """Return the job details, which do not affect the price.

    Args:
        report: about the run.
        counts: quantities of its TRES.
    """
    status = cpu_seconds = None
    if isinstance(report, CompleteReport):
        cpu_seconds = report.cpu_seconds
        status = join_status(report.exit_code, report.exit_signal)
    limit_seconds = None if isinstance(report, OpenEndedHold) else report.time_limit or None
    cpus, tres = _whole_count(counts, "cpu", CPUS_MAX), report.tres
    if isinstance(report, CompleteReport) and report.pieces:
        # Usage multiplies these by the whole time, so a size that changed must not remain.
        sizes = [tres_counts(report, piece) for piece in report.pieces]
        if any(size is None or size.get("cpu") != cpus for size in sizes):
            cpus = UNKNOWN_CPUS
        gpus = {gpu_count(piece.tres or "") for piece in report.pieces} | {gpu_count(tres or "")}
        if None in sizes or len(gpus) > 1:
            tres = UNKNOWN_TRES
    return JobDetails(
        name=report.name,
        qos=report.qos,
        nodes=report.nodes or _whole_count(counts, "node", NODES_MAX),
        cpus=cpus,
        tres=None if tres is None else ",".join(part.strip() for part in tres.split(",")),
        limit_seconds=limit_seconds,
        exit_status=status,
        cpu_seconds=cpu_seconds,
    )


def _whole_count(counts: Counts | None, tres: str, most: int) -> int | None:
    """Return the count of a TRES if it is a whole number in a plausible range."""
    count = counts.get(tres) if counts else None
    return (
        int(count) if count is not None and count.denominator == 1 and 1 <= count <= most else None
    )


def outcome_of(report: CompleteReport) -> str:
    """Return the final job state. Raises InvalidInput."""
    # A state that is not final would close a run that continues.
    final = final_state(report.state)
    if final is None:
        raise InvalidInput(
            f"{report.state[:64]!r} is not a final job state",
            field="state",
            remedy=f"one of {', '.join(FINAL_STATES)}; report the end of a run after it has ended",
        )
    return final


def billing_units(priced: RunReport | RunPiece) -> Fraction | None:
    """Return the reported billing units, exactly.

    Raises:
        InvalidInput: they are not finite or have too many digits (1e999999 would fill the memory).
    """
    number = priced.billing
    if number is None:
        return None
    exponent = number.as_tuple().exponent
    if (
        not isinstance(exponent, int)
        or not -_BILLING_PLACES <= exponent <= _BILLING_PLACES
        or not 0 <= number <= _BILLING_MAX
    ):
        raise InvalidInput(
            f"'{str(number)[:40]}' is not a number of billing units",
            field="billing",
            remedy=f"a number from 0 to {_BILLING_MAX}, at most {_BILLING_PLACES} decimals",
        )
    return Fraction(number)
