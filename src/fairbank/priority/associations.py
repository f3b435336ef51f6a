"""Associations by account, user and partition: the one that pays for a job, and the accounts above
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

ROOT = "root"
"""Account above all others, and that of jobs without one. It need not be configured."""

AssociationKey = tuple[str, str, str]
"""Account, user (empty for the account itself), and partition (empty if it is for all)."""
T = TypeVar("T")


class ChildRecord(Protocol):
    """Record of an association that names the account above it."""

    @property
    def parent(self) -> str: ...


C = TypeVar("C", bound=ChildRecord)


def own_association(
    records: Mapping[AssociationKey, T], account: str, user: str, partition: str
) -> T | None:
    """Return the user's association in an account: the partition's own, if there is one."""
    own = records.get((account, user, partition))
    return records.get((account, user, "")) if own is None else own


def account_chain(records: Mapping[AssociationKey, C], account: str) -> Iterator[C]:
    """Yield an account and those above it, up to the root, each once."""
    seen = set[str]()
    while account not in seen and (record := records.get((account, "", ""))) is not None:
        yield record
        seen.add(account)
        account = record.parent
