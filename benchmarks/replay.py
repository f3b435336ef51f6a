"""Main job: a synthetic month of jobs, and the recorded workloads, run through a bank on each
store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.bank import MEMORY, postgres_server, sqlite_folder
from benchmarks.measure import Figure, Say, Table
from benchmarks.simulate import SHARED
from benchmarks.traces import TRACES
from fairbank.bank.policy import Policy
from fairbank.service.ledger import Ledger
from fairbank.service.simulation.replay import replay
from fairbank.service.simulation.trace_files import open_trace
from fairbank.simulator.engine.replay_requests import ReplayPlan
from fairbank.simulator.results.replay_result import ReplayResult
from fairbank.simulator.traces.swf import write
from fairbank.simulator.traces.synthetic import SyntheticSite, month
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.support.postgres import PostgresServer
from tests.support.traces import trace_file

SEED = 1
ROUNDS = 5


def measure(*, short: bool, say: Say) -> list[Table]:
    """Measure. The recorded workloads take long and are skipped in the short form."""
    with ExitStack() as stack:
        folder = stack.enter_context(sqlite_folder())
        server, _ = stack.enter_context(postgres_server())
        month_file = folder / "month.swf"
        month_file.write_text("".join(write(*month(SyntheticSite(), SEED))))
        files = {"A synthetic month": month_file} | (
            {} if short else {name: trace_file(SHARED, stem) for name, stem in TRACES.items()}
        )
        urls = _Urls(folder, server)
        return [
            _table(name, file, urls, 2 if short else ROUNDS, say)
            for name, file in files.items()
            if _is_there(name, file, say)
        ]


def _is_there(name: str, file: Path, say: Say) -> bool:
    """Return whether a recorded workload is available. They are not part of the repository."""
    if not file.exists():
        say(f"{name} is left out: there is no {file}")
    return file.exists()


def _table(name: str, trace: Path, urls: _Urls, rounds: int, say: Say) -> Table:
    """Return the table of a workload.

    Raises RuntimeError if an invariant is broken or two stores end with different balances.
    """
    seen: dict[str, list[ReplayResult]] = {"memory": [], "SQLite": [], "PostgreSQL": []}
    for number in range(rounds):
        for store, came in seen.items():
            say(f"{name} on {store}, round {number + 1} of {rounds}")
            with urls.new(store) as url:
                came.append(_replayed(url, trace))
    fingerprints = {run.fingerprint for came in seen.values() for run in came}
    if len(fingerprints) > 1:
        raise RuntimeError(
            f"{name}: the stores come to other balances: {', '.join(sorted(fingerprints))}"
        )
    one = seen["memory"][0]
    about = (
        f"{one.demand.jobs:,} jobs: each start a hold, each end a charge or a release,"
        f" {sum(one.refusals.values()):,} refusals. At the end every invariant held, and the"
        f" balances of all three stores have the fingerprint {fingerprints.pop()}."
    )
    figures = (
        Figure(store, "operations/s", tuple(run.operations / run.seconds for run in came))
        for store, came in seen.items()
    )
    return Table(f"{name} replayed", about, tuple(figures))


class _Urls:
    """Database URLs, one new store each."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self._folder, self._server = folder, server
        self._numbers = count()

    @contextmanager
    def new(self, store: str) -> Iterator[str]:
        if store == "PostgreSQL":
            with self._server.fresh_database() as database:
                yield self._server.url(database)
        else:
            yield (
                MEMORY
                if store == "memory"
                else f"sqlite:///{self._folder / f'{next(self._numbers)}.sqlite'}"
            )


def _replayed(url: str, trace: Path) -> ReplayResult:
    migrate(url)
    store = open_store(url)
    try:
        came = replay(
            Ledger(store, Policy()), partial(open_trace, trace), ReplayPlan(cluster="bench")
        )
    finally:
        store.close()
    wrong = [check.what for check in came.checks if not check.holds_true]
    if wrong:
        raise RuntimeError(f"the replay broke a rule: {wrong[0]}")
    return came
