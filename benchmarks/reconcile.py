"""Comparison of a hundred thousand runs with accounting: bank behind its socket, sacct output on
disk.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec
import psycopg

from benchmarks.bank import postgres_server, sqlite_folder
from benchmarks.history_data import BEGIN, CLUSTER, PARTITION, HistorySize, fill_store
from benchmarks.measure import Figure, Say, Table, at_most
from fairbank.bank.project import Project
from fairbank.bank.run import RunRecord
from fairbank.core.time import DAY, iso
from fairbank.rest.client import Client, parse_address
from fairbank.rest.client.bank_client import BankClient
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.reconcile.reconciler import Reconciler, ReconcileResult
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.support.recorded_slurm import RecordedSlurm, line
from tests.support.server import FairbankServer, create_bank

SECONDS = 60
TRES = "billing=1,cpu=1,mem=1000M,node=1"

REMARK = """
About a third of the time is the bank's, which finds, serialises and sends the runs in pages of a
thousand. The rest is to start a command for each day, read its lines and the bank's JSON, and
compare. The time of slurmdbd comes on top of it.
"""


class Scale(msgspec.Struct, frozen=True):
    past: HistorySize
    rounds: int


LONG, SHORT = (
    Scale(HistorySize(allocations=1_000, jobs_each=100), rounds=5),
    Scale(HistorySize(allocations=100, jobs_each=100), rounds=2),
)


def measure(*, short: bool, say: Say) -> list[Table]:
    scale = SHORT if short else LONG
    runs = scale.past.allocations * scale.past.jobs_each
    figures = []
    with ExitStack() as stack:
        folder = stack.enter_context(sqlite_folder())
        server, _ = stack.enter_context(postgres_server())
        name = stack.enter_context(server.fresh_database())
        for database, url in (
            ("SQLite", f"sqlite:///{folder}/past.sqlite"),
            ("PostgreSQL", server.url(name)),
        ):
            recorded = RecordedSlurm(folder / database)
            _prepare(url, recorded, scale.past, say)
            if database == "PostgreSQL":
                with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
                    # As PostgreSQL itself does within minutes.
                    connection.execute("VACUUM (ANALYZE)")
            with _bank(url) as bank:
                seen = []
                for number in range(scale.rounds):
                    say(f"{database}: round {number + 1} of {scale.rounds}")
                    seen.append(_reconcile(bank, recorded, runs))
            figures.append(Figure(f"{runs:,} runs, {database}", "s", tuple(seen)))
    about = (
        f"{runs:,} runs of {scale.past.allocations:,} projects in a year, a day at a time, all of"
        " them compared with the bank."
    )
    promises = () if short else tuple(at_most(figure.name, figure, SECONDS) for figure in figures)
    return [Table("Reconciling with accounting", about, tuple(figures), promises)]


def _prepare(url: str, recorded: RecordedSlurm, past: HistorySize, say: Say) -> None:
    """Fill the bank and write the accounting records of the same runs, one file per day."""
    migrate(url)
    store = open_store(url)
    fill_store(store, past, say)
    days: dict[str, list[str]] = defaultdict(list)
    with store.reading() as reader:
        accounts = {project.id: project.account for project in reader.scan(Project)}
        for run in reader.scan(RunRecord):
            if run.end is None:
                continue
            started, ended = run.reported.start, run.end.ended
            start, end = iso(started)[:-1], iso(ended)[:-1]
            facts = (
                run.reported.run.job_id,
                start,
                start,
                end,
                run.end.elapsed_seconds,
                run.end.outcome,
                run.owner,
                f"u{run.owner}",
                accounts[run.allocation],
            )
            record = line(*facts, PARTITION, "normal", 60, TRES, TRES)
            for day in {_day(started), _day(ended)}:
                days[day].append(record)
    store.close()
    for day, lines in days.items():
        recorded.set_output(f"sacct-{day}", "".join(lines))
    for name, text in {
        "sacct": "",
        "sacct-jobs": "",
        "squeue": "",
        "sinfo": "slurm 22.05.8",
        "scontrol-show-config": f"ClusterName = {CLUSTER}",
    }.items():
        recorded.set_output(name, f"{text}\n")


def _day(at: int) -> str:
    """Return the day's slice of a time. Slices begin with the period."""
    return iso(at - (at - BEGIN) % DAY)[:10]


@contextmanager
def _bank(url: str) -> Iterator[FairbankServer]:
    with create_bank(url) as server:
        prices = (
            f'\n[clusters.{CLUSTER}.partitions."{PARTITION}"]\nresource = "cpu"\nweights ='
            ' "CPU=1.0"\n'
        )
        server.config.write_text(server.config.read_text() + prices)
        server.start()
        yield server


def _reconcile(bank: FairbankServer, recorded: RecordedSlurm, runs: int) -> float:
    """Reconcile and return the seconds that it took."""
    slurm = SlurmCommands({**os.environ, **recorded.environment})
    reconciler = Reconciler(slurm, BankClient(Client(parse_address(f"unix:{bank.socket}"))))
    begun = time.perf_counter()
    came = reconciler.reconcile(BEGIN, BEGIN + 366 * DAY)
    taken = time.perf_counter() - begun
    _check(came, runs)
    return taken


def _check(came: ReconcileResult, runs: int) -> None:
    if (came.comparison.matched, came.is_clean) != (runs, True):
        raise RuntimeError(
            f"{came.comparison.matched} of {runs} runs agree; the first that does not:"
            f" {came.outcomes[:1]}"
        )
