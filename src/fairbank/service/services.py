"""All use cases of one bank."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from fairbank.bank.policy import Policy
from fairbank.cluster.partition import Cluster
from fairbank.core.time import Clock
from fairbank.service.access.identity import Staff
from fairbank.service.access.memberships import Memberships
from fairbank.service.access.tokens import Nonces, Tokens
from fairbank.service.allocations import Allocations
from fairbank.service.centre import Centre
from fairbank.service.dry_run import DryRun
from fairbank.service.ledger import Ledger
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.upkeep import Upkeep
from fairbank.service.project_cache import ProjectCache
from fairbank.service.projects import Projects
from fairbank.service.quotes import Quotes
from fairbank.service.reports import RunReports
from fairbank.service.runs import Runs
from fairbank.service.share_history import ShareHistory
from fairbank.service.undo import EntryUndo
from fairbank.service.use_cases import ServiceContext
from fairbank.service.write_queue.queue import WriteQueue
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.contract import Store


class WriteQueueFactory(Protocol):
    """Constructor of a write queue."""

    def __call__(self, bank: Ledger, *, waiting_max: int) -> WriteQueue: ...


class Services:
    """Use cases around one store and one write queue."""

    def __init__(
        self, context: ServiceContext, write_queue: WriteQueue, staff: Staff, upkeep: Upkeep
    ) -> None:
        self.store, self.clock = context.store, context.clock
        self.project_cache, self.memberships = context.project_cache, context.memberships
        self.clusters, self.staff = context.clusters, staff
        self.free_states = tuple(sorted(context.policy.free_states))
        self.categories = tuple(sorted(context.policy.categories))
        self.write_queue, self.upkeep = write_queue, upkeep
        self.projects = Projects(context)
        self.allocations = Allocations(context)
        self.reports = RunReports(context)
        self.runs = Runs(context)
        self.centre = Centre(context)
        self.undo = EntryUndo(context)
        self.quotes = Quotes(context)
        self.shares = ShareHistory(context)
        self.tokens = Tokens(context)
        self.nonces = Nonces(context)
        self.audit = Audit(context.store)
        # The same use cases over a DryRun. They are their own dry run.
        self._dry = self
        if not context.is_dry_run:
            handler = DryRun(write_queue.bank)
            dry_context = replace(context, handler=handler, is_dry_run=True)
            self._dry = Services(dry_context, write_queue, staff, upkeep)

    def dry_run(self) -> Services:
        """Return the use cases that change nothing: they raise DryRunResult instead of applying a
        request.
        """
        return self._dry

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
    members_of: Callable[[int], frozenset[int]] | None = None,
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
        members_of: returns the users of a Unix group; None if groups make no members.
        actor: user in whose name the upkeep writes.
        monotonic: clock for the age of cached rows.
        make_queue: constructor of the write queue.
        shares_days: days for which fair-share records are kept; None for ever.
    """
    queue = make_queue(Ledger(store, policy), waiting_max=waiting_max)
    context = ServiceContext(
        store=store,
        handler=queue,
        clock=clock,
        project_cache=ProjectCache(store, monotonic),
        memberships=Memberships(store, groups_of, monotonic, members_of),
        clusters=clusters,
        policy=policy,
        key=key,
    )
    return Services(context, queue, staff, Upkeep(store, queue, clock, actor, shares_days))
