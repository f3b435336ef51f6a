"""GPUs of jobs and steps: variables, TRES and refusals are those of Slurm."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.slurm.conftest import own_cluster
from tests.wlm.scenarios.differences import unexpected
from tests.wlm.scenarios.fairbank_site import fairbank_site
from tests.wlm.scenarios.scenario import Scenario, Site, run_all
from tests.wlm.scenarios.slurm_site import CHANGES, slurm_site, table_release
from tests.wlm.scenarios.transcript import Transcript

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

MACHINE = """
[priority]
priority_flags = "MAX_TRES"

[[nodes]]
node_name = "g[1-2]"
cpus = 64
sockets = 2
cores_per_socket = 32
real_memory = 64000
gres = "gpu:a100:4"

[[nodes]]
node_name = "g3"
cpus = 64
sockets = 2
cores_per_socket = 32
real_memory = 64000
gres = "gpu:t4:2"

[[partitions]]
partition_name = "gpu"
nodes = "g[1-2]"
default_time = "30"
max_time = "7-0"
def_mem_per_cpu = 1000
tres_billing_weights = "CPU=1.0,GRES/gpu=4.0"

[[partitions]]
partition_name = "t4"
nodes = "g3"
default_time = "30"
max_time = "7-0"
def_mem_per_cpu = 1000
tres_billing_weights = "CPU=1.0,GRES/gpu=4.0"
"""
_JOB = re.compile(r"\b7\d{6}\b")
# Slurm sets the variables of all makers, and none for a task without GPUs. 22.05 writes gres:gpu,
# and TRES for what Fairbank and 24.11 write as AllocTRES. Which cores a job has is compared
# elsewhere, and what it asked for twice, as with --gpus and --gpus-per-node, Fairbank shows once.
FUNCTIONS = r"""
export SHOW='env | grep -E "^(SLURM_(GPUS|JOB_GPUS|STEP_GPUS)|CUDA_VISIBLE_DEVICES)" |
    grep -v "=$" | sort'
