"""`fairbank why` beside a real slurmctld: for each rule that keeps a job waiting, the reason is
that of squeue, and the headline has the figures.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from fairbank.slurm.parsers import words
from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster
from tests.slurm.queues import WHOLE, ScenarioQueue, clean_up, queue_cluster
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

FAIRBANK = (sys.executable, "-m", "fairbank.cli", "why")
JOB = "job"
"""Name of the job that each scene explains."""


class Scene(NamedTuple):
    """Rule that keeps the job waiting: slurmctld's reason, a part of the headline, the check that
    fails, and the code of the explanation if it is not that reason.
    """

    build: Callable[[ScenarioQueue], object]
    reason: str
    headline: str
    check: str = "limits in cpu"
    code: str | None = None


def billing_fence(queue: ScenarioQueue) -> None:
    queue.set_limits("account", "wg_bio", grptresmins="billing=0")
    queue.submit(JOB, "-n1", "-t10", user="carol")


def used_group_minutes(queue: ScenarioQueue) -> None:
    queue.set_limits("account", "wg_bio", grptresrunmins="billing=100")
    queue.submit_running("first", "-n4", "-t20", user="carol")
    queue.submit(JOB, "-n4", "-t10", user="bob")


def allowed_accounts(queue: ScenarioQueue) -> None:
    change_partition(queue, "allowaccounts=wg_chem", "allowaccounts=ALL")
    queue.submit(JOB, "-n1", "-t10")


def denied_accounts(queue: ScenarioQueue) -> None:
    change_partition(queue, "denyaccounts=wg_astro", "denyaccounts=")
    queue.submit(JOB, "-n1", "-t10")


def allowed_groups(queue: ScenarioQueue) -> None:
    """sbatch would be refused, so that the list comes later."""
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-N6", WHOLE, "-t10")
    change_partition(queue, "allowgroups=wg_chem", "allowgroups=ALL")


def allowed_qos(queue: ScenarioQueue) -> None:
    change_partition(queue, "allowqos=high", "allowqos=ALL")
    queue.submit(JOB, "-n1", "-t10")


def partition_time(queue: ScenarioQueue) -> None:
    change_partition(queue, "maxtime=60", "maxtime=7-0")
    queue.submit(JOB, "-n1", "-t90")


def partition_nodes(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n1", "-t10")
    change_partition(queue, "minnodes=2", "minnodes=0")


def partition_max_nodes(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-N2", "-t10")
    change_partition(queue, "maxnodes=1", "maxnodes=unlimited")


def partition_cpus(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n7", "-t10")
    change_partition(queue, "maxcpuspernode=1", "maxcpuspernode=unlimited")


def cpus_of_each_node(queue: ScenarioQueue) -> None:
    change_partition(queue, "maxcpuspernode=3", "maxcpuspernode=unlimited")
    queue.submit_running("first", "-wc01", "-n3", "-t10")
    queue.submit(JOB, "-wc01", "-n1", "-t10")


def drained_node_behind_others(queue: ScenarioQueue) -> None:
    """A node that was drained before the job was submitted would be slurmctld's reason, too."""
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit("ahead", "-N5", WHOLE, "-t10")
    queue.submit(JOB, "-wc06", "-n1", "-t10")
    drain, resume = ("state=drain", "reason=fan"), ("state=resume",)
    node = ("update", "nodename=c06")
    queue.scontrol(*node, *drain, undo=(*node, *resume))


