"""Details of the entries of a run: the rules write them, the audit computes the row of the run."""

from __future__ import annotations

import msgspec

from fairbank.bank.entry import Entry
from fairbank.bank.requests import Charge, Release
from fairbank.bank.run import RunRecord
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


class Opening(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Details of the first entry of a run."""

    run: Run
    project: int
    partition: str
    start: Instant
    until: Instant
    job_details: JobDetails | None = None


class Adjustment(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Details of an entry that changes a hold, with new job details only."""

    until: Instant
    job_details: JobDetails | None = None


class EndDetails(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Details of an entry that closes a run, with new job details only.

    `cpu_counted` is the processor time that counts, if the report has more than was possible.
    """

    outcome: str
    elapsed_seconds: int
    ended: Instant
    written_off: SuMinutes
    cpu_counted: int | None = None
    job_details: JobDetails | None = None


_encode = msgspec.json.Encoder().encode
_opening = msgspec.json.Decoder(Opening).decode
_adjustment = msgspec.json.Decoder(Adjustment).decode
_resolution = msgspec.json.Decoder(EndDetails).decode


def written(details: Opening | Adjustment | EndDetails) -> str:
    """Return details as an entry stores them."""
    return _encode(details).decode()


def written_at_once(opening: Opening, end: EndDetails) -> str:
    """Return the details of an entry that opens and closes a run."""
    return f"{written(opening)[:-1]},{written(end)[1:]}"


def opening_of(record: RunRecord) -> Opening:
    """Return the details of the first entry of a run."""
    r = record
    return Opening(r.run, r.project, r.partition, r.start, r.until, r.job_details)


def resolution_of(
    request: Charge | Release,
    written_off: SuMinutes,
    cpu_counted: int | None,
    new: JobDetails | None,
) -> EndDetails:
    """Return the details of the entry that closes a run.

    Args:
        request: end of the run.
        written_off: part of the cost that is not charged, in SU-minutes.
        cpu_counted: processor seconds that count, if the report has too many.
        new: job details that were not known before.
    """
    return EndDetails(
        request.outcome, request.elapsed_seconds, request.ended, written_off, cpu_counted, new
    )


def read_opening(entry: Entry) -> Opening:
    """Read the details of the first entry of a run. Raises ValueError, as the next two do."""
    return _opening(entry.details or "{}")


def read_adjustment(entry: Entry) -> Adjustment:
    return _adjustment(entry.details or "{}")


def read_resolution(entry: Entry) -> EndDetails:
    return _resolution(entry.details or "{}")
