"""Commands beside a real controller and node daemon: what they print is read by slurm/parsers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.report.slurm import sinfo
from fairbank.slurm.output import command_of, show_command
from fairbank.slurm.parsers import config, sacct, sacctmgr, sprio, squeue, sshare
from fairbank.slurm.parsers.columns import DELIMITER
from fairbank.slurm.parsers.job_lines import read_pending
from fairbank.slurm.parsers.machine import read_nodes, read_partitions
from fairbank.wlm.commands.program import MODULES
from tests.wlm.controller.small_cluster import SETTINGS, SmallCluster

PRIORITY = """
[priority]
priority_type = "priority/multifactor"
priority_weight_age = 1000
priority_weight_fairshare = 1000
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallCluster]:
    """Return a cluster where job 1 has ended, job 2 runs, and job 3 waits for nodes."""
    one = SmallCluster(tmp_path_factory.mktemp("cluster"), SETTINGS + PRIORITY)
    one.start()
    try:
        printed(one, "sbatch", "--wait", "--job-name=first", "--wrap", "exit 3", code=3)
        printed(one, "sbatch", "-n", "2", "--time=5", "--wrap", "sleep 600")
        printed(one, "sbatch", "-N", "2", "-n", "2", "--time=5", "--wrap", "true")
        one.wait_for_state(2, "RUNNING")
        yield one
    finally:
        one.close()


def printed(cluster: SmallCluster, *words: str, code: int = 0) -> str:
    """Return the output of a command."""
    environment = {**os.environ, "FAIRBANK_CLUSTER": str(cluster.directory), "TZ": "UTC"}
    process = subprocess.run(
        [sys.executable, "-m", "fairbank.wlm.commands", *words],
        capture_output=True,
        text=True,
        cwd=cluster.directory,
        env=environment,
        check=False,
    )
    assert process.returncode == code, process.stderr
    return process.stdout


def read_page(path: Path, page: str) -> str:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(path))
        wire.sendall(f"GET {page} HTTP/1.1\r\n\r\n".encode())
        answer = b"".join(iter(lambda: wire.recv(65_536), b""))
    return answer.decode()


def test_queue_shows_running_and_waiting_jobs(cluster: SmallCluster) -> None:
    head, waits, runs = printed(cluster, "squeue", "-o", "%i %t %D %R").splitlines()
    assert head == "JOBID ST NODES NODELIST(REASON)"
    assert waits in ("3 PD 2 (Resources)", "3 PD 2 (None)")
    assert runs == "2 R 1 n1"
    form = f"--format={squeue.QUEUE_FORMAT}"
    jobs = squeue.QUEUE.read(printed(cluster, "squeue", "-a", "-h", "-t", "all", form)).rows
    assert {job.job_id: job.state for job in jobs} == {
        1: "FAILED", 2: "RUNNING", 3: "PENDING",
    }  # fmt: skip
    waiting = squeue.WAITING.read(printed(cluster, *command_of("squeue")))
    assert [job.job_id for job in waiting.rows] in ([3], [])


def test_nodes_and_partitions_are_shown_and_read_back(cluster: SmallCluster) -> None:
    assert printed(cluster, "sinfo", "-h", "-o", "%P %D %t %N").splitlines() == [
        "main* 1 alloc n1", "main* 1 idle n2",
    ]  # fmt: skip
    assert printed(cluster, "sinfo").splitlines()[0].split() == [
        sinfo.COLUMNS[name].head
        for name in ("Partition", "Available", "Time", "Nodes", "StateCompact", "NodeList")
    ]
    nodes = read_nodes(printed(cluster, *command_of("nodes"))).rows
    assert [(node.name, node.cpus, node.memory) for node in nodes] == [
        ("n1", 2, 1000), ("n2", 2, 1000),
    ]  # fmt: skip
    assert [
        rules.name for rules in read_partitions(printed(cluster, *command_of("partitions"))).rows
    ] == ["main"]


def test_job_is_shown_and_read_back(cluster: SmallCluster) -> None:
    text = printed(cluster, "scontrol", "show", "job", "1")
    assert text.startswith("JobId=1 JobName=first\n")
    assert "JobState=FAILED Reason=NonZeroExitCode" in text
    assert "ExitCode=3:0" in text
    pending = read_pending(printed(cluster, *command_of("jobs")))
    assert [job.job_id for job in pending.rows] == [3]


def test_accounting_of_an_ended_job_is_read_back(cluster: SmallCluster) -> None:
    lines = printed(cluster, "sacct", "-n", "-P", "-j", "1", "-o", "jobid,state,exitcode")
    assert lines == "1|FAILED|3:0\n1.batch|FAILED|3:0\n"
    table = sacct.JOB_ENDS
    columns = f"--format={','.join(table.columns)}"
    words = ("sacct", "-a", "-D", "-n", "-P", f"--delimiter={DELIMITER}", "-j", "1", columns)
    (end,) = table.read(printed(cluster, *words)).rows
    assert (end.job_id, end.exit_code) == (1, (3, 0))
    jobs = sacct.read_json(printed(cluster, "sacct", "-a", "-X", "--json").encode()).rows
    assert {job.job_id: job.state for job in jobs} == {
        1: "FAILED", 2: "RUNNING", 3: "PENDING",
    }  # fmt: skip


