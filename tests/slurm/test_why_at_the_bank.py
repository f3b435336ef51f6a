"""`fairbank why` on a real slurmctld with a real bank: it has the bank's reason and remedies for a
refused job, which starts after the remedy and the release that it names. A suggestion starts the
job when it is followed.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.core.time import iso, parse_instant
from tests.slurm.bank_cluster import RICH, SU, BankStack, new_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.people import PEOPLE, QOS_PRIORITIES
from tests.slurm.prep_cluster import build
from tests.slurm.queues import LONG
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

UID = next(person.uid for person in PEOPLE if person.name == "dave")
USER, TEAM = "dave", "wg_chem"
JOB = ("-c4", "--time=60")


@pytest.fixture(scope="module")
def stack(
    cluster: Cluster, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BankStack]:
    # Jobs of other modules have line ends in their names: why reports what it cannot read.
    cluster.empty()
    with new_stack(cluster, build(checkout, tmp_path_factory.mktemp("plugins"))) as stack:
        stack.add_member(TEAM, UID)
        yield stack


def fairbank(stack: BankStack, *arguments: str) -> str:
    environment = {"FAIRBANK_SERVER": f"unix:{stack.bank.socket}", "COLUMNS": "100"}
    return stack.slurm.run("root", FAIRBANK, *arguments, environment=environment).checked().out


def why(stack: BankStack, job: int) -> dict[str, Any]:
    (data,) = json.loads(fairbank(stack, "why", str(job), "--no-likely", "--json"))["data"]
    return dict(data)


def show_why(stack: BankStack, job: int) -> str:
    """Return the command with its output."""
    return f"$ fairbank why {job} --no-likely\n{fairbank(stack, 'why', str(job), '--no-likely')}"


def held_job(stack: BankStack, word: str) -> int:
    """Submit a job and wait until the bank holds it."""
    job = stack.slurm.submit(USER, *JOB)
    wait_until(lambda: stack.slurm.job(job).get("Reason") == word, "the job to be held")
    return job


def release(stack: BankStack, job: int, text: str) -> None:
    """Release the job with the command that the explanation names, and wait until it has run."""
    command = f"scontrol release {job}"
    assert command in text
    stack.slurm.root(*command.split())
    stack.slurm.root("scontrol", "update", f"jobid={job}", "starttime=now+3")
    stack.slurm.wait_for(job, "COMPLETED", seconds=60)


def take_credit(stack: BankStack) -> None:
    stack.set_available(TEAM, 1 * SU)


def freeze(stack: BankStack) -> None:
    allocation = stack.set_available(TEAM, RICH)
    fairbank(stack, "alloc", "freeze", str(allocation), "--reason", "test")


def cap(stack: BankStack, most: str = "1") -> None:
    allocation = stack.set_available(TEAM, RICH)
    fairbank(stack, "alloc", "cap", str(allocation), str(UID), most)


@pytest.fixture
def cap_removed_afterwards(stack: BankStack) -> Iterator[None]:
    """Remove the cap at the end: the remedy leaves one that is just enough for one job."""
    yield
    cap(stack, "none")


@pytest.mark.usefixtures("cap_removed_afterwards")
@pytest.mark.parametrize(
    ("change", "word", "reason", "detail", "remedy"),
    [
        (
            take_credit,
            "Allocation_exhausted",
            "INSUFFICIENT_CREDIT",
            "not enough credit: requested 4 SU, available 1 SU, short by 3 SU.",
            "more credit, by staff: fairbank deposit ",
        ),
        (
            freeze,
            "Allocation_frozen",
            "FROZEN",
            "the allocation is frozen: requested 4 SU, available 0 SU.",
            "have it thawed, by staff: fairbank alloc thaw ",
        ),
        (
            cap,
            "User_cap_reached",
            "CAPPED",
            "the user's cap in this allocation is reached: requested 4 SU, available ",
            "a higher cap, by the PI, a coordinator or staff: fairbank alloc cap ",
        ),
    ],
)
def test_refused_job_starts_after_the_remedy_and_the_release_that_why_names(
    stack: BankStack,
    record_figure: RecordFigure,
    change: Callable[[BankStack], None],
    word: str,
    reason: str,
    detail: str,
    remedy: str,
) -> None:
    change(stack)
    job = held_job(stack, word)
    refusal = why(stack, job)["refusal"]
    assert (refusal["held_as"], refusal["reason"]) == (word, reason)
    assert refusal["detail"].startswith(detail)
    assert refusal["remedies"][-1].startswith(remedy)
    # They are those of the refusal itself, and since when the state is so.
    (kept,) = stack.refusals(job)
    assert refusal["detail"].startswith(kept["detail"])
    assert refusal["remedies"][-1] == kept["remedies"][-1]
    text = show_why(stack, job)
    assert f"is held by the bank ({word}): {detail.split(':')[0]}" in " ".join(text.split())
    record_figure(text)
    fairbank(stack, *shlex.split(refusal["remedies"][-1].partition("fairbank ")[2]))
    after = why(stack, job)["refusal"]
    assert after["release"].startswith("the bank would accept it now: ")
    assert after["remedies"] == []
    release(stack, job, after["release"])
    (run,) = stack.wait_for_closed_runs(job)
    assert run["restart"] == 1


def test_shorter_limit_that_why_names_is_enough(stack: BankStack) -> None:
    take_credit(stack)
    job = held_job(stack, "Allocation_exhausted")
    refusal = why(stack, job)["refusal"]
    prefix = "a shorter time limit: -t "
    assert refusal["remedies"][0].startswith(prefix)
    limit = refusal["remedies"][0].removeprefix(prefix)
    stack.slurm.run(USER, "scontrol", "update", f"jobid={job}", f"timelimit={limit}").checked()
    release(stack, job, why(stack, job)["refusal"]["release"])


@pytest.fixture
def limited_qos(stack: BankStack) -> Iterator[BankStack]:
    """Limit the CPUs of each user in the QOS normal."""
    stack.set_available(TEAM, RICH)
    modify = ("sacctmgr", "--immediate", "modify")
    all_qos = ",".join(QOS_PRIORITIES)
    stack.slurm.root(*modify, "qos", "normal", "set", "maxtresperuser=cpu=8")
    try:
        yield stack
    finally:
        stack.slurm.root(*modify, "qos", "normal", "set", "maxtresperuser=cpu=-1")
        stack.slurm.root(*modify, "user", USER, "set", f"qos={all_qos}")
        stack.slurm.calm()


@pytest.mark.parametrize(("qos", "suggestion"), [("normal,high", "-q high"), ("normal", "-c 8")])
def test_suggestion_that_is_followed_starts_the_job(
    limited_qos: BankStack, record_figure: RecordFigure, qos: str, suggestion: str
) -> None:
    slurm = limited_qos.slurm
    slurm.root("sacctmgr", "--immediate", "modify", "user", USER, "set", f"qos={qos}")
    job = slurm.submit(USER, "-c12", "--time=60", script=LONG)
    wait_until(
        lambda: slurm.job(job).get("Reason") == "QOSMaxCpuPerUserLimit", "the limit to hold the job"
    )
    data = why(limited_qos, job)
    assert data["code"] == "QOSMaxCpuPerUserLimit"
    assert data["suggestion"]["option"] == suggestion
    record_figure(show_why(limited_qos, job))
    changed = slurm.submit(USER, "-c12", "--time=60", *shlex.split(suggestion), script=LONG)
    slurm.wait_for(changed, "RUNNING")
    slurm.root("scancel", str(job), str(changed))


def test_change_that_the_bank_refuses_is_not_suggested(limited_qos: BankStack) -> None:
    """Fewer CPUs would pass the limit, but the bank pays for no job of a frozen allocation."""
    slurm, allocation = limited_qos.slurm, limited_qos.set_available(TEAM, RICH)
    fairbank(limited_qos, "alloc", "freeze", str(allocation), "--reason", "test")
    job = slurm.submit(USER, "-c12", "--time=60", script=LONG)
    wait_until(
        lambda: slurm.job(job).get("Reason") == "QOSMaxCpuPerUserLimit", "the limit to hold the job"
    )
    data = why(limited_qos, job)
    assert data["suggestion"] is None
    assert "fewer CPUs" in data["tried"]
    assert data["refusal"]["reason"] == "FROZEN"
    fairbank(limited_qos, "alloc", "thaw", str(allocation), "--reason", "test")


def test_deadline_of_slurmctld_is_read(stack: BankStack, record_figure: RecordFigure) -> None:
    begin = time.time()
    job = stack.slurm.submit(USER, "--hold", "--time=60", "--deadline=now+2hours")
    end = time.time()
    checks = {check["what"]: check for check in why(stack, job)["checks"]}
    evidence = checks["deadline"]["evidence"]
    assert evidence.startswith("it must end by ")
    deadline = parse_instant(evidence.removeprefix("it must end by ").partition(",")[0])
    assert int(begin) <= deadline - 2 * 3_600 <= end
    assert evidence.endswith(f"it must start by {iso(deadline - 3_600)}; its start is unknown")
    assert not checks["deadline"]["ok"]
    record_figure(show_why(stack, job))
    stack.slurm.root("scancel", str(job))


def test_quote_of_a_busy_partition_says_when_its_job_is_likely_to_start(
    stack: BankStack, record_figure: RecordFigure
) -> None:
    """All six nodes of cpu are taken for 20 minutes; before that, and in gpu, a job starts now."""
    slurm = stack.slurm
    stack.set_available(TEAM, RICH)
    slurm.empty()
    slurm.wait_for(slurm.submit(USER, "--time=1"), "COMPLETED")  # a run time in accounting
    words = ("quote", "-A", TEAM, "-M", "lab", "-p", "cpu", "-c4", "-t", "60")
    quote = json.loads(fairbank(stack, *words, "--json"))["quote"]
    assert quote["likely_start"]["simulated_runs"] == 0
    job = slurm.submit(USER, "-N6", "--exclusive", "--time=20", script=LONG)
    slurm.wait_for(job, "RUNNING")
    start = json.loads(fairbank(stack, *words, "--json"))["quote"]["likely_start"]
    assert start["simulated_runs"] > 0
    assert time.time() < parse_instant(start["latest"]) <= time.time() + 20 * 60
    record_figure(fairbank(stack, *words))
    slurm.root("scancel", str(job))
