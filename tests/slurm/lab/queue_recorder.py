"""Recorder of a queue of a real Slurm in which jobs wait for every kind of reason."""

from __future__ import annotations

from pathlib import Path

from fairbank.slurm.output import command_of
from fairbank.slurm.parsers import sprio
from fairbank.slurm.queue_snapshot.answers import COMMANDS
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.recorder import LONG, anonymous
from tests.support.conditions import wait_until

CHANGES = {"Licenses": "matlab:2"}
DOWN = ("cpu", "gpu", "gpu-t4")


def record(cluster: Cluster, folder: Path) -> None:
    """Run `play`, wait until backfill has planned, and write one file per command."""
    last = play(cluster)
    wait_until(
        lambda: cluster.job(last)["StartTime"] != "Unknown",
        "backfill to come to the last job",
        seconds=60,
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in COMMANDS.items():
        (folder / f"{name}.txt").write_text(anonymous(cluster.root(*command), cluster.place))
    (folder / "squeue.txt").write_text(
        cluster.root("squeue", "--noheader", "--array", "--format=%i|%T|%r|%N|%S")
    )
    (folder / "waiting.txt").write_text(cluster.root(*command_of("waiting")))
    (folder / "sprio.txt").write_text(cluster.root(*sprio.command(sprio.LETTERS)))


def play(cluster: Cluster) -> int:
    """Start some jobs; submit others that wait for nodes, jobs, licenses, a limit, a reservation, a
    dependency or a time. Return the last job that is planned.
    """
    cluster.root(
        "sacctmgr",
        "--immediate",
        "modify",
        "account",
        "wg_chem",
        "set",
        "grpjobs=1",
        "grptresmins=cpu=100000",
    )
    cluster.root(
        "sacctmgr",
        "--immediate",
        "modify",
        "qos",
        "low",
        "set",
        "maxtresperuser=cpu=8",
        "grpwall=600",
        "preempt=",
        "flags=denyonlimit",
    )
    cluster.root("scontrol", "update", "nodename=c01,c02", "features=fast,big", "weight=10")
    cluster.root("scontrol", "update", "nodename=g04", "state=drain", "reason=a fan is loud")
    running = [
        cluster.submit(
            "alice", "--nodes=3", "--exclusive", "--time=20", "--nodelist=c[01-03]", script=LONG
        ),
        cluster.submit(
            "bob",
            "--account=wg_bio",
            "--partition=gpu",
            "--gres=gpu:a100:3",
            "--time=30",
            script=LONG,
        ),
        cluster.submit(
            "dave",
            "--nodes=2",
            "--ntasks=6",
            "--cpus-per-task=3",
            "--mem=8G",
            "--time=40",
            script=LONG,
        ),
        cluster.submit("carol", "--ntasks=1", "--licenses=matlab:2", "--time=1:00:00", script=LONG),
    ]
    for job in running:
        cluster.wait_for(job, "RUNNING")
    for name in DOWN:
        cluster.root("scontrol", "update", f"partitionname={name}", "state=down")
    reservation = (
        "reservationname=course",
        "starttime=now+2hours",
        "duration=60",
        "nodes=c05,c06",
        "accounts=wg_bio",
    )
    cluster.root("scontrol", "create", "reservation", *reservation)
    cluster.submit(
        "alice", "--job-name=whole", "--nodes=6", "--exclusive", "--time=2:00:00", script=LONG
    )
    cluster.submit(
        "bob",
        "--job-name=fast",
        "--nodes=2",
        "--constraint=fast&big",
        "--mem-per-cpu=2G",
        "--time=4:00:00",
        script=LONG,
    )
    cluster.submit("dave", "--job-name=second", "--ntasks=1", "--time=10", script=LONG)
    cluster.submit(
        "carol", "--job-name=license", "--ntasks=1", "--licenses=matlab:1", "--time=10", script=LONG
    )
    cluster.submit(
        "carol", "--job-name=course", "--reservation=course", "--ntasks=1", "--time=10", script=LONG
    )
    cluster.submit(
        "alice", "--job-name=after", f"--dependency=afterok:{running[0]}", "--time=10", script=LONG
    )
    cluster.submit("alice", "--job-name=later", "--begin=now+1day", "--time=10", script=LONG)
    cluster.submit("alice", "--job-name=held", "--hold", "--time=10", script=LONG)
    cluster.submit("alice", "--job-name=long", "--time=30-0", script=LONG)
    cluster.submit(
        "bob",
        "--job-name=low",
        "--qos=low",
        "--ntasks=8",
        "--nodes=1",
        "--ntasks-per-node=8",
        "--time=3:00:00",
        script=LONG,
    )
    cluster.submit(
        "bob",
        "--job-name=tasks",
        "--array=1-5,9%2",
        "--nodes=1",
        "--exclusive",
        "--time=3:00:00",
        script=LONG,
    )
    cluster.submit(
        "carol",
        "--job-name=gpus",
        "--partition=gpu,gpu-t4",
        "--nodes=2",
        "--gres=gpu:4",
        "--time=1:00:00",
        script=LONG,
    )
    last = cluster.submit(
        "carol",
        "--job-name=contiguous",
        "--nodes=2-3",
        "--contiguous",
        "--mem=100G",
        "--exclude=c04",
        "--time=5:00:00",
        script=LONG,
    )
    for name in DOWN:
        cluster.root("scontrol", "update", f"partitionname={name}", "state=up")
    return last
