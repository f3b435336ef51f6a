"""Another QOS for a job: those that its associations allow, with the priority that slurmctld would
compute.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.priority.settings import Flag, MultifactorSettings, PrioritySettings, PriorityWeights
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.explain.allowed_changes import qos_command, qos_priorities
from fairbank.slurm.parsers.limits import QosRecord
from fairbank.slurm.parsers.sacctmgr import ASSOCIATION_QOS

ALL_QOS = [QosRecord(name="normal"), QosRecord(name="high", priority=100), QosRecord(name="low")]
TEXT = """\
chem|||normal
chem|ann||normal,high
chem|ann|gpu|high,low
chem|bob||normal,high,low
bio|ann||low
"""


def settings(*flags: Flag, qos: int = 1_000) -> PrioritySettings:
    weights = PriorityWeights(qos=qos)
    return PrioritySettings(factors=MultifactorSettings(weights=weights, flags=frozenset(flags)))


def priorities(of: PrioritySettings | None = None, **job: Any) -> dict[str, int]:
    described: dict[str, Any] = {
        "number": 1,
        "user": "ann",
        "account": "chem",
        "qos": "normal",
        "priority": 5_000,
        **job,
    }
    rows = ASSOCIATION_QOS.read(TEXT).rows
    return qos_priorities(PendingJob(**described), rows, ALL_QOS, of or settings())


def test_only_qos_of_the_association_are_allowed() -> None:
    assert set(priorities(partitions=("cpu",))) == {"normal", "high"}
    assert set(priorities(partitions=("gpu",))) == {"high", "low"}
    assert set(priorities(partitions=("cpu", "gpu"))) == {"high"}
    assert set(priorities(account="bio")) == {"low"}
    assert priorities(user="eve") == {}


def test_priority_follows_from_the_qos_and_its_weight() -> None:
    assert priorities() == {"normal": 5_000, "high": 6_000}
    assert priorities(qos="high", priority=500) == {"normal": 1, "high": 500}
    assert priorities(PrioritySettings(by_factors=False))["high"] == 5_000
    assert priorities(settings(qos=0))["high"] == 5_000


def test_priority_of_a_qos_counts_in_full_with_the_flag() -> None:
    assert priorities(settings(Flag.NO_NORMAL_QOS, qos=10))["high"] == 6_000
    assert priorities(settings(qos=10))["high"] == 5_010


@pytest.mark.parametrize("cluster", [None, "lab"])
def test_only_the_associations_of_the_user_are_requested(cluster: str | None) -> None:
    command = qos_command(cluster, "ann")
    assert command[:2] == ("sacctmgr", "--noheader")
    assert "user=ann" in command
    assert ("cluster=lab" in command) == (cluster is not None)
    assert "format=account,user,partition,qos" in command
