"""GPUs of a running cluster, with a directory that plays /dev and /proc of the host."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.wlm.node.devices.gpus import detect_gpus
from tests.support.conditions import wait_until
from tests.wlm.cluster.running_cluster import RunningCluster

SETTINGS = """
[cluster]
cluster_name = "lab"
gpu_root = "{root}"

[jobs]
kill_wait = 2

[[nodes]]
node_name = "n[1-2]"
cpus = 8
real_memory = 4000
gres = "gpu:a100:2,gpu:t4:2"

[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
default_time = "30"
def_mem_per_cpu = 10
tres_billing_weights = "CPU=1.0,GRES/gpu=4.0"
"""
# The first four have numbers of NVIDIA's driver, the others are full, zero, random and urandom.
_DEVICES = ((195, 0), (195, 1), (195, 2), (195, 3), (1, 7), (1, 5), (1, 8), (1, 9))
_MODELS = ("Tesla T4",) * 4 + ("NVIDIA A100-SXM4-40GB",) * 4


def play_host(root: Path) -> None:
    """Write eight GPUs. Only root can make devices; else they are files."""
    (root / "dev").mkdir(parents=True)
    for at, (model, numbers) in enumerate(zip(_MODELS, _DEVICES, strict=True)):
        device = root / f"dev/nvidia{at}"
        if os.geteuid() == 0:
            os.mknod(device, 0o020666, os.makedev(*numbers))
        else:
            device.touch()
        bus = root / f"proc/driver/nvidia/gpus/0000:{at:02x}:00.0"
        bus.mkdir(parents=True)
        (bus / "information").write_text(f"Model: \t\t {model}\nDevice Minor: \t {at}\n")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    home = tmp_path_factory.mktemp("gpus")
    play_host(home / "host")
    settings = home / "settings.toml"
    settings.write_text(SETTINGS.format(root=home / "host"))
    cluster = RunningCluster(home)
    try:
        started = cluster.run("cluster", "up", "--config", str(settings))
        assert started.returncode == 0, started
        yield cluster
    finally:
        cluster.close()


def is_controlled(lab: RunningCluster) -> bool:
    return "a job cannot open those of others" in lab.run("cluster", "status").stdout


def run_job(lab: RunningCluster, script: str, *options: str) -> list[str]:
    """Run a script as a job, and return the lines of its output."""
    lab.slurm("sbatch", "-W", "-o", "out", *options, "--wrap", script)
    return (lab.home / "out").read_text().splitlines()


SHOW = 'echo "$SLURM_JOB_GPUS|$SLURM_STEP_GPUS|$SLURM_GPUS_ON_NODE|$CUDA_VISIBLE_DEVICES"'


def test_status_says_whether_jobs_are_kept_off_the_gpus_of_others(lab: RunningCluster) -> None:
    status = lab.run("cluster", "status").stdout
    line = next(line for line in status.splitlines() if line.startswith("GPUs"))
    assert line.split(maxsplit=1)[1] in (
        "8; a job cannot open those of others",
        "8; variables alone keep jobs off those of others, which they could open",
    )


def test_job_knows_its_gpus(lab: RunningCluster) -> None:
    visible = "0,1" if is_controlled(lab) else "4,5"
    assert run_job(lab, SHOW, "--gres=gpu:a100:2") == [f"4,5||2|{visible}"]
    assert run_job(lab, SHOW) == ["|||"]


def test_job_cannot_open_the_gpus_of_others(lab: RunningCluster) -> None:
    if not is_controlled(lab):
        pytest.skip("not tried: no hierarchy of devices of version 1 in which groups can be made")
    root = lab.home / "host/dev"
    script = f"for i in 0 1 4 5; do true < {root}/nvidia$i && echo $i; done 2> /dev/null; true"
    assert run_job(lab, f"{script}; srun sh -c '{script}'", "--gres=gpu:a100:1") == ["4", "4"]


def test_steps_share_the_gpus_of_their_job(lab: RunningCluster) -> None:
    script = (
        f"srun sh -c '{SHOW}'; srun --gres=gpu:1 sh -c '{SHOW}'; srun --gres=none sh -c '{SHOW}';"
        f" srun -l -n2 --gpus-per-task=1 sh -c '{SHOW}' | sort"
    )
    assert run_job(lab, script, "-n2", "--gpus=t4:2") == [
        "0,1|0,1|2|0,1",
        "0,1|0,1|2|0,1",
        "0,1|0|1|0",
        "0,1|0|1|0",
        "0,1|||",
        "0,1|||",
        "0: 0,1|0|2|0",
        "1: 0,1|1|2|1",
    ]


def test_steps_in_an_allocation_follow_its_options(lab: RunningCluster) -> None:
    show = 'echo "$SLURM_STEP_GPUS|$SLURM_GPUS|$SLURM_GPUS_PER_TASK"'
    command = ("-Q", "-n2", "--gpus-per-task=t4:1", "srun", "-l", "sh", "-c", show)
    lines = lab.slurm("salloc", *command).splitlines()
    assert sorted(lines) == ["0: 0||t4:1", "1: 1||t4:1"]
    both = f"{show}; srun sh -c '{show}'"
    lines = lab.slurm("salloc", "-Q", "--gpus=2", "sh", "-c", both).splitlines()
    assert lines == ["|2|", "4,5|2|"]
    assert lab.slurm("srun", "--gpus=t4:1", "sh", "-c", show) == "0||\n"
    tasks = ("--tres-per-task=cpu=1,gres/gpu:1", "-n2", "-l", "sh", "-c", "echo $SLURM_STEP_GPUS")
    assert sorted(lab.slurm("srun", *tasks).splitlines()) == ["0: 4", "1: 5"]


def test_tasks_are_bound_to_gpus_as_options_say(lab: RunningCluster) -> None:
    show = 'sh -c "echo \\$SLURM_PROCID:\\$SLURM_STEP_GPUS"'

    def bound(*options: str) -> list[str]:
        words = " ".join(options)
        script = f"srun -n2 {words} {show} 2>&1"
        return sorted(run_job(lab, script, "-n2", "-w", "n1", "--gpus=t4:2"))

    assert bound("--gpu-bind=single:1") == ["0:0", "1:1"]
    assert bound("--gpu-bind=single:2") == ["0:0", "1:0"]
    assert bound("--gpu-bind=per_task:1") == ["0:0", "1:1"]
    assert bound("--gpus-per-task=1", "--gpu-bind=none") == ["0:0,1", "1:0,1"]
    assert bound("--gpu-bind=closest") == ["0:0,1", "1:0,1"]
    # Where a job can open only its own, lists count these; else the A100s of the node come first.
    one, other, mask = (0, 1, 1) if is_controlled(lab) else (2, 3, 4)
    assert bound(f"--gpu-bind=map_gpu:{other},{one}") == ["0:1", "1:0"]
    assert bound(f"--gpu-bind=mask_gpu:{mask:x},{2 * mask:#x}") == ["0:0", "1:1"]
    assert bound("--gpu-bind=verbose,single:1")[2:] == [
        "gpu-bind: usable_gres=0x4; bit_alloc=0xC; local_inx=2; global_list=0; local_list=0",
        "gpu-bind: usable_gres=0x8; bit_alloc=0xC; local_inx=2; global_list=1; local_list=1",
    ]


def test_tasks_cpus_and_memory_go_with_gpus(lab: RunningCluster) -> None:
    show = (
        "env | grep -E '^SLURM_(NTASKS|GPUS|.*_PER_GPU|GPU_BIND)=' | sort;"
        ' scontrol show job $SLURM_JOB_ID | grep -E "NumTasks|Tres|TRES|MinMemory";'
        " squeue -h -O cpus-per-tres:11,mem-per-tres;"
        ' srun -l sh -c "echo \\$SLURM_STEP_GPUS" 2> /dev/null | sort'
    )
    options = ("--gpus=t4:2", "--ntasks-per-gpu=2", "--cpus-per-gpu=3", "--mem-per-gpu=100")
    lines = run_job(lab, show, *options, "--gpu-bind=verbose,single:2")
    assert [line.strip() for line in lines] == [
        "SLURM_CPUS_PER_GPU=3",
        "SLURM_GPUS=t4:2",
        "SLURM_GPU_BIND=verbose,single:2",
        "SLURM_MEM_PER_GPU=100",
        "SLURM_NTASKS=4",
        "SLURM_NTASKS_PER_GPU=2",
        "NumNodes=1 NumCPUs=6 NumTasks=4 CPUs/Task=1 ReqB:S:C:T=0:0:*:*",
        "ReqTRES=cpu=6,mem=200M,node=1,billing=14,gres/gpu=2",
        "AllocTRES=cpu=6,mem=200M,node=1,billing=14,gres/gpu=2",
        "MinCPUsNode=1 MinMemoryTRES=0 MinTmpDiskNode=0",
        "CpusPerTres=gres/gpu:3",
        "MemPerTres=gres/gpu:100",
        "TresBind=gres/gpu:verbose,single:2",
        "TresPerJob=gres/gpu:t4:2",
        "NtasksPerTRES=2",
        "gres/gpu:3 gres/gpu:100",
        *("0: 0", "1: 0", "2: 1", "3: 1"),
    ]


def test_commands_show_gpus_as_slurm_does(lab: RunningCluster) -> None:
    show = (
        'scontrol -d show job $SLURM_JOB_ID | grep -E "TRES|Tres|GRES"; squeue -h -o %b;'
        ' scontrol -d show node n1 | grep -E "Gres|TRES"; sinfo -h -N -n n1 -O gresused:40'
    )
    assert [line.strip() for line in run_job(lab, show, "-N2", "--gpus-per-node=a100:1")] == [
        "ReqTRES=cpu=2,mem=20M,node=2,billing=10,gres/gpu=2",
        "AllocTRES=cpu=2,mem=20M,node=2,billing=10,gres/gpu=2",
        "JOB_GRES=gpu:a100:2",
        "Nodes=n[1-2] CPU_IDs=0 Mem=10 GRES=gpu:a100:1(IDX:0)",
        "TresPerNode=gres/gpu:a100:1",
        "gres/gpu:a100:1",
        "Gres=gpu:a100:2,gpu:t4:2",
        "GresDrain=N/A",
        "GresUsed=gpu:a100:1(IDX:0),gpu:t4:0(IDX:N/A)",
        "CfgTRES=cpu=8,mem=4000M,billing=8,gres/gpu=4",
        "AllocTRES=cpu=1,mem=10M,billing=1,gres/gpu=1",
        "gpu:a100:1(IDX:0),gpu:t4:0(IDX:N/A)",
    ]
    rows = lab.slurm("sacct", "-X", "-n", "-P", "-o", "alloctres").splitlines()
    assert rows[-1] == "billing=10,cpu=2,gres/gpu=2,mem=20M,node=2"


def test_gpus_are_charged_as_the_partition_says(lab: RunningCluster) -> None:
    run_job(lab, "true", "--gpus=2", "--time=10")
    number = lab.slurm("sacct", "-X", "-n", "-P", "-o", "jobid").split()[-1]

    def holds() -> list[str]:
        rows = lab.run("statement", "1", "--csv").stdout.splitlines()
        return [row for row in rows if f",hold,{number}," in row]

    wait_until(lambda: holds() != [], "the bank to show the hold")
    (hold,) = holds()  # a CPU and two GPUs at 4 SU per hour each
    assert ",1.50," in hold


@pytest.mark.parametrize(
    "options",
    [
        ["-n3", "--gpus=a100:3"],
        ["-n3", "--gpus-per-task=a100:1", "--cpus-per-gpu=2"],
        ["--gpus=a100:3", "--ntasks-per-gpu=2", "--mem-per-gpu=100"],
    ],
)
def test_job_that_waits_for_gpus_of_several_tasks_is_explained(
    lab: RunningCluster, options: list[str]
) -> None:
    held = lab.slurm("sbatch", "--parsable", "--gpus=a100:4", "--wrap", "sleep 600").strip()
    wait_until(lambda: lab.slurm("squeue", "-h", "-j", held, "-o", "%T").strip() == "RUNNING", held)
    waiting = lab.slurm("sbatch", "--parsable", *options, "--wrap", "true").strip()
    explained = lab.run("why", waiting)
    assert explained.returncode == 0, explained
    text = " ".join(explained.stdout.split())
    assert f"Job {waiting} waits for 2 nodes: 0 of the 2 suitable nodes are free now" in text
    assert "too few GPUs are free: n[1-2]" in text
    lab.slurm("scancel", held)
    wait_until(lambda: not lab.slurm("squeue", "-h", "-o", "%i").strip(), "the jobs to end")
    states = lab.slurm("sacct", "-X", "-n", "-P", "-j", waiting, "-o", "state")
    assert states == "COMPLETED\n"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--gres=gpu:5"], "Requested node configuration is not available"),
        (["--gres=gpu:v100:1"], "Requested node configuration is not available"),
        (["--gpus=9"], "Requested node configuration is not available"),
        (["--gpus=t4:5"], "Requested node configuration is not available"),
        (["--gres=foo:1"], "Invalid generic resource (gres) specification"),
        (["--gres=gpu:a:b:c"], "Invalid generic resource (gres) specification"),
        (["--gpus=x:y:z"], "Invalid generic resource (gres) specification"),
        (["--gpus-per-task=1"], "Invalid generic resource (gres) specification"),
    ],
)
def test_gpus_that_no_node_has_are_refused_as_by_slurm(
    lab: RunningCluster, options: list[str], line: str
) -> None:
    refused = lab.try_slurm("sbatch", *options, "--wrap", "true")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].endswith(line)
    started = lab.try_slurm(
        "srun", *(["-n1"] if "task" not in options[0] else []), *options, "true"
    )
    assert started.returncode == 1
    assert started.stderr.splitlines()[-1].endswith(line)


def test_no_gpu_is_given_twice_over_restarts_of_controller_and_node(lab: RunningCluster) -> None:
    hold = "echo $SLURM_JOB_GPUS > $SLURM_JOB_ID; while [ ! -e go ]; do sleep 0.1; done"
    jobs = [
        lab.slurm("sbatch", "--parsable", "-w", "n1", "--gres=gpu:a100:1", "--wrap", hold).strip()
        for _ in range(3)
    ]

    def states() -> list[str]:
        return [lab.slurm("squeue", "-h", "-j", job, "-o", "%T").strip() for job in jobs]

    def gpus() -> list[str]:
        files = [lab.home / job for job in jobs]
        return [file.read_text().strip() for file in files if file.exists()]

    wait_until(lambda: len(gpus()) == 2 and all(gpus()), "two jobs to have GPUs")
    for name in ("node", "controller"):
        pid = lab.states()[name]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(
            lambda: lab.states()[name]["pid"] not in (None, pid),  # noqa: B023 - called here
            f"the {name} to be started again",
        )
        wait_until(
            lambda: "idle" in lab.try_slurm("sinfo", "-h", "-n", "n2", "-o", "%T").stdout,
            "the nodes to return",
        )
    assert states() == ["RUNNING", "RUNNING", "PENDING"]
    used = lab.slurm("sinfo", "-h", "-n", "n1", "-O", "gresused:60").strip()
    assert used == "gpu:a100:2(IDX:0-1),gpu:t4:0(IDX:N/A)"
    lab.slurm("scancel", jobs[0])
    wait_until(lambda: len(gpus()) == 3 and all(gpus()), "the third job to have its GPU")
    assert gpus() == ["4", "5", "4"]
    (lab.home / "go").touch()
    wait_until(lambda: states()[1:] == ["", ""], "the jobs to end")


def test_status_says_that_the_host_has_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    settings = tmp_path / "settings.toml"
    settings.write_text(SETTINGS.format(root=tmp_path / "host"))
    cluster = RunningCluster(tmp_path)
    try:
        assert cluster.run("cluster", "up", "--config", str(settings)).returncode == 0
        status = " ".join(cluster.run("cluster", "status").stdout.split())
        assert "GPUs 8; this host has none, so jobs get their numbers alone" in status
    finally:
        cluster.close()


@pytest.mark.skipif(not detect_gpus(), reason="this host has no GPU of NVIDIA or AMD")
def test_job_runs_on_one_gpu_of_this_host(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path)
    try:
        started = cluster.run("cluster", "up", "--no-bank")
        assert started.returncode == 0, started
        show = (
            'echo "$SLURM_JOB_GPUS|$CUDA_VISIBLE_DEVICES$ROCR_VISIBLE_DEVICES";'
            " if command -v nvidia-smi > /dev/null; then nvidia-smi -L; fi"
        )
        gpus, *listed = run_job(cluster, show, "--gpus=1")
        number, visible = gpus.split("|")
        assert number.isdecimal()
        assert visible == ("0" if is_controlled(cluster) else number)
        if listed and is_controlled(cluster):
            assert len(listed) == 1
    finally:
        cluster.close()
