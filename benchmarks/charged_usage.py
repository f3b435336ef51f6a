"""Usage of a million charges and of the whole centre, beside one sum in SQL over the same runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from subprocess import DEVNULL

import psycopg

from benchmarks.bank import postgres_server, sqlite_folder
from benchmarks.history import fill_databases
from benchmarks.history_data import BEGIN, HistorySize
from benchmarks.measure import Say, Table, at_most, time_each
from fairbank.core.time import DAY, iso
from fairbank.store.factory import open_store
from fairbank.store.sqlite.driver import driver
from tests.support.server import FAIRBANK, FairbankServer, run_bank

LONG, SHORT = HistorySize(1_000, 1_000), HistorySize(100, 100)
PROJECTS, CENTRE, SQL = "usage --by project", "report centre", "one sum by project in SQL"
COMMANDS = (PROJECTS, *(f"usage --by {by}" for by in ("month", "week", "day")), CENTRE)
PERIOD = ("-S", iso(BEGIN - DAY))
"""All jobs, which end within a year."""
USAGE_MS, CENTRE_MS = 500, 1_000
STATEMENT = "SELECT project, sum(charged) FROM run WHERE state = 'charged' GROUP BY project"

REMARK = """
The time of a command is that until it has ended, with the start of Python and the request. By
project there are 1,000 rows. The zone is that of New York, where the sums by day of UTC hold no
whole days: `usage --by day` counts all runs.
"""


def measure(*, short: bool, say: Say) -> list[Table]:
    past, rounds = (SHORT, 2) if short else (LONG, 5)
    with ExitStack() as stack:
        folder = stack.enter_context(sqlite_folder())
        server, _ = stack.enter_context(postgres_server())
        name = stack.enter_context(server.fresh_database())
        urls = {"SQLite": f"sqlite:///{folder}/past.sqlite", "PostgreSQL": server.url(name)}
        fill_databases(urls, past)
        for url in urls.values():
            store = open_store(url)
            while store.fold_usage():  # as the server does every minute
                pass
            store.close()
        by_hand = stack.enter_context(psycopg.connect(server.conninfo(name), autocommit=True))
        by_hand.execute("VACUUM (ANALYZE)")  # as PostgreSQL itself does within minutes
        file = driver.connect(folder / "past.sqlite")
        stack.callback(file.close)
        sums = {"SQLite": file.execute, "PostgreSQL": by_hand.execute}
        return [
            _table(database, url, partial(sums[database], STATEMENT), past, rounds)
            for database, url in urls.items()
        ]


def _table(
    database: str, url: str, in_sql: Callable[[], Iterable[object]], past: HistorySize, rounds: int
) -> Table:
    with run_bank(url) as bank:
        commands = {words: partial(_run, bank, words) for words in COMMANDS}
        figures = time_each({**commands, SQL: lambda: list(in_sql())}, rounds)
    by_name = {figure.name: figure for figure in figures}
    bounds = ((PROJECTS, USAGE_MS), (CENTRE, CENTRE_MS))
    runs = past.allocations * past.jobs_each
    return Table(
        f"Usage of {runs:,} charges on {database}",
        f"{runs:,} charges of {past.allocations:,} projects in a year.",
        tuple(figures),
        tuple(at_most(name, by_name[name], bound) for name, bound in bounds),
    )


def _run(bank: FairbankServer, words: str) -> None:
    command = [FAIRBANK, *words.split(), *PERIOD]
    environment = {**bank.environment, "TZ": "America/New_York"}
    subprocess.run(command, env=environment, stdout=DEVNULL, stderr=DEVNULL, check=True)
