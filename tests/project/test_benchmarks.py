"""Benchmarks: they measure what they claim, and their page is drawn from their results."""

from __future__ import annotations

import os
import time
from contextlib import closing
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from benchmarks import fairtree, ledger, traces
from benchmarks.bank import MEMORY, benchmark_bank
from benchmarks.claims import CLAIMS, REMARKS, figures, write_page
from benchmarks.cpu_time import threads_of
from benchmarks.full_cluster import NOW, full_cluster
from benchmarks.history_data import HistorySize, fill_store
from benchmarks.manual_loops import (
    LINK,
    LinkingSqliteLoop,
    PostgresCopyLoop,
    PostgresLoop,
    SqliteLoop,
)
from benchmarks.measure import Curve, Figure, NotAvailable, Table, at_least, at_most, ratio
from benchmarks.page import FIGURES, PAGE, drawing, drawings, page
from benchmarks.pgbench import Pgbench
from benchmarks.plain_fair_tree import PlainFairTree
from benchmarks.results import RESULTS, Claim, Machine, load_claim, save_claim
from benchmarks.waiting_jobs import waiting_jobs
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.service.ops.audit import Audit
from fairbank.slurm.parsers.squeue import read_waiting_jobs
from fairbank.store.factory import open_store
from fairbank.store.sqlite.driver import driver
from tests.support.plots import checked
from tests.support.postgres import PostgresServer, wheel_installation

ALLOCATIONS, PAIRS, BATCH = 3, 12, 6
MACHINE = Machine("2000-01-01", "abacus", 1, 1, "Linux x86_64", "3.11", "3.53", "18", 0.0)

# Rows that holds and charges write, without generated numbers, links and times.
WRITTEN_ROWS = (
    "SELECT id, deposited, charged, held, overrun, seq FROM allocation ORDER BY id",
    "SELECT allocation, uid, charged, held, cap FROM user_sum ORDER BY allocation, uid",
    (
        "SELECT allocation, owner, partition, state, held, charged, written_off, refunded, outcome,"
        " elapsed_seconds FROM run ORDER BY allocation, id"
    ),
    (
        "SELECT allocation, seq, kind, amount, owner, actor, deposited, charged, held,"
        " credit_limit, overrun, comment FROM journal ORDER BY allocation, seq"
    ),
)


def rows(url: str) -> list[list[tuple[Any, ...]]]:
    """Return all rows that were written at `url`, without the registry."""
    engine = create_engine(url)
    with engine.connect() as connection:
        result = [[tuple(row) for row in connection.execute(text(query))] for query in WRITTEN_ROWS]
    engine.dispose()
    result[-1] = [row for row in result[-1] if row[0]]
    return result


def rows_of_the_bank(url: str) -> list[list[tuple[Any, ...]]]:
    with benchmark_bank(url, ALLOCATIONS) as to:
        ledger.Holder(to).work(PAIRS, BATCH)
    return rows(url)


# --- hand-written loops ---


@pytest.mark.parametrize("kind", [SqliteLoop, LinkingSqliteLoop])
def test_sqlite_loops_write_the_rows_of_the_bank(tmp_path: Path, kind: type[SqliteLoop]) -> None:
    file = tmp_path / "loop.sqlite"
    with (
        benchmark_bank(f"sqlite:///{file}", ALLOCATIONS) as to,
        closing(kind(file, to.allocations, ledger.FIRST)) as loop,
    ):
        assert loop.work(PAIRS, BATCH) == 2 * PAIRS
    assert rows(f"sqlite:///{file}") == rows_of_the_bank(f"sqlite:///{tmp_path}/bank.sqlite")


def test_linking_loop_gives_each_entry_its_own_link(tmp_path: Path) -> None:
    file = tmp_path / "loop.sqlite"
    with (
        benchmark_bank(f"sqlite:///{file}", ALLOCATIONS) as to,
        closing(LinkingSqliteLoop(file, to.allocations, ledger.FIRST)) as loop,
    ):
        loop.work(PAIRS, BATCH)
    with closing(driver.connect(str(file))) as connection:
        links = [
            link
            for (link,) in connection.execute(
                "SELECT link FROM journal WHERE allocation > 0 ORDER BY id"
            )
        ]
        heads = [link for (link,) in connection.execute("SELECT link FROM allocation")]
    assert len({LINK, *links}) == len(links) + 1
    assert set(heads) == set(links[-ALLOCATIONS:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PostgresLoop, PostgresCopyLoop])
