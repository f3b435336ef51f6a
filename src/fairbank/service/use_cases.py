"""Common base of the use cases: what they work with, and how they apply a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from fairbank.bank.policy import Policy
from fairbank.bank.requests import Request, SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.cluster.partition import Cluster
from fairbank.core.errors import NotFound
from fairbank.core.time import Clock, Instant
from fairbank.service.access.identity import Identity
from fairbank.service.access.memberships import Memberships
from fairbank.service.project_cache import ProjectCache
from fairbank.store.contract import Store

T = TypeVar("T")


class RequestHandler(Protocol):
    """Handler of requests: the write queue, or a DryRun in its place."""

    def apply(self, batch: Sequence[SubmittedRequest]) -> list[Outcome]: ...


@dataclass(frozen=True, kw_only=True)
class ServiceContext:
    """Store, clock, prices and rules of one bank, and the handler of its requests.

    `key` is the key of the tokens' digests. `is_dry_run`: the handler is a DryRun.
    """

    store: Store
    handler: RequestHandler
    clock: Clock
    project_cache: ProjectCache
    memberships: Memberships
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    key: bytes = b""
    is_dry_run: bool = False


class UseCases:
    """Use cases of one noun. Those that change something apply requests through the handler."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._store, self._clock = context.store, context.clock
        self._project_cache = context.project_cache

    def _apply(self, identity: Identity, request: Request, now: Instant | None = None) -> Outcome:
        """Apply a request of a user. `now` is the time of the request, by default by the clock.

        Raises:
            Busy, Unavailable: it was not applied.
            DryRunResult: the handler is a DryRun, and the request would be granted.
        """
        at = self._clock.now() if now is None else now
        submitted = SubmittedRequest(request, at, identity.actor, identity.acting_as)
        return self._context.handler.apply([submitted])[0]


def only(rows: Sequence[T], what: str, field: str, remedy: str) -> T:
    """Return the row that was asked for by its number.

    Args:
        rows: the answer of the store: one row, or none.
        what: description of the row, for the message.
        field: the field with the number.
        remedy: the way to find the numbers.

    Raises:
        NotFound: there is no such row, or the user may not see it.
    """
    if not rows:
        raise NotFound(f"there is no {what} that you may see", field=field, remedy=remedy)
    return rows[0]