def test_settings_priorities_and_shares_are_read_back(cluster: SmallCluster) -> None:
    settings = config.read_config(printed(cluster, *command_of("config")))
    assert settings["ClusterName"] == "lab"
    assert config.read_settings(settings).factors.weights.age == 1000
    factors = sprio.read_factors(printed(cluster, *command_of("sprio")))
    assert [line.row.job for line in factors.rows] == [3]
    shares = sshare.read_shares(printed(cluster, *command_of("sshare")))
    assert [row.account for row in shares.rows][:1] == ["root"]
    assert shares.unreadable == ()
    qos = sacctmgr.QOS.read(printed(cluster, *show_command(sacctmgr.QOS)))
    assert [row.name for row in qos.rows] == ["normal"]


def test_usage_and_processes_of_a_running_job_are_shown(cluster: SmallCluster) -> None:
    pids = printed(cluster, "sstat", "-n", "-P", "-i", "-j", "2").rpartition("|")[2].strip()
    assert all(pid.isdecimal() for pid in pids.split(","))


def test_totals_are_in_sdiag_and_in_the_metrics(cluster: SmallCluster) -> None:
    text = printed(cluster, "sdiag")
    assert "Jobs submitted: 3\nJobs started:   2\nJobs completed: 0\n" in text
    assert "Jobs canceled:  0\nJobs failed:    1\n" in text
    assert "Jobs running:   1\n" in text
    assert "Total backfilled jobs (since last slurm start): 0\n" in text
    assert "\tREQUEST_SUBMIT_BATCH_JOB                ( 4003) count:3 " in text
    page = read_page(cluster.directory / "metrics.sock", "/metrics")
    assert 'fairbank_wlm_jobs{state="RUNNING"} 1.0\n' in page
    assert 'fairbank_wlm_nodes{state="up"} 2.0\n' in page
    assert "fairbank_wlm_cpus_allocated 2.0\n" in page
    assert "fairbank_wlm_jobs_submitted_total 3.0\n" in page
    assert 'fairbank_wlm_runs_ended_total{state="FAILED"} 1.0\n' in page
    assert 'fairbank_wlm_requests_total{request="submit",result="ok"} 3.0\n' in page
    refused = printed(cluster, "sbatch", "-p", "nowhere", "--wrap", "true", code=1)
    page = read_page(cluster.directory / "metrics.sock", "/metrics")
    assert (refused, 'request="submit",result="NotFound"} 1.0\n' in page) == ("", True)


def test_debug_levels_are_set_until_the_next_start(cluster: SmallCluster) -> None:
    line = '"message":"the debug level is debug2"'
    printed(cluster, "scontrol", "setdebug", "debug2")
    assert line in cluster.log()
    printed(cluster, "scontrol", "setdebug", "6", "nodes=n[1-2]")
    assert (cluster.directory / "node.log").read_text().count(line) == 2
    printed(cluster, "scontrol", "setdebug", "loud", code=1)
    printed(cluster, "scontrol", "setdebug", "info", "nodes=n9", code=1)
    printed(cluster, "scontrol", "setdebug", "quiet")
    assert '"message":"the debug level is quiet"' not in cluster.log()
    printed(cluster, "scontrol", "setdebug", "info")


def test_unknown_job_is_an_error(cluster: SmallCluster) -> None:
    assert printed(cluster, "squeue", "-j", "99", code=1) == ""
    assert printed(cluster, "scontrol", "show", "job", "99", code=1) == ""


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["why", "3"], "Job 3 waits for 2 nodes"),
        (["why", "2"], "Job 2 of "),
        (["prio"], " 3 main"),
        (["share"], "root"),
        (["queue"], "running, 1 waiting"),
    ],
    ids=["why-waiting", "why-running", "prio", "share", "queue"],
)
def test_fairbank_works_beside_it(cluster: SmallCluster, words: list[str], part: str) -> None:
    programs, links = Path(sys.executable).parent, cluster.directory / "bin"
    links.mkdir(exist_ok=True)
    for name in MODULES:
        if not (links / name).exists():
            (links / name).symlink_to(programs / "fairbank-slurm")
    environment = {
        **os.environ,
        "FAIRBANK_CLUSTER": str(cluster.directory),
        "HOME": str(cluster.directory),
        "PATH": f"{links}:{os.environ['PATH']}",
        "TZ": "UTC",
    }
    command = [str(programs / "fairbank"), *words]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert process.returncode == 0, process.stderr
    assert part in process.stdout
