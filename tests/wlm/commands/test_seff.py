"""seff: its lines, as seff 2.1 printed them of jobs of a Slurm 22.05 with the same figures."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.report.slurm.sacct import AccountingLine, TaskUsage
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.conftest import RunCommand
from tests.wlm.commands.row_answers import answer_with

JOB = AccountingLine(
    7000251, "7000251", cluster="lab", user="root", group="root", state="FAILED", exit_code=(3, 0),
    cpus=3, allocated_nodes=1, elapsed=1, total_cpu=537, allocated_tres="billing=3,cpu=3,mem=300M",
)  # fmt: skip
HEAD = "Job ID: 7000251\nCluster: lab\nUser/Group: root/root\n"
FAILED = f"""{HEAD}State: FAILED (exit code 3)
Nodes: 1
Cores per node: 3
CPU Utilized: 00:00:01
CPU Efficiency: 33.33% of 00:00:03 core-walltime
Job Wall-clock time: 00:00:01
Memory Utilized: 0.00 MB
Memory Efficiency: 0.00% of 300.00 MB (300.00 MB/node)
"""
TWO_NODES = f"""{HEAD}State: COMPLETED (exit code 0)
Nodes: 2
Cores per node: 2
CPU Utilized: 00:00:00
CPU Efficiency: 0.00% of 00:00:08 core-walltime
Job Wall-clock time: 00:00:02
Memory Utilized: 0.00 MB
Memory Efficiency: 0.00% of 3.91 GB (1000.00 MB/core)
"""
CANCELLED = f"""{HEAD}State: CANCELLED (exit code 0)
Cores: 1
CPU Utilized: 00:00:00
CPU Efficiency: 0.00% of 00:00:10 core-walltime
Job Wall-clock time: 00:00:10
Memory Utilized: 3.04 MB
Memory Efficiency: 0.30% of 1000.00 MB (1000.00 MB/core)
"""
PENDING = f"""{HEAD}State: PENDING
Cores: 1
Efficiency not available for jobs in the PENDING state.
"""


@pytest.mark.parametrize(
    ("changes", "printed"),
    [
        ({}, FAILED),
        (
            {
                "state": "COMPLETED", "exit_code": (0, 0), "cpus": 4, "allocated_nodes": 2,
                "elapsed": 2, "total_cpu": 4, "allocated_tres": "cpu=4,mem=4000M,node=2",
                "memory_is_per_cpu": True,
            },
            TWO_NODES,
        ),
        (
            {
                "state": "CANCELLED", "exit_code": (0, 15), "cpus": 1, "elapsed": 10,
                "total_cpu": 3, "resident": TaskUsage(3_113 * 1_024),
                "allocated_tres": "cpu=1,mem=1000M,node=1", "memory_is_per_cpu": True,
            },
            CANCELLED,
        ),
        ({"state": "PENDING", "cpus": 0, "allocated_nodes": 0, "allocated_tres": None}, PENDING),
    ],
    ids=["failed", "two nodes", "cancelled", "pending"],
)  # fmt: skip
def test_lines_are_those_of_seff(
    command: RunCommand, controller: RecordingController, changes: dict[str, Any], printed: str
) -> None:
    run = JOB._replace(**changes)
    steps = [run._replace(step="batch"), run._replace(step="0", resident=TaskUsage(1_024))]
    shown = steps if run.resident else []
    answer_with(controller, accounting=[run._replace(resident=None), *shown])
    assert command("seff", "7000251") == (0, printed, "")


def test_task_of_an_array_has_both_names_and_a_running_job_a_warning(
    command: RunCommand, controller: RecordingController
) -> None:
    answer_with(controller, accounting=[JOB._replace(label="7_2", state="RUNNING")])
    lines = command("seff", "7_2").out.splitlines()
    assert lines[:2] == ["Job ID: 7000251", "Array Job ID: 7_2"]
    assert (lines[4], lines[-1][:8]) == ("State: RUNNING", "WARNING:")


def test_unknown_job_and_wrong_usage_have_the_exit_codes_of_seff(
    command: RunCommand, controller: RecordingController
) -> None:
    answer_with(controller, accounting=[])
    assert command("seff", "99") == (2, "", "Job not found.\n")
    assert command("seff").code == command("seff", "7", "8").code == 1
