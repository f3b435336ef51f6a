"""Tests of `fairbank cluster` with real daemons."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import fairbank
from fairbank.cli.commands.cluster.directory import ClusterDirectory
from fairbank.cli.framework.host import own_name
from tests.rest.server.echo_server import needs_root
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK
from tests.wlm.cluster.running_cluster import DAEMONS, RunningCluster

HOST = socket.gethostname().partition(".")[0]
ANSWER = re.compile(
    rf"cluster {re.escape(HOST)} is up: 2 nodes, 2 CPUs, 1 GiB; partition main, limit 1 day unless"
    r" you give --time\n"
    r"bank: project default, (?P<credit>[\d,.]+) SU until \d{4}-\d\d-\d\d\n"
    r'next: eval "\$\(fairbank env\)"; sbatch --wrap hostname; squeue\n'
)
NAMELESS = "4000000001"
"""User whom this host does not know: the commands and the controller call them by their number."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Start a cluster that the tests of this file share, twice at the same time."""
    running = RunningCluster(tmp_path_factory.mktemp("up"))
    words = ("cluster", "up", "--nodes", "2", "--cpus", "2", "--memory", "1G")
    with ThreadPoolExecutor() as threads:
        starts = [threads.submit(running.run, *words) for _ in range(2)]
    try:
        for started in starts:
            match = ANSWER.fullmatch(started.result().stdout)
            assert match, started.result()
            assert match["credit"] == f"{2 * 8_760:,}"
        yield running
    finally:
        running.close()


def test_directory_is_for_its_owner_only(cluster: RunningCluster) -> None:
    assert stat.S_IMODE(cluster.directory.stat().st_mode) == 0o700


def test_no_file_is_set_uid_or_set_gid(cluster: RunningCluster) -> None:
    """The kernel names the users, so that no command needs the rights of another one."""
    package = Path(fairbank.__path__[0])
    files = [path for folder in (cluster.directory, package) for path in folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in [*files, Path(FAIRBANK)] if path.is_file()}
    assert {"sbatch", "scontrol", "state.sqlite"} <= {path.name for path in modes}
    assert [path for path, mode in modes.items() if mode & (stat.S_ISUID | stat.S_ISGID)] == []


def test_second_up_says_that_the_cluster_is_up_and_changes_nothing(cluster: RunningCluster) -> None:
    before = cluster.states()
    again = cluster.run("cluster", "up", "--nodes", "4")
    assert (again.returncode, ANSWER.fullmatch(again.stdout) is not None) == (0, True)
    assert "other settings need a fairbank cluster down first" in " ".join(again.stderr.split())
    assert cluster.states() == before


def test_job_is_run_and_charged_to_the_project_of_the_user(cluster: RunningCluster) -> None:
    number = cluster.slurm(
        "sbatch", "--parsable", "--wait", "--wrap", "sleep 1; echo $SLURM_JOB_ID"
    )
    number = number.strip()
    assert (cluster.home / f"slurm-{number}.out").read_text() == f"{number}\n"
    wait_until(
        lambda: "charge" in cluster.run("statement", "1", "--csv").stdout, "the charge of the job"
    )
    jobs = cluster.run("jobs", "--csv", "-o", "JOBID,STATE,PROJECT").stdout
    assert f"{number},COMPLETED,default" in jobs


def test_job_whose_output_cannot_be_opened_says_why(cluster: RunningCluster) -> None:
    submitted = cluster.try_slurm("sbatch", "--parsable", "--wait", "-o", "/dev", "--wrap", "true")
    number = submitted.stdout.strip()
    comment = cluster.slurm("sacct", "-nXPj", number, "-o", "SystemComment")
    assert comment == "cannot open the output /dev: Is a directory\n"
    explained = f"FAILED, exit code 0:53. Reason {comment.strip()}"
    wait_until(
        lambda: explained in " ".join(cluster.run("why", number).stdout.split()),
        "the report of the end",
    )


@pytest.mark.parametrize(
    "words",
    [
        "doctor --slurm", "slurm import --dry-run", "reconcile", "shadow", "share", "prio", "queue",
    ],
)  # fmt: skip
def test_commands_beside_slurm_work_unchanged(cluster: RunningCluster, words: str) -> None:
    result = cluster.run(*words.split())
    assert result.returncode == 0, result


