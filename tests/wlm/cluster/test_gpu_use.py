"""Use of GPUs in sacct, sstat, seff and eff, with a directory that plays those of AMD."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.wlm.node.devices.gpus import detect_gpus
from tests.support.conditions import wait_until
from tests.wlm.cluster.running_cluster import RunningCluster
from tests.wlm.node.test_gpus import play_amd

SETTINGS = """
[cluster]
cluster_name = "lab"
gpu_root = "{root}"

[jobs]
job_acct_gather_frequency = "1"

[[nodes]]
node_name = "n1"
cpus = 4
real_memory = 4000
gres = "gpu:3"

[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
default_time = "30"
def_mem_per_cpu = 10
tres_billing_weights = "CPU=1.0,GRES/gpu=1000.0"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Return a cluster with two GPUs that tell their use, and one that does not."""
    home = tmp_path_factory.mktemp("use")
    root = home / "host"
    play_amd(root, ["0x1002"] * 3)
    for file in (file for gpu in detect_gpus(str(root)) for file in gpu.files):
        Path(file).touch()
    for at, percent in enumerate((60, 20)):
        busy = root / f"sys/class/drm/renderD{128 + at}/device/gpu_busy_percent"
        busy.write_text(f"{percent}\n")
    settings = home / "settings.toml"
    settings.write_text(SETTINGS.format(root=root))
    cluster = RunningCluster(home)
    try:
        started = cluster.run("cluster", "up", "--config", str(settings))
        assert started.returncode == 0, started
        yield cluster
    finally:
        cluster.close()


def use(lab: RunningCluster, command: str, job: str) -> list[str]:
    columns = "jobid,tresusageinave,tresusageintot"
    words = ("-a",) if command == "sstat" else ()
    return lab.try_slurm(command, *words, "-n", "-P", "-j", job, "-o", columns).stdout.splitlines()


def charged_rows(lab: RunningCluster, job: str) -> list[dict[str, Any]]:
    rows = json.loads(lab.run("eff", job, "--json").stdout)["data"]
    return [row for row in rows if row["charged"]]


def run_until_measured(lab: RunningCluster, *options: str) -> str:
    """Run a job with a step until its use is known and it has a price, and return its number."""
    go = Path(lab.home, "go")
    go.unlink(missing_ok=True)
    script = "srun --gres=gpu:1 -n1 sh -c 'while [ ! -e go ]; do sleep 0.1; done'"
    job = lab.slurm("sbatch", "--parsable", *options, "--wrap", script).strip()
    wait_until(
        lambda: " ".join(use(lab, "sstat", job)).count("gpuutil") == 4, "a sample of the use"
    )
    wait_until(
        lambda: lab.slurm("squeue", "-h", "-j", job, "-o", "%M").strip() != "0:00", "a second"
    )
    go.touch()
    wait_until(lambda: not lab.slurm("squeue", "-h", "-j", job).strip(), "the end of the job")
    return job


def test_use_is_that_of_the_step_that_has_the_gpu(lab: RunningCluster) -> None:
    job = run_until_measured(lab, "--gpus=2")
    rows = use(lab, "sacct", job)
    assert rows[0] == f"{job}||"
    assert rows[2] == f"{job}.0|gres/gpuutil=60|gres/gpuutil=60"
    shown = lab.slurm("seff", job)
    assert re.search(r"^GPU Utilized: 00:00:\d\d$", shown, re.MULTILINE)
    assert re.search(
        r"^GPU Efficiency: [2-5]\d\.\d\d% of 00:00:\d\d measured,", shown, re.MULTILINE
    )


def test_gpus_that_would_have_been_enough_have_their_price(lab: RunningCluster) -> None:
    job = run_until_measured(lab, "--gpus=2", "--time=1:00:00")
    wait_until(lambda: charged_rows(lab, job), "the charge of the job")
    (row,) = charged_rows(lab, job)
    assert "gres/gpu=2" in row["tres"]
    assert "gres/gpu=1" in row["enough"]["tres"]  # 0.6 and 0.2 of the time
    assert 0 < row["enough"]["cost"] < row["cost"]
    assert "1 CPU, 1 GPU" in lab.run("eff", job, "-n", "-P", "-o", "ENOUGH").stdout


def test_use_of_a_gpu_that_does_not_tell_it_is_not_known(lab: RunningCluster) -> None:
    held = lab.slurm("sbatch", "--parsable", "--gpus=2", "--wrap", "sleep 600").strip()
    lab.slurm("sbatch", "-W", "--gpus=1", "--wrap", "sleep 1.5")
    job = str(int(held) + 1)
    lab.slurm("scancel", held)
    assert [row.partition("|")[2] for row in use(lab, "sacct", job)] == ["|", "|"]
    assert "GPU Efficiency: not known" in lab.slurm("seff", job)
    assert "GPU" not in lab.run("eff", job, "-n", "-P", "-o", "ENOUGH").stdout
