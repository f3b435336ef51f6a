"""All use cases of one bank, ready for any door."""

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
    """Makes a counter."""

    def __call__(self, bank: Ledger, *, capacity: int) -> WriteQueue: ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """One object for each group of use cases, around one store and one counter. `dry` are the same for requests that only ask what would
    be; None in these themselves."""

    store: Store
    counter: WriteQueue
    clock: Clock
    staff: Staff
    clusters: Mapping[str, Cluster]
    free_states: tuple[FinalState, ...]
    directory: ProjectCache
    memberships: Memberships
    projects: Projects
    allocations: Allocations
    reports: RunReports
    runs: Runs
    undoing: EntryUndo
    quotes: Quotes
    usage: UsageReports
    shares: ShareHistory
    tokens: Tokens
    nonces: Nonces
    audit: Audit
    upkeep: Upkeep
    dry: Services | None = None

    def foretelling(self) -> Services:
        """Those that change nothing: in place of carrying a wish out they raise Foretold."""
        return self.dry or self

    def close(self) -> None:
        """End the sweep, answer what waits at the counter, then close the store."""
        self.upkeep.stop()
        self.counter.close()
        self.store.close()


def services(
    store: Store,
    *,
    clock: Clock,
    staff: Staff,
    clusters: Mapping[str, Cluster],
    policy: Policy,
    key: bytes,
    queue_max: int = 10_000,
    groups_of: Callable[[int], frozenset[int]] | None = None,
    actor: int = 0,
    monotonic: Callable[[], float] = time.monotonic,
    make_queue: WriteQueueFactory = WriterThreads,
    shares_days: int | None = None,
) -> Services:
    """The services around `store`. `key` is for the digests of tokens; `groups_of` tells Unix groups, where these make members;
    `actor` is the user in whose name the sweep writes; `ticks` say how old is what was read; `counting` makes the counter;
    `shares_days` is how many days fair share is kept, None for ever.
    """
    counter = make_queue(Ledger(store, policy), capacity=queue_max)
    directory = ProjectCache(store, monotonic)
    memberships = Memberships(store, groups_of, monotonic)
    carrying_out = Services(
        store=store,
        counter=counter,
        clock=clock,
        staff=staff,
        clusters=clusters,
        free_states=tuple(sorted(policy.free_states)),
        directory=directory,
        memberships=memberships,
        projects=Projects(store, counter, directory, clock),
        allocations=Allocations(store, counter, directory, clock),
        reports=RunReports(directory, clusters, policy, clock),
        runs=Runs(store, counter, directory, memberships, clock),
        undoing=EntryUndo(store, counter, clock),
        quotes=Quotes(store, directory, clusters, policy, clock),
        usage=UsageReports(store),
        shares=ShareHistory(store, directory),
        tokens=Tokens(store, counter, clock, key),
        nonces=Nonces(store, clock),
        audit=Audit(store),
        upkeep=Upkeep(store, counter, clock, actor, shares_days),
    )
    foreteller = DryRun(counter.bank)
    dry = replace(
        carrying_out,
        projects=Projects(store, foreteller, directory, clock),
        allocations=Allocations(store, foreteller, directory, clock),
        runs=Runs(store, foreteller, directory, memberships, clock),
        undoing=EntryUndo(store, foreteller, clock),
        shares=ShareHistory(store, directory, dry_run=True),
        tokens=Tokens(store, foreteller, clock, key),
    )
    return replace(carrying_out, dry=dry)
