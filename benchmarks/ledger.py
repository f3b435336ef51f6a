"""The ledger: holds and charges a second, beside the same writes by hand and beside pgbench."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import msgspec

from benchmarks.books import ACTOR, RESOURCE, Books, books, postgres_server, sqlite_folder
from benchmarks.loops import CHARGED, ENDED, HELD, LINK, STARTED, UID, Loop, PostgresCopyLoop, PostgresLoop, SqliteLoop
from benchmarks.measure import Figure, Promise, Say, Table, at_least, rates, ratio
from benchmarks.pgbench import SCRIPT, Pgbench
from fairbank.bank.wish import Asked, Charge, Hold
from fairbank.cluster.job import Run
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes
from tests.support.postgres import Installation, PostgresServer

ALLOCATIONS = 1_000
BATCHES = (1, 100, 1_000)
BANK, LOOP, COPY, PGBENCH = "Fairbank", "loop by hand", "loop by hand, COPY", "pgbench"
PGBENCH_CLIENTS = (1, 8)

FIRST = 1_000_000  # where loops begin to number: beyond the entries that opened the books
STARTS = Instant(1_700_000_000)

Work = Callable[[int, int], int]
"""Does so many holds and their charges in batches of such a size; answers the number of operations."""


class Scale(msgspec.Struct, frozen=True):
    """How many rounds, and how many pairs of hold and charge in each, for each size of a batch."""

    rounds: int
    pairs: dict[int, int]


LONG = Scale(7, {1: 300, 100: 6_000, 1_000: 10_000})
SHORT = Scale(2, {1: 50, 100: 1_500, 1_000: 3_000})


def measure(*, short: bool, say: Say) -> list[Table]:
    scale = SHORT if short else LONG
    tables = []
    for database, open_contenders in (("SQLite", _on_sqlite), ("PostgreSQL", _on_postgres)):
        spread = _Case(database, "spread over 1,000 allocations", ALLOCATIONS)
        hot = _Case(database, "all on one allocation", 1)
        seen = {}
        for case in (spread, hot):
            with open_contenders(case.allocations) as contenders:
                for batch in BATCHES:
                    say(f"{database}, {case.name}, batches of {batch}")
                    works = {
                        name: partial(work, scale.pairs[batch], batch)
                        for name, work in contenders.items()
                        if batch == 1 or not name.startswith(PGBENCH)  # which knows no batches
                    }
                    seen[case.name, batch] = rates(works, scale.rounds)
        tables += [_table(each, batch, seen[each.name, batch], seen[spread.name, batch]) for each in (spread, hot) for batch in BATCHES]
    return tables


class _Case(msgspec.Struct, frozen=True):
    database: str
    name: str
    allocations: int


def _table(case: _Case, batch: int, seen: dict[str, Figure], spread: dict[str, Figure]) -> Table:
    title = f"{case.database}, {case.name}, " + ("one at a time" if batch == 1 else f"batches of {batch:,}")
    about = "Holds and charges, one batch of holds and then one of their charges in turn; every commit is durable."
    return Table(title, about, tuple(seen.values()), tuple(_promises(case, batch, seen, spread)))


def _promises(case: _Case, batch: int, seen: dict[str, Figure], spread: dict[str, Figure]) -> Iterator[Promise]:
    ours, loop = seen[BANK], seen[LOOP]
    if batch > 1:
        yield ratio("of the loop by hand", ours, loop, 0.7)
        if case.database == "PostgreSQL" and case.allocations > 1:
            # The promise is 25,000 where the loop does 40,000. A slower machine owes as much less.
            yield at_least("operations/s, for a loop of 40,000/s", ours, min(25_000, 25_000 / 40_000 * loop.median))
    if case.allocations == 1:
        yield ratio("of the spread case", ours, spread[BANK], 0.5)


# --- contenders, each on a database of its own ---


@contextmanager
def _on_sqlite(allocations: int) -> Iterator[dict[str, Work]]:
    with ExitStack() as stack:
        folder = stack.enter_context(sqlite_folder())
        ours = stack.enter_context(books(f"sqlite:///{folder}/bank.sqlite", allocations))
        theirs = stack.enter_context(books(f"sqlite:///{folder}/loop.sqlite", allocations))
        yield {BANK: _Bank(ours).work, LOOP: _loop(stack, SqliteLoop(folder / "loop.sqlite", theirs.allocations, FIRST))}


@contextmanager
def _on_postgres(allocations: int) -> Iterator[dict[str, Work]]:
    with ExitStack() as stack:
        server, installation = stack.enter_context(postgres_server())
        folder = stack.enter_context(sqlite_folder())

        def fresh() -> tuple[str, Books]:
            name = stack.enter_context(server.fresh_database())
            return server.conninfo(name), stack.enter_context(books(server.url(name), allocations))

        _, ours = fresh()
        contenders = {BANK: _Bank(ours).work}
        for name, kind in ((LOOP, PostgresLoop), (COPY, PostgresCopyLoop)):
            where, theirs = fresh()
            contenders[name] = _loop(stack, kind(where, theirs.allocations, FIRST))
        where, _ = fresh()
        yield contenders | dict(_pgbench(installation, where, folder, allocations))


def _loop(stack: ExitStack, loop: Loop) -> Work:
    stack.callback(loop.close)
    return loop.work


def _pgbench(installation: Installation, conninfo: str, folder: Path, allocations: int) -> Iterator[tuple[str, Work]]:
    if not (installation.home / "bin" / "pgbench").exists():
        return
    script = folder / "hold-and-charge.sql"
    script.write_text(SCRIPT.format(allocations=allocations, started=_spaced(STARTED), ended=_spaced(ENDED), link=LINK.hex()))
    for clients in PGBENCH_CLIENTS:
        yield f"{PGBENCH}, {clients} clients" if clients > 1 else f"{PGBENCH}, 1 client", Pgbench(installation, conninfo, script, clients).work


def _spaced(details: str) -> str:
    """pgbench takes what follows a colon at once for a variable."""
    return details.replace(":", ": ")


class _Bank:
    """The bank, asked as the loops work: so many holds, then their charges."""

    def __init__(self, to: Books) -> None:
        self._bank, self._projects = to.bank, to.projects
        self._jobs = count(1)

    def work(self, pairs: int, batch: int) -> int:
        for begin in range(0, pairs, batch):
            runs = [Run("loop", next(self._jobs), STARTS, 0) for _ in range(min(batch, pairs - begin))]
            self._bank.ask([Asked(self._hold(run), STARTS, ACTOR) for run in runs])
            self._bank.ask([Asked(_charge(run), STARTS, ACTOR) for run in runs])
        return 2 * pairs

    def _hold(self, run: Run) -> Hold:
        return Hold(
            run=run,
            line=(self._projects[run.job_id % len(self._projects)],),
            resource=RESOURCE,
            owner=UID,
            amount=SuMinutes(HELD),
            start=STARTS,
            until=Instant(STARTS + 90_000),
            partition="cpu",
        )


def _charge(run: Run) -> Charge:
    return Charge(run=run, amount=SuMinutes(CHARGED), ended=Instant(STARTS + 1_800), outcome="COMPLETED", elapsed_seconds=1_800)
