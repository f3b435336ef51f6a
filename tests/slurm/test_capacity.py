"""Capacity of a cluster from the nodes that Slurm shows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.time import parse_instant
from fairbank.core.tres import parse_weights
from fairbank.slurm.capacity import read_capacity
from fairbank.slurm.output import RecordedOutput

NODES = """\
NodeName=n1 CPUTot=64 RealMemory=131072 Gres=(null) State=IDLE Partitions=std,debug
NodeName=n2 CPUTot=64 RealMemory=131072 Gres=(null) State=DOWN+DRAIN Partitions=std \
Reason=disk, by hand [ops,night@2026-11-20T12:00:00]
NodeName=g1 CPUTot=64 RealMemory=131072 Gres=gpu:v100:4 State=MIXED Partitions=gpu
NodeName=x1 CPUTot=8 RealMemory=1024 Gres=(null) State=IDLE Partitions=unbilled
"""
CLUSTER = Cluster(
    "lab",
    {
        "std": Partition("std", "cpu", parse_weights("CPU=1.0,Mem=0.5G")),
        "debug": Partition("debug", "cpu", parse_weights("CPU=0.5")),
        "gpu": Partition("gpu", "gpu", parse_weights("CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0")),
    },
)


@pytest.fixture
def slurm(tmp_path: Path) -> RecordedOutput:
    (tmp_path / "nodes.txt").write_text(NODES)
    return RecordedOutput(str(tmp_path))


def test_nodes_are_priced_as_jobs_that_have_them_whole(slurm: RecordedOutput) -> None:
    """64 cores or 128 GiB are 64 SU per hour (HADM's weights); a node counts once, at its dearest
    partition. Four GPUs are 4. n2 has been down since noon of the 20th: 12 h x 64 x 60 = 46,080.
    """
    since, until = parse_instant("2026-11-14T00:00:00Z"), parse_instant("2026-11-21T00:00:00Z")
    by_resource = {"cpu": (Fraction(128), 46_080), "gpu": (Fraction(4), 0)}
    capacity, unreadable = read_capacity(slurm, CLUSTER, since, until)
    assert (capacity.by_resource, unreadable) == (by_resource, ())
    assert (capacity.cpus, capacity.gpus) == (3 * 64 + 8, 4)  # also where nothing is billed
    assert capacity.sharing == set()


def test_resources_that_share_a_node_are_known(tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text(NODES.replace("Partitions=gpu", "Partitions=gpu,std"))
    capacity, _ = read_capacity(RecordedOutput(str(tmp_path)), CLUSTER, 0, 3_600)
    assert capacity.sharing == {"cpu", "gpu"}
    assert {name: units for name, (units, _) in capacity.by_resource.items()} == {
        "cpu": Fraction(3 * 64),
        "gpu": Fraction(4),
    }


def cpu_capacity(slurm: RecordedOutput, period: tuple[int, int]) -> tuple[Fraction, int]:
    return read_capacity(slurm, CLUSTER, *period)[0].by_resource["cpu"]


def test_outage_counts_only_within_the_period(slurm: RecordedOutput) -> None:
    before = parse_instant("2026-11-19T00:00:00Z"), parse_instant("2026-11-20T00:00:00Z")
    assert cpu_capacity(slurm, before) == (Fraction(128), 0)
    after = parse_instant("2026-11-21T00:00:00Z"), parse_instant("2026-11-21T01:00:00Z")
    assert cpu_capacity(slurm, after) == (Fraction(128), 64 * 60)
