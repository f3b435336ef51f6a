"""Steps in squeue, scontrol, sacct, sstat and scancel, beside a real controller and node daemon."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fairbank.slurm.parsers import sacct
from fairbank.slurm.parsers.columns import DELIMITER
from tests.support.conditions import wait_until
from tests.wlm.commands.test_real_cluster import printed, read_page
from tests.wlm.controller.small_cluster import SmallCluster

SRUN = f"{sys.executable} -m fairbank.wlm.commands srun"
SCRIPT = f"""#!/bin/bash
trap 'echo script >> signals' USR1
{SRUN} -n 1 --exact bash -c 'exit 3'
{SRUN} -J first -n 1 --exact bash -c 'trap "echo step >> signals" USR1
    echo > ready; while :; do sleep 0.1; done' &
while [ ! -e ready ]; do sleep 0.1; done
{SRUN} -J second -n 1 --exact bash -c 'trap "" USR1; exec sleep 600' &
while :; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallCluster]:
    """Return a cluster where job 1 has had a step that failed, and has two that run."""
    one = SmallCluster(tmp_path_factory.mktemp("steps"))
    one.start()
    try:
        (one.directory / "job.sh").write_text(SCRIPT)
        printed(one, "sbatch", "-n", "2", "-o", "/dev/null", "job.sh")
        wait_until(lambda: "1.2" in queue(one), "the second step that stays")
        yield one
    finally:
        one.close()


def queue(cluster: SmallCluster, *words: str) -> list[str]:
    return printed(cluster, "squeue", "-s", "-h", "-o", "%i", *words).split()


def has_words(path: Path, words: str) -> bool:
    # A signal to all processes reaches srun, too, which sends it to the step once more.
    return sorted(set(path.read_text().split())) == words.split()


def test_steps_that_run_are_in_the_queue(cluster: SmallCluster) -> None:
    head, *rows = printed(cluster, "squeue", "--steps").splitlines()
    assert head == "         STEPID     NAME PARTITION     USER      TIME NODELIST"
    assert [(row.split()[:3], row.split()[-1]) for row in rows] == [
        (["1.1", "first", "main"], "n1"),
        (["1.2", "second", "main"], "n1"),
        (["1.batch", "batch", "main"], "n1"),
    ]
    assert queue(cluster, "1.2") == ["1.2"]
    assert queue(cluster, "--steps=1.2,1.1") == ["1.1", "1.2"]
    assert queue(cluster, "-j", "1", "-u", "root,daemon") in ([], ["1.1", "1.2", "1.batch"])
    assert queue(cluster, "-w", "n2") == queue(cluster, "9.0") == []
    assert printed(cluster, "squeue", "-s", "1.1", "-h", "-O", "NumCPUs:.2,NumTasks:.2") == " 1 1\n"


def test_step_is_shown(cluster: SmallCluster) -> None:
    step = printed(cluster, "scontrol", "show", "step", "1.1")
    assert step.startswith("StepId=1.1 UserId=")
    assert "\n   Nodes=1 CPUs=1 Tasks=1 Name=first Network=(null)\n   TRES=cpu=1,mem=" in step
    assert "\n   CPUFreqReq=Default Dist=Block\n   SrunHost:Pid=" in step
    lines = printed(cluster, "scontrol", "-o", "show", "steps").splitlines()
    assert [line.split()[0] for line in lines] == ["StepId=1.batch", "StepId=1.1", "StepId=1.2"]
    assert lines[0].split()[-1] == "SrunHost:Pid=(null):0"
    assert printed(cluster, "scontrol", "show", "step", "1.9", code=1) == "Job step 1.9 not found\n"
    rows = printed(cluster, "scontrol", "listpids", "1.2").splitlines()[1:]
    assert {row.split()[2] for row in rows} == {"2"}


def test_step_shows_the_process_of_its_srun(cluster: SmallCluster) -> None:
    words = printed(cluster, "scontrol", "-o", "show", "step", "1.1").split()
    host, _, pid = words[-1].removeprefix("SrunHost:Pid=").partition(":")
    assert host == socket.gethostname()
    command = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
    assert command[3:6] == [b"srun", b"-J", b"first"]