def test_reconcile_finds_a_charge_that_was_removed_by_hand(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path)
    try:
        assert cluster.run("cluster", "up").returncode == 0
        number = cluster.slurm("sbatch", "--parsable", "--wait", "--wrap", "sleep 1").strip()
        jobs = ("jobs", "--csv", "-o", "JOBID,STATE")
        wait_until(lambda: f"{number},COMPLETED" in cluster.run(*jobs).stdout, "the charge")
        assert cluster.run("reconcile", "--grace", "0").returncode == 0
        remove_run(cluster.directory / "bank" / "fairbank.sqlite", int(number))
        differences = f'{number},"ended in Slurm, unknown to the bank"\n'

        def is_found() -> bool:
            compared = cluster.run("reconcile", "--grace", "0", "--csv", "-n", "-o", "JOBID,WHAT")
            return (compared.returncode, compared.stdout) == (8, differences)

        # A job that ended within the second of the comparison is left for the next one.
        wait_until(is_found, "the difference")
        assert cluster.run("audit", "verify").returncode == 8
        assert cluster.run("reconcile", "--grace", "0", "--fix").returncode == 0
        assert cluster.run("reconcile", "--grace", "0").returncode == 0
    finally:
        cluster.close()


def remove_run(ledger: Path, job: int) -> None:
    """Delete a run and its entries, which the ledger itself never does."""
    with closing(sqlite3.connect(ledger, timeout=60)) as file, file:
        triggers = file.execute(
            "SELECT name, sql FROM sqlite_master WHERE name IN ('run_stays', 'journal_stays')"
        ).fetchall()
        for name, _ in triggers:
            file.execute(f"DROP TRIGGER {name}")
        (run,) = file.execute("SELECT id FROM run WHERE job_id = ?", (job,)).fetchone()
        file.execute("DELETE FROM journal WHERE run = ?", (run,))
        file.execute("DELETE FROM run WHERE id = ?", (run,))
        for _, sql in triggers:
            file.execute(sql)


def test_status_shows_daemons_nodes_jobs_and_credit(cluster: RunningCluster) -> None:
    status = cluster.run("cluster", "status")
    lines = dict(line.split(maxsplit=1) for line in status.stdout.splitlines())
    assert status.returncode == 0, status
    assert lines["cluster"] == f"{HOST} in {cluster.directory}: up"
    for name in ("supervisor", *DAEMONS):
        assert re.match(r"pid \d+ since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", lines[name]), lines[name]
    assert re.match(r"2 IDLE", lines["nodes"])
    assert lines["tracking"] in ("by control group", "as descendants of the step daemon")
    assert lines["credit"].startswith("project default, ")


def test_status_finds_a_node_daemon_that_does_not_answer(cluster: RunningCluster) -> None:
    node = cluster.states()["node"]["pid"]
    os.kill(node, signal.SIGSTOP)
    try:
        status = cluster.run("cluster", "status")
    finally:
        os.kill(node, signal.SIGCONT)
    assert status.returncode == 8
    assert "no answer from the node daemon" in status.stdout


def test_doctor_checks_invariants_directory_and_daemons(cluster: RunningCluster) -> None:
    sound = cluster.run("doctor", "--cluster")
    lines = sound.stdout.splitlines()
    assert (sound.returncode, {line[:4] for line in lines}) == (0, {"ok  "}), sound
    rules = [line[4:6] for line in lines if re.match("ok  W[0-9]: ", line)]
    assert rules == [f"W{number}" for number in range(1, 9)]
    cluster.directory.chmod(0o755)
    fault = cluster.run("doctor", "--cluster")
    cluster.directory.chmod(0o700)
    assert (fault.returncode, f"chmod 0700 {cluster.directory}" in fault.stdout) == (8, True)


