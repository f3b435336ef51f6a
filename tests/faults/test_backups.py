"""Backups taken in the middle of a storm, restored elsewhere and into running servers; damaged ones change nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.auditing import findings, heads, restore
from tests.faults.books import Books
from tests.faults.centre import SU, found, report
from tests.faults.nemesis import answers, until, work_until
from tests.faults.storm import Storm
from tests.faults.witness import PAUSE_SECONDS, Witness, entry_of
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, banking
from tests.support.wire import Wire, run

Tell = Callable[[str], None]
Rounds = Callable[[int, int], int]

CLIENTS = 16
NAMES_SECONDS = 10  # service.directory looks again after 5


@dataclass(frozen=True)
class Taken:
    """A backup, what had been acknowledged when it was begun, and what had been asked when it was done."""

    path: Path
    before: frozenset[str]
    asked: frozenset[str]


async def filled(wire: Wire, thousands: int) -> None:
    """A history, so that a backup takes a while: so many thousand runs of a project of their own."""
    await found(wire, "history", 4_001, credit=10**9)
    for each in range(thousands):
        facts = [{"job_id": each * 1_000 + number + 1, "submitted": int(time.time()), "owner": number % 50} for number in range(1_000)]
        for do, amount in (("hold", SU), ("complete", 7)):
            reports = [report(do, "history", amount=amount, **more) for more in facts]
            assert {row["status"] for row in (await wire.ask("POST", "/job/bulk", {"reports": reports})).data} == {201}


async def taken_in_a_storm(server: FairbankServer, backups: int, seed: int, folder: Path) -> tuple[list[Taken], Witness]:
    """Backup after backup while clients work."""
    witness, over = Witness(), asyncio.Event()
    storm = Storm(CLIENTS, 0, seed)
    staff = await storm.open([server.socket], witness)
    await filled(Wire(server.socket), 5 * backups)
    taken = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(work_until(over, storm.client(number, [server.socket], witness)))
        tasks.create_task(staff.go_on(over))
        for number in range(backups):
            seen = len(witness.told)
            await until(lambda: len(witness.told) >= seen + 200, "200 more operations")  # noqa: B023 (called at once)
            before = frozenset(key for key, answer in witness.told.items() if entry_of(answer) is not None)
            path = folder / f"{number}.fbk"
            done = await asyncio.to_thread(server.command, "backup", "create", str(path))
            assert done.returncode == 0, done.stderr
            taken.append(Taken(path, before, frozenset(witness.asked)))
        over.set()
    return taken, witness


def rows(path: Path, table: str) -> Iterator[Any]:
    """The rows of one table in a backup."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            read = json.loads(line)
            if isinstance(read, list) and read[0] == table:
                yield read[1]


BOOK, SEQ, KEY, SUMS = 1, 2, 10, slice(12, 17)  # of an entry


def last_sums(path: Path) -> dict[int, list[int]]:
    """The sums after each book's last entry in a backup."""
    return {entry[BOOK]: entry[SUMS] for entry in rows(path, "entry") if entry[BOOK]}


def balances(books: Books) -> dict[int, list[int]]:
    names = ("deposited", "charged", "held", "credit_limit", "overrun")
    return {row["id"]: [row[name] for name in names] for row in books.rows("SELECT * FROM allocation")}


def check_restored(url: str, taken: Taken) -> int:
    """The restored books are those of one moment between the begin and the end of the backup. How many entries."""
    books = Books(url)
    assert findings(url) == ()
    assert balances(books) == last_sums(taken.path)
    keys = {row["key"] for row in books.rows("SELECT key FROM journal WHERE key IS NOT NULL")}
    assert taken.before <= keys <= taken.asked
    return len(books.rows("SELECT id FROM journal"))


async def works(server: FairbankServer) -> None:
    """The restored bank takes a run, and numbers it after what is there."""
    wire = Wire(server.socket)
    (last,) = Books(server.store).rows("SELECT max(id) AS id FROM journal")
    facts = {"submitted": int(time.time()), "owner": 7}
    (await wire.ask("POST", "/alloc/1/deposit", {"amount": 100 * SU, "comment": "after the restore"})).data  # noqa: B018 (must be good)
    held = await wire.ask("POST", "/job", report("hold", "physics", 99, amount=SU, **facts))
    assert held.data["entry"] > last["id"]
    ended = await wire.ask("POST", "/job", report("complete", "physics", 99, amount=7, **facts))
    assert (ended.data["run"], ended.data["amount"]) == (held.data["run"], 7)


def there_and_back(server: FairbankServer, elsewhere: Callable[[], str], backups: int, seed: int, folder: Path, tell: Tell) -> None:
    """Backups of a storm into the other kind of store; that one works; its own backup comes back into a store of the first kind."""
    taken, witness = run(taken_in_a_storm(server, backups, seed, folder))
    counts = []
    for each in taken:
        other = elsewhere()
        restore(other, each.path)
        counts.append(check_restored(other, each))
    tell(f"{len(taken)} backups of {counts} entries, of {len(witness.told)} in the end")
    with banking(other) as restored:
        run(works(restored))
        again = folder / "again.fbk"
        assert restored.command("backup", "create", str(again)).returncode == 0
        assert restored.command("audit", "verify").returncode == 0
    back = server.command("restore", str(again), "--replace")  # into the store of the server that still runs
    assert back.returncode == 0, back.stderr
    assert heads(server.store) == heads(other)
    assert server.command("audit", "verify").returncode == 0
    run(answers(server))


