"""Messages of runs that come late, several times, in any order or not at all: through the real
interface, the same books.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from fairbank.bank.audit import Head
from tests.faults.audit_runs import heads as heads_of
from tests.faults.site import DAY, SU, found, granted, report
from tests.faults.tables import Books, Row
from tests.support.conditions import wait_until
from tests.support.server import FairbankServer, banking
from tests.support.wire import Answer, Wire, run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]
Message = dict[str, Any]

CREDIT = 10**9
AGO_DAYS = 3  # when the last period ended
WIRES = 8


def day(ago: int) -> str:
    """Midnight so many days ago."""
    return datetime.fromtimestamp(time.time() // DAY * DAY - ago * DAY, UTC).strftime("%Y-%m-%d")


async def open_projects(wire: Wire) -> None:
    """Two projects alike: each with credit in a period that is over, and in the present one."""
    for name, gid in (("orderly", 5_001), ("stormy", 5_002)):
        past = await found(wire, name, gid, credit=CREDIT, start=day(30), end=day(-1))
        ending = {"event": "end", "end": day(AGO_DAYS), "comment": "it is over"}
        (await wire.ask("PATCH", f"/alloc/{past}", ending)).data  # noqa: B018 (must be good)
        await granted(wire, name, credit=CREDIT, start=day(AGO_DAYS), end=day(-30))


def lives(number: int, rng: random.Random) -> Iterator[list[Message]]:
    """Generate the reports of the runs of one job. It may be requeued, and its number may come
    again.
    """
    submitted = (int(time.time()) // DAY - rng.choice([0, 1, AGO_DAYS + 2, 9])) * DAY
    for epoch in range(rng.choice([1, 1, 2])):
        for restart in range(rng.choice([1, 1, 2])):
            yield list(life(number, submitted + epoch * 1_000, restart, rng))


def life(number: int, submitted: int, restart: int, rng: random.Random) -> Iterator[Message]:
    """A start, perhaps changes of the limit, an end; each under a key, or all without."""
    keyed = rng.random() < 0.7
    owner = 1_000 + number % 7
    changes = [
        ("adjust", {"amount": rng.randrange(1, 60) * SU, "time_limit": 7_201 + change})
        for change in range(rng.choice([0, 1, 2]))
    ]
    end = (
        {"state": "NODE_FAIL", "amount": 0}
        if rng.random() < 0.2
        else {"amount": rng.choice([rng.randrange(1, SU), 90 * SU])}
    )
    for place, (do, more) in enumerate(
        [("hold", {"amount": 20 * SU}), *changes, ("complete", end)]
    ):
        key = {"key": f"{number}.{submitted}.{restart}.{place}"} if keyed else {}
        yield report(
            do, "orderly", number, submitted=submitted, owner=owner, restart=restart, **more, **key
        )


def stormy(message: Message) -> Message:
    """The same for the other project: another cluster's job, another key, nothing else."""
    changed = message | {"account": "stormy", "job_id": message["job_id"] + 1_000_000}
    return changed | {"key": f"stormy.{message['key']}"} if "key" in message else changed


def disorder(orderly: Sequence[list[Message]], rng: random.Random) -> list[Message]:
    """All but some starts and changes, each one to five times, in any order."""
    kept = [
        stormy(message)
        for messages in orderly
        for message in messages
        if message["do"] == "complete" or rng.random() > 0.15
    ]
    copies = [message for message in kept for _ in range(rng.choice([1, 1, 2, 3, 5]))]
    rng.shuffle(copies)
    return copies


async def send(wire: Wire, messages: Sequence[Message]) -> list[Answer]:
    """One at a time, or many at once: the answers, none of them a failure."""
    path, body = (
        ("/job", messages[0]) if len(messages) == 1 else ("/job/bulk", {"reports": messages})
    )
    answer = await wire.ask("POST", path, body)
    assert answer.status < 500 and answer.status not in (400, 403), answer  # noqa: PT018
    if len(messages) > 1:
        assert all(
            row["status"] < 500 and row["status"] not in (400, 403) for row in answer.data
        ), answer
    return [answer]


async def pour(server: FairbankServer, messages: list[Message], rng: random.Random) -> None:
    """Send everything over several connections at once, in parcels of any size."""
    waiting = iter(messages)

    async def carry(wire: Wire) -> None:
        while parcel := list(islice(waiting, rng.choice([1, 1, 1, 2, 17]))):
            await send(wire, parcel)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WIRES):
            tasks.create_task(carry(Wire(server.socket)))


def final(books: Books, account: str) -> tuple[list[Row], list[Row], list[Row]]:
    """Return the final state of a project: balances, sums of its users, runs."""
    mine = (
        "IN (SELECT a.id FROM allocation a JOIN project p ON p.id = a.project WHERE p.account ="
        " :account)"
    )
    balances = books.rows(
        f"SELECT start_at, deposited, charged, held FROM allocation WHERE id {mine} ORDER BY"
        " start_at",
        account=account,
    )
    users = books.rows(
        "SELECT a.start_at, u.uid, u.charged, u.held FROM user_sum u JOIN allocation a ON a.id ="
        f" u.allocation WHERE a.id {mine} ORDER BY a.start_at, u.uid",
        account=account,
    )
    runs = books.rows(
        "SELECT a.start_at AS period, r.job_id % 1000000 AS job, submitted, restart, r.state,"
        " r.held, r.charged, written_off, outcome FROM run r JOIN allocation a ON a.id ="
        f" r.allocation WHERE a.id {mine} ORDER BY job, submitted, restart",
        account=account,
    )
    return balances, users, runs


