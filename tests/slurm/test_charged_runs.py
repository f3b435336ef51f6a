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

from tests.slurm.accounting_audit import FREE, executions, instant, of_jobs, reckon, words_of
from tests.slurm.bank_cluster import SU, Office, of_its_own
from tests.slurm.conftest import Tell
from tests.slurm.crowd import NEVER_RUNS, Crowd
from tests.slurm.lab.cluster import Cluster
from tests.slurm.prep_cluster import build
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1_800)]

COUNTS = [
    pytest.param(60, id="short"),
    pytest.param(1_000, marks=pytest.mark.campaign, id="a thousand"),
]
POOR = 30 * SU


@pytest.fixture
def office(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[Office]:
    with of_its_own(cluster, build(checkout, tmp_path)) as office:
        yield office


@pytest.mark.parametrize("count", COUNTS)
def test_every_job_is_charged_once_as_accounting_counts(
    office: Office, count: int, tell: Tell
) -> None:
    slurm, crowd = office.slurm, Crowd(office.slurm, random.Random(count))
    few = max(1, count // 60)
    since = float(int(time.time()) + 1)
    wait_until(lambda: time.time() > since, "what was before to be over")
    allocation = office.leave("wg_chem", POOR)

    def limit_is_held(job: int, minutes: int) -> None:
        wait_until(
            lambda: [run["held"] for run in office.runs(job)] == [minutes],
            f"{minutes} minutes to be held for job {job}",
        )

    timeouts = crowd.timeouts(few)
    with ThreadPoolExecutor(4) as pool:
        mass = pool.submit(crowd.mass, count - 12 * few)
        failed = pool.submit(crowd.failed_nodes, few)
        limits = pool.submit(crowd.changed_limits, few, limit_is_held)
        others = [
            pool.submit(crowd.requeued, few),
            pool.submit(crowd.cancelled, few * 2),
            pool.submit(crowd.suspended, few),
        ]
        poor = crowd.of_the_poor(few * 4)
        mass.result()
        for future in (limits, failed, *others):
            future.result()
    held = crowd.wait_until_over()
    assert {int(number) for number in held} <= set(poor)
    assert held, "a project of 30 SU cannot start all of its jobs of 20 SU at once"
    for job in held:
        assert "AdminComment=Fairbank: wg_chem: not enough credit: " in slurm.root(
            "scontrol", "show", "job", job
        )
    slurm.root("scancel", *held)
    seconds = time.time() - since
    wait_for_accounting(office, since)
    office.agent.wait_until_empty()

    result, jobs = reckon(office, since), crowd.jobs()
    tell(f"{jobs.total()} jobs in {seconds:.0f} s: {dict(jobs)}; {len(held)} of the poor refused")
    tell(f"books against accounting: {result.told()}")
    assert result.wrong == [], "\n".join(difference.words for difference in result.wrong[:20])
    rows = executions(office, since)
    assert jobs.total() == count
    ran, expected = (
        that_ran(office, rows),
        [job for job in crowd.taken if job.kind != NEVER_RUNS and str(job.job) not in held],
    )
    assert [job for job in expected if ran[job.job] != job.size] == []
    assert result.counts["executions"] >= ran.total()
    states = {
        state: [row for row in rows if row["State"].split()[0] == state]
        for state in (FREE, "TIMEOUT", "REQUEUED")
    }
    assert len(of_jobs(states[FREE], failed.result())) >= 2 * few
    assert all(
        run["charged"] == 0
        for row in states[FREE]
        for run in office.runs(int(row["JobIDRaw"]))
        if same(run, row)
    )
    assert len(of_jobs(states["TIMEOUT"], timeouts)) == few
    assert len(states["REQUEUED"]) >= few
    charged, still_held = office.sums(allocation)
    assert (charged <= POOR, still_held) == (True, 0)
    reconciled = office.reconciled("--starttime", words_of(since))
    tell("$ fairbank reconcile\n" + reconciled.stdout)
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    assert office.bank.command("audit", "verify").returncode == 0


def that_ran(office: Office, rows: list[dict[str, str]]) -> Counter[int]:
    """Return the number of jobs that ran under each submitted number, by accounting and by the
    ledger; tasks of an array count as jobs.
    """
    booked = {run["job_id"] for run in office.rows("/job", cluster="lab")}
    names = {
        row["JobID"] for row in rows if instant(row["Start"]) and int(row["JobIDRaw"]) in booked
    }
    return Counter(int(name.partition("_")[0]) for name in names)


def same(run: dict[str, object], row: dict[str, str]) -> bool:
    return abs(instant(str(run["start"]).rstrip("Z")) - instant(row["Start"])) <= 1


def wait_for_accounting(office: Office, since: float) -> None:
    """Wait until slurmdbd has received all ends."""

    def whole() -> bool:
        rows = executions(office, since)
        return bool(rows) and all(row["End"] != "Unknown" and row["Partition"] for row in rows)

    wait_until(whole, "accounting to have every end", seconds=120)
