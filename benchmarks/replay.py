"""The main job: a synthetic month of jobs run through a bank, on each store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.books import MEMORY, postgres_server, sqlite_folder
from benchmarks.measure import Figure, Say, Table
from fairbank.bank.policy import Policy
from fairbank.service.bank import Bank
from fairbank.service.replay import Plan, Replayed, replay
from fairbank.service.traces import open_trace
from fairbank.simulator.centre import Centre
from fairbank.simulator.swf import write
from fairbank.simulator.workload import month
from fairbank.store.migrating import migrate
from fairbank.store.opening import open_store
from tests.support.postgres import PostgresServer

SEED = 1


def measure(*, short: bool, say: Say) -> list[Table]:
    rounds = 2 if short else 7
    with ExitStack() as stack:
        folder = stack.enter_context(sqlite_folder())
        server, _ = stack.enter_context(postgres_server())
        trace = folder / "month.swf"
        trace.write_text("".join(write(*month(Centre(), SEED))))
        seen: dict[str, list[Replayed]] = {"memory": [], "SQLite": [], "PostgreSQL": []}
        numbers = count()
        for number in range(rounds):
            for name, came in seen.items():
                say(f"{name}, round {number + 1} of {rounds}")
                with _new_store(name, folder / f"{next(numbers)}.sqlite", server) as url:
                    came.append(_replayed(url, trace))
    jobs = Centre().jobs
    about = f"The synthetic month of `fairbank demo`: {jobs:,} jobs, each start a hold, each end a charge or a release."
    figures = (Figure(name, "operations/s", tuple(each.operations / each.seconds for each in came)) for name, came in seen.items())
    return [Table("A month replayed", about, tuple(figures))]


@contextmanager
def _new_store(name: str, file: Path, server: PostgresServer) -> Iterator[str]:
    if name == "PostgreSQL":
        with server.fresh_database() as database:
            yield server.url(database)
    else:
        yield MEMORY if name == "memory" else f"sqlite:///{file}"


def _replayed(url: str, trace: Path) -> Replayed:
    migrate(url)
    store = open_store(url)
    try:
        came = replay(Bank(store, Policy()), partial(open_trace, trace), Plan(cluster="bench"))
    finally:
        store.close()
    wrong = [check.what for check in came.checks if not check.held]
    if wrong:
        raise RuntimeError(f"the replay broke a rule: {wrong[0]}")
    return came
