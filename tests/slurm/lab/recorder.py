"""Recorder of the output of a real Slurm, for the tests of parsers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from fairbank.slurm.parsers import sacct, sacctmgr, squeue
from fairbank.slurm.parsers.config import COMPLETE_JSON, read_version
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.output_parsers import DELIMITER
from tests.slurm.lab.place import Place
from tests.slurm.lab.shell import RUN_COLUMNS, RUN_TIMES

# Every column of Slurm 22.05 that accounting may need. The name comes early, because the last
# column must not contain a line feed.
SACCT = (
    *RUN_COLUMNS,
    "UID",
    "GID",
    "Eligible",
    *RUN_TIMES,
    "Suspended",
    "Reason",
    "AdminComment",
    "Comment",
    "DBIndex",
    "Flags",
    "Cluster",
)
SACCTMGR = ("sacctmgr", "--noheader", "--parsable2")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "version": ("scontrol", "--version"),
    "config": ("scontrol", "show", "config"),
    "partitions-oneliner": ("scontrol", "--oneliner", "show", "partition"),
    "nodes-oneliner": ("scontrol", "--oneliner", "show", "node"),
    "sacct-runs": (
        "sacct",
        "--allusers",
        "--noheader",
        "--parsable2",
        "--allocations",
        "--duplicates",
        f"--delimiter={DELIMITER}",
        f"--format={','.join(sacct.JOBS.columns)}",
    ),
    "squeue-runs": (
        "squeue",
        "--all",
        "--states=all",
        "--noheader",
        f"--format={squeue.QUEUE_FORMAT}",
    ),
    "associations-plain": (
        *SACCTMGR,
        "show",
        "associations",
        f"format={','.join(sacctmgr.ASSOCIATIONS.columns).lower()}",
    ),
    "qos-plain": (*SACCTMGR, "show", "qos", f"format={','.join(sacctmgr.QOS.columns).lower()}"),
}
# Only for releases whose JSON is not read: several forms of sacct's columns.
BEFORE_2311: Mapping[str, tuple[str, ...]] = {
    "sacct": ("sacct", "--allusers", "--parsable2", "--allocations", f"--format={','.join(SACCT)}"),
    "sacct-duplicates": (
        "sacct",
        "--allusers",
        "--parsable2",
        "--allocations",
        "--duplicates",
        f"--format={','.join(SACCT)}",
    ),
    "sacct-steps": ("sacct", "--allusers", "--parsable2", f"--format={','.join(SACCT)}"),
    "sacct-separated": (
        "sacct",
        "--allusers",
        "--noheader",
        "--parsable2",
        "--allocations",
        "--duplicates",
        f"--delimiter={DELIMITER}",
        f"--format={','.join(SACCT)}",
    ),
    "coordinators": (
        *SACCTMGR,
        "show",
        "account",
        "withcoord",
        f"format={','.join(sacctmgr.COORDINATORS.columns).lower()}",
    ),
}
SINCE_2311: Mapping[str, tuple[str, ...]] = {
    "sacct-all": ("sacct", "--allusers", "--duplicates", "--json"),
    "jobs-oneliner": ("scontrol", "--oneliner", "show", "job"),
    "reservations-oneliner": ("scontrol", "--oneliner", "show", "reservation"),
    "sshare": ("sshare", "--all", "--long", "--parsable2"),
}
# The keys that `parsers.sacct` reads, with the inner keys of objects. When it reads another
# one, add it here and record again. All keys are 100,000 lines, too many to
# review.
ACCOUNTING_KEYS = {
    "job_id": None,
    "account": None,
    "partition": None,
    "qos": None,
    "user": None,
    "association": ("user",),
    "restart_cnt": None,
    "time": ("submission", "start", "end", "elapsed", "limit"),
    "state": ("current",),
    "tres": ("allocated", "requested"),
}

LONG = "sleep 3600"
TIMEOUT_SECONDS = 150  # seconds until a job with a limit of one minute has ended


def record(cluster: Cluster, folder: Path) -> list[str]:
    """Run the jobs of `play` and write the output of each command into the folder.

    Returns:
        The commands that this release cannot run, each with its error message.
    """
    play(cluster)
    folder.mkdir(parents=True, exist_ok=True)
    version = read_version(cluster.run("root", "scontrol", "--version").out)
    commands = questions(has_json=version >= COMPLETE_JSON)
    unanswered = []
    for name, command in commands.items():
        result = cluster.run("root", *command, seconds=60)
        if result.code:
            unanswered.append(f"{name}: {result.err.strip()}")
            continue
        text = anonymous(result.out, cluster.place)
        if "--json" in command:
            (folder / f"{name}.json").write_text(read_keys(text))
        else:
            (folder / f"{name}.txt").write_text(text)
    lines = "".join(f"{name}: {' '.join(command)!r}\n" for name, command in commands.items())
    (folder / "QUESTIONS").write_text(
        lines + "".join(f"unanswered: {anonymous(line, cluster.place)}\n" for line in unanswered)
    )
    return unanswered


def questions(*, has_json: bool) -> Mapping[str, tuple[str, ...]]:
    """Return the commands to record, by the names of their files."""
    return {**COMMANDS, **(SINCE_2311 if has_json else BEFORE_2311)}


def read_keys(text: str) -> str:
    """Return the JSON of sacct with one job a line, and only the keys that are read."""
    data = json.loads(text)
    lines = []
    for job in data["jobs"]:
        short = {
            key: {inner: job[key][inner] for inner in inner_keys} if inner_keys else job[key]
            for key, inner_keys in ACCOUNTING_KEYS.items()
            if key in job
        }
        lines.append(json.dumps(short, ensure_ascii=False))
    jobs = ",\n".join(lines)
    return f'{{"errors": {json.dumps(data["errors"])}, "jobs": [\n{jobs}\n]}}\n'


def anonymous(text: str, place: Place) -> str:
    """Return the text without the host's name, address, directories and kernel."""
    folder = str(place.folder)
    text = (
        text.replace(folder, "/lab")
        .replace(folder.replace("/", r"\/"), r"\/lab")
        .replace(place.address, "127.0.0.1")
    )
    text = re.sub(rf"\b{re.escape(place.host)}\b", "head", text)
    text = re.sub(r"AllocNode:Sid=\S+", "AllocNode:Sid=head:1000", text)
    return re.sub(r"(?m)\bOS=Linux .*?(?=\s*$| RealMemory=)", "OS=Linux 6.1.0-1-amd64 #1 SMP", text)


