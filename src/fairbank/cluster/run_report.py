"""What a cluster tells the bank of a run: it starts, its limit changed, it ended. No money yet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction

import msgspec

from fairbank.cluster.job import Run
from fairbank.cluster.job_details import Particulars
from fairbank.core.time import Instant


class RunReport(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """What all reports say.

    `account` is the Slurm account that pays; `start` picks the allocation. The price comes from the first that is
    given: `amount` (SU-minutes, all in all), `billing` (billing units, as Slurm computed them), `counts` (TRES).
    `resource` is asked for only where the partition is not known to the bank. `particulars` change nothing about the price.
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
    key: str | None = None
    comment: str | None = None
    particulars: Particulars | None = None


class RunStarted(RunReport, frozen=True, kw_only=True, tag="start"):
    """The run is about to start: `limit_seconds` is the longest it may take."""


class LimitChanged(RunReport, frozen=True, kw_only=True, tag="change"):
    """The run's time limit is now `limit_seconds`."""


class RunEnded(RunReport, frozen=True, kw_only=True, tag="end"):
    """The run ended at `ended` in state `outcome` after `elapsed_seconds` as the scheduler counts them."""

    ended: Instant
    outcome: str
    elapsed_seconds: int


_encode = msgspec.msgpack.Encoder(enc_hook=str, order="sorted").encode  # a fraction as its text


def fingerprint(report: RunReport) -> bytes:
    """Sixteen bytes that differ between different reports, key and comment aside: those say nothing of the run."""
    return hashlib.blake2b(
        _encode(msgspec.structs.replace(report, key=None, comment=None)), digest_size=16
    ).digest()
