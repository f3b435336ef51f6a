"""What the entries of a run say of it in their details: the ledger writes it, the audit reads it and reckons the run's row from it."""

from __future__ import annotations

import msgspec

from fairbank.bank.entry import Entry
from fairbank.bank.requests import Charge, Release
from fairbank.bank.run import RunRecord
from fairbank.cluster.job import Run
from fairbank.cluster.job_details import JobDetails
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


class Opening(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the first entry of a run says."""

    run: Run
    project: int
    partition: str
    start: Instant
    until: Instant
    job_details: JobDetails | None = None


class Adjustment(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What an entry says that changes a hold; of the job details only those that are new."""

    until: Instant
    job_details: JobDetails | None = None


class EndDetails(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the entry says with which a run ends; of the job details only those that are new, and where more processor time was told than
    there was, what of it counts."""

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
    """The details as an entry keeps them."""
    return _encode(details).decode()


def written_at_once(opening: Opening, end: EndDetails) -> str:
    """The details of an entry that opens a run and ends it."""
    return f"{written(opening)[:-1]},{written(end)[1:]}"


def opening_of(record: RunRecord) -> Opening:
    """What is said of a run that begins."""
    r = record
    return Opening(r.run, r.project, r.partition, r.start, r.until, r.job_details)


def resolution_of(
    request: Charge | Release,
    written_off: SuMinutes,
    cpu_counted: int | None,
    new: JobDetails | None,
) -> EndDetails:
    """What is said of a run that ends."""
    return EndDetails(
        request.outcome, request.elapsed_seconds, request.ended, written_off, cpu_counted, new
    )


def read_opening(entry: Entry) -> Opening:
    """Raises ValueError when the details lack something; like the next two."""
    return _opening(entry.details or "{}")


def read_adjustment(entry: Entry) -> Adjustment:
    return _adjustment(entry.details or "{}")


def read_resolution(entry: Entry) -> EndDetails:
    return _resolution(entry.details or "{}")