def play(cluster: Cluster) -> None:
    """Run jobs of every kind and every end; some still wait or run when it returns."""
    overdue = cluster.submit("dave", "--time=1", "--job-name=overdue", script=LONG)
    _short_jobs(cluster)
    _interrupted_jobs(cluster)
    _strange_names(cluster)
    cluster.wait_for(overdue, "TIMEOUT", seconds=TIMEOUT_SECONDS)
    cluster.wait_for_sacct(overdue, "TIMEOUT")
    _unfinished_jobs(cluster)


def _short_jobs(cluster: Cluster) -> None:
    jobs = [
        cluster.submit(
            "alice", "--job-name=fit", "--cpus-per-task=4", "--comment=a comment | with a pipe"
        ),
        cluster.submit(
            "bob",
            "--job-name=align",
            "--partition=gpu",
            "--cpus-per-task=16",
            "--mem=64G",
            "--gres=gpu:a100:2",
        ),
        cluster.submit(
            "bob",
            "--job-name=render",
            "--account=wg_astro",
            "--nodes=3",
            "--exclusive",
            group="wg_astro",
            script="srun true",
        ),
        cluster.submit(
            "carol",
            "--job-name=t4",
            "--partition=gpu-t4",
            "--gres=gpu:1",
            "--mem=96G",
            "--qos=high",
        ),
        cluster.submit("carol", "--job-name=wrong", script="exit 3"),
        cluster.submit("dave", "--job-name=crash", script="kill -SEGV $$"),
        cluster.submit("alice", "--array=1,3,5-7%2", "--job-name=sweep"),
        cluster.submit("alice", "--ntasks=1", ":", "--ntasks=2", "--partition=gpu", "--gres=gpu:1"),
    ]
    cluster.run("bob", "srun", "--job-name=interactive", "--ntasks=2", "true").checked()
    cluster.run("carol", "salloc", "--job-name=session", "srun", "true").checked()
    for job in jobs:
        cluster.wait_for(job, "COMPLETED", "FAILED", seconds=60)