async def tell_both_ways(server: FairbankServer, jobs: int, seed: int) -> list[Message]:
    """In order for one project, in disorder for the other, both at once. What was sent in
    disorder.
    """
    rng = random.Random(seed)
    wire = Wire(server.socket)
    await open_projects(wire)
    orderly = [messages for number in range(1, jobs + 1) for messages in lives(number, rng)]
    storm = disorder(orderly, rng)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pour(server, storm, rng))
        for messages in orderly:
            for message in messages:
                answer = await wire.ask("POST", "/job", message)
                refused = answer.status in (402, 404, 409)
                assert answer.status in (200, 201) or refused, answer.body
    return storm


def campaign(server: FairbankServer, jobs: int, seed: int, tell: Tell) -> None:
    """Both projects end alike, and whatever is said once more changes nothing; said a third time,
    it does not leave a line.
    """
    storm = run(tell_both_ways(server, jobs, seed))
    books, rng = Books(server.store), random.Random(seed)
    due = final(books, "orderly")
    assert final(books, "stormy") == due
    heads: dict[int, Head] = {}
    for _ in range(2):
        before, heads = heads, heads_of(server.store)
        rng.shuffle(storm)
        run(pour(server, storm, rng))
        assert final(books, "stormy") == due
    assert heads_of(server.store) == heads != before
    audit = server.command("audit", "verify")
    tell(
        f"{len(storm)} messages of {len(due[2])} runs in disorder, and twice again;"
        f" {audit.stdout.strip()}"
    )
    assert audit.returncode == 0, audit.stdout


@pytest.mark.campaign
def test_any_order_any_copies_any_losses_on_postgresql(
    database: str, rounds: Rounds, seed: int, tell: Tell
) -> None:
    with banking(database) as server:
        campaign(server, rounds(3_000, 120), seed, tell)


@pytest.mark.campaign
def test_any_order_any_copies_any_losses_on_sqlite(rounds: Rounds, seed: int, tell: Tell) -> None:
    with banking() as server:
        campaign(server, rounds(3_000, 120), seed, tell)


@pytest.mark.slow
def test_reports_in_any_order_give_the_same_ledger(database: str, tell: Tell) -> None:
    with banking(database) as server:
        campaign(server, 30, 1, tell)


# --- a settlement without a hold ---


async def settle(server: FairbankServer) -> tuple[Answer, Answer, list[Answer], Answer]:
    """The end of a run without its start; the refusals; the start and the end again; the
    balance.
    """
    wire = Wire(server.socket)
    await found(wire, "physics", 5_000, credit=100 * SU)
    facts = {"submitted": int(time.time()), "owner": 7}
    end = report("complete", "physics", 1, amount=5 * SU, key="end", **facts)
    first = await wire.ask("POST", "/job", end)
    failures = await wire.ask("GET", "/failure?account=physics")
    later = [
        await wire.ask("POST", "/job", message)
        for message in (report("hold", "physics", 1, amount=20 * SU, key="start", **facts), end)
    ]
    balance = await wire.ask("GET", "/balance")
    return first, failures, later, balance


@pytest.mark.campaign
def test_a_settlement_without_a_hold_is_a_late_charge() -> None:
    with banking() as server:
        charged, failures, (hold, end), balance = run(settle(server))
        assert (charged.status, charged.data["amount"], failures.data) == (201, 5 * SU, [])
        assert (hold.status, hold.body["refusal"]["reason"]) == (409, "RUN_CLOSED")
        assert (end.status, end.data) == (200, charged.data | {"again": True})
        assert [(row["charged"], row["held"]) for row in balance.data] == [(5 * SU, 0)]


@pytest.mark.slow
def test_where_policy_wants_no_late_charges_it_is_refused_kept_and_never_lost() -> None:
    with banking(policy="late_charges = false") as server:
        refused, failures, (hold, end), balance = run(settle(server))
        assert (refused.status, refused.body["refusal"]["reason"]) == (404, "NO_HOLD")
        (kept,) = failures.data
        assert (kept["id"], kept["reason"], kept["job_id"], kept["asked"]) == (
            refused.body["refusal"]["entry"],
            "NO_HOLD",
            1,
            5 * SU,
        )
        assert (hold.status, end.status) == (201, 201)  # the end had only come too early
        assert [(row["charged"], row["held"]) for row in balance.data] == [(5 * SU, 0)]
        assert server.command("audit", "verify").returncode == 0


@pytest.mark.campaign
@pytest.mark.usefixtures("at_length")
def test_a_hold_whose_end_was_lost_lapses_and_a_very_late_end_still_counts() -> None:
    """The server sweeps once a minute, so this takes more than one; tests/bank/test_report_order.py has
    the rule itself.
    """
    with banking(policy="hold_grace_seconds = 1") as server:
        run(lapse(server))
        assert server.command("audit", "verify").returncode == 0


async def lapse(server: FairbankServer) -> None:
    wire = Wire(server.socket)
    await found(wire, "physics", 5_000, credit=100 * SU)
    facts = {"submitted": int(time.time()) - 2 * DAY, "owner": 7}
    answer = await wire.ask("POST", "/job", report("hold", "physics", 1, amount=20 * SU, **facts))
    assert 200 <= answer.status < 300, answer.body

    def open_holds() -> list[Row]:
        return Books(server.store).rows("SELECT id FROM run WHERE state = 'held'")

    await asyncio.to_thread(wait_until, lambda: not open_holds(), "the hold to lapse", seconds=100)
    assert (await wire.ask("GET", "/balance")).data[0]["available"] == 100 * SU
    late = await wire.ask("POST", "/job", report("complete", "physics", 1, amount=5 * SU, **facts))
    assert (late.data["amount"], late.data["available"]) == (5 * SU, 95 * SU)
