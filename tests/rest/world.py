"""Small site for tests of the REST service: two projects, users in every role, runs and
refusals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
from litestar import Litestar
from litestar.testing import TestClient

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import (
    Charge,
    CreateProject,
    Hold,
    Open,
    Request,
    SetMember,
    SubmittedRequest,
)
from fairbank.bank.rules import Done
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.cluster.job import Run
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.time import Instant, iso
from fairbank.core.tres import parse_weights
from fairbank.core.units import SuMinutes
from fairbank.rest.app import create_app, equip
from fairbank.rest.auth.peers import EXTENSION, Peer
from fairbank.rest.context import AppContext
from fairbank.rest.server.server import with_middleware
from fairbank.service.access.identity import Staff, identity_of
from fairbank.service.services import services
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from tests.support.clock import ManualClock
from tests.support.json_contract import check_json
from tests.support.json_schemas import check_shared_schema
from tests.support.ticks import Ticks

NOW = 1_795_000_000
DAY = 86_400
SUPERUSER, ADMIN, PI, COORDINATOR, MEMBER, STRANGER, AGENT, OTHER_AGENT, OTHER_PI = (
    5000,
    5001,
    5002,
    5003,
    5004,
    5005,
    5006,
    5007,
    5100,
)
UNKNOWN = 999_999
STAFF = Staff(
    frozenset({SUPERUSER}),
    frozenset({ADMIN}),
    {AGENT: frozenset({"alpha"}), OTHER_AGENT: frozenset({"beta"})},
)
CLUSTERS = {
    "alpha": Cluster(
        "alpha", {"std": Partition("std", "cpu", parse_weights("CPU=1.0,Mem=0.5G"))}, {}
    )
}

LATE_REPORTS_POLICY = Policy(clock_tolerance_seconds=365 * DAY)
"""The test's clock stands still, so ends of runs lie in its future."""

_AS = b"x-test-uid"
_SPARE: list[Litestar] = []
"""Applications of closed worlds. Preparing the routes takes longer than a test."""
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def socket_of_tests(app: Asgi) -> Asgi:
    """Replace the Unix socket: the header X-Test-Uid names the peer. The server itself ignores such
    a header.
    """

    async def asgi(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            uids = [value for name, value in scope["headers"] if name == _AS]
            scope["headers"] = [header for header in scope["headers"] if header[0] != _AS]
            scope["extensions"] = {EXTENSION: Peer(1, int(uids[0]), int(uids[0]))} if uids else {}
        await app(scope, receive, send)

    return asgi


@dataclass
class World:
    """Served bank with a user in every role. They belong to project 1 (chem), not to project 2
    (bio).
    """

    context: AppContext
    clock: ManualClock
    ticks: Ticks
    app: Litestar
    client: TestClient[Any]
    own: dict[str, int] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1_000))

    def ask(
        self,
        method: str,
        path: str,
        uid: int | None = None,
        *,
        as_: object = None,
        token: str | None = None,
        **more: Any,
    ) -> httpx.Response:
        """Send a request with a token, or over the Unix socket as `uid`."""
        headers = dict(more.pop("headers", {}))
        if uid is not None:
            headers["X-Test-Uid"] = str(uid)
        if as_ is not None:
            headers["X-Fairbank-As"] = str(as_)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        response = self.client.request(method, path, headers=headers, **more)
        if "json" in response.headers.get("content-type", "") and response.content:
            check_json(response.json())
            check_shared_schema(response.json())
        return response

    def request(self, *requests: Request) -> list[Done | Refusal]:
        """Apply requests to the ledger directly, to prepare a test."""
        return self.context.services.write_queue.apply(
            [SubmittedRequest(request, self.clock.now(), SUPERUSER) for request in requests]
        )

    def token(self, uid: int, *scopes: str, days: int = 10) -> str:
        """Create a token of `uid` as the superuser and return its secret."""
        return self.context.services.tokens.create(
            identity_of(SUPERUSER, STAFF, {}), label="test", scopes=scopes, days=days, uid=uid
        )[1]

    def token_number(self, uid: int) -> int:
        """Create a token of `uid` and return its number."""
        return self.context.services.tokens.create(
            identity_of(SUPERUSER, STAFF, {}), label="test", scopes=["read"], days=10, uid=uid
        )[0].id

    def entries(self) -> int:
        with self.context.services.store.reading() as reader:
            return reader.count_entries()


