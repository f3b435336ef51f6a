"""Random trees of accounts with much usage, and the output of a real sshare for them: recordings
for the tests of fair share. A QOS multiplies usage so that the whole numbers of sshare have more
digits than its other columns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from fairbank.slurm.parsers import sshare
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.recorder import anonymous
from tests.support.conditions import wait_until

TICK = 90
USERS = ("alice", "bob", "carol", "dave")
CLASSIC = "MAX_TRES,NO_FAIR_TREE"
RULES: tuple[dict[str, str], ...] = (
    {},
    {"PriorityFlags": CLASSIC},
    {"PriorityFlags": CLASSIC, "FairShareDampeningFactor": "3"},
    {"PriorityFlags": f"{CLASSIC},DEPTH_OBLIVIOUS"},
    {},
    {"PriorityFlags": CLASSIC},
    {},
)
COMMAND = (
    "sshare",
    "--all",
    "--partition",
    "--noheader",
    "--parsable2",
    f"--format={','.join(sshare.SHARE_COLUMNS)}",
)
DEEPEST = 4


def record(cluster: Cluster, folder: Path, seed: int = 4) -> None:
    """Record a tree that grows from one set-up to the next, and the rule with it; one directory
    each.
    """
    rng = random.Random(seed)
    begin(cluster)
    for number, rule in enumerate(RULES, 1):
        grow(cluster, rng, f"t{number}")
        cluster.reconfigure(rule)
        before = cluster.root(*COMMAND)
        wait_until(partial(_has_counted, cluster, before), "slurmctld to count", seconds=TICK)
        directory = folder / f"{number}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "sshare.txt").write_text(cluster.root(*COMMAND))
        (directory / "config.txt").write_text(
            anonymous(cluster.root("scontrol", "show", "config"), cluster.place)
        )


def begin(cluster: Cluster) -> None:
    """Create the QOS that makes usage large."""
    cluster.root("sacctmgr", "--immediate", "add", "qos", "dear", "usagefactor=100000000")


def grow(cluster: Cluster, rng: random.Random, name: str) -> list[tuple[str, str]]:
    """Add an account below the root, with accounts and users below it, some of whom use the
    cluster. Return these as (account, user).
    """
    for command in _grown(rng, name):
        cluster.root("sacctmgr", "--immediate", *command)
    listed = cluster.root(
        "sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=account,user"
    ).split()
    people = [
        (account, user)
        for account, _, user in (line.partition("|") for line in listed)
        if account.partition("_")[0] == name and user
    ]
    jobs = [
        cluster.submit(
            user,
            f"--account={account}",
            "--qos=dear",
            f"--cpus-per-task={rng.randint(1, 8)}",
            script="sleep 1",
        )
        for account, user in people
        if rng.random() < 0.75
    ]
    for job in jobs:
        cluster.wait_for(job, "COMPLETED", seconds=TICK)
    return people


def _has_counted(cluster: Cluster, before: str) -> bool:
    return cluster.root(*COMMAND) != before


def _grown(rng: random.Random, name: str) -> Iterator[tuple[str, ...]]:
    """Generate the calls of sacctmgr for a new account below the root, with accounts and users
    below it.
    """
    accounts = [(name, 1)]
    yield (
        "add",
        "account",
        name,
        f"fairshare={_shares(rng)}",
        "qos=normal,high,low,dear",
        "defaultqos=normal",
    )
    for number in range(rng.randint(2, 5)):
        parent, depth = rng.choice([candidate for candidate in accounts if candidate[1] < DEEPEST])
        account = f"{name}_{number}"
        accounts.append((account, depth + 1))
        yield (
            "add",
            "account",
            account,
            f"parent={parent}",
            f"fairshare={_shares(rng, parent=True)}",
        )
    for account, _ in accounts:
        for user in rng.sample(USERS, rng.randint(0, 3)):
            yield (
                "add",
                "user",
                user,
                f"account={account}",
                f"fairshare={_shares(rng, parent=True)}",
            )


def _shares(rng: random.Random, *, parent: bool = False) -> str:
    common = [str(rng.choice((1, 1, 2, 3, 7, 10, 40, 100, 1000))), str(rng.randint(1, 50))]
    return rng.choice([*common, *common, *common, "0", *(["parent", "parent"] if parent else [])])
