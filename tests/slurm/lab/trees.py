"""Random trees of accounts with much usage, and what sshare of a real Slurm says of them: recorded for the tests of fair share.

A QOS multiplies usage by so much that the whole numbers of sshare have more digits than it prints of anything else.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from fairbank.slurm.answers import shares
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.recording import anonymous
from tests.support.waiting import wait_until

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
QUESTION = ("sshare", "--all", "--partition", "--noheader", "--parsable2", f"--format={','.join(shares.COLUMNS)}")
DEEPEST = 4


def record(cluster: Cluster, folder: Path, seed: int = 4) -> None:
    """A tree that grows from one set-up to the next, and the rule with it; a folder each."""
    chance = random.Random(seed)
    cluster.root("sacctmgr", "--immediate", "add", "qos", "dear", "usagefactor=100000000")
    for number, rule in enumerate(RULES, 1):
        for command in _grown(chance, f"t{number}"):
            cluster.root("sacctmgr", "--immediate", *command)
        _use(cluster, chance, f"t{number}")
        cluster.reconfigure(rule)
        before = cluster.root(*QUESTION)
        wait_until(lambda before=before: cluster.root(*QUESTION) != before, "slurmctld to count", seconds=TICK)  # type: ignore[misc]
        there = folder / f"{number}"
        there.mkdir(parents=True, exist_ok=True)
        (there / "sshare.txt").write_text(cluster.root(*QUESTION))
        (there / "config.txt").write_text(anonymous(cluster.root("scontrol", "show", "config"), cluster.place))


def _grown(chance: random.Random, name: str) -> Iterator[tuple[str, ...]]:
    """What sacctmgr is told: a new account below the root, with accounts and users below it."""
    above = [(name, 1)]
    yield "add", "account", name, f"fairshare={_shares(chance)}", "qos=normal,dear", "defaultqos=normal"
    for number in range(chance.randint(2, 5)):
        parent, depth = chance.choice([each for each in above if each[1] < DEEPEST])
        account = f"{name}_{number}"
        above.append((account, depth + 1))
        yield "add", "account", account, f"parent={parent}", f"fairshare={_shares(chance, parent=True)}"
    for account, _ in above:
        for user in chance.sample(USERS, chance.randint(0, 3)):
            yield "add", "user", user, f"account={account}", f"fairshare={_shares(chance, parent=True)}"


def _shares(chance: random.Random, *, parent: bool = False) -> str:
    usual = [str(chance.choice((1, 1, 2, 3, 7, 10, 40, 100, 1000))), str(chance.randint(1, 50))]
    return chance.choice([*usual, *usual, *usual, "0", *(["parent", "parent"] if parent else [])])


def _use(cluster: Cluster, chance: random.Random, name: str) -> None:
    """Some of the users run something short."""
    listed = cluster.root("sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=account,user").split()
    there = [line.split("|") for line in listed if line.startswith(name) and not line.endswith("|")]
    jobs = [
        cluster.submit(user, f"--account={account}", "--qos=dear", f"--cpus-per-task={chance.randint(1, 8)}", script="sleep 1")
        for account, user in there
        if chance.random() < 0.75
    ]
    for job in jobs:
        cluster.wait_for(job, "COMPLETED", seconds=TICK)
