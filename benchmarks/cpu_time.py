"""CPU time of an operation over HTTP: by process, in the server by thread."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import psycopg

from benchmarks.bank import benchmark_bank
from benchmarks.http import ALLOCATIONS, LONG, SHORT, Client, contestants
from benchmarks.measure import Figure, Say, Table
from benchmarks.stages import stages
from fairbank.rest.auth.peers import peer_at
from tests.support.postgres import PostgresServer

LOOP, THREADS, COUNTER, DATABASE, CLIENTS = (
    "event loop",
    "other threads of the server",
    "counter's process",
    "PostgreSQL",
    "clients",
)

ABOUT = (
    "CPU time, user and system together, divided by the operations: a start or an end of a job is"
    " one. Threads of a Python process run in turn, so event loop and other threads together are"
    " about the least time of an operation on one server, on any number of cores. The write queue"
    " is the thread that applies requests and writes; threads that read bulk reports are listed"
    " after it."
)

REMARK = """
Single requests: the event loop takes more than half, once per request, although reports skip the
dispatch of the web framework. HADM's design also pays for an event loop, and then for a thread and
a transaction per request.

In bulk the event loop nearly disappears. More than a third is the database's, most of it to
write: the run and its entry with their indexes, in one statement per batch, and the commit.
Of the write queue's time more than a third is to lock and read what a batch needs, a
quarter to apply the rules, the rest to write. 20 times HADM's design on a fast disk is more
than the fastest loop by hand reaches over as many allocations (above: batches of 1,000,
with COPY), which has neither HTTP nor rules.
"""


CpuSeconds = dict[str, float]
"""CPU seconds by process or thread."""


def measure(*, short: bool, say: Say) -> list[Table]:
    scale = SHORT if short else LONG
    with contestants(scale.seconds) as (server, clients):
        seen: dict[str, list[CpuSeconds]] = {name: [] for name in clients}
        for number in range(scale.rounds):
            for name, client in clients.items():
                say(f"{name}, round {number + 1} of {scale.rounds}")
                seen[name].append(_round(server.pid, client))
        whole = Table("CPU time of an operation over HTTP", ABOUT, tuple(_figures(seen)), ())
        with (
            server.fresh_database() as database,
            benchmark_bank(server.url(database), ALLOCATIONS) as own,
        ):
            batches = 20 if short else 100
            return [
                whole,
                stages(
                    own, partial(_of_all, _backends(server, database)), (scale.rounds, batches), say
                ),
            ]


def _round(postmaster: int, client: Client) -> CpuSeconds:
    """Return the CPU time of each operation of one round, its warm-up included."""
    server = _listener(client.at)
    before = _spent(server, postmaster)
    came = client.round()
    after = _spent(server, postmaster)
    spent = {
        CLIENTS: came.spent_seconds,
        **{where: after[where] - before[where] for where in after},
    }
    return {where: seconds / (2 * came.jobs) for where, seconds in spent.items()}


def _figures(seen: Mapping[str, list[CpuSeconds]]) -> Iterator[Figure]:
    for name, rounds in seen.items():
        for where in (LOOP, THREADS, COUNTER, DATABASE, CLIENTS):
            if where == COUNTER and not any(seconds[where] for seconds in rounds):
                continue  # it is among the threads
            yield Figure(
                f"{name}: {where}", "µs", tuple(seconds[where] * 1_000_000 for seconds in rounds)
            )


def _spent(server: int, postmaster: int) -> CpuSeconds:
    threads = threads_of(server)
    return {
        LOOP: threads.pop(server),
        THREADS: sum(threads.values()),
        COUNTER: _of_all(_children(server)),
        DATABASE: _of_all([postmaster, *_children(postmaster)]),
    }


def _backends(server: PostgresServer, database: str) -> list[int]:
    """Return the processes that serve the connections to a database."""
    with psycopg.connect(server.conninfo("postgres")) as connection:
        return [
            pid
            for (pid,) in connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = %s", (database,)
            )
        ]


def _of_all(processes: list[int]) -> float:
    return sum(sum(threads_of(process).values()) for process in processes)


def _listener(path: str) -> int:
    """Return the process that listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        peer = peer_at(line)
    if peer is None:
        raise RuntimeError(f"nobody is known behind {path}")
    return peer.pid


def threads_of(process: int) -> dict[int, float]:
    """Return the CPU time of each thread of a process. The first has the number of the process."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return {
        int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks
    }


def _children(process: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