def _interrupted_jobs(cluster: Cluster) -> None:
    running = cluster.submit("alice", "--job-name=cancelled", script=LONG)
    waiting = cluster.submit("bob", "--hold", "--job-name=never-ran", script=LONG)
    again = cluster.submit("carol", "--job-name=again", "--nodelist=c02", script=LONG)
    lost = cluster.submit("dave", "--job-name=lost", "--no-requeue", "--nodelist=c06", script=LONG)
    moved = cluster.submit("dave", "--job-name=moved", "--requeue", "--nodelist=c06", script=LONG)
    paused = cluster.submit("alice", "--job-name=paused", "--time=30", script=LONG)
    for job in (running, again, lost, moved, paused):
        cluster.wait_for(job, "RUNNING")
    cluster.kill("c06")
    cluster.root("scancel", str(waiting))
    cluster.run("alice", "scancel", str(running)).checked()
    cluster.root("scontrol", "update", f"jobid={paused}", "timelimit=45")
    cluster.root("scontrol", "suspend", str(paused))
    cluster.root("scontrol", "requeue", str(again))
    cluster.wait_for(lost, "NODE_FAIL", seconds=120)
    cluster.wait_for(moved, "PENDING")
    cluster.start("c06")
    cluster.wait_for_nodes("idle", nodes=["c06"], seconds=60)
    for requeued in (again, moved):
        cluster.wait_for(requeued, "PENDING")
        cluster.root(
            "scontrol", "update", f"jobid={requeued}", "starttime=now"
        )  # instead of in two minutes
        cluster.wait_for(requeued, "RUNNING", seconds=90)
    cluster.run("dave", "scancel", str(moved)).checked()
    cluster.root("scontrol", "resume", str(paused))
    cluster.run("alice", "scancel", str(paused)).checked()


def _strange_names(cluster: Cluster) -> None:
    for name in (
        "a|b",
        "two\nlines",
        "|\n|",
        "a,b=c;d",
        "back\\slash 'quote",
        '"double"',
        "ünïcödé",
        "x" * 200,
    ):
        cluster.wait_for(cluster.submit("alice", f"--job-name={name}"), "COMPLETED")


def _unfinished_jobs(cluster: Cluster) -> None:
    running = cluster.submit(
        "alice", "--job-name=long", "--nodes=2", "--cpus-per-task=8", "--time=2:00:00", script=LONG
    )
    gpus = cluster.submit(
        "carol", "--job-name=fold", "--partition=gpu", "--gres=gpu:4", "--time=1-0", script=LONG
    )
    tasks = cluster.submit("dave", "--job-name=tasks", "--array=1-100%2", script=LONG)
    cluster.wait_for(running, "RUNNING")
    cluster.wait_for(gpus, "RUNNING")
    cluster.submit(
        "bob", "--job-name=big", "--nodes=6", "--exclusive", "--time=12:00:00", script=LONG
    )
    cluster.submit("bob", "--job-name=after", f"--dependency=afterok:{running}", script=LONG)
    held = cluster.submit("carol", "--job-name=held", script=LONG)
    cluster.root("scontrol", "hold", str(held))
    cluster.root(
        "scontrol", "update", f"jobid={held}", "admincomment=allocation exhausted | ask your PI"
    )
    cluster.root(
        "scontrol",
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now+1hour",
        "duration=60",
        "nodes=g04",
        "accounts=wg_bio",
    )
    cluster.wait_for_sacct(running, "RUNNING")
    cluster.wait_for_sacct(gpus, "RUNNING")
    cluster.wait_for_sacct(tasks, "RUNNING", "PENDING", rows=3)