@contextmanager
def create_world(store: Store | None = None, *, empty: bool = True, **more: Any) -> Iterator[World]:
    """Create a world, closed after the block.

    Args:
        store: default: a new one in memory.
        empty: fill the store with the projects; False for a second server on a filled store.
    """
    clock, ticks = ManualClock(NOW), Ticks()
    settings = {"staff": STAFF, "clusters": CLUSTERS, "policy": LATE_REPORTS_POLICY, **more}
    context = AppContext.create(
        services(store or MemoryStore(), clock=clock, monotonic=ticks, key=b"k" * 32, **settings)
    )
    try:
        app = _SPARE.pop() if _SPARE else create_app(context)
        equip(app, context)
        with TestClient(
            socket_of_tests(with_middleware(app, context)), raise_server_exceptions=False
        ) as client:
            world = World(context, clock, ticks, app, client)
            if empty:
                _people(world)
            yield world
        _SPARE.append(app)
    finally:
        context.services.close()


def _people(world: World) -> None:
    world.own = _project(
        world, "chem", {PI: Role.PI, COORDINATOR: Role.COORDINATOR, MEMBER: Role.MEMBER}, MEMBER
    )
    world.foreign = _project(world, "bio", {OTHER_PI: Role.PI}, OTHER_PI)
    world.context.services.project_cache.refresh()


def _project(world: World, name: str, members: dict[int, Role], owner: int) -> dict[str, int]:
    """Create a project with two consecutive allocations, a charged run, an open run and a refusal;
    return their numbers.
    """
    number = next(world.numbers)
    project = (
        done(world.request(CreateProject(gname=name, gid=number, account=name))[0]).project or 0
    )
    world.request(
        *(SetMember(project=project, uid=uid, role=role) for uid, role in members.items())
    )
    spans = [(NOW - 90 * DAY, NOW + 90 * DAY), (NOW + 90 * DAY, NOW + 180 * DAY)]
    opened = [
        Open(
            terms=AllocationTerms(
                project=project,
                resource="cpu",
                category="research",
                start=Instant(start),
                end=Instant(end),
            ),
            deposit=SuMinutes(600_000),
        )
        for start, end in spans
    ]
    allocation, later = (done(outcome).allocation or 0 for outcome in world.request(*opened))
    run = Run("alpha", number, NOW - 3_600)
    held = hold(run, project, owner, 60_000)
    charged = Charge(
        reported=held.reported,
        owner=owner,
        amount=SuMinutes(30_000),
        end=RunEnd("COMPLETED", 1_800, Instant(NOW)),
    )
    job = done(world.request(held, charged)[0]).run or 0
    world.request(hold(Run("alpha", number, NOW - 60), project, owner, 60))
    refusal = world.request(hold(Run("alpha", number + 1_000_000, NOW), project, owner, 10**9))[0]
    assert isinstance(refusal, Refusal)
    return {
        "project": project,
        "allocation": allocation,
        "later": later,
        "job": job,
        "failure": refusal.entry or 0,
    }


def hold(run: Run, project: int, owner: int, amount: int) -> Hold:
    return Hold(
        reported=ReportedRun(run, project, "", Instant(NOW), Instant(NOW + DAY)),
        chain=(project,),
        resource="cpu",
        owner=owner,
        amount=SuMinutes(amount),
    )


def done(outcome: Done | Refusal) -> Done:
    assert isinstance(outcome, Done), outcome
    return outcome


def report(job_id: int, **more: Any) -> dict[str, Any]:
    """Return a hold of 1 SU for a run of chem on alpha."""
    return {
        "do": "hold",
        "cluster": "alpha",
        "job_id": job_id,
        "submitted": NOW,
        "owner_uid": MEMBER,
        "account": "chem",
        "partition": "std",
        "start": NOW,
        "time_limit": 3_600,
        "billing": 1,
        **more,
    }


def grant(**more: Any) -> dict[str, Any]:
    """Return a new allocation for chem."""
    return {
        "account": "chem",
        "resource": "gpu",
        "category": "research",
        "start": iso(NOW),
        "end": iso(NOW + 90 * DAY),
        "amount": 6_000,
        "comment": "committee 2026-11",
        **more,
    }