def test_commands_load_no_module_of_the_user(cluster: RunningCluster, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the module of the user')")
    cluster.environment["PYTHONPATH"] = str(tmp_path)
    try:
        assert cluster.slurm("sbatch", "--wait", "--wrap=true").startswith("Submitted batch job ")
    finally:
        del cluster.environment["PYTHONPATH"]


def test_directory_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    running = RunningCluster(tmp_path)
    directory = tmp_path / ("long" * 25)
    result = running.run("cluster", "up", "--dir", str(directory))
    assert result.returncode == 2
    words = " ".join(result.stderr.split())
    assert "the path of a socket has at most 107 bytes" in words
    assert "try: fairbank cluster up --dir /" in words
    assert running.processes() == set()


def test_lines_of_env_make_a_shell_use_the_cluster(cluster: RunningCluster) -> None:
    lines = cluster.run("env").stdout
    script = f"{lines}\ncommand -v sbatch; {FAIRBANK} balance --csv -o PROJECT; env"
    shell = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": os.environ["PATH"], "HOME": str(cluster.home), "FAIRBANK_SERVER": "unix:/no"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shell.stdout.startswith(f"{cluster.directory}/bin/sbatch\nPROJECT\ndefault\n")
    assert f"FAIRBANK_CLUSTER={cluster.directory}\n" in shell.stdout


def test_env_for_fish_quotes_as_fish_does(cluster: RunningCluster) -> None:
    lines = cluster.run("env", "--fish").stdout.splitlines()
    assert lines[:2] == [
        f"set -gx PATH '{cluster.directory}/bin' $PATH",
        f"set -gx FAIRBANK_CLUSTER '{cluster.directory}'",
    ]


def test_env_warns_of_a_slurm_on_path(
    cluster: RunningCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    warned = RunningCluster(cluster.home).run("env")
    assert warned.returncode == 0
    assert f"instead of {squeue}" in " ".join(warned.stderr.split())


def test_project_of_the_bank_needs_no_settings_and_a_removed_member_is_refused(
    cluster: RunningCluster,
) -> None:
    assert cluster.run("project", "create", "newproject", "--gid", "54321").returncode == 0
    for user in (own_name(), NAMELESS):
        assert cluster.run("project", "add-user", "newproject", user).returncode == 0
    grant = "-A newproject -r cpu --end now+1day --amount 100 --reason test".split()
    granted = cluster.run("alloc", "create", *grant)
    assert granted.returncode == 0, granted
    words = ["sbatch", "-A", "newproject", "-t", "1:00", "--wrap", "true"]
    cluster.slurm(*words)
    wait_until(lambda: not cluster.slurm("squeue", "-h"), "the job to end")
    assert "newproject" in cluster.slurm("sacct", "-X", "-n", "-o", "Account%20")
    listed = cluster.slurm("sacctmgr", "-n", "-P", "show", "associations", "format=account,user")
    assert {f"newproject|{user}" for user in (own_name(), NAMELESS)} <= set(listed.splitlines())
    removal = cluster.run("project", "remove-user", "newproject", own_name(), "--yes")
    assert removal.returncode == 0, removal
    restart_controller(cluster)  # a new one reads the accounts at once, this one a little later
    test = [*words, "--test-only"]
    wait_until(lambda: "Invalid account" in cluster.try_slurm(*test).stderr, "the refusal")


def test_job_without_credit_waits_for_a_deposit(cluster: RunningCluster) -> None:
    lines = cluster.run("balance", "-A", "default", "--csv", "-n", "-o", "AVAILABLE").stdout
    spare = int(float(lines.split(",")[0])) - 1
    cluster.run("withdraw", "1", str(spare), "--reason", "test", "--yes")
    number = cluster.slurm("sbatch", "--parsable", "-t", "9:00:00", "--wrap", "true").strip()
    reason = ["squeue", "-h", "-o", "%r", "-j", number]
    wait_until(lambda: cluster.slurm(*reason) == "Allocation_exhausted\n", "the refusal")
    assert "fairbank deposit 1 " in cluster.run("why", number).stdout
    cluster.run("deposit", "1", str(spare), "--reason", "test", "--yes")
    # A new agent looks for held jobs at once, this one a little later.
    settings = cluster.directory / "bank" / "agent.toml"
    settings.write_text(settings.read_text().replace("every = 10", "every = 0.5"))
    os.kill(cluster.states()["agent"]["pid"], signal.SIGTERM)
    wait_until(lambda: not cluster.slurm("squeue", "-h"), "the job to end")
    reconciled = cluster.run("reconcile")
    assert (reconciled.returncode, "agree" in reconciled.stdout) == (0, True), reconciled


def test_partition_added_to_a_running_cluster_is_billed_from_the_next_up(
    cluster: RunningCluster,
) -> None:
    cluster.slurm("scontrol", "create", "PartitionName=short", "Nodes=ALL", "MaxTime=5")
    job = ["sbatch", "--parsable", "-p", "short", "-t", "1", "--wrap", "true"]
    number = cluster.slurm(*job).strip()
    reason = ["squeue", "-h", "-o", "%r", "-j", number]
    wait_until(lambda: cluster.slurm(*reason) == "Fairbank_cannot_bill_this\n", "the refusal")
    doctor = cluster.run("doctor", "--cluster")
    assert (doctor.returncode, "bills all partitions: not short" in doctor.stdout) == (8, True)
    again = cluster.run("cluster", "up")
    assert "The bank bills from now on: short" in again.stderr
    cluster.slurm("scontrol", "release", number)
    wait_until(lambda: not cluster.slurm("squeue", "-h"), "the job to end")
    assert cluster.slurm("sacct", "-nXPj", number, "-o", "State") == "COMPLETED\n"
    cluster.slurm("scontrol", "delete", "PartitionName=short")
    assert cluster.run("doctor", "--cluster").returncode == 0


def test_broken_settings_hide_no_cluster_that_is_up(cluster: RunningCluster) -> None:
    with broken_settings(cluster):
        status = cluster.run("cluster", "status")
        assert status.returncode == 8
        lines = dict(line.split(maxsplit=1) for line in status.stdout.splitlines())
        assert lines["cluster"] == f"{cluster.directory}: up"
        assert lines["controller"].startswith("pid ")
        assert "wlm.toml is not TOML" in lines["settings"]
        doctor = cluster.run("doctor", "--cluster")
        assert (doctor.returncode, "ok  W1: " in doctor.stdout) == (8, True)
        again = cluster.run("cluster", "up")
        assert again.returncode == 0
        assert again.stdout == f"the cluster in {cluster.directory} is up, with earlier settings\n"


def test_status_shows_daemons_beside_a_bank_that_cannot_be_read(cluster: RunningCluster) -> None:
    settings = cluster.directory / "bank" / "fairbank.toml"
    text = settings.read_text()
    settings.write_text(f"{text}\n[\n")
    try:
        status = cluster.run("cluster", "status")
    finally:
        settings.write_text(text)
    lines = dict(line.split(maxsplit=1) for line in status.stdout.splitlines())
    assert status.returncode == 8
    assert lines["controller"].startswith("pid ")
    assert "is not TOML" in lines["credit"]


@contextmanager
def broken_settings(cluster: RunningCluster) -> Iterator[None]:
    settings = cluster.directory / "wlm.toml"
    text = settings.read_text()
    settings.write_text(f"{text}\n[\n")
    yield
    settings.write_text(text)


def restart_controller(cluster: RunningCluster) -> None:
    before = cluster.states()["controller"]["pid"]
    os.kill(before, signal.SIGTERM)
    wait_until(lambda: cluster.states()["controller"]["pid"] not in (None, before), "a new one")


def test_killed_daemons_return(cluster: RunningCluster) -> None:
    before = cluster.states()
    for state in before.values():
        os.kill(state["pid"], signal.SIGKILL)

    def has_returned(name: str) -> bool:
        state = cluster.states()[name]
        return state["pid"] is not None and state["restarts"] > before[name]["restarts"]

    wait_until(lambda: all(map(has_returned, DAEMONS)), "the daemons to return")
    assert cluster.run("cluster", "up").returncode == 0  # it waits until all listen
    lines = cluster.run("cluster", "status").stdout.splitlines()
    assert len([line for line in lines if line.endswith("because it ended with signal 9")]) == len(
        DAEMONS
    )


def test_killed_supervisor_leaves_no_daemon_and_the_next_up_starts_all(
    cluster: RunningCluster,
) -> None:
    pids = {state["pid"] for state in cluster.states().values()}
    number = cluster.slurm("sbatch", "--parsable", "--wrap", "sleep 600").strip()
    wait_until(lambda: "R" in cluster.slurm("squeue", "-h", "-o", "%t"), "the job to run")
    os.kill(cluster.supervisor(), signal.SIGKILL)
    wait_until(lambda: not pids & cluster.processes(), "the daemons to end")
    status = cluster.run("cluster", "status")
    assert (status.returncode, f"\njobs        {number} go on" in status.stdout) == (6, True)
    refused = cluster.run("cluster", "down")
    words = f"the cluster is not up, but 1 job runs on: {number}"
    assert (refused.returncode, words in " ".join(refused.stderr.split())) == (7, True)
    doctor = cluster.run("doctor", "--cluster")
    assert (doctor.returncode, "try: fairbank cluster up" in doctor.stdout) == (8, True)
    assert ANSWER.fullmatch(cluster.run("cluster", "up").stdout)
    assert set(cluster.states()) == set(DAEMONS)
    cluster.slurm("scancel", number)
    wait_until(lambda: not cluster.slurm("squeue", "-h"), "the job to end")


def test_down_needs_now_while_a_job_runs_and_gives_it_notice(cluster: RunningCluster) -> None:
    saved = cluster.home / "saved"
    script = f"trap 'echo all > {saved}; exit' TERM; touch {saved}; sleep 600 & wait"
    number = cluster.slurm("sbatch", "--parsable", "-J", "long", "--wrap", script).strip()
    wait_until(saved.exists, "the job to run")
    waiting = cluster.slurm("sbatch", "--parsable", "-d", f"after:{number}+9", "--wrap", "true")
    refused = cluster.run("cluster", "down")
    assert refused.returncode == 7
    message = " ".join(refused.stderr.split())
    assert f"1 job runs: {number} (long)" in message
    assert "fairbank cluster down --now" in message
    with broken_settings(cluster):
        ended = cluster.run("cluster", "down", "--now")
    assert (ended.returncode, ended.stdout) == (0, f"the cluster in {cluster.directory} is down\n")
    assert saved.read_text() == "all\n"
    assert cluster.processes() == set()
    assert cluster.traces() == []
    assert cluster.run("cluster", "down").returncode == 0
    assert ANSWER.fullmatch(cluster.run("cluster", "up").stdout)
    assert cluster.slurm("squeue", "-h", "-o", "%i %t").split() == [waiting.strip(), "PD"]
    assert cluster.slurm("sinfo", "-h", "-o", "%a").split() == ["up"]


def test_down_now_leaves_a_pending_task_of_an_array_that_runs(cluster: RunningCluster) -> None:
    def tasks() -> list[str]:
        return cluster.slurm("squeue", "-h", "-j", array, "-S", "i", "-o", "%i %t").splitlines()

    script = ("-n", "1", "-a", "0-1", "--wrap", "sleep 600")
    array = cluster.slurm("sbatch", "--parsable", *script).strip()
    wait_until(lambda: tasks() == [f"{array}_0 R", f"{array}_1 R"], "both tasks to run")
    cluster.slurm("scontrol", "requeuehold", f"{array}_0")
    wait_until(lambda: f"{array}_0 PD" in tasks(), "a task to be pending again")
    running = cluster.slurm("squeue", "-h", "-j", array, "-t", "R", "-o", "%i %A").split()
    assert running == [f"{array}_1", array]
    assert f"1 job runs: {array}_1 (wrap)" in " ".join(
        cluster.run("cluster", "down").stderr.split()
    )
    assert cluster.run("cluster", "down", "--now").returncode == 0
    assert ANSWER.fullmatch(cluster.run("cluster", "up").stdout)
    assert tasks() == [f"{array}_0 PD"]
    cluster.slurm("scancel", array)


def test_down_leaves_no_process_although_a_killed_srun_missed_output(
    cluster: RunningCluster,
) -> None:
    on, killed, written = (cluster.home / name for name in ("on", "killed", "written"))
    task = (
        f"touch {on}; until [ -e {killed} ]; do sleep 0.05; done; echo; touch {written}; sleep 60"
    )
    srun = f"{cluster.directory}/bin/srun sh -c '{task}' & until [ -e {on} ]; do sleep 0.05; done"
    cluster.slurm("sbatch", "--wrap", f"{srun}; kill -KILL $!; touch {killed}; wait; sleep 60")
    wait_until(written.exists, "output that no srun has")
    assert cluster.run("cluster", "down", "--now").returncode == 0
    wait_until(lambda: not cluster.processes(), "the step daemon to end", seconds=10)
    assert ANSWER.fullmatch(cluster.run("cluster", "up").stdout)


def test_down_needs_no_controller_and_ends_no_job_without_one(cluster: RunningCluster) -> None:
    go = cluster.home / "go"
    number = cluster.slurm(
        "sbatch", "--parsable", "--wrap", f"until [ -e {go} ]; do sleep 0.1; done"
    )
    number = number.strip()
    wait_until(lambda: "R" in cluster.slurm("squeue", "-h", "-o", "%t"), "the job to run")
    directory = ClusterDirectory(cluster.directory)
    directory.controller_socket.unlink()
    refused = cluster.run("cluster", "down")
    message = " ".join(refused.stderr.split())
    assert (refused.returncode, f"1 job runs: {number}" in message) == (7, True)
    assert "fairbank cluster down --now" in message
    go.touch()
    wait_until(lambda: not directory.left_jobs(), "the job to end")
    ended = cluster.run("cluster", "down")
    assert (ended.returncode, ended.stdout) == (0, f"the cluster in {cluster.directory} is down\n")
    assert cluster.processes() == set()
    assert cluster.traces() == []
    assert ANSWER.fullmatch(cluster.run("cluster", "up").stdout)


def test_cluster_without_bank_runs_two_tasks_on_each_virtual_node(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path)
    try:
        nodes = os.cpu_count() or 1
        started = cluster.run("cluster", "up", "--no-bank", "--nodes", str(nodes + 1))
        assert started.stdout.splitlines()[1] == "bank: none, jobs need no credit"
        assert set(cluster.states()) == {"node", "controller", "commands"}
        assert "FAIRBANK_CONFIG" not in cluster.run("env").stdout
        # Each virtual node has at least two CPUs, more than the host in all.
        tasks = 2 * (nodes + 1)
        output = cluster.slurm(
            "srun", "-N", str(nodes + 1), "-n", str(tasks), "printenv", "SLURM_PROCID"
        )
        assert sorted(map(int, output.split())) == list(range(tasks))
    finally:
        cluster.close()


@needs_root
def test_user_whom_the_host_does_not_know_has_a_cluster_and_operates_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, int(NAMELESS), int(NAMELESS))
    # The user may read all files, for Python may be where only root can.
    can_read = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
    ids = [f"--reuid={NAMELESS}", f"--regid={NAMELESS}", "--clear-groups"]
    cluster = RunningCluster(home, ["setpriv", *ids, *can_read])
    try:
        started = cluster.run("cluster", "up", "--cpus", "2", "--memory", "1G")
        assert started.returncode == 0, started
        cluster.slurm("sbatch", "--wait", "--wrap", "id -u")
        assert (home / "slurm-1.out").read_text() == f"{NAMELESS}\n"
        accounted = cluster.slurm("sacct", "-X", "-n", "-P", "-o", "user,account,state")
        assert accounted == f"{NAMELESS}|default|COMPLETED\n"
        refused = cluster.try_slurm("sbatch", "-A", "nosuch", "--wrap", "true")
        assert f"user {NAMELESS} has no association with account 'nosuch'" in refused.stderr
        cluster.slurm("scontrol", "update", f"nodename={HOST}", "state=drain", "reason=test")
        assert cluster.run("doctor", "--cluster").returncode == 0
    finally:
        cluster.close()


def test_logs_are_where_the_settings_say(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path)
    settings = tmp_path / "own.toml"
    settings.write_text(
        f"""
[cluster]
cluster_name = "lab"
slurmctld_log_file = "{tmp_path}/controller"
slurmd_log_file = "{tmp_path}/node"
slurmctld_syslog_debug = "error"
slurmd_debug = "error"
[[nodes]]
node_name = "n1"
[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
"""
    )
    try:
        assert cluster.run("cluster", "up", "--no-bank", "--config", str(settings)).returncode == 0
        cluster.slurm("sbatch", "--wait", "--wrap", "true")
        assert "node n1 is UP" in (tmp_path / "controller").read_text()
        assert (tmp_path / "node").read_text() == "ready\n"
        assert "SlurmdDebug             = error\n" in cluster.slurm("scontrol", "show", "config")
        settings.write_text(settings.read_text().replace(f"{tmp_path}/node", f"{tmp_path}/no/node"))
        cluster.run("cluster", "down")
        former = (cluster.directory / "wlm.toml").read_text()
        failed = cluster.run("cluster", "up", "--no-bank", "--config", str(settings))
        assert failed.returncode == 6
        for name in ("wlm.toml.old", "wlm.toml"):
            assert (cluster.directory / name).read_text() == former
        assert f"{tmp_path}/no/node" in failed.stderr.replace("\n", "").replace(" ", "")
    finally:
        cluster.close()


def test_daemon_that_cannot_start_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    cluster = RunningCluster(tmp_path)
    cluster.directory.mkdir()
    (cluster.directory / "lock").touch()  # of an earlier cluster
    (cluster.directory / "controller.sock").mkdir()
    refused = cluster.run("cluster", "up", "--no-bank")
    assert refused.returncode == 6
    message = " ".join(refused.stderr.split())
    assert "controller ended with exit code 7" in message
    assert "exists and is not a socket" in message
    assert (cluster.processes(), cluster.traces()) == (set(), [])
