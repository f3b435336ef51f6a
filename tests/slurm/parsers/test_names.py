"""Names drawn from Slurm's whole range are read as they were written."""

from __future__ import annotations

import tomllib

import msgspec
import pytest
from hypothesis import assume, given

from fairbank.slurm.parsers import job_lines, limits, machine, sacct, sacctmgr
from fairbank.slurm.parsers.columns import pairs_of
from fairbank.slurm.parsers.values import SlurmPartition
from fairbank.slurm.reconcile.prices import price_settings
from tests.slurm.reconcile.jobs import a_job, sacct_row
from tests.slurm.reconcile.test_import_plan import MACHINE
from tests.support.fairshare_recordings import printed
from tests.support.names import NAMES


@given(account=NAMES, partition=NAMES, qos=NAMES, user=NAMES)
def test_names_of_accounting_go_in_and_come_out(
    account: str, partition: str, qos: str, user: str
) -> None:
    job = msgspec.structs.replace(
        a_job(1), account=account, partition=partition, qos=qos, user=user
    )
    assert sacct.JOBS.read(sacct_row(job)).rows == (job,)


@given(account=NAMES, user=NAMES)
def test_names_of_associations_go_in_and_come_out(account: str, user: str) -> None:
    assume("|" not in account + user)  # sacctmgr cannot quote its delimiter
    (row,) = sacctmgr.ASSOCIATIONS.read(f" {account}|{user}||1||\n").rows
    assert (row.account, row.user) == (account, user)


@given(account=NAMES, user=NAMES)
def test_names_of_limits_go_in_and_come_out(account: str, user: str) -> None:
    assume(not account.endswith(")") and "\x20Account Limits" not in account + user)
    text = (
        f"ClusterName=lab Account={account} UserName={user}(1001) Partition= Priority=0 ID=3"
        " GrpTRES=cpu=N(0),license/ansys@flex1=2(1) GrpTRESMins= GrpWall=N(0.00)\n"
    )
    cells = pairs_of(text)
    assert (cells["Account"], cells["UserName"]) == (account, f"{user}(1001)")


@given(account=NAMES, qos=NAMES, user=NAMES)
def test_names_of_pending_jobs_go_in_and_come_out(account: str, qos: str, user: str) -> None:
    honest = next(
        line for line in printed("fair-tree", "jobs").splitlines() if line.startswith("JobId=10 ")
    )
    start = honest.index(" UserId=")
    line = honest[:start] + honest[start:].replace("UserId=alice(", f"UserId={user}(", 1)
    before, _, rest = line.partition(" Account=")
    line = f"{before} Account={account} QOS={qos} WCKey=* JobState={rest.partition('JobState=')[2]}"
    (job,) = job_lines.read_pending(line).rows
    assert (job.account, job.qos, job.user) == (account, (qos,), user)


@given(partition=NAMES, qos=NAMES)
def test_names_in_price_settings_are_read_back(partition: str, qos: str) -> None:
    place = msgspec.structs.replace(MACHINE.partitions[0], name=partition)
    factor = msgspec.structs.replace(MACHINE.qos[0], name=qos, factor="2.0")
    text = price_settings(msgspec.structs.replace(MACHINE, partitions=(place,), qos=(factor,)), [])
    (cluster,) = tomllib.loads(text)["clusters"].values()
    assert (list(cluster["partitions"]), list(cluster["qos_factors"])) == ([partition], [qos])


def test_long_tres_of_a_job_are_read() -> None:
    tres = ",".join(["cpu=1", *(f"gres/gpu:type_{number:03}=1" for number in range(26))])
    assert len(tres) > 514
    (job,) = sacct.JOBS.read(sacct_row(a_job(1, tres=tres))).rows
    assert (job.tres, job.price_gaps) == (tres, ())


def test_gpu_type_that_begins_with_a_digit_is_a_type() -> None:
    text = (
        "NodeName=g01 CPUTot=48 RealMemory=512000 Gres=gpu:2080ti:8(S:0-1),shard:16 Partitions=gpu"
    )
    (node,) = machine.read_nodes(text).rows
    assert node.gpus == ("2080ti",)


def test_partition_that_begins_with_a_digit_is_read() -> None:
    (partition,) = machine.read_partitions("PartitionName=1080ti-long Nodes=g[01-02]").rows
    assert isinstance(partition, SlurmPartition)
    assert partition.name == "1080ti-long"


@pytest.mark.parametrize(
    ("sharing", "exclusive"),
    [("EXCLUSIVE", True), ("NO", False), ("FORCE:4", False), ("NO Exclusive=NODE", True)],
)
def test_partition_that_gives_whole_nodes_is_known(sharing: str, exclusive: bool) -> None:
    (partition,) = machine.read_partitions(f"PartitionName=cpu OverSubscribe={sharing}").rows
    assert partition.exclusive == exclusive


def test_limits_of_a_license_of_a_server_are_read() -> None:
    text = (
        "ClusterName=lab Account=dept bio UserName= Partition= Priority=0 ID=3"
        " ParentAccount=root(1) GrpTRES=cpu=N(0),license/ansys@flex1=2(1) GrpTRESMins= GrpWall=\n"
    )
    (record,) = limits.read_association_limits(text).rows
    assert record.name == "dept bio"
    assert {"license/ansys@flex1": 2} in record.limits.tres.values()
