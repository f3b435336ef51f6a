"""Jobs of all kinds with a bank: each has one hold and one resolution, and is charged as accounting
counts, or is refused with a message.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.slurm.accounting_audit import FREE, audit, executions, instant, rows_of_jobs, slurm_time
from tests.slurm.bank_cluster import SU, BankStack, new_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.prep_cluster import build
from tests.slurm.workload import NEVER_RUNS, Workload
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1_800)]

COUNTS = [
    pytest.param(60, id="short"),
    pytest.param(1_000, marks=pytest.mark.campaign, id="a thousand"),
]
POOR = 30 * SU


@pytest.fixture
def stack(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[BankStack]:
    with new_stack(cluster, build(checkout, tmp_path)) as stack:
        yield stack


@pytest.mark.parametrize("count", COUNTS)
def test_every_job_is_charged_once_as_accounting_counts(
    stack: BankStack, count: int, record_figure: RecordFigure
) -> None:
    slurm, workload = stack.slurm, Workload(stack.slurm, random.Random(count))
    few = max(1, count // 60)
    since = float(int(time.time()) + 1)
    wait_until(lambda: time.time() > since, "what was before to be over")
    allocation = stack.set_available("wg_chem", POOR)

    def limit_is_held(job: int, minutes: int) -> None:
        wait_until(
            lambda: [run["held"] for run in stack.runs(job)] == [minutes],
            f"{minutes} minutes to be held for job {job}",
        )

    timeouts = workload.reach_time_limit(few)
    with ThreadPoolExecutor(4) as pool:
        mass = pool.submit(workload.submit_many, count - 13 * few)
        failed = pool.submit(workload.fail_nodes, few)
        limits = pool.submit(workload.change_limits, few, limit_is_held)
        others = [
            pool.submit(workload.requeue_jobs, few),
            pool.submit(workload.cancel_jobs, few * 2),
            pool.submit(workload.suspend_jobs, few * 2),
        ]
        poor = workload.submit_beyond_credit(few * 4)
        mass.result()
        for future in (limits, failed, *others):
            future.result()
    held = workload.wait_until_done()
    assert {int(number) for number in held} <= set(poor)
    assert held, "a project of 30 SU cannot start all of its jobs of 20 SU at once"
    for job in held:
        assert "AdminComment=Fairbank: wg_chem: not enough credit: " in slurm.root(
            "scontrol", "show", "job", job
        )
    slurm.root("scancel", *held)
    seconds = time.time() - since
    wait_for_accounting(stack, since)
    stack.agent.wait_until_empty()

    result, jobs = audit(stack, since), workload.jobs()
    record_figure(
        f"{jobs.total()} jobs in {seconds:.0f} s: {dict(jobs)}; {len(held)} of the poor refused"
    )
    record_figure(f"ledger against accounting: {result.summary()}")
    assert result.differences == [], "\n".join(
        difference.text for difference in result.differences[:20]
    )
    rows = executions(stack, since)
    assert jobs.total() == count
    ran, expected = (
        count_runs(stack, rows),
        [job for job in workload.accepted if job.kind != NEVER_RUNS and str(job.job) not in held],
    )
    assert [job for job in expected if ran[job.job] != job.size] == []
    assert result.counts["executions"] >= ran.total()
    states = {
        state: [row for row in rows if row["State"].split()[0] == state]
        for state in (FREE, "TIMEOUT", "REQUEUED")
    }
    assert len(rows_of_jobs(states[FREE], failed.result())) >= 2 * few
    assert all(
        run["charged"] == 0
        for row in states[FREE]
        for run in stack.runs(int(row["JobIDRaw"]))
        if is_same_run(run, row)
    )
    assert len(rows_of_jobs(states["TIMEOUT"], timeouts)) == few
    assert len(states["REQUEUED"]) >= few
    charged, still_held = stack.charged_and_held(allocation)
    assert (charged <= POOR, still_held) == (True, 0)
    reconciled = stack.reconcile("--starttime", slurm_time(since))
    record_figure("$ fairbank reconcile\n" + reconciled.stdout)
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    assert stack.bank.command("audit", "verify").returncode == 0


def count_runs(stack: BankStack, rows: list[dict[str, str]]) -> Counter[int]:
    """Return the number of jobs that ran under each submitted number, by accounting and by the
    ledger; tasks of an array count as jobs.
    """
    charged = {run["job_id"] for run in stack.rows("/job", cluster="lab")}
    names = {
        row["JobID"] for row in rows if instant(row["Start"]) and int(row["JobIDRaw"]) in charged
    }
    return Counter(int(name.partition("_")[0]) for name in names)


def is_same_run(run: dict[str, object], row: dict[str, str]) -> bool:
    return abs(instant(str(run["start"]).rstrip("Z")) - instant(row["Start"])) <= 1


def wait_for_accounting(stack: BankStack, since: float) -> None:
    """Wait until slurmdbd has received all ends. Raises TimeoutError with the records that lack
    one.
    """

    def is_complete() -> bool:
        rows = executions(stack, since)
        return bool(rows) and not without_end(rows)

    try:
        wait_until(is_complete, "accounting to have every end", seconds=120)
    except TimeoutError as error:
        rows = without_end(executions(stack, since))
        raise TimeoutError(f"{error}: {rows}") from error


def without_end(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if row["End"] == "Unknown" or not row["Partition"]]