def test_signals_go_to_steps_or_to_the_script(cluster: SmallCluster) -> None:
    signals = cluster.directory / "signals"
    for options, words in (([], "step"), (["-b"], "script"), (["-f"], "script step")):
        signals.write_text("")
        printed(cluster, "scancel", "-s", "USR1", *options, "1")
        wait_until(partial(has_words, signals, words), words)
    signals.write_text("")
    printed(cluster, "scancel", "-s", "USR1", "1.1")
    wait_until(partial(has_words, signals, "step"), "the signal")


def test_usage_of_steps_is_shown(cluster: SmallCluster) -> None:
    words = ("sstat", "-n", "-P", "-o", "jobid,ntasks,maxrss", "-j")
    rows = [row.split("|") for row in printed(cluster, *words, "1", "-a").splitlines()]
    assert [row[:2] for row in rows] == [["1.batch", "1"], ["1.1", "1"], ["1.2", "1"]]
    assert all(row[2] for row in rows)
    assert printed(cluster, *words, "1").startswith("1.1|1|")


def test_steps_are_accounted(cluster: SmallCluster) -> None:
    def accounted() -> list[str]:
        columns = "jobid,jobname,alloccpus,state,exitcode,derivedexitcode,ntasks"
        return printed(cluster, "sacct", "-n", "-P", "-j", "1", "-o", columns).split("\n")[:-1]

    assert accounted() == [
        "1|job.sh|2|RUNNING|0:0|3:0|",
        "1.batch|batch|2|RUNNING|0:0||1",
        "1.0|bash|1|FAILED|3:0||1",
        "1.1|first|1|RUNNING|0:0||1",
        "1.2|second|1|RUNNING|0:0||1",
    ]
    printed(cluster, "scancel", "1.2")
    wait_until(lambda: queue(cluster) == ["1.1", "1.batch"], "the end of the step")
    assert accounted()[4].startswith("1.2|second|1|CANCELLED by ")
    printed(cluster, "scancel", "1.2", code=225)
    printed(cluster, "scancel", "1.x", code=1)
    printed(cluster, "scancel", "1")
    cluster.wait_for_state(1, "CANCELLED")
    form = ("-n", "-P", f"--delimiter={DELIMITER}", "-o", ",".join(sacct.JOB_ENDS.columns))
    (end,) = sacct.JOB_ENDS.read(printed(cluster, "sacct", "-a", "-D", *form)).rows
    assert end.job_id == 1
    assert [row.split("|")[3] for row in accounted()][1:4] == ["CANCELLED", "FAILED", "CANCELLED"]
    page = read_page(Path(cluster.directory, "metrics.sock"), "/metrics")
    assert 'fairbank_wlm_steps_ended_total{state="FAILED"} 1.0\n' in page
    assert "DerivedExitCode=3:0" in printed(cluster, "scontrol", "-d", "show", "job", "1")


def test_usage_of_a_step_that_ends_with_its_job_is_accounted(cluster: SmallCluster) -> None:
    code = "import time; data = bytearray(60 << 20); print(1, flush=True); time.sleep(600)"
    script = f"#!/bin/bash\n{SRUN} -o taken {sys.executable} -c '{code}' &\nwhile [ ! -s taken ]\n"
    script += "do sleep 0.1\ndone\n"
    (cluster.directory / "end.sh").write_text(script)
    job = printed(cluster, "sbatch", "--parsable", "-w", "n2", "end.sh").strip()
    cluster.wait_for_state(job, "COMPLETED")
    wait_until(lambda: job not in cluster.busy_jobs(), "the end of its processes")
    columns = "jobid,state,maxrss,totalcpu"
    rows = printed(cluster, "sacct", "-nPj", job, "--noconvert", "-o", columns).splitlines()
    name, state, memory, seconds = rows[-1].split("|")
    assert (name, state) == (f"{job}.0", "CANCELLED")
    assert int(memory) > 60 << 20
    assert seconds != "00:00:00"
    assert "Memory Utilized: 0.00 MB" not in printed(cluster, "seff", job)