tres() {
    scontrol -d show job $J | sed -nE 's,gres:gpu,gres/gpu,g; s,CPU_IDs=[^ ]* ,,
        s,gres/gpu$,gres/gpu:1,; s,(PerTask=.*gpu):,\1=,; /JOB_GRES=\(null\)|gpu:0$|PerTask=cpu/d
        s/^ *(AllocTRES=|TRES=)/TRES=/p; s/^ *(JOB_GRES|Nodes|TresPer)/\1/p' | sort
}
"""
RUNS = {
    "gres": "-p gpu --gres=gpu:2",
    "gres-of-a-type": "-p gpu --gres=gpu:a100:1",
    "gres-without-number": "-p gpu --gres=gpu",
    "none": "-p gpu",
    "zero": "-p gpu --gres=gpu:0",
    "gpus": "-p gpu --gpus=3",
    "gpus-of-a-type": "-p t4 --gpus=t4:2",
    "gpus-on-two-nodes": "-p gpu --gpus=6",
    "gpus-per-node": "-p gpu -N 2 --gpus-per-node=2",
    "gpus-per-task": "-p gpu -n 3 --gpus-per-task=1",
    "gpus-and-per-task": "-p gpu --gpus=4 --gpus-per-task=2",
    "gpus-and-per-node": "-p gpu --gpus=4 --gpus-per-node=2",
    "exclusive": "-p gpu --exclusive",
    "all-of-a-node": "-p gpu -n 2 --gres=gpu:4",
}
STEPS = {
    "step-of-all": "srun sh -c",
    "step-of-one": "srun --gres=gpu:1 sh -c",
    "step-of-none": "srun --gres=none sh -c",
    "step-of-gpus": "srun -n 1 --gpus=1 sh -c",
    "step-per-task": "srun -n 2 --gpus-per-task=1 sh -c",
}
REFUSED = {
    "too-many": "-p gpu --gres=gpu:5",
    "unknown-type": "-p gpu --gres=gpu:v100:1",
    "type-of-another-partition": "-p t4 --gres=gpu:a100:1",
    "too-many-in-all": "-p gpu --gpus=9",
    "unknown-name": "-p gpu --gres=foo:1",
    "bad-number": "-p gpu --gres=gpu:a100:x",
    "bad-gpus": "-p gpu --gpus=x:y:z",
    "per-task-without-tasks": "-p gpu --gpus-per-task=1",
    "tasks-differ": "-p gpu --gpus=2 --gpus-per-task=1 -n 3",
    "fewer-than-per-node": "-p gpu --gpus=2 --gpus-per-node=3",
}


def gpu_scenarios() -> list[Scenario]:
    listed: list[tuple[str, ...]] = []
    for name, options in RUNS.items():
        listed.append(
            (
                name,
                f"sbatch {options} --wrap 'eval \"$SHOW\"'",
                "ended $J",
                "cat slurm-$J.out",
                "tres" + (" | grep -v TresPerJob" if "-and-" in name else ""),
                "sacct -X -n -P -j $J -o AllocTRES,State",
            )
        )
    for name, step in STEPS.items():
        listed.append(
            (
                name,
                f"sbatch -p gpu -n 2 --gres=gpu:2 --wrap '{step} \"$SHOW\" | sort'",
                "ended $J",
                "cat slurm-$J.out",
            )
        )
    listed.append(
        (
            "steps-refused",
            "sbatch -p gpu --gres=gpu:1 --wrap 'srun --gres=gpu:2 true; echo $?;"
            " srun --gres=gpu:x:1 true; echo $?'",
            "ended $J",
            "grep -E '^[0-9]|Invalid generic' slurm-$J.out | sed 's/for job [0-9]*/for job/'",
        )
    )
    listed.append(
        (
            "waits-for-a-gpu",
            "sbatch -p t4 --gres=gpu:2 --wrap 'exec sleep 600'",
            "wait_for RUNNING $J",
            "scontrol -d show node g3 | grep -E 'Gres=|GresUsed|CfgTRES'",
            "sinfo -h -n g3 -p t4 -O gres:20,gresused:30",
            "squeue -h -j $J -o %b | sed s,gres:gpu,gres/gpu,",
            "tres",
            "sbatch -p t4 --gpus=1 --wrap 'eval \"$SHOW\"'",
            "waits $J Resources",
            "scancel $J1",
            "ended $J",
            "cat slurm-$J.out",
        )
    )
    for name, options in REFUSED.items():
        line = "2>&1 | tail -n 1 | sed 's/Batch job submission failed: //'"
        listed.append((name, f"sbatch {options} --wrap true {line}"))
    return [Scenario("gpus", name, (FUNCTIONS, *commands)) for name, *commands in listed]


def test_gpus_are_as_under_slurm(tmp_path: Path) -> None:
    changes = {**CHANGES, "GresTypes": "gpu", "AccountingStorageTRES": "gres/gpu"}
    with own_cluster("gpus", "gpus", changes) as cluster:
        release = table_release(cluster)
        slurm = _outputs(replace(slurm_site(cluster), parallel=1))
    with fairbank_site(tmp_path, MACHINE, parallel=1) as site:
        here = _outputs(site)
    assert len(gpu_scenarios()) > 30
    wrong = unexpected(gpu_scenarios(), slurm, here, release=release)
    assert not wrong, "\n".join(wrong)


def _outputs(site: Site) -> dict[str, Transcript]:
    """Return what the commands printed, and their exit codes."""
    return {
        scenario: {
            f"{number} output": f"{_JOB.sub('JOB', one.output)}[{one.code}]"
            for number, one in enumerate(outputs, 1)
            if number > 1
        }
        for scenario, outputs in run_all(site, gpu_scenarios()).items()
    }