def test_postgresql_loops_write_the_rows_of_the_bank(
    postgres18: PostgresServer, kind: type[PostgresLoop]
) -> None:
    with postgres18.fresh_database() as theirs, postgres18.fresh_database() as ours:
        with (
            benchmark_bank(postgres18.url(theirs), ALLOCATIONS) as to,
            closing(kind(postgres18.conninfo(theirs), to.allocations, ledger.FIRST)) as loop,
        ):
            loop.work(PAIRS, BATCH)
        assert rows(postgres18.url(theirs)) == rows_of_the_bank(postgres18.url(ours))


@pytest.mark.slow
@pytest.mark.parametrize(("clients", "batch"), [(2, 1), (1, BATCH)])
def test_pgbench_writes_as_many_rows_as_the_bank(
    postgres18: PostgresServer, clients: int, batch: int
) -> None:
    installation = wheel_installation()
    assert installation is not None
    if not Pgbench.there(installation):
        pytest.skip("this wheel has no pgbench")
    with postgres18.fresh_database() as name, benchmark_bank(postgres18.url(name), ALLOCATIONS):
        done = Pgbench(installation, postgres18.conninfo(name), ALLOCATIONS, clients).work(
            PAIRS, batch
        )
        allocations, users, runs, entries = rows(postgres18.url(name))
    assert (len(runs), len(entries)) == (done // 2, done + 2 * ALLOCATIONS)
    assert sum(row[2] for row in allocations) == sum(row[2] for row in users) == 30 * len(runs)


# --- generated history ---


def test_audit_of_the_generated_history_has_no_findings() -> None:
    store, past = open_store(MEMORY), HistorySize(allocations=4, jobs_each=25)
    fill_store(store, past, say=lambda _: None)
    verdict = Audit(store).verify()
    assert (verdict.findings, verdict.entries, verdict.runs) == (
        (),
        past.entries + past.allocations,
        100,
    )


# --- plain Python ---


def test_plain_python_and_fairbank_rank_the_benchmark_tree_equally() -> None:
    tree, usage = fairtree.grow_tree(2_000)
    assert (len(tree.rows), tree.shape.levels) == (2_000, fairtree.LEVELS)
    ours, plain = fair_tree(tree, usage), PlainFairTree(tree)
    assert plain.rank([float(used) for used in usage]) == ours.factor.tolist()
    for node, level, effective in zip(
        plain.nodes[1:], ours.level[1:], ours.effective_usage[1:], strict=True
    ):
        assert (node.level, node.effective_usage) == pytest.approx((float(level), float(effective)))


# --- the page ---


def test_full_cluster_is_reproducible_and_some_jobs_start() -> None:
    first, second = full_cluster(60, 200, free=12), full_cluster(60, 200, free=12)
    assert list(first.queue.jobs()) == list(second.queue.jobs())
    assert [job.placement for job in first.running] == [job.placement for job in second.running]
    assert first.machine.free.idle.bit_count() <= 12
    plan = run_passes(first, SchedulerParameters(), NOW)
    assert plan == run_passes(second, SchedulerParameters(), NOW)
    assert len(plan.starts) == 27
    assert len(plan.reservations) > 50


def test_page_is_drawn_from_the_stored_results() -> None:
    assert PAGE.read_text() == write_page(RESULTS), (
        "make bench draws it; without measuring: python -m benchmarks --draw"
    )
    assert {name: (FIGURES / name).read_bytes() for name in figures(RESULTS)} == figures(RESULTS)


def test_measurements_in_several_sizes_are_drawn() -> None:
    table = Table(
        "A tick, over all",
        "By size.",
        (Figure("ours, 10", "ms", (1.0, 3.0, 2.0)), Figure("ours, 1,000", "ms", (200.0,))),
        curves=(Curve("ours", ((10, "ours, 10"), (1_000, "ours, 1,000"))),),
        sizes="jobs",
    )
    claim = Claim("ticking", MACHINE, [table, Table("Nothing", "More.", ())])
    (name,) = drawings([claim])
    assert f"![A tick, over all: milliseconds by the number of jobs](figures/{name})" in page(
        [claim], {}
    )
    assert b"Milliseconds by the number of jobs: ours" in drawings([claim])[name]
    figure = drawing(table, claim)
    assert figure.panels[0].series[0].points == [(10, 2.0), (1_000, 200.0)]
    texts = checked(figure)
    assert texts.labels == ["jobs (number, logarithmic)", "time (ms, logarithmic)"]
    assert texts.legend == ["ours"]
    assert {"10", "100", "1,000", "1"} <= {*texts.ticks}


def test_page_names_every_claim_that_was_not_measured() -> None:
    missing = PAGE.read_text().partition("## Not measured yet")[2]
    assert [
        name
        for name in CLAIMS
        if (load_claim(name, RESULTS) is None) != (f"--only {name}" in missing)
    ] == []
    assert set(REMARKS) <= set(CLAIMS)


def test_stored_results_are_written_to_the_page(tmp_path: Path) -> None:
    ours, theirs = (
        Figure("ours", "operations/s", (2_000.0, 3_000.0, 2_500.0)),
        Figure("theirs", "operations/s", (1_000.0, 1_500.0, 1_000.0)),
    )
    targets = (
        ratio("ours / theirs", ours, theirs, 2),
        at_least("ours itself", ours, 10_000),
        at_most("theirs", theirs, 1_000),
        ratio("theirs / ours", theirs, ours, None),
    )
    claim = Claim("counting", MACHINE, [Table("Counting", "By hand.", (ours, theirs), targets)])
    save_claim(claim, tmp_path)
    assert load_claim("counting", tmp_path) == claim
    text = page([claim], {"counting": "Fingers are slow."})
    assert "| ours | 2,500 operations/s | 2,000 to 3,000 |" in text
    assert "| ours / theirs | 2.00x | 2.00 to 2.50 | at least 2.00x | met |" in text
    assert (
        "| ours itself | 2,500 operations/s | 2,000 to 3,000 | at least 10,000 operations/s |"
        " **missed** |" in text
    )
    assert "Fingers are slow." in text


def test_fingerprint_of_a_schedule_is_the_digest_of_its_starts(tmp_path: Path) -> None:
    trace = tmp_path / "two.swf"
    trace.write_text(
        "; MaxProcs: 4\n1 0 -1 60 4 -1 -1 4 60 -1 1 1 1 -1 1 1 -1 -1\n2 10 -1 40 2 -1 -1 2 60 -1 1"
        " 1 1 -1 1 1 -1 -1\n"
    )
    schedule = traces.schedule("two", trace, "easy", tmp_path)
    assert (schedule.jobs, schedule.mean_wait, schedule.utilisation) == (2, 25.0, 0.8)
    assert schedule.starts == sha256(b"1 0\n2 60\n").hexdigest()[:12]
    text = page(
        [Claim("traces", MACHINE, [Table("Schedules", "Of two jobs.", (), schedules=(schedule,))])],
        {},
    )
    assert f"| two | easy | 2 | 25.000 | 1.6250 | 0.80000 | `{schedule.starts}` |" in text


def test_recorded_workloads_that_are_missing_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "SHARED", tmp_path)
    with pytest.raises(
        NotAvailable, match="there is no trace in .*; FAIRBANK_SHARED says in which folder"
    ):
        traces.measure(short=True, say=lambda _: None)


def test_cpu_time_is_counted_per_thread() -> None:
    begun = time.thread_time()
    before = threads_of(os.getpid())[os.getpid()]
    while time.thread_time() < begun + 0.02:
        pass
    assert 0.01 < threads_of(os.getpid())[os.getpid()] - before < 10


def test_each_waiting_job_of_the_benchmark_is_read_and_has_its_own_submission() -> None:
    parsed = read_waiting_jobs("".join(islice(waiting_jobs(), 24)))
    assert not parsed.unreadable
    assert len({(job.job_id, job.submitted) for job in parsed.rows}) == 24
