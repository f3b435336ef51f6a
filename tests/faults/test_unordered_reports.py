"""Late, repeated, unordered and lost reports give the same ledger, through HTTP."""

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
from tests.faults.in_process import heads as heads_of
from tests.faults.ledger_tables import LedgerTables, Row
from tests.faults.site import DAY, SU, add_allocation, create_project, report
from tests.support.conditions import wait_until
from tests.support.figures import LogFigure
from tests.support.server import FairbankServer, run_bank
from tests.support.wire import Answer, Wire, run

Rounds = Callable[[int, int], int]
Message = dict[str, Any]

CREDIT = 10**9
AGO_DAYS = 3  # when the last period ended
WIRES = 8


def day(ago: int) -> str:
    """Return the date so many days ago."""
    return datetime.fromtimestamp(time.time() // DAY * DAY - ago * DAY, UTC).strftime("%Y-%m-%d")


async def open_projects(wire: Wire) -> None:
    """Create two equal projects, each with credit in a past and in the present period."""
    for name, gid in (("ordered", 5_001), ("unordered", 5_002)):
        past = await create_project(wire, name, gid, credit=CREDIT, start=day(30), end=day(-1))
        ending = {"event": "end", "end": day(AGO_DAYS), "comment": "it is over"}
        (await wire.ask("PATCH", f"/alloc/{past}", ending)).data  # noqa: B018 (must be good)
        await add_allocation(wire, name, credit=CREDIT, start=day(AGO_DAYS), end=day(-30))


def reports_of_job(number: int, rng: random.Random) -> Iterator[list[Message]]:
    """Generate the reports of the runs of one job. It may be requeued, and its number may be used
    again.
    """
    submitted = (int(time.time()) // DAY - rng.choice([0, 1, AGO_DAYS + 2, 9])) * DAY
    for epoch in range(rng.choice([1, 1, 2])):
        for restart in range(rng.choice([1, 1, 2])):
            yield list(reports_of_run(number, submitted + epoch * 1_000, restart, rng))


def reports_of_run(
    number: int, submitted: int, restart: int, rng: random.Random
) -> Iterator[Message]:
    """Generate a start, changes of the limit and an end, all with a key or all without."""
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
            do, "ordered", number, submitted=submitted, owner=owner, restart=restart, **more, **key
        )


def for_unordered_project(message: Message) -> Message:
    """Return the same report for the other project, with another job number and key."""
    changed = message | {"account": "unordered", "job_id": message["job_id"] + 1_000_000}
    return changed | {"key": f"unordered.{message['key']}"} if "key" in message else changed


def shuffle_reports(ordered: Sequence[list[Message]], rng: random.Random) -> list[Message]:
    """Drop some starts and changes, repeat each report up to five times, and shuffle them."""
    remaining = [
        for_unordered_project(message)
        for messages in ordered
        for message in messages
        if message["do"] == "complete" or rng.random() > 0.15
    ]
    copies = [message for message in remaining for _ in range(rng.choice([1, 1, 2, 3, 5]))]
    rng.shuffle(copies)
    return copies


async def send(wire: Wire, messages: Sequence[Message]) -> list[Answer]:
    """Send one report, or several in a batch, and check that the bank accepts the form."""
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


async def send_concurrently(
    server: FairbankServer, messages: list[Message], rng: random.Random
) -> None:
    """Send all reports over several connections at once, in batches of random size."""
    waiting = iter(messages)

    async def send_rest(wire: Wire) -> None:
        while parcel := list(islice(waiting, rng.choice([1, 1, 1, 2, 17]))):
            await send(wire, parcel)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WIRES):
            tasks.create_task(send_rest(Wire(server.socket)))


def final_state(tables: LedgerTables, account: str) -> tuple[list[Row], list[Row], list[Row]]:
    """Return the final state of a project: balances, sums of its users, runs."""
    allocations_of_project = (
        "IN (SELECT a.id FROM allocation a JOIN project p ON p.id = a.project WHERE p.account ="
        " :account)"
    )
    balances = tables.rows(
        "SELECT start_at, deposited, charged, held FROM allocation WHERE id"
        f" {allocations_of_project} ORDER BY start_at",
        account=account,
    )
    users = tables.rows(
        "SELECT a.start_at, u.uid, u.charged, u.held FROM user_sum u JOIN allocation a ON a.id ="
        f" u.allocation WHERE a.id {allocations_of_project} ORDER BY a.start_at, u.uid",
        account=account,
    )
    runs = tables.rows(
        "SELECT a.start_at AS period, r.job_id % 1000000 AS job, submitted, restart, r.state,"
        " r.held, r.charged, written_off, outcome FROM run r JOIN allocation a ON a.id ="
        f" r.allocation WHERE a.id {allocations_of_project} ORDER BY job, submitted, restart",
        account=account,
    )
    return balances, users, runs