@pytest.fixture
def fresh(postgres18: PostgresServer) -> Iterator[Callable[[], str]]:
    """Makes fresh databases, dropped in the end."""
    made: list[Any] = []

    def make() -> str:
        made.append(postgres18.fresh_database())
        return postgres18.url(made[-1].__enter__())

    yield make
    for each in made:
        each.__exit__(None, None, None)


@pytest.mark.campaign
def test_backups_in_a_storm_go_from_sqlite_to_postgresql_and_back(
    fresh: Callable[[], str], tmp_path: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    with banking() as server:
        there_and_back(server, fresh, rounds(10, 2), seed, tmp_path, tell)


@pytest.mark.campaign
def test_backups_in_a_storm_go_from_postgresql_to_sqlite_and_back(
    database: str, tmp_path: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    files = (f"sqlite:///{tmp_path}/{number}.sqlite" for number in range(100))
    with banking(database) as server:
        there_and_back(server, lambda: next(files), rounds(10, 2), seed, tmp_path, tell)


# --- into the store of a server that is at work ---


def told_by(path: Path) -> dict[int, tuple[str, int]]:
    """What a server should answer of the books in a backup: by allocation, the account and what is available."""
    accounts = {row["id"]: row["account"] for row in rows(path, "project")}
    left = {book: sums[0] + sums[3] - sums[1] - sums[2] for book, sums in last_sums(path).items()}
    return {row["id"]: (accounts[row["project"]], left[row["id"]]) for row in rows(path, "allocation")}


async def answered(wire: Wire) -> dict[int, tuple[str, int]]:
    """What it does answer."""
    return {row["id"]: (row["account"], row["available"]) for row in (await wire.ask("GET", "/balance?all=true&limit=1000")).data}


async def tells_of(wire: Wire, due: dict[int, tuple[str, int]]) -> None:
    """The figures are the restored ones at once; names may be a few seconds old."""
    found = await answered(wire)
    assert {number: left for number, (_, left) in found.items()} == {number: left for number, (_, left) in due.items()}
    deadline = time.monotonic() + NAMES_SECONDS
    while await answered(wire) != due:
        assert time.monotonic() < deadline, f"{found} instead of {due}"
        await asyncio.sleep(PAUSE_SECONDS)


async def other_books(wire: Wire) -> None:
    """Projects of the same names as in the backup, numbered otherwise, and one that it does not have."""
    for number, name in enumerate(["chemistry", "physics", "history"]):
        await found(wire, name, 7_000 + number, credit=100_000 * SU)


async def replaced_at_rest(server: FairbankServer, backup: Path) -> None:
    wire = Wire(server.socket)
    await other_books(wire)
    assert {account for account, _ in (await answered(wire)).values()} == {"chemistry", "physics", "history"}
    done = await asyncio.to_thread(server.command, "restore", str(backup), "--replace")
    assert done.returncode == 0, done.stderr
    await tells_of(wire, told_by(backup))
    await works(server)


async def replaced_at_work(server: FairbankServer, backups: Sequence[Path], seed: int) -> Witness:
    """Clients at work while the books of their bank are replaced: none is told of a failure, and they go on in the new ones."""
    witness, over = Witness(), asyncio.Event()
    wire = Wire(server.socket)
    await other_books(wire)
    storm = Storm(CLIENTS, 0, seed)
    async with asyncio.TaskGroup() as tasks:
        for number in range(1, CLIENTS + 1):
            tasks.create_task(work_until(over, storm.client(number, [server.socket], witness)))
        for backup in backups:
            seen = len(witness.waits)
            await until(lambda: len(witness.waits) > seen + 200, "the clients to be at work")  # noqa: B023 (called at once)
            done = await asyncio.to_thread(server.command, "restore", str(backup), "--replace")
            assert done.returncode == 0, done.stderr
        seen = len(witness.waits)
        await until(lambda: len(witness.waits) > seen + 200, "the clients to be at work again")
        over.set()
    return witness


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with two projects and a few thousand entries."""
    folder = tmp_path_factory.mktemp("backup")
    with banking() as server:
        (taken,), _ = run(taken_in_a_storm(server, 1, 1, folder))
    return taken.path


@pytest.fixture(params=["sqlite", "postgresql"])
def serving(request: pytest.FixtureRequest) -> Iterator[FairbankServer]:
    """A running bank on either store."""
    with banking(request.getfixturevalue("database") if request.param == "postgresql" else None) as server:
        yield server


@pytest.mark.slow
def test_a_running_server_tells_of_the_restored_books(serving: FairbankServer, backup: Path) -> None:
    run(replaced_at_rest(serving, backup))
    assert findings(serving.store) == ()


@pytest.mark.campaign
def test_the_books_of_a_working_server_are_replaced_again_and_again(
    serving: FairbankServer, backup: Path, rounds: Rounds, seed: int, tell: Tell
) -> None:
    books = Books(serving.store)
    witness = run(replaced_at_work(serving, [backup] * rounds(20, 2), seed))
    assert findings(serving.store) == ()
    deadlocks = 0 if books.is_sqlite else books.deadlocks()
    tell(f"{witness.summary()}; deadlocks {deadlocks}")
    assert deadlocks == 0
