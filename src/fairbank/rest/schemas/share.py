"""Daily fair-share values: bodies of a cluster, rows of the history, and their conversions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal
from urllib.parse import quote, unquote

from msgspec import Meta, Struct

from fairbank.cluster.fields import Name, NameOrNone
from fairbank.cluster.share import ShareKey, ShareRecord, share_key
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.core.time import DAY, Instant, iso
from fairbank.rest.schemas.envelope import convert_to
from fairbank.rest.schemas.requests import Body, When

SHARES_IN_REQUEST_MAX = 10_000
Part = Annotated[float, Meta(ge=0, le=1)]
NotNegative = Annotated[float, Meta(ge=0)]


class NewShare(Body, frozen=True, kw_only=True):
    """Fair-share values of an association: an account, or a user in it. Units: see the response."""

    account: Name
    user: Name | None = None
    partition: NameOrNone | None = None
    shares: Annotated[int, Meta(ge=0, le=SHARES_MAX)] | Literal["parent"] | None = None
    norm_shares: Part
    usage: NotNegative
    effective: NotNegative | None = None
    level: NotNegative | None = None
    factor: NotNegative | None = None


class NewShares(Body, frozen=True, kw_only=True):
    """Fair-share values of a cluster at a time of slurmctld's clock."""

    cluster: Name
    at: When
    rows: Annotated[list[NewShare], Meta(min_length=1, max_length=SHARES_IN_REQUEST_MAX)]


class ShareDay(Struct, frozen=True, kw_only=True):
    """Fair-share values of an association on a day (UTC), as Slurm gave them at `at`.

    `user` is null for an account, `partition` for all partitions, `shares` for the root. `usage` is
    decayed, in billing-seconds; `effective` is the part that counts as the association's own.
    `level` is null without one and without usage, `factor` for accounts.
    """

    schema_name: ClassVar[str] = "fairbank.share-day/1"
    cluster: str
    day: str
    account: str
    user: str | None
    partition: str | None
    at: str
    shares: int | Literal["parent"] | None
    norm_shares: float
    usage: float
    effective: float | None
    level: float | None
    factor: float | None


class SharesKept(Struct, frozen=True, kw_only=True):
    """Number of values stored (in a dry run, to store), and of those present for that day."""

    schema_name: ClassVar[str] = "fairbank.shares-kept/1"
    cluster: str
    day: str
    kept: int
    present: int


def share_day(record: ShareRecord) -> ShareDay:
    """Return a stored record as a row."""
    return convert_to(
        ShareDay,
        record,
        day=iso(record.day * DAY)[:10],
        user=record.user or None,
        partition=record.partition or None,
        at=iso(record.at),
        shares=record.shown_shares,
    )


def share_records(body: NewShares, at: Instant) -> list[ShareRecord]:
    """Convert a body to records at a time.

    Raises:
        InvalidInput: a name is invalid (`field` names the row), or an association is repeated.
    """
    records = list(_records(body, at))
    if len({share_key(record) for record in records}) < len(records):
        raise InvalidInput(
            "an association is repeated",
            field="rows",
            remedy="send each account, and each user and partition in it, once",
        )
    return records


def _records(body: NewShares, at: Instant) -> Iterator[ShareRecord]:
    cluster = ids.cluster(body.cluster)
    for number, row in enumerate(body.rows):
        field = f"rows[{number}]"
        yield ShareRecord(
            cluster=cluster,
            day=at // DAY,
            account=ids.name(row.account, field=f"{field}.account"),
            user=ids.name(row.user, field=f"{field}.user") if row.user is not None else "",
            partition=ids.name(row.partition, field=f"{field}.partition") if row.partition else "",
            at=at,
            shares=ON_PARENT if row.shares == "parent" else row.shares,
            norm_shares=row.norm_shares,
            usage=row.usage,
            effective=row.effective,
            level=row.level,
            factor=row.factor,
        )


def share_cursor(record: ShareRecord) -> str:
    """Return the cursor of the page after a record. The other slashes are percent-encoded."""
    return "/".join(quote(str(part), safe=" ") for part in share_key(record))


def parse_share_cursor(text: str) -> ShareKey:
    """Parse a cursor.

    Raises:
        InvalidInput: it is none.
    """
    try:
        cluster, day, account, user, partition = map(unquote, text.split("/"))
        return cluster, int(day if len(day) < 10 else ""), account, user, partition
    except ValueError as bad:
        raise InvalidInput(
            f"{text[:80]!r} is not a cursor of this list",
            field="after",
            remedy="send the `next` of the previous page",
        ) from bad