async def send_to_both_projects(server: FairbankServer, jobs: int, seed: int) -> list[Message]:
    """Send the reports in order to one project, and shuffled to the other. Return the shuffled
    reports.
    """
    rng = random.Random(seed)
    wire = Wire(server.socket)
    await open_projects(wire)
    ordered = [
        messages for number in range(1, jobs + 1) for messages in reports_of_job(number, rng)
    ]
    shuffled = shuffle_reports(ordered, rng)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(send_concurrently(server, shuffled, rng))
        for messages in ordered:
            for message in messages:
                answer = await wire.ask("POST", "/job", message)
                refused = answer.status in (402, 404, 409)
                assert answer.status in (200, 201) or refused, answer.body
    return shuffled


def campaign(server: FairbankServer, jobs: int, seed: int, log_figure: LogFigure) -> None:
    """Check that both projects end equal, that repeated reports change nothing, and that a third
    repetition writes no entry.
    """
    shuffled = run(send_to_both_projects(server, jobs, seed))
    tables, rng = LedgerTables(server.store), random.Random(seed)
    expected = final_state(tables, "ordered")
    assert final_state(tables, "unordered") == expected
    heads: dict[int, Head] = {}
    for _ in range(2):
        before, heads = heads, heads_of(server.store)
        rng.shuffle(shuffled)
        run(send_concurrently(server, shuffled, rng))
        assert final_state(tables, "unordered") == expected
    assert heads_of(server.store) == heads != before
    audit = server.command("audit", "verify")
    log_figure(
        f"{len(shuffled)} messages of {len(expected[2])} runs in disorder, and twice again;"
        f" {audit.stdout.strip()}"
    )
    assert audit.returncode == 0, audit.stdout


@pytest.mark.campaign
def test_unordered_repeated_and_lost_reports_give_the_same_ledger_on_postgresql(
    database: str, rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with run_bank(database) as server:
        campaign(server, rounds(3_000, 120), seed, log_figure)


@pytest.mark.campaign
def test_unordered_repeated_and_lost_reports_give_the_same_ledger_on_sqlite(
    rounds: Rounds, seed: int, log_figure: LogFigure
) -> None:
    with run_bank() as server:
        campaign(server, rounds(3_000, 120), seed, log_figure)


@pytest.mark.slow
def test_reports_in_any_order_give_the_same_ledger(database: str, log_figure: LogFigure) -> None:
    with run_bank(database) as server:
        campaign(server, 30, 1, log_figure)


# --- end without a hold ---


async def report_end_without_hold(
    server: FairbankServer,
) -> tuple[Answer, Answer, list[Answer], Answer]:
    """Report the end of a run without its start, then the start and the end. Return the first
    answer, the refusals, the later answers and the balance.
    """
    wire = Wire(server.socket)
    await create_project(wire, "physics", 5_000, credit=100 * SU)
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
def test_end_without_hold_is_a_late_charge() -> None:
    with run_bank() as server:
        charged, failures, (hold, end), balance = run(report_end_without_hold(server))
        assert (charged.status, charged.data["amount"], failures.data) == (201, 5 * SU, [])
        assert (hold.status, hold.body["refusal"]["reason"]) == (409, "RUN_CLOSED")
        assert (end.status, end.data) == (200, charged.data | {"again": True})
        assert [(row["charged"], row["held"]) for row in balance.data] == [(5 * SU, 0)]


@pytest.mark.slow
def test_end_without_hold_is_refused_and_stored_if_late_charges_are_off() -> None:
    with run_bank(policy="late_charges = false") as server:
        refused, failures, (hold, end), balance = run(report_end_without_hold(server))
        assert (refused.status, refused.body["refusal"]["reason"]) == (404, "NO_HOLD")
        (remaining,) = failures.data
        assert (
            remaining["id"],
            remaining["reason"],
            remaining["job_id"],
            remaining["requested"],
        ) == (refused.body["refusal"]["entry"], "NO_HOLD", 1, 5 * SU)
        assert (hold.status, end.status) == (201, 201)  # the end had only arrived too early
        assert [(row["charged"], row["held"]) for row in balance.data] == [(5 * SU, 0)]
        assert server.command("audit", "verify").returncode == 0


@pytest.mark.campaign
@pytest.mark.usefixtures("long_form")
def test_hold_without_end_lapses_and_its_late_end_is_charged() -> None:
    """The server closes expired holds once a minute, so this takes more than a minute;
    tests/bank/test_report_order.py tests the rule itself.
    """
    with run_bank(policy="hold_grace_seconds = 1") as server:
        run(lapse(server))
        assert server.command("audit", "verify").returncode == 0


async def lapse(server: FairbankServer) -> None:
    wire = Wire(server.socket)
    await create_project(wire, "physics", 5_000, credit=100 * SU)
    facts = {"submitted": int(time.time()) - 2 * DAY, "owner": 7}
    answer = await wire.ask("POST", "/job", report("hold", "physics", 1, amount=20 * SU, **facts))
    assert 200 <= answer.status < 300, answer.body

    def open_holds() -> list[Row]:
        return LedgerTables(server.store).rows("SELECT id FROM run WHERE state = 'held'")

    await asyncio.to_thread(wait_until, lambda: not open_holds(), "the hold to lapse", seconds=100)
    assert (await wire.ask("GET", "/balance")).data[0]["available"] == 100 * SU
    late = await wire.ask("POST", "/job", report("complete", "physics", 1, amount=5 * SU, **facts))
    assert (late.data["amount"], late.data["available"]) == (5 * SU, 95 * SU)
