"""Reports of runs in one request, and errors of whatever answers instead of a bank."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairbank.core.errors import Unavailable
from fairbank.rest.client import Client
from fairbank.rest.schemas.answers import ReportAnswer


def post_reports(client: Client, bodies: Sequence[bytes], *, field: str) -> list[ReportAnswer]:
    """Send reports in one request; return their answers, in their order.

    Args:
        bodies: JSON of each report.
        field: setting that has the bank's address, for the error.

    Raises:
        FairbankError: what the client raises; Unavailable also if these are no answers to reports.
    """
    rows = client.post("/job/bulk", bulk_body(bodies)).get("data")
    try:
        answers = msgspec.convert(rows, list[ReportAnswer])
    except msgspec.ValidationError as error:
        raise not_a_bank(error, field=field) from error
    if len(answers) != len(bodies):
        mismatch = ValueError(f"{len(answers)} answers to {len(bodies)} reports")
        raise not_a_bank(mismatch, field=field)
    return answers


def bulk_body(bodies: Sequence[bytes]) -> bytes:
    """Return the body of one request with all these reports, in their order."""
    return b'{"reports":[%b]}' % b",".join(bodies)


def cannot_connect(error: OSError) -> Unavailable:
    """Return the error for a request that this host could not even begin."""
    return Unavailable(
        f"cannot connect to the bank: {error}",
        field="bank.server",
        remedy="check the limits of this host (open files, memory)",
    )


def not_a_bank(error: Exception, *, field: str = "bank.server") -> Unavailable:
    """Return the error for an answer that is no bank's; `field` is the setting with the address."""
    return Unavailable(
        f"what answers is not a bank: {error}", field=field, remedy="name the bank's address"
    )
