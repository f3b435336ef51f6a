"""Life of a cluster: daemons are killed and restarted, settings change, the cluster is emptied and
removed without a trace.
"""

from __future__ import annotations

import grp
import itertools
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.slurm.conftest import RecordFigure
from tests.slurm.lab.cluster import Cluster, ClusterExists, names
from tests.slurm.lab.configuration import NODE_TIMEOUT
from tests.slurm.lab.daemons import MARIADBD, MUNGED, SLURMCTLD, SLURMDBD, is_listening
from tests.slurm.lab.people import PEOPLE, Person, Team, create_users, remove_users
from tests.slurm.lab.shell import UNTIL_RELEASED
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

LONG = "sleep 600"
FAILING_SECONDS = NODE_TIMEOUT * 4 + 30
PASSING = Team("fb_passing", 60_699, 1)
EVE = Person("fb_eve", 60_698, ((PASSING.name, "1"),))


def lab(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.slurm.lab ...`."""
    command = [sys.executable, "-m", "tests.slurm.lab", *words]
    return subprocess.run(
        command, cwd=checkout, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_all_nodes_are_idle_and_all_daemons_run(slurm: Cluster) -> None:
    assert set(slurm.nodes().values()) == {"idle"}
    assert len(slurm.node_names) >= 8
    assert all(
        slurm.pid(name) for name in (MUNGED, MARIADBD, SLURMDBD, SLURMCTLD, *slurm.node_names)
    )


def test_dead_node_fails_its_jobs_and_returns(slurm: Cluster, record_figure: RecordFigure) -> None:
    job = slurm.submit("alice", "--no-requeue", "--nodelist=c03", script=LONG)
    again = slurm.submit("alice", "--requeue", "--nodelist=c03", script=LONG)
    slurm.wait_for(job, "RUNNING")
    slurm.wait_for(again, "RUNNING")
    begun = time.monotonic()
    slurm.kill("c03")
    slurm.wait_for(job, "NODE_FAIL", seconds=FAILING_SECONDS)
    record_figure(f"from the death of a slurmd to NODE_FAIL: {time.monotonic() - begun:.0f} s")
    assert slurm.wait_for_sacct(job, "NODE_FAIL")[0]["NodeList"] == "c03"
    slurm.wait_for(again, "PENDING")
    assert slurm.job(again)["Restarts"] == "1"
    slurm.start("c03")
    slurm.wait_for_nodes("idle", nodes=["c03"], seconds=60)


def test_killed_controller_keeps_its_jobs(slurm: Cluster) -> None:
    running = slurm.submit("alice", script=UNTIL_RELEASED)
    waiting = slurm.submit("bob", "--hold")
    slurm.wait_for(running, "RUNNING")
    slurm.wait_until_saved(waiting)
    slurm.wait_until_saved(running)
    slurm.kill(SLURMCTLD)
    slurm.start(SLURMCTLD)
    slurm.wait_for(running, "RUNNING")
    slurm.wait_for(waiting, "PENDING")
    slurm.let_end("alice", running)
    slurm.root("scontrol", "release", str(waiting))
    slurm.wait_for(running, "COMPLETED", seconds=60)
    slurm.wait_for(waiting, "COMPLETED", seconds=60)


@pytest.mark.parametrize("killed", [(SLURMDBD,), (MARIADBD,), (SLURMDBD, MARIADBD)], ids="+".join)
def test_stopped_accounting_misses_nothing(slurm: Cluster, killed: tuple[str, ...]) -> None:
    before = slurm.submit("carol", script=UNTIL_RELEASED)
    slurm.wait_for(before, "RUNNING")
    slurm.wait_for_sacct(before, "RUNNING")
    slurm.kill(*killed)
    meanwhile = [slurm.submit(user) for user in ("alice", "bob", "carol", "dave") for _ in range(3)]
    slurm.let_end("carol", before)
    for job in (before, *meanwhile):
        slurm.wait_for(job, "COMPLETED")
    slurm.start(*killed)
    for job in (before, *meanwhile):
        (row,) = slurm.wait_for_sacct(job, "COMPLETED", seconds=90)
        shown = slurm.job(job)
        assert (row["Start"], row["End"]) == (shown["StartTime"], shown["EndTime"])


def test_no_login_while_munge_is_down(slurm: Cluster) -> None:
    slurm.stop(
        MUNGED
    )  # a killed munged would leave its socket, and each command would retry for almost a minute
    assert "Munge encode failed" in slurm.run("alice", "sbatch", "--wrap=true").err
    slurm.start(MUNGED)
    slurm.wait_for(slurm.submit("alice"), "COMPLETED")
    slurm.kill(MUNGED)
    slurm.start(MUNGED)
    slurm.wait_for(slurm.submit("alice"), "COMPLETED")


def test_settings_of_a_test_are_taken_back_after_it(slurm: Cluster) -> None:
    message = "come back with a group"
    (slurm.place.conf / "job_submit.lua").write_text(
        "function slurm_job_submit(job, partitions, uid)\n"
        f'  if job.account == nil then slurm.log_user("{message}"); return slurm.ERROR end\n'
        "  return slurm.SUCCESS\n"
        "end\n"
        "function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end\n"
    )
    with slurm.configured({"JobSubmitPlugins": "lua"}):
        assert f"sbatch: error: {message}" in slurm.run("alice", "sbatch", "--wrap=true").err
        slurm.wait_for(slurm.submit("alice", "--account=wg_astro"), "COMPLETED")
    slurm.wait_for(slurm.submit("alice"), "COMPLETED")


def test_cli_filter_and_prolog_slurmctld_are_called(slurm: Cluster) -> None:
    message = "say what it is for"
    (slurm.place.conf / "cli_filter.lua").write_text(
        "function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end\n"
        "function slurm_cli_pre_submit(options, offset)\n"
        '  if options["comment"] == nil then\n'
        f'    slurm.log_error("{message}"); return slurm.ERROR\n'
        "  end\n"
        "  return slurm.SUCCESS\n"
        "end\n"
        "function slurm_cli_post_submit(offset, job, step) return slurm.SUCCESS end\n"
    )
    prolog = slurm.place.conf / "prolog"
    prolog.write_text(
        f'#!/bin/sh\necho "$SLURM_JOB_ID $SLURM_JOB_ACCOUNT" >>{slurm.place.state}/started\n'
    )
    prolog.chmod(0o755)
    with slurm.configured({"CliFilterPlugins": "lua", "PrologSlurmctld": str(prolog)}):
        assert f"error: lua: {message}" in slurm.run("bob", "srun", "true").err
        job = slurm.submit("bob", "--comment=given")
        slurm.wait_for(job, "COMPLETED")
        assert (slurm.place.state / "started").read_text() == f"{job} wg_bio\n"


def test_emptying_leaves_no_job(slurm: Cluster, record_figure: RecordFigure) -> None:
    running = slurm.submit("alice", "--array=1-20", script=f"trap '' TERM; {LONG} & wait")
    slurm.wait_for(running, "RUNNING")
    slurm.submit("bob", "--array=1-2000", "--nodes=6", "--exclusive")
    slurm.submit("carol", "--hold")
    slurm.kill("c02", MUNGED)
    begun = time.monotonic()
    slurm.empty()
    record_figure(f"emptied of 2,021 jobs: {time.monotonic() - begun:.1f} s")
    assert slurm.queued() == []
    assert not [
        process
        for process in slurm.processes()
        if b"sleep" in process.command or b"slurmstepd" in process.command
    ]
    wait_until(lambda: slurm.sacct("--state=RUNNING,PENDING") == [], "accounting to end them too")
    number = slurm.submit("dave")
    slurm.wait_for_sacct(number, "COMPLETED")
    assert len(slurm.sacct("--duplicates", f"--jobs={number}")) == 1


def test_second_cluster_is_independent_and_leaves_no_trace(slurm: Cluster, checkout: Path) -> None:
    name = f"{slurm.place.folder.name}-beside"
    lab(checkout, "up", "--name", name, "--size", "small").check_returncode()
    second = Cluster.found(name)
    try:
        assert set(second.place.ports).isdisjoint(slurm.place.ports)
        jobs = [cluster.submit("alice", script=LONG) for cluster in (slurm, second)]
        for cluster, job in zip((slurm, second), jobs, strict=True):
            cluster.wait_for(job, "RUNNING")
        with pytest.raises(ClusterExists, match=name):
            Cluster.up(name)
        shown = lab(checkout, "status").stdout
        assert all(place in shown for place in (str(second.place.folder), str(slurm.place.folder)))
        ours = second.processes()
        assert len(ours) > 5
    finally:
        lab(
            checkout, "guard", "--name", name
        ).check_returncode()  # its standard input is closed, as after a kill of the tests
    assert name not in names()
    assert not second.place.folder.exists()
    assert [process for process in ours if process.running] == []
    assert not any(is_listening((second.place.address, port)) for port in second.place.ports)
    assert slurm.states(jobs[0]) == ["RUNNING"]
    assert slurm.run(PEOPLE[0].name, "id").code == 0


def test_user_with_a_foreign_process_is_kept(
    slurm: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create_users([EVE], [PASSING])
    with subprocess.Popen(["sleep", "600"], user=EVE.uid) as foreign:
        try:
            assert remove_users([EVE], [PASSING], seconds=0) == [EVE.name]
            assert (
                capsys.readouterr().err
                == f"user fb_eve is kept: processes outside the lab: {foreign.pid}"
                " (sleep 600)\n"
            )
            assert grp.getgrnam(PASSING.name).gr_mem == [EVE.name]
        finally:
            foreign.kill()
            foreign.wait()
            remove_users([EVE], [PASSING])
    assert not is_known(EVE, PASSING)


def test_removed_user_processes_are_ended(slurm: Cluster) -> None:
    create_users([EVE], [PASSING])
    with subprocess.Popen(
        ["sleep", "600"], user=EVE.uid, env=slurm.place.environment
    ) as ours:  # a zombie after the kill, until it is waited for
        assert remove_users([EVE], [PASSING]) == []
    assert ours.returncode == -signal.SIGKILL
    assert not is_known(EVE, PASSING)


def test_failed_start_reports_the_reason_and_leaves_nothing(slurm: Cluster) -> None:
    name = f"{slurm.place.folder.name}-broken"
    with pytest.raises(RuntimeError, match=r"(?s)slurmctld ended at once.*job_submit/nonsense"):
        Cluster.up(name, size="small", changes={"JobSubmitPlugins": "nonsense"})
    assert name not in names()


def test_daemons_restart_in_any_order(slurm: Cluster) -> None:
    for pair in itertools.permutations((SLURMDBD, SLURMCTLD, MARIADBD), 2):
        slurm.kill(*pair)
        slurm.start(*reversed(pair))
    slurm.wait_for(slurm.submit("alice"), "COMPLETED", seconds=60)


def is_known(person: Person, team: Team) -> bool:
    """Return True if the host has the user or the group."""
    return person.name in {entry.pw_name for entry in pwd.getpwall()} or team.name in {
        entry.gr_name for entry in grp.getgrall()
    }