def all_cpus(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n500", "-t10")


def only_root(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n1", "-t10")
    change_partition(queue, "rootonly=yes", "rootonly=no")


def submit_hosts(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n1", "-t10")
    change_partition(queue, "allocnodes=nowhere", "allocnodes=ALL")


def required_reservation(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n1", "-t10")
    change_partition(queue, "reqresv=yes", "reqresv=no")


def partition_memory(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n1", "--mem=2000", "-t10")
    change_partition(queue, "maxmempernode=1000", "maxmempernode=0")


def inactive_partition(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-N6", WHOLE, "-t10")
    change_partition(queue, "state=inactive", "state=up")


def down_partition(queue: ScenarioQueue) -> None:
    """DOWN goes before the tests of nodes and time."""
    change_partition(queue, "maxnodes=1", "maxnodes=unlimited")
    change_partition(queue, "state=down", "state=up")
    queue.submit(JOB, "-N2", "-t10")


def down_partition_with_reservations(queue: ScenarioQueue) -> None:
    """ReqResv goes before the state."""
    queue.submit_running("first", "-N6", WHOLE, "-t10")
    queue.submit(JOB, "-n1", "-t10")
    change_partition(queue, "reqresv=yes", "reqresv=no")
    change_partition(queue, "state=down", "state=up")


def drained_node(queue: ScenarioQueue) -> None:
    name = "nodename=c06"
    queue.scontrol(
        "update", name, "state=drain", "reason=fan at 0 rpm", undo=("update", name, "state=resume")
    )
    queue.submit(JOB, "-wc06", "-n1", "-t10")


def group_nodes(queue: ScenarioQueue) -> None:
    queue.set_limits("account", "wg_bio", grptres="node=1")
    queue.submit(JOB, "-N2", "-t10", user="bob")


def user_cpus(queue: ScenarioQueue) -> None:
    queue.set_limits("qos", "low", maxtresperuser="cpu=4")
    queue.submit_running("first", "--qos=low", "-n3", "-t10", user="bob")
    queue.submit(JOB, "--qos=low", "-n2", "-t10", user="bob")


def user_jobs(queue: ScenarioQueue) -> None:
    queue.set_limits("qos", "high", maxjobsperuser=1)
    queue.submit_running("first", "--qos=high", "-n1", "-t10")
    queue.submit(JOB, "--qos=high", "-n1", "-t10")


def whole_nodes_of_a_user(queue: ScenarioQueue) -> None:
    """The job requests one CPU, and would get the 64 of a node."""
    queue.set_limits("user", "dave", maxtresperjob="cpu=32")
    queue.submit(JOB, "-n1", WHOLE, "-t10", user="dave")


def usage_threshold(queue: ScenarioQueue) -> None:
    """Its weighted fair share is compared."""
    qos = ("sacctmgr", "--immediate", "modify", "qos", "low", "set")
    queue.slurm.root(*qos, "flags=EnforceUsageThreshold", "usagethreshold=3000000")
    queue.undo_commands.append((*qos, "flags-=EnforceUsageThreshold", "usagethreshold=-1"))
    queue.submit(JOB, "--qos=low", "-n1", "-t10")


def licenses(queue: ScenarioQueue) -> None:
    queue.submit_running("first", "-n1", "-Lmatlab:1", "-t10")
    queue.submit(JOB, "-n1", "-Lmatlab:2", "-t10")


def array_throttle(queue: ScenarioQueue) -> None:
    queue.submit(JOB, "--array=1-3%1", "-n1", "-t10")


def heterogeneous(queue: ScenarioQueue) -> None:
    """The first component fits, and the second needs both nodes of a partition."""
    queue.submit_running("first", "-pgpu", "-N1", WHOLE, "-t10")
    queue.submit(JOB, "-n1", "-t10", ":", "-pgpu", "-N2", WHOLE, "-t10")


def change_partition(queue: ScenarioQueue, change: str, undo: str) -> None:
    cpu = "partitionname=cpu"
    queue.scontrol("update", cpu, change, undo=("update", cpu, undo))


SCENES = (
    Scene(
        billing_fence,
        "AssocGrpBillingMinutes",
        "association of account wg_bio allows 0 billing unit-minutes (GrpTRESMins); this job asks"
        " for 10",
    ),
    Scene(
        used_group_minutes,
        "AssocGrpBillingRunMinutes",
        "reserved by running jobs; this job asks for 40",
    ),
    Scene(
        allowed_accounts,
        "AccountNotAllowed",
        "AllowAccounts of partition cpu is wg_chem, and the account of this job is wg_astro",
        "AllowAccounts of cpu",
    ),
    Scene(
        denied_accounts,
        "AccountNotAllowed",
        "DenyAccounts of partition cpu is wg_astro, and the account of this job is wg_astro",
        "DenyAccounts of cpu",
    ),
    Scene(
        allowed_groups,
        "PartitionConfig",
        "AllowGroups of partition cpu is wg_chem, and the groups of its user are users,wg_astro",
        "AllowGroups of cpu",
    ),
    Scene(
        allowed_qos,
        "QOSNotAllowed",
        "AllowQos of partition cpu is high, and the QOS of this job is normal",
        "AllowQos of cpu",
    ),
    Scene(
        partition_time,
        "PartitionTimeLimit",
        "MaxTime of partition cpu is 01:00:00, and this job asks for 01:30:00",
        "MaxTime of cpu",
    ),
    Scene(
        partition_nodes,
        "PartitionNodeLimit",
        "MinNodes of partition cpu is 2, and this job asks for 1",
        "MinNodes of cpu",
    ),
    Scene(
        partition_max_nodes,
        "PartitionNodeLimit",
        "MaxNodes of partition cpu is 1, and this job asks for 2",
        "MaxNodes of cpu",
    ),
    Scene(
        partition_cpus,
        "PartitionConfig",
        "MaxCPUsPerNode of partition cpu is 1 for all of its jobs, and this job asks for 7 in all",
        "MaxCPUsPerNode of cpu",
    ),
    Scene(
        cpus_of_each_node,
        "Resources",
        "c01: jobs of partition cpu leave too few of its 3 CPUs of each node (MaxCPUsPerNode)",
        "requested nodes in cpu",
    ),
    Scene(
        drained_node_behind_others,
        "Priority",
        "c06: drained, fan",
        "requested nodes in cpu",
        "ReqNodeNotAvail",
    ),
    Scene(
        all_cpus,
        "PartitionConfig",
        "TotalCPUs of partition cpu is 384, and this job asks for 500",
        "TotalCPUs of cpu",
    ),
    Scene(only_root, "PartitionConfig", "RootOnly of partition cpu is YES", "RootOnly of cpu"),
    Scene(
        submit_hosts,
        "PartitionConfig",
        "AllocNodes of partition cpu is nowhere, and this job comes from ",
        "AllocNodes of cpu",
    ),
    Scene(
        required_reservation,
        "PartitionConfig",
        "ReqResv of partition cpu is YES, and the reservation of this job is none",
        "ReqResv of cpu",
    ),
    Scene(
        partition_memory,
        "MaxMemPerLimit",
        "MaxMemPerNode of partition cpu is 1000 MiB, and this job asks for 2000 MiB",
        "MaxMemPerNode of cpu",
    ),
    Scene(
        inactive_partition,
        "PartitionInactive",
        "State of partition cpu is INACTIVE",
        "State of cpu",
    ),
    Scene(down_partition, "PartitionDown", "State of partition cpu is DOWN", "State of cpu"),
    Scene(
        down_partition_with_reservations,
        "PartitionConfig",
        "ReqResv of partition cpu is YES, and the reservation of this job is none",
        "ReqResv of cpu",
    ),
    Scene(
        drained_node,
        "ReqNodeNotAvail",
        "waits for nodes that it requests: c06: drained, fan at 0 rpm (by root, ",
        "requested nodes in cpu",
    ),
    Scene(
        group_nodes,
        "AssocGrpNodeLimit",
        "association of account wg_bio allows 1 node (GrpTRES); this job asks for 2",
    ),
    Scene(
        user_cpus,
        "QOSMaxCpuPerUserLimit",
        "QOS low allows each user 4 CPUs (MaxTRESPerUser), 3 in use; this job asks for 2",
    ),
    Scene(
        user_jobs,
        "QOSMaxJobsPerUserLimit",
        "QOS high allows each user 1 job (MaxJobsPerUser), 1 in use; this job asks for 1",
    ),
    Scene(
        whole_nodes_of_a_user,
        "AssocMaxCpuPerJobLimit",
        "association of user dave, account wg_chem allows each job 32 CPUs (MaxTRES); this job"
        " asks for 64",
    ),
    Scene(
        usage_threshold,
        "QOSUsageThreshold",
        "UsageThreshold of QOS low is 3,000,000, and the fair share of this job by its weight is 1",
        "UsageThreshold of QOS low",
    ),
    Scene(licenses, "Licenses", "1 of 2 licenses of matlab are free; this job asks for 2"),
    Scene(
        array_throttle,
        "JobArrayTaskLimit",
        "may run 1 at the same time (ArrayTaskThrottle), running now: 1",
    ),
    Scene(
        heterogeneous,
        "Resources",
        "because all components start together",
        "components of a heterogeneous job",
    ),
)


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    yield from queue_cluster("why")


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.build.__name__)
def test_why_has_the_reason_of_squeue_and_the_figures(
    scene: Scene, slurm: Cluster, record_figure: RecordFigure
) -> None:
    queue = ScenarioQueue(slurm)
    try:
        scene.build(queue)
        wait_until(
            lambda: _reason(slurm, queue.jobs[JOB]) == scene.reason,
            f"slurmctld to give the reason {scene.reason}",
            seconds=60,
        )
        (data,) = json.loads(_why(slurm, queue.jobs[JOB], "--json"))["data"]
        record_figure(f"{scene.build.__name__}: {data['headline']}")
        assert (data["code"], data["slurm_reason"]) == (scene.code or scene.reason, scene.reason)
        assert scene.headline in data["headline"]
        assert [check["ok"] for check in data["checks"] if check["what"] == scene.check] == [False]
    finally:
        clean_up(slurm)
        queue.undo()


def _why(slurm: Cluster, job: int, *options: str) -> str:
    return slurm.root(*FAIRBANK, str(job), *options, "--no-likely", "--no-advice")


def _reason(slurm: Cluster, job: int) -> str:
    """Return squeue's reason; of an array that of the tasks that wait."""
    lines = slurm.root(
        "squeue", "--noheader", "--states=PENDING", f"--jobs={job}", "--format=%r"
    ).splitlines()
    return words.reason(lines[0]) if lines else ""
