"""Operations over HTTP: our server, with one job per request and in bulk, beside a bank as
HADM's.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import psycopg

from benchmarks.bank import benchmark_bank, postgres_server, sqlite_folder
from benchmarks.load import LoadOrder, LoadRound, load
from benchmarks.measure import Figure, Say, Table, ratio
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer
from tests.support.server import run_bank
from tests.support.supervisor import ProcessSpec, SupervisedProcess

ALLOCATIONS = 1_000
SINGLE, BULK, HADM = (
    "Fairbank, one job a request",
    "Fairbank, 100 jobs a request",
    "HADM's way, one job a request",
)
CONNECTIONS, BULK_CONNECTIONS, BULK_SIZE = 64, 8, 100
SLOWER_MS = 1

ABOUT = (
    "Clients on the Unix socket report the start of a job, wait, report its end, wait, and begin "
    f"again: {CONNECTIONS} of them with one job per request, {BULK_CONNECTIONS} with {BULK_SIZE}. "
    "Latency is that of a whole request. Clients, server and database share the machine."
)
SLOWER = (
    f" Each flush of the log takes {SLOWER_MS} ms longer here (commit_delay), as on a disk behind a"
    " network."
)

REMARK = """
"CPU time of an operation" below shows what an operation costs in each process, and why 20 times
HADM's design is out of reach on a fast disk. HADM's design waits for the disk once per operation
and the bank once per batch: the slower the disk, the larger the ratio.
"""


class Scale(msgspec.Struct, frozen=True):
    rounds: int
    seconds: float


LONG = Scale(7, 3.0)
SHORT = Scale(2, 1.0)


def measure(*, short: bool, say: Say) -> list[Table]:
    scale = SHORT if short else LONG
    with contestants(scale.seconds) as (server, clients):
        tables = [_table("Over HTTP on PostgreSQL", "", _rounds(clients, scale.rounds, say))]
        slow_down(server, SLOWER_MS)
        say(f"the same, each flush {SLOWER_MS} ms slower")
        return [
            *tables,
            _table(
                "Over HTTP on PostgreSQL, on a slower disk",
                SLOWER,
                _rounds(clients, scale.rounds, say),
            ),
        ]


@contextmanager
def contestants(seconds: float) -> Iterator[tuple[PostgresServer, Mapping[str, Client]]]:
    """Yield both banks on one PostgreSQL, with clients whose rounds last `seconds`."""
    with ExitStack() as stack:
        server, _ = stack.enter_context(postgres_server())
        ours, theirs = (stack.enter_context(server.fresh_database()) for _ in range(2))
        with benchmark_bank(server.url(ours), ALLOCATIONS):
            pass
        bank = str(stack.enter_context(run_bank(server.url(ours))).socket)
        hadm = stack.enter_context(hadm_bank(server.conninfo(theirs)))
        clients = {
            SINGLE: Client(bank, CONNECTIONS, seconds, first_job=1),
            BULK: Client(bank, BULK_CONNECTIONS, seconds, first_job=1_000_000_000, bulk=BULK_SIZE),
            HADM: Client(hadm, CONNECTIONS, seconds, first_job=1),
        }
        yield server, clients


def slow_down(server: PostgresServer, milliseconds: int) -> None:
    """Delay every commit before it is flushed, as on a slower disk. Concurrent commits share the
    flush.
    """
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET commit_delay = {milliseconds * 1_000}".encode())
        connection.execute("ALTER SYSTEM SET commit_siblings = 0")
        connection.execute("SELECT pg_reload_conf()")


class Client:
    """Client of one kind. No two of its rounds use the same job."""

    def __init__(
        self, at: str, connections: int, seconds: float, *, first_job: int, bulk: int = 0
    ) -> None:
        self.at = at
        self._order = LoadOrder(at, connections, seconds, first_job, ALLOCATIONS, bulk)

    def round(self) -> LoadRound:
        came = load(self._order)
        self._order = msgspec.structs.replace(
            self._order, first_job=self._order.first_job + came.jobs
        )
        return came


def _rounds(clients: Mapping[str, Client], rounds: int, say: Say) -> dict[str, list[LoadRound]]:
    seen: dict[str, list[LoadRound]] = {name: [] for name in clients}
    for number in range(rounds):
        for name, client in clients.items():
            say(f"{name}, round {number + 1} of {rounds}")
            seen[name].append(client.round())
    return seen


def _table(title: str, remark: str, seen: Mapping[str, list[LoadRound]]) -> Table:
    def figures(what: str, unit: str, of: Callable[[LoadRound], float]) -> dict[str, Figure]:
        return {
            name: Figure(name + what, unit, tuple(map(of, rounds))) for name, rounds in seen.items()
        }

    rates = figures("", "operations/s", lambda load: load.rate)
    middle, slow = (
        figures(": p50", "ms", lambda load: load.p50_ms),
        figures(": p99", "ms", lambda load: load.p99_ms),
    )
    promises = (
        ratio("one job a request / HADM's way", rates[SINGLE], rates[HADM], 3),
        ratio("100 jobs a request / HADM's way", rates[BULK], rates[HADM], 20),
    )
    return Table(
        title, ABOUT + remark, (*rates.values(), *middle.values(), *slow.values()), promises
    )


@contextmanager
def hadm_bank(conninfo: str) -> Iterator[str]:
    """Start the other bank on a new database and yield its socket."""
    account = Account.ourselves()
    with sqlite_folder() as folder:
        path, log = folder / "hadm.sock", folder / "log"
        process = SupervisedProcess(
            ProcessSpec(
                command=[
                    sys.executable,
                    "-m",
                    "benchmarks.hadm_bank",
                    conninfo,
                    str(path),
                    str(ALLOCATIONS),
                ],
                environment={"PYTHONPATH": str(Path(__file__).parents[1])},
                folder=str(folder),
                log=str(log),
                uid=account.uid,
                gid=account.gid,
                groups=account.groups,
                stop_signal=signal.SIGTERM,
            )
        )
        try:
            wait_until(
                lambda: _listens(path) or not process.running, "HADM's way to listen", seconds=60
            )
            if not process.running:
                raise RuntimeError(log.read_text()[-2_000:])
            yield str(path)
        finally:
            process.stop()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
