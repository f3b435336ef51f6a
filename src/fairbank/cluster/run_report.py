"""Reports of a cluster about a run: it starts, its time limit or resources changed, it ended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction

import msgspec

from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import Instant


class RunPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a run before a change of its resources, priced by `billing`, else by `counts`."""

    seconds: int
    billing: Fraction | None = None
    counts: Mapping[str, Fraction] | None = None


class RunReport(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """Fields of all reports.

    `account` is the Slurm account that pays; `start` selects the allocation. The price comes from
    the first of `amount` (SU-minutes in total), `billing` (billing units as Slurm computed them)
    and `counts` (TRES), which are those since the last change of the run's resources; `pieces` are
    those before. `resource` is needed only if the bank does not know the partition.
    `job details` do not affect the price.
    """

    run: Run
    owner: int
    account: str
    partition: str = ""
    resource: str | None = None
    qos: str | None = None
    start: Instant
    limit_seconds: int = 0
    amount: int | None = None
    billing: Fraction | None = None
    counts: Mapping[str, Fraction] | None = None
    pieces: tuple[RunPiece, ...] = ()
    key: str | None = None
    comment: str | None = None
    job_details: JobDetails | None = None


class RunStarted(RunReport, frozen=True, kw_only=True, tag="start"):
    """The run is about to start, for at most `limit_seconds`."""


class LimitChanged(RunReport, frozen=True, kw_only=True, tag="change"):
    """The time limit of the run is now `limit_seconds`, or its resources have changed."""


class RunEnded(RunReport, frozen=True, kw_only=True, tag="end"):
    """End of a run in state `outcome` after `elapsed_seconds`, as the scheduler counted."""

    ended: Instant
    outcome: str
    elapsed_seconds: int


_encode = msgspec.msgpack.Encoder(enc_hook=str, order="sorted").encode  # a fraction as its text


def fingerprint(report: RunReport) -> bytes:
    """Return 16 bytes that identify the content of a report. Key and comment are left out."""
    return hashlib.blake2b(
        _encode(msgspec.structs.replace(report, key=None, comment=None)), digest_size=16
    ).digest()
