"""What clusters send of runs, read into the reports that the service takes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from fairbank.cluster.job import Run
from fairbank.cluster.job_details import JobDetails
from fairbank.cluster.run_report import LimitChanged, RunEnded, RunReport, RunStarted
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import FINAL_STATES, final_state
from fairbank.core.slurm_numbers import CPUS_MAX, NODES_MAX
from fairbank.core.time import Instant
from fairbank.core.tres import Counts, parse_counts, parse_job_tres
from fairbank.rest.bodies import requests

_CLOCK_STEP_SECONDS = 3_600
"""By how much more than its two times say a run may have lasted, and how much before it was submitted it may start: schedulers
measure how long it lasts, and clocks are set right."""

_BILLING_MAX, _BILLING_PLACES = 10**12, 30


def report_of(body: requests.AnyReport) -> RunReport:
    """What a cluster tells, with every name checked. Raises InvalidInput, naming the field."""
    facts = _facts(body)
    _check_times(body)
    match body:
        case requests.HoldReport():
            return RunStarted(**facts)
        case requests.AdjustReport():
            return LimitChanged(**facts)
        case requests.CompleteReport():
            return RunEnded(
                **facts,
                ended=Instant(body.end),
                outcome=_outcome(body.state),
                elapsed_seconds=body.elapsed,
            )


def _facts(body: requests.AnyReport) -> dict[str, Any]:
    """What every report tells. Raises InvalidInput."""
    counts = None if body.tres is None else _counts(body, body.tres)
    qos = None if body.qos is None else ids.name(body.qos, field="qos")
    return {
        "run": Run(
            ids.name(body.cluster, field="cluster"), body.job_id, body.submitted, body.restart
        ),
        "owner": body.owner_uid,
        "account": ids.name(body.account, field="account"),
        "partition": body.partition and ids.name(body.partition, field="partition"),
        "resource": body.resource,
        "qos": qos,
        "start": body.start,
        "limit_seconds": body.time_limit,
        "amount": body.amount,
        "billing": None if body.billing is None else fraction_of(body.billing),
        "counts": counts,
        "key": None if body.key is None else ids.key(body.key),
        "comment": None if body.comment is None else ids.comment(body.comment),
        "job_details": _particulars(body, qos, counts),
    }


def _check_times(body: requests.AnyReport) -> None:
    """Whether a start follows its submission; and an end its start, by as long as it lasted. Raises InvalidInput."""
    if isinstance(body, requests.CompleteReport):  # no end is turned away for when it was submitted
        _check_end(body)
    elif body.submitted > body.start + _CLOCK_STEP_SECONDS:
        raise InvalidInput(
            f"the run starts {body.submitted - body.start} s before it was submitted",
            field="submitted",
            remedy=f"send submitted and start in seconds since 1970, in that order; up to {_CLOCK_STEP_SECONDS} s may be a clock set right",
        )


def _check_end(body: requests.CompleteReport) -> None:
    if body.end < body.start:
        raise InvalidInput(
            "the run ends before it starts",
            field="end",
            remedy="send start and end in seconds since 1970, in that order",
        )
    if body.elapsed > body.end - body.start + _CLOCK_STEP_SECONDS:
        raise InvalidInput(
            f"the run lasted {body.elapsed} s, but from start to end there are {body.end - body.start} s",
            field="elapsed",
            remedy=f"send how long it ran in seconds: at most end - start + {_CLOCK_STEP_SECONDS}",
        )


def _counts(body: requests.AnyReport, tres: str) -> Counts:
    """What ended is never turned away for what it held. Raises InvalidInput."""
    if isinstance(body, requests.CompleteReport):
        return parse_counts(tres)
    return parse_job_tres(tres, prices=body.amount is None and body.billing is None)


def _particulars(
    body: requests.AnyReport, qos: str | None, counts: Counts | None
) -> JobDetails | None:
    """What it says beside the price. Raises InvalidInput for a name that cannot be kept."""
    status = cpu_seconds = None
    if isinstance(body, requests.CompleteReport):
        cpu_seconds = body.cpu_seconds
        if body.exit_code is not None or body.exit_signal is not None:
            status = (body.exit_code or 0) * 256 + (body.exit_signal or 0)
    return JobDetails(
        name=None if body.name is None else ids.job_name(body.name),
        qos=qos,
        nodes=body.nodes or _whole(counts, "node", NODES_MAX),
        cpus=_whole(counts, "cpu", CPUS_MAX),
        tres=None if body.tres is None else ",".join(each.strip() for each in body.tres.split(",")),
        limit_seconds=body.time_limit or None,
        exit_status=status,
        cpu_seconds=cpu_seconds,
    )


def _whole(counts: Counts | None, tres: str, most: int) -> int | None:
    """How many of a TRES there are, where that is a number that somebody could have."""
    count = counts.get(tres) if counts else None
    return (
        int(count) if count is not None and count.denominator == 1 and 1 <= count <= most else None
    )


def _outcome(state: str) -> str:
    """The bare state. Raises InvalidInput for one that is not final: taken at its word, it would close a run that goes on."""
    final = final_state(state)
    if final is None:
        raise InvalidInput(
            f"{state[:64]!r} is no state in which a job ends",
            field="state",
            remedy=f"one of {', '.join(FINAL_STATES)}; of a run that goes on, say nothing until it ends",
        )
    return final


def fraction_of(number: Decimal, *, field: str = "billing") -> Fraction:
    """Billing units as the decimal says them. Raises InvalidInput for what is no finite, modest number: 1e999999 would fill the memory."""
    exponent = number.as_tuple().exponent
    if (
        not isinstance(exponent, int)
        or not -_BILLING_PLACES <= exponent <= _BILLING_PLACES
        or not 0 <= number <= _BILLING_MAX
    ):
        raise InvalidInput(
            "this is no price",
            field=field,
            remedy=f"a number from 0 to {_BILLING_MAX}, at most {_BILLING_PLACES} decimals",
        )
    return Fraction(number)
