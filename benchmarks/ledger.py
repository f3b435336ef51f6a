"""Ledger: holds and charges per second, beside the same writes by hand and beside pgbench."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.bank import (
    ACTOR,
    RESOURCE,
    BenchmarkBank,
    benchmark_bank,
    postgres_server,
    sqlite_folder,
)
from benchmarks.manual_loops import (
    CHARGED,
    HELD,
    STARTS,
    UID,
    LinkingSqliteLoop,
    Loop,
    PostgresCopyLoop,
    PostgresLoop,
    SqliteLoop,
)
from benchmarks.measure import Figure, Say, Table, Target, at_least, rate_each, ratio
from benchmarks.pgbench import Pgbench
from fairbank.bank.requests import Charge, Hold, SubmittedRequest
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.cluster.job import Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

REMARK = """
The loop by hand knows that its request is granted, and only writes. With one allocation it updates
one row per batch, so the bank's other work per request (finding the run and the key, applying the
rules, linking the entry) weighs most there. pgbench writes row by row, also in a batch.
"""
ABOUT = (
    "Holds, then the charges of the same jobs, and so on. Every commit is durable. The jobs are "
    "spread over 1,000 allocations, or all of them use one."
)
COPYING = (
    " The target compares with the loop that writes one statement per table with whole columns as"
    " arrays: the bank writes in the same way, so the ratio shows the cost of the rules. COPY,"
    " which PostgreSQL has for loading tables, is the fastest way by hand that we know; it is shown"
    " for comparison, without a target."
)

BATCHES = (1, 100, 1_000)
BANK, LOOP, LINKING, COPY = (
    "Fairbank",
    "loop by hand",
    "loop by hand, links computed",
    "loop by hand, with COPY",
)
HOT = ", one allocation"
SPREADS = {"": 1_000, HOT: 1}
FIRST = 1_000_000  # where loops begin to number: beyond the entries that opened the journals


class Scale(msgspec.Struct, frozen=True):
    """Number of rounds, and of pairs of hold and charge per round by batch size."""

    rounds: int
    pairs: dict[int, int]


LONG = Scale(7, {1: 300, 100: 6_000, 1_000: 10_000})
SHORT = Scale(2, {1: 50, 100: 1_500, 1_000: 3_000})


class Contender(NamedTuple):
    """Function that does so many pairs in batches of a size and returns the number of
    operations.
    """

    work: Callable[[int, int], int]
    batches: tuple[int, ...] = BATCHES


def measure(*, short: bool, say: Say) -> list[Table]:
    scale = SHORT if short else LONG
    tables = []
    for database, contending in (("SQLite", _on_sqlite), ("PostgreSQL", _on_postgres)):
        with contending() as contenders:
            for batch in BATCHES:
                say(f"{database}, batches of {batch}")
                works = {
                    name: partial(contender.work, scale.pairs[batch], batch)
                    for name, contender in contenders.items()
                    if batch in contender.batches
                }
                tables.append(_table(database, batch, rate_each(works, scale.rounds)))
    return tables


def _table(database: str, batch: int, seen: Mapping[str, Figure]) -> Table:
    size = "one at a time" if batch == 1 else f"batches of {batch:,}"
    about = ABOUT + (COPYING if database == "PostgreSQL" and batch > 1 else "")
    return Table(
        f"The ledger on {database}, {size}",
        about,
        tuple(seen.values()),
        tuple(_promises(database, batch, seen)),
    )


def _promises(database: str, batch: int, seen: Mapping[str, Figure]) -> Iterator[Target]:
    if batch > 1:
        for spread in SPREADS:
            yield ratio(f"{BANK} / {LOOP}{spread}", seen[BANK + spread], seen[LOOP + spread], 0.7)
            if database == "PostgreSQL":
                yield ratio(
                    f"{BANK} / {COPY}{spread}", seen[BANK + spread], seen[COPY + spread], None
                )
        if database == "PostgreSQL":
            # The promise is 25,000 where the loop does 40,000. A slower machine owes as much less.
            yield at_least(
                "where the loop does 40,000: 25,000",
                seen[BANK],
                min(25_000, 25_000 / 40_000 * seen[LOOP].median),
            )
    yield ratio("one allocation / 1,000 allocations", seen[BANK + HOT], seen[BANK], 0.5)


# --- contenders, each on a database of its own ---


@contextmanager
def _on_sqlite() -> Iterator[dict[str, Contender]]:
    with ExitStack() as stack:
        folder = stack.enter_context(sqlite_folder())

        def fresh(allocations: int) -> tuple[Path, BenchmarkBank]:
            file = folder / f"{next(numbers)}.sqlite"
            return file, stack.enter_context(benchmark_bank(f"sqlite:///{file}", allocations))

        numbers = count()
        contenders = {}
        for spread, allocations in SPREADS.items():
            _, ours = fresh(allocations)
            contenders[BANK + spread] = Contender(Holder(ours).work)
            for name, kind in ((LOOP, SqliteLoop), (LINKING, LinkingSqliteLoop)):
                file, theirs = fresh(allocations)
                contenders[name + spread] = _loop(stack, kind(file, theirs.allocations, FIRST))
        yield contenders


@contextmanager
def _on_postgres() -> Iterator[dict[str, Contender]]:
    with ExitStack() as stack:
        server, installation = stack.enter_context(postgres_server())

        def fresh(allocations: int) -> tuple[str, BenchmarkBank]:
            name = stack.enter_context(server.fresh_database())
            return server.conninfo(name), stack.enter_context(
                benchmark_bank(server.url(name), allocations)
            )

        contenders = {}
        for spread, allocations in SPREADS.items():
            _, ours = fresh(allocations)
            contenders[BANK + spread] = Contender(Holder(ours).work)
            for name, kind in ((LOOP, PostgresLoop), (COPY, PostgresCopyLoop)):
                where, theirs = fresh(allocations)
                contenders[name + spread] = _loop(stack, kind(where, theirs.allocations, FIRST))
            where, _ = fresh(allocations)
            for clients in (1, 8) if Pgbench.there(installation) else ():
                yardstick = Pgbench(installation, where, allocations, clients)
                contenders[f"pgbench, clients: {clients}{spread}"] = Contender(
                    yardstick.work, BATCHES if clients == 1 else (1,)
                )
        yield contenders


def _loop(stack: ExitStack, loop: Loop) -> Contender:
    stack.callback(loop.close)
    return Contender(loop.work)


class Holder:
    """Bank, driven as the loops are: a number of holds, then their charges."""

    def __init__(self, to: BenchmarkBank) -> None:
        self._bank, self._projects = to.bank, to.projects
        self._jobs = count(1)

    def work(self, pairs: int, batch: int) -> int:
        for begin in range(0, pairs, batch):
            runs = [
                Run("loop", next(self._jobs), STARTS, 0) for _ in range(min(batch, pairs - begin))
            ]
            self._bank.apply(
                [
                    SubmittedRequest(hold_of(run, self._projects), Instant(STARTS), ACTOR)
                    for run in runs
                ]
            )
            self._bank.apply(
                [
                    SubmittedRequest(charge_of(run, self._projects), Instant(STARTS), ACTOR)
                    for run in runs
                ]
            )
        return 2 * pairs


def hold_of(run: Run, projects: Sequence[int]) -> Hold:
    """Return the hold for the start of a run, in one of the projects."""
    reported = _reported(run, projects, STARTS + 90_000)
    return Hold(
        reported=reported,
        chain=(reported.project,),
        resource=RESOURCE,
        owner=UID,
        amount=SuMinutes(HELD),
    )


def charge_of(run: Run, projects: Sequence[int]) -> Charge:
    """Return the charge for the end of a run."""
    end = RunEnd("COMPLETED", 1_800, Instant(STARTS + 1_800))
    return Charge(
        reported=_reported(run, projects, end.ended), owner=UID, amount=SuMinutes(CHARGED), end=end
    )


def _reported(run: Run, projects: Sequence[int], until: int) -> ReportedRun:
    project = projects[run.job_id % len(projects)]
    return ReportedRun(run, project, "cpu", Instant(STARTS), Instant(until))
