"""Recorder of the output of sshare and sprio of a real Slurm at one moment, in every form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from fairbank.slurm.parsers import sprio, sshare
from fairbank.slurm.parsers.columns import PIPE
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.recorder import anonymous
from tests.support.conditions import wait_until

# seconds until slurmctld has certainly counted usage again: PriorityCalcPeriod is one minute here
TICK = 90
LONG = "sleep 3600"

# In slurm.conf, because a slurmctld of 24.11 loses a partition created by scontrol at a restart.
PARTITION = {
    "PartitionName": (
        "a_partition_of_a_long_name Nodes=c[01-02] PriorityJobFactor=10 MaxTime=60 State=UP"
    )
}
FAIR_TREE = PARTITION | {
    "PriorityWeightAssoc": "500",
    "PriorityWeightTRES": "CPU=1000,Mem=2000,GRES/gpu=3000",
}
CLASSIC = PARTITION | {
    "PriorityFlags": "MAX_TRES,NO_FAIR_TREE",
    "PriorityWeightAge": "0",
    "PriorityWeightJobSize": "0",
}

# Accounts on four levels, one with its parent's shares and one without shares; users by account and
# by partition; long names.
PEOPLE: tuple[str, ...] = (
    "add qos dear usagefactor=100000000",
    "add account physics fairshare=60",
    "add account optics parent=physics fairshare=parent",
    "add account lasers parent=optics fairshare=30",
    "add account quantum_and_statistical_optics parent=lasers fairshare=7",
    "add account biology fairshare=0",
    "add user alice account=physics fairshare=1",
    "add user alice account=physics partition=cpu fairshare=3",
    "add user bob account=quantum_and_statistical_optics fairshare=2",
    "add user carol account=lasers fairshare=parent",
    "add user somebody_with_a_long_name account=optics fairshare=4",
    "add user dave account=biology",
    "modify account physics biology set qos=normal,high,dear defaultqos=normal",
    "modify account wg_bio set grptresmins=cpu=100000,mem=2000000000,gres/gpu=600",
    "modify account lasers set grptresmins=billing=5000",
    "modify user where name=alice account=wg_astro set priority=40",
    "modify user where name=carol account=wg_bio set priority=100",
)

WIDTHS = {"i": 15, "r": 40, "c": 8, "u": 40, "T": 80, "t": 80}
ALL_OF_PRIORITIES = PIPE.join(f"%{WIDTHS.get(letter, 20)}{letter}" for letter in sprio.LETTERS)

# User and command of each recording. All commands run between two ticks.
SHARES: Mapping[str, tuple[str, ...]] = {
    "everything": ("root", "sshare", "-n", "-a", "-m", "-P", "-o", ",".join(sshare.SHARE_COLUMNS)),
    "of-root": ("root", "sshare"),
    "of-alice": ("alice", "sshare"),
    "users-of-alice": ("alice", "sshare", "-U"),
    "all": ("root", "sshare", "-a"),
    "long": ("root", "sshare", "-l"),
    "long-all": ("root", "sshare", "-l", "-a"),
    "partitions": ("root", "sshare", "-a", "-m"),
    "long-partitions": ("root", "sshare", "-l", "-a", "-m"),
    "accounts": ("root", "sshare", "-A", "wg_bio,physics"),
    "accounts-all": ("root", "sshare", "-a", "-A", "wg_bio,physics"),
    "account-long-name": ("root", "sshare", "-a", "-A", "quantum_and_statistical_optics"),
    "users": ("root", "sshare", "-u", "bob,carol"),
    "users-only": ("root", "sshare", "-U", "-u", "bob,carol"),
    "users-and-account": ("root", "sshare", "-u", "bob", "-A", "wg_bio"),
    "all-users-only": ("root", "sshare", "-U", "-a"),
    "no-header": ("root", "sshare", "-n", "-a"),
    "no-header-h": ("root", "sshare", "-h", "-a", "-l"),
    "parsable": ("root", "sshare", "-p", "-a"),
    "parsable2": ("root", "sshare", "-P", "-a", "-l"),
    "parsable2-no-header": ("root", "sshare", "-P", "-n", "-a"),
    "format-widths": (
        "root",
        "sshare",
        "-a",
        "-o",
        "account%30,user%-12,rawshares,normshares%15,levelfs%6,fairshare%5,effectvusage%8",
    ),
    "format-prefixes": ("root", "sshare", "-a", "-o", "acc,us,rawu%5,eff%-13,normu,g,i,c"),
    "format-left": (
        "root",
        "sshare",
        "-a",
        "-o",
        "rawshares%-10,rawusage%-20,levelfs%-12,fairshare%3,user%4,account%5",
    ),
    "format-tres": (
        "root",
        "sshare",
        "-a",
        "-o",
        "account,user,grptresmins%60,grptresraw%100,tresrunmins%12",
    ),
    "format-parsable": (
        "root",
        "sshare",
        "-a",
        "-p",
        "-o",
        "account%5,rawusage%2,levelfs%3,tresrunmins%4",
    ),
    "long-format": ("root", "sshare", "-a", "-l", "-o", "account,user"),
    "unknown-field": ("root", "sshare", "-o", "account,nonsense"),
    "unknown-account": ("root", "sshare", "-A", "nonsense"),
    "unknown-user": ("root", "sshare", "-u", "nonsense"),
}
PRIORITIES: Mapping[str, tuple[str, ...]] = {
    "everything": ("root", "sprio", "-h", "-o", ALL_OF_PRIORITIES),
    "default": ("root", "sprio"),
    "long": ("root", "sprio", "-l"),
    "norm": ("root", "sprio", "-n"),
    "norm-long": ("root", "sprio", "-n", "-l"),
    "weights": ("root", "sprio", "-w"),
    "weights-long": ("root", "sprio", "-w", "-l"),
    "weights-norm": ("root", "sprio", "-w", "-n"),
    "weights-format": (
        "root",
        "sprio",
        "-w",
        "-o",
        "%15i|%9r|%8u|%10Y|%10y|%10a|%10A|%11N|%40T|%40t|%10S",
    ),
    "by-priority": ("root", "sprio", "-S", "-Y"),
    "by-user": ("root", "sprio", "-l", "-S", "u,r,-y"),
    "by-fair-share": ("root", "sprio", "-S", "-f,i"),
    "by-partition": ("root", "sprio", "-S", "r,-i"),
    "by-size": ("root", "sprio", "-S", "+j,-Y"),
    "by-tres": ("root", "sprio", "-S", "t"),
    "by-nice": ("root", "sprio", "-l", "-S", "N,S"),
    "jobs": ("root", "sprio", "-j", "JOBS"),
    "user": ("root", "sprio", "-u", "alice"),
    "users": ("root", "sprio", "-u", "alice,bob"),
    "partition": ("root", "sprio", "-p", "gpu"),
    "partitions": ("root", "sprio", "-p", "gpu,a_partition_of_a_long_name", "-l"),
    "no-header": ("root", "sprio", "-h"),
    "format": ("root", "sprio", "-o", "%i %.5u %10Y %.6F %T"),
    "format-text": ("root", "sprio", "-o", "job %8i of %.8u: %.10Y [%5r] %3A%%"),
    "format-left": ("root", "sprio", "-o", "%12i|%12y|%12a|%12S|%12N|%12J|%3u|%.3u"),
    "no-jobs": ("root", "sprio", "-j", "99999"),
}


def record(cluster: Cluster, folder: Path) -> None:
    """Run `play` and write one file per command into `shares` and `priorities` of the directory,
    for Fair Tree and for the classic rule.
    """
    jobs = create_usage(cluster)
    _record_outputs(cluster, folder / "fair-tree", jobs)
    cluster.reconfigure(CLASSIC)
    _record_outputs(cluster, folder / "classic", jobs)


def create_usage(cluster: Cluster) -> str:
    """Yield a cluster with accounts and users, ranked by Fair Tree."""
    for command in PEOPLE:
        cluster.root("sacctmgr", "--immediate", *command.split())
    cluster.reconfigure(FAIR_TREE)
    cluster.wait_for_nodes("idle", seconds=TICK)
    return play(cluster)


def play(cluster: Cluster) -> str:
    """Create users with little usage and one with much, a full cluster, and waiting jobs of every
    kind. Return the numbers of two of these.
    """
    used = [
        cluster.submit("alice", "--account=wg_astro", "--cpus-per-task=8", script="sleep 20"),
        cluster.submit(
            "alice", "--account=physics", "--partition=cpu", "--cpus-per-task=3", script="sleep 15"
        ),
        cluster.submit(
            "bob", "--account=quantum_and_statistical_optics", "--cpus-per-task=5", script="sleep 9"
        ),
        cluster.submit("carol", "--account=lasers", "--cpus-per-task=2", script="sleep 4"),
        cluster.submit(
            "dave",
            "--account=biology",
            "--qos=dear",
            "--cpus-per-task=60",
            "--mem=1G",
            script="sleep 12",
        ),
        cluster.submit("dave", "--account=wg_chem", script="sleep 2"),
    ]
    for job in used:
        cluster.wait_for(job, "COMPLETED", seconds=TICK)
    for partition, nodes in (("cpu", 6), ("gpu", 2), ("gpu-t4", 2)):
        cluster.wait_for(
            cluster.submit(
                "bob", f"--partition={partition}", f"--nodes={nodes}", "--exclusive", script=LONG
            ),
            "RUNNING",
        )
    return _waiting(cluster)


def _waiting(cluster: Cluster) -> str:
    cluster.submit("alice", "--account=wg_astro", "--cpus-per-task=8", "--nice=100", script=LONG)
    several = cluster.submit("bob", "--partition=cpu,gpu", "--ntasks=40", "--mem=3G", script=LONG)
    cluster.submit(
        "carol", "--partition=gpu", "--gres=gpu:4", "--qos=high", "--nodes=2", script=LONG
    )
    cluster.submit("dave", "--array=1-5", "--account=wg_chem", script=LONG)
    short = cluster.submit(
        "bob",
        "--account=quantum_and_statistical_optics",
        "--partition=a_partition_of_a_long_name",
        script=LONG,
    )
    site = cluster.submit("alice", "--account=physics", "--partition=cpu", script=LONG)
    cluster.root("scontrol", "update", f"jobid={site}", "sitefactor=-5000")
    with_priority = cluster.submit("carol", "--account=lasers", script=LONG)
    cluster.root("scontrol", "update", f"jobid={with_priority}", "priority=123456")
    low = cluster.submit("dave", "--account=biology", "--qos=normal", script=LONG)
    cluster.root("scontrol", "update", f"jobid={low}", "nice=2000000000")
    favoured = cluster.submit("dave", "--account=biology", "--exclusive", "--nodes=6", script=LONG)
    cluster.root("scontrol", "update", f"jobid={favoured}", "nice=-123456")
    cluster.root("scontrol", "hold", str(cluster.submit("carol", script=LONG)))
    cluster.submit("carol", "--begin=now+1hour", script=LONG)
    return f"{several},{short}"


def _record_outputs(cluster: Cluster, folder: Path, jobs: str) -> None:
    """Run every command right after a tick; repeat the first ones to verify that no other tick came
    in between.
    """
    while True:
        before = _output(cluster, SHARES["everything"], jobs)
        wait_until(partial(_has_counted, cluster, before), "slurmctld to count", seconds=TICK)
        outputs = {
            f"sshare-{name}.txt": _output(cluster, command, jobs)
            for name, command in SHARES.items()
        }
        outputs |= {
            f"sprio-{name}.txt": _output(cluster, command, jobs)
            for name, command in PRIORITIES.items()
        }
        repeated = {
            "sshare-everything.txt": SHARES["everything"],
            "sprio-everything.txt": PRIORITIES["everything"],
        }
        if all(
            outputs[name] == _output(cluster, command, jobs) for name, command in repeated.items()
        ):
            break
    outputs["config.txt"] = cluster.root("scontrol", "show", "config")
    outputs["jobs.txt"] = cluster.root("scontrol", "--oneliner", "show", "job")
    outputs["partitions.txt"] = cluster.root("scontrol", "--oneliner", "show", "partition")
    outputs["QUESTIONS"] = "".join(
        f"{program}-{name}: {user}: {arguments!r}\n"
        for program, commands in (("sshare", SHARES), ("sprio", PRIORITIES))
        for name, (user, *arguments) in commands.items()
    ).replace("'JOBS'", f"'{jobs}'")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in outputs.items():
        (folder / name).write_text(anonymous(text, cluster.place))


def _has_counted(cluster: Cluster, before: str) -> bool:
    return _output(cluster, SHARES["everything"], "") != before


def _output(cluster: Cluster, command: tuple[str, ...], jobs: str) -> str:
    user, *arguments = command
    result = cluster.run(
        user, *[jobs if argument == "JOBS" else argument for argument in arguments]
    )
    return result.out + result.err
