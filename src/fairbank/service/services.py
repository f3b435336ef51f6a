"""All use cases of one bank."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from fairbank.bank.policy import Policy
from fairbank.cluster.partition import Cluster
from fairbank.core.final_state import FinalState
from fairbank.core.time import Clock
from fairbank.service.access.identity import Staff
from fairbank.service.access.memberships import Memberships
from fairbank.service.access.tokens import Nonces, Tokens
from fairbank.service.allocations import Allocations
from fairbank.service.dry_run import DryRun
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.upkeep import Upkeep
from fairbank.service.project_cache import ProjectCache
from fairbank.service.projects import Projects
from fairbank.service.quotes import Quotes
from fairbank.service.reports import RunReports
from fairbank.service.runs import Runs, UsageReports
from fairbank.service.share_history import ShareHistory
from fairbank.service.undo import EntryUndo
from fairbank.service.write_queue.queue import WriteQueue
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.contract import Store


class WriteQueueFactory(Protocol):
    """Constructor of a write queue."""

    def __call__(self, bank: Ledger, *, waiting_max: int) -> WriteQueue: ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """Use cases around one store and one write queue.

    `dry` are the same use cases for dry runs; None in these themselves.
    """

    store: Store
    write_queue: WriteQueue
    clock: Clock
    staff: Staff
    clusters: Mapping[str, Cluster]
    free_states: tuple[FinalState, ...]
    project_cache: ProjectCache
    memberships: Memberships
    projects: Projects
    allocations: Allocations
    reports: RunReports
    runs: Runs
    undo: EntryUndo
    quotes: Quotes
    usage: UsageReports
    shares: ShareHistory
    tokens: Tokens
    nonces: Nonces
    audit: Audit
    upkeep: Upkeep
    dry: Services | None = None

    def dry_run(self) -> Services:
        """Return the use cases that change nothing: they raise DryRunResult instead of applying a
        request.
        """
        return self.dry or self

    def close(self) -> None:
        """End the upkeep, answer what waits in the queue, then close the store."""
        self.upkeep.stop()
        self.write_queue.close()
        self.store.close()


def services(
    store: Store,
    *,
    clock: Clock,
    staff: Staff,
    clusters: Mapping[str, Cluster],
    policy: Policy,
    key: bytes,
    waiting_max: int = 10_000,
    groups_of: Callable[[int], frozenset[int]] | None = None,
    actor: int = 0,
    monotonic: Callable[[], float] = time.monotonic,
    make_queue: WriteQueueFactory = WriterThreads,
    shares_days: int | None = None,
) -> Services:
    """Build the use cases around a store.

    Args:
        store: the bank's store; `close` closes it.
        clock: time of requests.
        staff: staff and agents of the settings.
        clusters: clusters and their prices.
        policy: rules of the bank.
        key: key of the tokens' digests.
        waiting_max: the most requests that may wait.
        groups_of: returns a user's Unix groups; None if groups make no members.
        actor: user in whose name the upkeep writes.
        monotonic: clock for the age of cached rows.
        make_queue: constructor of the write queue.
        shares_days: days for which fair-share records are kept; None for ever.
    """
    queue = make_queue(Ledger(store, policy), waiting_max=waiting_max)
    project_cache = ProjectCache(store, monotonic)
    memberships = Memberships(store, groups_of, monotonic)
    carrying_out = Services(
        store=store,
        write_queue=queue,
        clock=clock,
        staff=staff,
        clusters=clusters,
        free_states=tuple(sorted(policy.free_states)),
        project_cache=project_cache,
        memberships=memberships,
        projects=Projects(store, queue, project_cache, clock),
        allocations=Allocations(store, queue, project_cache, clock),
        reports=RunReports(project_cache, clusters, policy, clock),
        runs=Runs(store, queue, project_cache, memberships, clock),
        undo=EntryUndo(store, queue, clock),
        quotes=Quotes(store, project_cache, clusters, policy, clock),
        usage=UsageReports(store),
        shares=ShareHistory(store, project_cache),
        tokens=Tokens(store, queue, clock, key),
        nonces=Nonces(store, clock),
        audit=Audit(store),
        upkeep=Upkeep(store, queue, clock, actor, shares_days),
    )
    dry_run = DryRun(queue.bank)
    dry = replace(
        carrying_out,
        projects=Projects(store, dry_run, project_cache, clock),
        allocations=Allocations(store, dry_run, project_cache, clock),
        runs=Runs(store, dry_run, project_cache, memberships, clock),
        undo=EntryUndo(store, dry_run, clock),
        shares=ShareHistory(store, project_cache, dry_run=True),
        tokens=Tokens(store, dry_run, clock, key),
    )
    return replace(carrying_out, dry=dry)
