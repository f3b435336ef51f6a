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
from fairbank.service.allocations import Allocations
from fairbank.service.dry_run import Foreteller
from fairbank.service.identity import Staff
from fairbank.service.ledger import Ledger
from fairbank.service.memberships import Memberships
from fairbank.service.nonces import Nonces
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.upkeep import Upkeep
from fairbank.service.project_cache import Directory
from fairbank.service.projects import Projects
from fairbank.service.quotes import Quotes
from fairbank.service.reports import RunReports
from fairbank.service.runs import Runs
from fairbank.service.share_history import ShareHistory
from fairbank.service.tokens import Tokens
from fairbank.service.undo import Undoing
from fairbank.service.usage import UsageReports
from fairbank.service.write_queue.queue import Counter
from fairbank.service.write_queue.writers import Windows
from fairbank.store.contract import Store


class WriteQueueFactory(Protocol):
    """Makes a counter."""

    def __call__(self, bank: Ledger, *, room: int) -> Counter: ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """One object for each group of use cases, around one store and one counter. `dry` are the same for requests that only ask what would
    be; None in these themselves."""

    store: Store
    counter: Counter
    clock: Clock
    staff: Staff
    clusters: Mapping[str, Cluster]
    free_states: tuple[FinalState, ...]
    directory: Directory
    memberships: Memberships
    projects: Projects
    allocations: Allocations
    reports: RunReports
    runs: Runs
    undoing: Undoing
    quotes: Quotes
    usage: UsageReports
    shares: ShareHistory
    tokens: Tokens
    nonces: Nonces
    audit: Audit
    upkeep: Upkeep
    dry: Services | None = None

    def foretelling(self) -> Services:
        """Those that change nothing: in place of carrying a request out they raise Foretold."""
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
    waiting_max: int = 10_000,
    groups_of: Callable[[int], frozenset[int]] | None = None,
    actor: int = 0,
    ticks: Callable[[], float] = time.monotonic,
    counting: WriteQueueFactory = Windows,
    shares_days: int | None = None,
) -> Services:
    """The services around `store`. `key` is for the digests of tokens; `groups_of` tells Unix groups, where these make members;
    `actor` is the user in whose name the sweep writes; `ticks` say how old is what was read; `counting` makes the counter;
    `shares_days` is how many days fair share is kept, None for ever.
    """
    counter = counting(Ledger(store, policy), room=waiting_max)
    directory = Directory(store, ticks)
    memberships = Memberships(store, groups_of, ticks)
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
        undoing=Undoing(store, counter, clock),
        quotes=Quotes(store, directory, clusters, policy, clock),
        usage=UsageReports(store),
        shares=ShareHistory(store, directory),
        tokens=Tokens(store, counter, clock, key),
        nonces=Nonces(store, clock),
        audit=Audit(store),
        upkeep=Upkeep(store, counter, clock, actor, shares_days),
    )
    foreteller = Foreteller(counter.bank)
    dry = replace(
        carrying_out,
        projects=Projects(store, foreteller, directory, clock),
        allocations=Allocations(store, foreteller, directory, clock),
        runs=Runs(store, foreteller, directory, memberships, clock),
        undoing=Undoing(store, foreteller, clock),
        shares=ShareHistory(store, directory, foretelling=True),
        tokens=Tokens(store, foreteller, clock, key),
    )
    return replace(carrying_out, dry=dry)
