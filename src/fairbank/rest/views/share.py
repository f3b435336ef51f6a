"""Fair share from day to day, as the shapes that travel."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.cluster.share_record import ShareKey, ShareRecord, share_key
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.core.time import DAY, Instant, iso, parse_instant
from fairbank.rest.bodies import answers
from fairbank.rest.bodies.requests import NewShares


def share_day(figure: ShareRecord) -> answers.ShareDay:
    return answers.ShareDay(
        cluster=figure.cluster,
        day=iso(figure.day * DAY)[:10],
        account=figure.account,
        user=figure.user or None,
        partition=figure.partition or None,
        at=iso(figure.at),
        shares="parent" if figure.shares == ON_PARENT else figure.shares,
        norm_shares=figure.norm_shares,
        usage=figure.usage,
        effective=figure.effective,
        level=figure.level,
        factor=figure.factor,
    )


def figures_told(told: NewShares, at: Instant) -> list[ShareRecord]:
    """Raises InvalidInput, naming the row, for names that are none and for associations that are there twice."""
    figures = list(_figures(told, at))
    if len({share_key(each) for each in figures}) < len(figures):
        raise InvalidInput(
            "an association is there twice",
            field="rows",
            remedy="tell each account, and each user and partition in it, once",
        )
    return figures


def _figures(told: NewShares, at: Instant) -> Iterator[ShareRecord]:
    cluster = ids.name(told.cluster, field="cluster")
    for number, row in enumerate(told.rows):
        yield ShareRecord(
            cluster=cluster,
            day=at // DAY,
            account=ids.name(row.account, field=f"rows[{number}].account"),
            user=_login(row.user, f"rows[{number}].user"),
            partition=ids.name(row.partition, field=f"rows[{number}].partition")
            if row.partition
            else "",
            at=at,
            shares=ON_PARENT if row.shares == "parent" else row.shares,
            norm_shares=row.norm_shares,
            usage=row.usage,
            effective=row.effective,
            level=row.level,
            factor=row.factor,
        )


def _login(text: str | None, field: str) -> str:
    """Slurm's users may have a domain; what they never have is a blank or a slash."""
    if text and (not text.isprintable() or set(text) & set(" /")):
        raise InvalidInput(
            f"{text[:64]!r} is not a user", field=field, remedy="one word, as Slurm names them"
        )
    return text or ""


def key_text(key: ShareKey) -> str:
    """The cursor of the page behind it: names have no slash."""
    return "/".join(map(str, key))


def parse_key(text: str) -> ShareKey:
    """Raises InvalidInput."""
    try:
        cluster, day, account, user, partition = text.split("/")
        return cluster, int(day if len(day) < 10 else ""), account, user, partition
    except ValueError as bad:
        raise InvalidInput(
            f"{text[:80]!r} is no place in this list",
            field="after",
            remedy="send the `next` of the page before",
        ) from bad


def moment_of(said: str | int) -> Instant:
    """Raises InvalidInput."""
    return Instant(said) if isinstance(said, int) else parse_instant(said, field="at")
