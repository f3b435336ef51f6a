"""Tests of the controller with a node daemon, as processes: jobs, kills, full disks, settings."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from tests.support.conditions import wait_until
from tests.wlm.controller.small_cluster import SETTINGS, SmallCluster

LATE_SECONDS = 6
OTHER_PARTITION = """
[[partitions]]
partition_name = "other"
nodes = "n1"
"""


def test_job_runs_and_its_output_is_in_the_default_file(cluster: SmallCluster) -> None:
    job = cluster.submit("echo $SLURM_JOB_ID on $SLURM_JOB_NODELIST; exit 3", tasks=2)
    assert cluster.ask("wait", job=job) == 3 << 8
    cluster.wait_for_state(job, "FAILED")
    assert cluster.lines(f"slurm-{job}.out") == [f"{job} on n1"]
    (run,) = cluster.ask("runs", jobs=[job])
    assert run["record"]["state"] == "FAILED"
    assert run["outcome"]["status"] == 3 << 8
    assert run["outcome"]["usage"]["cpu_seconds"] > 0


def test_tasks_of_an_array_have_their_own_files_and_variables(cluster: SmallCluster) -> None:
    script = "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT step $SLURM_ARRAY_TASK_STEP"
    array = cluster.submit(script, array="1-5:2")
    assert cluster.ask("wait", job=array) == 0
    for task in (1, 3, 5):
        assert cluster.lines(f"slurm-{array}_{task}.out") == [f"{task} of 3 step 2"]


def test_job_on_two_nodes_runs_its_script_once(cluster: SmallCluster) -> None:
    job = cluster.submit("echo $SLURM_JOB_NODELIST $SLURM_NNODES", nodes=2, output="out")
    assert cluster.ask("wait", job=job) == 0
    cluster.wait_for_state(job, "COMPLETED")
    assert cluster.lines() == ["n[1-2] 2"]


def test_process_that_waits_on_a_node_without_the_script_is_extern(
    own_cluster: SmallCluster,
) -> None:
    job = own_cluster.submit("echo begun; exec sleep 600", nodes=2, output="out")
    own_cluster.lines(minimum=1)
    with Controller(own_cluster.directory) as controller:

        def steps() -> list[tuple[str, int | None]]:
            rows = controller.request("processes", job=str(job))["processes"]
            return [(row["step"], row["rank"]) for row in rows]

        both = [("batch", 0), ("extern", None)]  # the second node may start after the first
        wait_until(lambda: steps() == both, "the processes of both nodes")
        own_cluster.kill_node()
        wait_until(lambda: not steps(), "the controller to miss its nodes")


def test_jobs_are_bound_to_cores_of_their_own(own_cluster: SmallCluster) -> None:
    settings = SETTINGS.replace("[jobs]", '[scheduling]\ntask_plugin = "task/affinity"\n\n[jobs]')
    reconfigure(own_cluster, settings, "reconfigured: TaskPlugin")
    script = "taskset -cp $$ | sed 's/.*: //'; while [ ! -e go ]; do sleep 0.1; done"
    jobs = [own_cluster.submit(script, output="out") for _ in range(2)]
    masks = own_cluster.lines(minimum=2)
    (own_cluster.work / "go").touch()
    assert [own_cluster.ask("wait", job=job) for job in jobs] == [0, 0]
    assert len({*masks}) == (2 if len(os.sched_getaffinity(0)) > 1 else 1)
    assert all(mask.isdecimal() for mask in masks)


def test_cancelled_job_leaves_no_process(cluster: SmallCluster) -> None:
    job = cluster.submit("echo begun; sleep 600", output="out")
    cluster.lines(minimum=1)
    cluster.wait_for_state(job, "RUNNING")
    assert cluster.ask("cancel", job=str(job)) is None
    cluster.wait_for_state(job, "CANCELLED")


def test_job_goes_on_while_the_controller_is_killed(cluster: SmallCluster) -> None:
    running = cluster.submit("echo begun; while [ ! -e go ]; do sleep 0.1; done", output="out")
    waiting = cluster.submit("echo second", nodes=2, output="out", tasks=4)
    cluster.lines(minimum=1)
    cluster.wait_for_state(running, "RUNNING")
    cluster.kill_controller()
    (cluster.work / "go").touch()
    cluster.start_controller()
    for job in (running, waiting):
        cluster.wait_for_state(job, "COMPLETED")
    assert cluster.lines() == ["begun", "second"]
    assert len(cluster.ask("runs", jobs=[running, waiting])) == 2


def test_no_job_is_lost_or_runs_twice_over_kills_of_both_daemons(cluster: SmallCluster) -> None:
    jobs: list[int] = []
    for round_ in range(4):
        jobs += [cluster.submit(f"echo {round_}.{at}", output="out") for at in range(5)]
        if round_ % 2:
            cluster.kill_node()
            cluster.start_node()
        cluster.kill_controller()
        cluster.start_controller()
    wait_until(lambda: not cluster.busy_jobs(), "the end of all jobs")
    states = cluster.jobs()
    # A script that a killed node daemon had not started is requeued; what began ends once.
    assert {states[str(job)][0] for job in jobs} == {"COMPLETED"}

    def ended() -> list[int]:
        records = [run["record"] for run in cluster.ask("runs", jobs=jobs)]
        return [one["request"]["number"] for one in records if one["state"] != "REQUEUED"]

    wait_until(lambda: len(ended()) >= len(jobs), "the records of all ends")
    assert sorted(ended()) == jobs
    assert sorted(cluster.lines()) == sorted(
        f"{round_}.{at}" for round_ in range(4) for at in range(5)
    )


def test_node_that_is_not_connected_gets_no_work(cluster: SmallCluster) -> None:
    cluster.kill_node()
    wait_until(lambda: cluster.ask("connected") == [], "the loss of the connections")
    job = cluster.submit("echo started", output="out")
    reason = {"ReqNodeNotAvail", "Resources"}
    wait_until(lambda: reason.intersection(cluster.jobs()[str(job)]), "a pass")
    cluster.start_node()
    assert cluster.ask("wait", job=job) == 0
    assert cluster.lines() == ["started"]


def test_requeued_job_runs_again_and_knows_it(cluster: SmallCluster) -> None:
    script = 'echo restart ${SLURM_RESTART_COUNT:-none}; [ -n "$SLURM_RESTART_COUNT" ] || sleep 600'
    job = cluster.submit(script, output="out")
    cluster.lines(minimum=1)
    cluster.wait_for_state(job, "RUNNING")
    cluster.ask("requeue", job=str(job))
    assert cluster.ask("wait", job=job) == 0
    first, end, second = cluster.lines()
    assert (first, second) == ("restart none", "restart 1")
    assert end.endswith(" DUE TO JOB REQUEUE ***")
    states = [run["record"]["state"] for run in cluster.ask("runs", jobs=[job])]
    assert states == ["REQUEUED", "COMPLETED"]


def test_reason_of_a_start_that_the_controller_refuses_is_recorded(cluster: SmallCluster) -> None:
    job = cluster.submit("true", name="a/b", output="%x", may_requeue=False)
    cluster.wait_for_state(job, "FAILED")
    (ended,) = (run["record"] for run in cluster.ask("runs", jobs=[job]))
    assert (ended["state"], ended["reason"]) == ("FAILED", "None")
    assert "a/b" in ended["run"]["failure"]


def test_failed_commit_is_retried_and_refuses_changes_meanwhile(cluster: SmallCluster) -> None:
    job = cluster.submit("echo begun; sleep 600", output="out")
    cluster.wait_for_state(job, "RUNNING")
    cluster.limit_files(0)
    cancelled = cluster.begin("cancel", job=str(job))
    wait_until(lambda: cluster.ask("failure"), "a failed commit")
    refused = cluster.ask("submit", script="true")
    assert refused["error"] == "Unavailable"
    assert "cannot store its state" in refused["message"]
    assert str(job) in cluster.jobs()  # it is still answered
    cluster.limit_files(-1)
    assert cluster.answer(cancelled) is None
    assert cluster.ask("failure") is None
    cluster.kill_controller()
    cluster.start_controller()
    cluster.wait_for_state(job, "CANCELLED")


def test_accounting_is_shown_while_the_state_cannot_be_stored(cluster: SmallCluster) -> None:
    ended = cluster.submit("true")
    assert cluster.ask("wait", job=ended) == 0
    running = cluster.submit("sleep 600")
    cluster.wait_for_state(running, "RUNNING")
    cluster.limit_files(0)
    cancelled = cluster.begin("cancel", job=str(running))
    wait_until(lambda: cluster.ask("failure"), "a failed commit")
    matching = {"jobs": [str(ended)]}
    with Controller(cluster.directory) as controller:
        shown = requests.rows(controller, "accounting", ["state"], matching=matching, seconds=20)
    assert shown.rows == [["COMPLETED"]]
    assert cluster.ask("failure")
    cluster.limit_files(-1)
    assert cluster.answer(cancelled) is None


def test_wait_for_the_start_of_a_job_tells_its_suspension_and_its_end_at_once(
    cluster: SmallCluster,
) -> None:
    job = cluster.submit("sleep 600")
    cluster.wait_for_state(job, "RUNNING")
    with Controller(cluster.directory) as controller:
        running = requests.wait_for_start(controller, job)
        assert running.environment
        requests.change_jobs(controller, "suspend", [str(job)])  # its steps wait for the resume
        suspended = requests.wait_for_start(controller, job)
        assert (suspended.state, suspended.environment) == ("SUSPENDED", running.environment)
        requests.change_jobs(controller, "resume", [str(job)])
        cluster.node.send_signal(signal.SIGSTOP)
        requests.change_jobs(controller, "cancel", [str(job)])
        assert cluster.jobs()[str(job)][0] == "CANCELLED COMPLETING"
        assert requests.wait_for_start(controller, job).state == "CANCELLED"
        cluster.node.send_signal(signal.SIGCONT)
    cluster.wait_for_state(job, "CANCELLED")


@pytest.mark.parametrize("outage", ["full disk", "controller", "node", "stopped node"])
def test_end_that_is_heard_of_late_is_charged_as_the_script_took(
    cluster: SmallCluster, outage: str
) -> None:
    job = cluster.submit("echo begun; while [ ! -e go ]; do sleep 0.1; done; echo ended >> out",
                         output="begun")  # fmt: skip
    cluster.wait_for_state(job, "RUNNING")
    match outage:
        case "full disk":
            cluster.limit_files(0)
            cluster.begin("submit", script="true")
            wait_until(lambda: cluster.ask("failure"), "a failed commit")
        case "controller":
            cluster.kill_controller()
        case "node":
            cluster.kill_node()
        case "stopped node":
            cluster.node.send_signal(signal.SIGSTOP)
    (cluster.work / "go").touch()
    cluster.lines(minimum=1)
    ended = (cluster.work / "out").stat().st_mtime
    wait_until(lambda: time.time() > ended + LATE_SECONDS, "a late message")
    match outage:
        case "full disk":
            cluster.limit_files(-1)
        case "controller":
            cluster.start_controller()
        case "node":
            cluster.start_node()
        case "stopped node":
            cluster.node.send_signal(signal.SIGCONT)
    assert cluster.ask("wait", job=job) == 0
    (run,) = cluster.ask("runs", jobs=[job])
    record, outcome = run["record"], run["outcome"]
    (started, _), (last, _) = record["run"]["started"], record["run"]["ended"]
    assert record["ended"] == last
    assert abs(last - ended) < LATE_SECONDS / 2
    assert abs(last - started - outcome["elapsed_seconds"]) < LATE_SECONDS / 2


def test_time_for_a_start_counts_from_its_commit(own_cluster: SmallCluster) -> None:
    """The allocation is the change that cannot be stored, for longer than a start may take."""
    settings = SETTINGS.replace("[jobs]", f"[jobs]\nbatch_start_timeout = {LATE_SECONDS - 2}")
    reconfigure(own_cluster, settings, "reconfigured: BatchStartTimeout")
    eligible = int(time.time()) + 5
    job = own_cluster.submit("true", eligible=eligible)
    wait_until(lambda: time.time() > eligible - 2, "the last change before the allocation")
    own_cluster.limit_files(0)
    wait_until(lambda: own_cluster.ask("failure"), "a failed commit")
    failed = time.time()
    wait_until(lambda: time.time() > failed + LATE_SECONDS, "a late commit")
    own_cluster.limit_files(-1)
    own_cluster.wait_for_state(job, "COMPLETED")
    assert len(own_cluster.ask("runs", jobs=[job])) == 1


def test_answer_waits_for_the_commit(cluster: SmallCluster) -> None:
    job = cluster.submit("true")
    cluster.wait_for_state(job, "COMPLETED")
    before = cluster.jobs()
    cluster.limit_files(0)
    cluster.begin("submit", script="touch started", directory=str(cluster.work))
    wait_until(lambda: cluster.ask("failure"), "a failed commit")
    cluster.kill_controller()
    cluster.start_controller()
    assert cluster.jobs() == before
    assert not (cluster.work / "started").exists()


def test_state_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    with sqlite3.connect(tmp_path / "state.sqlite") as file:
        file.execute("CREATE TABLE jobs (id INTEGER)")
        file.execute("PRAGMA user_version = 99")
    assert "is of version 99, not 4" in run_controller(cluster)
    with sqlite3.connect(tmp_path / "state.sqlite") as file:
        assert [name for (name,) in file.execute("SELECT name FROM sqlite_schema")] == ["jobs"]


def test_controller_is_refused_a_state_file_in_use(cluster: SmallCluster) -> None:
    assert "another controller uses the state file" in run_controller(cluster)


def test_what_has_jobs_cannot_be_removed_between_two_starts(own_cluster: SmallCluster) -> None:
    job = own_cluster.submit("sleep 600", nodes=2, tasks=4)
    own_cluster.wait_for_state(job, "RUNNING")
    own_cluster.kill_controller()
    for old, new, sentence in (
        ("n[1-2]", "n1", "node n2 cannot be removed: it has jobs"),
        ("cpus = 2", "cpus = 1", "node n1 cannot have 1 CPUs: its jobs have 2"),
        ('"main"', '"other"', "partition main cannot be removed: it has jobs"),
    ):
        own_cluster.settings.write_text(SETTINGS.replace(old, new))
        assert sentence in run_controller(own_cluster)
    own_cluster.settings.write_text(SETTINGS)


def test_reconfiguration_changes_everything_or_nothing(own_cluster: SmallCluster) -> None:
    job = own_cluster.submit("sleep 600", nodes=2)
    own_cluster.wait_for_state(job, "RUNNING")
    before = own_cluster.ask("settings")
    changed = SETTINGS.replace("kill_wait = 1", "kill_wait = 7")
    for wrong, sentence in (
        (changed.replace("cpus = 2", "cpus = many"), "wlm.toml"),
        (changed.replace("n[1-2]", "n1"), "node n2 cannot be removed: it has jobs"),
        (changed.replace('"main"', '"other"'), "partition main cannot be removed: it has jobs"),
    ):
        reconfigure(own_cluster, wrong, f"settings stay as they are: .*{sentence}")
        assert own_cluster.ask("settings") == before
    reconfigure(own_cluster, changed + OTHER_PARTITION, "reconfigured: KillWait, other")
    assert own_cluster.ask("settings") == [7, ["main", "other"]]
    assert own_cluster.jobs()[str(job)][0] == "RUNNING"
    assert own_cluster.ask("cancel", job=str(job)) is None
    own_cluster.wait_for_state(job, "CANCELLED")


def test_silent_node_loses_its_jobs_and_returns(own_cluster: SmallCluster) -> None:
    impatient = SETTINGS.replace("[jobs]", "slurmd_timeout = 3\n\n[jobs]")
    reconfigure(own_cluster, impatient, "reconfigured: SlurmdTimeout")
    job = own_cluster.submit("echo begun; sleep 600", output="out", may_requeue=False)
    own_cluster.wait_for_state(job, "RUNNING")
    own_cluster.kill_node()
    wait_until(lambda: own_cluster.nodes()["n1"][0] == "DOWN*", "a silent node")
    assert own_cluster.jobs()[str(job)][0] in ("NODE_FAIL", "NODE_FAIL COMPLETING")
    own_cluster.start_node()
    wait_until(lambda: own_cluster.nodes()["n1"] == ["UP", ""], "the node's return")
    second = own_cluster.submit("echo second", output="out")
    assert own_cluster.ask("wait", job=second) == 0


def reconfigure(cluster: SmallCluster, settings: str, line: str) -> None:
    """Write settings, let the controller read them, and wait for its log line."""
    begin = len(cluster.log())
    cluster.settings.write_text(settings)
    cluster.controller.send_signal(signal.SIGHUP)
    wait_until(lambda: re.search(line, cluster.log()[begin:]), line)


def run_controller(cluster: SmallCluster) -> str:
    """Run the program of the controller, which must be refused, and return its message."""
    command = [sys.executable, "-m", "fairbank.wlm.controller", str(cluster.directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 1), done.stderr
    assert done.stdout == ""
    return done.stderr


def test_node_with_fewer_processors_than_configured_gets_no_job(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path, SETTINGS.replace("cpus = 2", "cpus = 4"))
    try:
        cluster.start()
        job = cluster.submit("true")
        reason = "Low CPUs (configured 4, real 2)"
        assert {why for _, why in cluster.nodes().values()} == {reason}
        wait_until(lambda: cluster.jobs()[str(job)][1] != "None", "a reason")
        assert cluster.jobs()[str(job)][0] == "PENDING"
    finally:
        cluster.close()
