"""Every limit of sacctmgr on a real slurmctld: the job waits for the reason that the explanation
names with the limit's figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.slurm.parsers import words
from fairbank.slurm.queue_snapshot.answers import read_answers
from fairbank.slurm.queue_snapshot.snapshot import build_queue
from tests.slurm.lab.cluster import Cluster
from tests.slurm.queues import LONG, queue_cluster, read_texts
from tests.slurm.set_limits import OF_GROUP, OF_QOS, OF_USER, SetLimit, assert_named, limits_of
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

ALL_RELEASES = 24, 5
"""First release that tests MaxTRESRunMinsPerUser and PerAccount."""
REQUEST = ("--partition=gpu", "--nodes=2", "--gres=gpu:4", "--time=60")


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    enforced = "associations,limits,qos,safe"
    yield from queue_cluster("limits", AccountingStorageEnforce=enforced)


def test_every_limit_holds_a_job_for_the_reason_that_is_named(slurm: Cluster) -> None:
    """Each limit is that of a QOS or an account of its own."""
    limits = {f"limit{number}": limit for number, limit in enumerate(_limits(slurm))}
    qos = [name for name, limit in limits.items() if limit.owner == "QOS"]
    commands = [line for name, limit in limits.items() for line in _creation(name, limit)]
    commands.append(f"modify account wg_bio set qos+={','.join(qos)}")
    slurm.root("sacctmgr", "--immediate", stdin="\n".join([*commands, "exit", ""]), seconds=120)
    jobs = {
        slurm.submit("carol", f"--{option}={name}", *REQUEST, script=LONG): name
        for name, limit in limits.items()
        for option in ("qos" if limit.owner == "QOS" else "account",)
    }
    expected = {job: limits[name].reason for job, name in jobs.items()}
    try:
        wait_until(lambda: _reasons(slurm) == expected, "every job to be held", seconds=60)
    except TimeoutError:
        assert _reasons(slurm) == expected
    answers, unreadable = read_answers(read_texts(slurm))
    assert unreadable == ()
    queue = build_queue(answers)
    for job, name in jobs.items():
        answer = explain_on_nodes(queue.snapshot, queue.parameters, job, queue.now, allowed=None)
        assert_named(answer, limits[name], f"{limits[name].owner} {name}")


def _limits(slurm: Cluster) -> Iterator[SetLimit]:
    kinds = {
        kind: value
        for kind, value in OF_QOS.items()
        if "RunMinsPer" not in kind.value or slurm.release >= ALL_RELEASES
    }
    yield from limits_of("QOS", kinds)
    yield from limits_of("association of account", OF_GROUP)
    yield from limits_of("association of user carol, account", OF_USER)


def _creation(name: str, limit: SetLimit) -> Iterator[str]:
    """Generate the commands of sacctmgr that create the owner of the limit."""
    setting = f"{limit.kind.value}={f'{limit.tres}=' if limit.tres else ''}{limit.limit}"
    if limit.owner == "QOS":
        yield f"add qos {name} {setting}"
    else:
        of_user = "user" in limit.owner
        yield f"add account {name}{'' if of_user else f' {setting}'}"
        yield f"add user carol account={name}{f' {setting}' if of_user else ''}"


def _reasons(slurm: Cluster) -> Mapping[int, str]:
    lines = slurm.root("squeue", "--noheader", "--user=carol", "--format=%i|%r").splitlines()
    return {int(job): words.reason(text) for job, text in (line.split("|", 1) for line in lines)}
