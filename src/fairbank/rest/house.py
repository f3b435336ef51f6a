"""Everything that the REST server needs, in one value.

house = furnish(store, clock=..., staff=..., clusters=..., policy=..., key=...)
create_app(house)                        rest/app.py: the routes
serve(house, socket=..., port=...)       rest/serving.py: the routes on sockets, until SIGTERM
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairbank.bank.policy import Policy
from fairbank.cluster.partition import Cluster
from fairbank.rest.credentials import MungeDoor
from fairbank.rest.metrics import Metrics
from fairbank.rest.munge import Munge
from fairbank.service.allocations import Allocations
from fairbank.service.askers import Staff
from fairbank.service.bank import Bank
from fairbank.service.counter import Counter
from fairbank.service.directory import Directory
from fairbank.service.projects import Projects
from fairbank.service.quotes import Quotes
from fairbank.service.runs import Runs
from fairbank.service.tokens import Tokens
from fairbank.service.usage import UsageReports
from fairbank.store.contract import Store
from fairbank.values.time import Clock, Instant


@dataclass(frozen=True, kw_only=True)
class House:
    """The services behind the routes. `name` is what MUNGE credentials must be made out to."""

    store: Store
    counter: Counter
    directory: Directory
    clock: Clock
    staff: Staff
    projects: Projects
    allocations: Allocations
    runs: Runs
    quotes: Quotes
    usage: UsageReports
    tokens: Tokens
    metrics: Metrics
    munge: MungeDoor | None
    name: str
    unix_groups: bool

    def close(self) -> None:
        """Answer what waits at the counter, then close the store."""
        self.counter.close()
        self.store.close()


def furnish(
    store: Store,
    *,
    clock: Clock,
    staff: Staff,
    clusters: Mapping[str, Cluster],
    policy: Policy,
    key: bytes,
    munge: Munge | None = None,
    name: str = "fairbank",
    unix_groups: bool = False,
    waiting_max: int = 10_000,
) -> House:
    """A house around `store`, with a counter of its own. `key` is for the digests of tokens; without `munge` nobody signs in by it."""
    metrics = Metrics()
    counter = Counter(Bank(store, policy), room=waiting_max, watch=metrics.judged)
    metrics.waiting.set_function(lambda: counter.waiting)
    directory = Directory(store, clock)
    return House(
        store=store,
        counter=counter,
        directory=directory,
        clock=clock,
        staff=staff,
        projects=Projects(store, counter, directory, clock),
        allocations=Allocations(store, counter, directory, clock),
        runs=Runs(store, counter, directory, clusters, clock),
        quotes=Quotes(store, directory, clusters, clock),
        usage=UsageReports(store),
        tokens=Tokens(store, counter, clock, key),
        metrics=metrics,
        munge=MungeDoor(munge, StoreNonces(store, clock), clock) if munge else None,
        name=name,
        unix_groups=unix_groups,
    )


class StoreNonces:
    """The store's nonces, as the MUNGE door wants them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        return self._store.spend(bytes.fromhex(nonce), uid, self._clock.now(), expires_at)
