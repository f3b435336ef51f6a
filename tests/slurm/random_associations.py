"""Random associations, settings, running and pending jobs for a comparison with a real Slurm.
Nothing here contacts Slurm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from fairbank.priority.settings import RAW, Flag
from tests.slurm.lab import people
from tests.slurm.lab.configuration import CLUSTER
from tests.slurm.lab.shell import UNTIL_RELEASED

PARTITIONS = {"pa": "c[01-06]", "pb": "g[01-02]", "pc": "c01,g[03-04]"}
"""Partitions of the comparison, and their nodes. No other test uses them."""
ALWAYS_UP = "pr"
"""Another partition, where jobs keep running while slurmctld restarts. Its weights never change,
because slurmctld would price the jobs again.
"""
QOS_NAMES = ("normal", "high", "low", "costly", "endless")
ENDLESS = "endless"
"""QOS whose usage never decays (NoDecay)."""
DEEPEST = 4
_FEW = (0, 1, 1, 2, 3, 5, 10, 40)  # few values, so that many shares tie
_FACTORS = ("1", "1", "0", "0.5", "2", "1234.56789")  # the last one gives usage many digits
_FLAGS = sorted(flag.value for flag in (*RAW, Flag.SMALL_RELATIVE_TO_TIME, Flag.ACCRUE_ALWAYS))
_GPUS = ("pb",)


class Account(NamedTuple):
    name: str
    depth: int


class JobOwner(NamedTuple):
    """Owner of jobs that are charged to an association, of one partition or (empty) of any."""

    user: str
    account: str
    partition: str = ""


class PlannedJob(NamedTuple):
    """Planned job: its owner, its options, and an operator's later changes."""

    owner: JobOwner
    options: tuple[str, ...]
    script: str = "true"
    tasks: int = 1
    site: int = 0
    priority: int | None = None


class AssociationTree(NamedTuple):
    accounts: tuple[Account, ...] = (Account("root", 0),)
    owners: tuple[JobOwner, ...] = ()


def initial_commands() -> Iterator[str]:
    """Generate the sacctmgr commands that run once."""
    yield from (f"add qos {name}" for name in QOS_NAMES if name not in people.QOS_PRIORITIES)
    yield f"modify qos {ENDLESS} set flags=NoDecay"
    yield f"modify account root set qos={','.join(QOS_NAMES)} defaultqos=normal"


def qos_commands(rng: Random) -> list[str]:
    """Return the sacctmgr commands that change priority and usage factor of each QOS."""
    return [
        f"modify qos {name} set priority={_priority(rng)} usagefactor={rng.choice(_FACTORS)}"
        for name in QOS_NAMES
    ]


def _priority(rng: Random) -> int:
    return rng.choice((0, 1, 40, 100, 100, rng.randint(0, 10**6)))


def grow(tree: AssociationTree, number: int, rng: Random) -> tuple[AssociationTree, list[str]]:
    """Add accounts and users and change some shares. Return the tree and the sacctmgr commands."""
    accounts, owners, commands = list(tree.accounts), list(tree.owners), []
    for index in range(rng.randint(2, 5)):
        parent = rng.choice([account for account in accounts if account.depth < DEEPEST])
        account = Account(f"s{number}_{index}", parent.depth + 1)
        accounts.append(account)
        limits = (
            f" grptresmins=cpu={rng.randint(10**6, 10**8)},billing={10**9}"
            if rng.random() < 0.2
            else ""
        )
        commands.append(
            f"add account {account.name} parent={parent.name} cluster={CLUSTER}"
            f" fairshare={_shares(rng)}{limits}"
        )
    for account in rng.sample(accounts[1:], min(4, len(accounts) - 1)):
        for person in rng.sample(people.PEOPLE, rng.randint(1, 3)):
            if (owner := JobOwner(person.name, account.name)) not in owners:
                owners.append(owner)
                commands.append(
                    f"add user {person.name} account={account.name} fairshare={_shares(rng)}"
                    f" priority={rng.randint(0, 90)}"
                )
            if (
                rng.random() < 0.15
                and (in_partition := owner._replace(partition="pa")) not in owners
            ):
                owners.append(in_partition)
                commands.append(
                    f"add user {person.name} account={account.name} partition=pa"
                    f" fairshare={_shares(rng)}"
                )
    changed = rng.sample(accounts[1:], min(2, len(accounts) - 1))
    commands += [
        f"modify account {account.name} set fairshare={_shares(rng)}" for account in changed
    ]
    return AssociationTree(tuple(accounts), tuple(owners)), commands


def _shares(rng: Random) -> str:
    return "parent" if rng.random() < 0.12 else str(rng.choice((*_FEW, rng.randint(0, 300))))


def settings(number: int, rng: Random) -> dict[str, str]:
    """Return settings of slurm.conf for one set-up: alternately Fair Tree and a classic rule, every
    fourth DEPTH_OBLIVIOUS, a usage reset before every fifth, and random values otherwise.
    DEPTH_OBLIVIOUS computes each row from its siblings' usage at their last computation. So two
    ticks must occur, and without a half-life both have the same usage.
    """
    oblivious = number % 4 == 3
    flags = ["MAX_TRES"] if rng.random() < 0.8 else []
    flags += sorted(rng.sample(_FLAGS, rng.randint(0, 2)))
    flags += ["DEPTH_OBLIVIOUS"] if oblivious else ["NO_FAIR_TREE"] if number % 2 else []
    by_tres = (
        f"CPU={rng.randint(0, 3000)},Mem={rng.random() * 100:.3f},GRES/gpu={rng.randint(1, 500)}.25"
    )
    names = ("Age", "Assoc", "JobSize", "Partition", "QOS")
    return {
        "PriorityFlags": ",".join(flags),
        "PriorityCalcPeriod": (
            "1" if oblivious else "600"
        ),  # one tick at slurmctld's start, and none during the comparison
        "PriorityDecayHalfLife": "0" if oblivious else rng.choice(["0", "7-0", "1-0", "0-02"]),
        "PriorityUsageResetPeriod": (
            "NOW" if number % 5 == 2 else rng.choice(["NONE", "MONTHLY", "YEARLY"])
        ),
        "FairShareDampeningFactor": str(rng.choice([1, 1, 2, 5])) if number % 2 else "1",
        "PriorityFavorSmall": rng.choice(["YES", "NO"]),
        "PriorityMaxAge": rng.choice(["0-00:03", "0-01", "7-0"]),
        "PriorityWeightFairshare": str(rng.choice([100_000, rng.randint(1, 10**6)])),
        "PriorityWeightTRES": by_tres if rng.random() < 0.7 else "",
        **{
            f"PriorityWeight{name}": str(rng.choice([0, *[rng.randint(1, 99_999)] * 3]))
            for name in names
        },
    }


def partitions(rng: Random) -> str:
    """Return the partitions' lines in slurm.conf, without the first `PartitionName=`. They are
    down, so that no pending job is tried.
    """
    lines = []
    for name, nodes in PARTITIONS.items():
        weights = f"CPU={rng.random() * 3:.2f},Mem={rng.random():.3f}G" + (
            f",GRES/gpu={rng.randint(1, 30)}" if name in _GPUS else ""
        )
        limits = "DefaultTime=30 MaxTime=7-0 DefMemPerCPU=1000 State=DOWN"
        qos = f" QOS={rng.choice(QOS_NAMES)}" if rng.random() < 0.4 else ""
        lines.append(
            f"{name} Nodes={nodes} {limits} PriorityJobFactor={rng.randint(0, 50)}"
            f' TRESBillingWeights="{weights}"{qos}'
        )
    lines.append(
        f"{ALWAYS_UP} Nodes=c[04-05] DefaultTime=30 MaxTime=7-0 DefMemPerCPU=1000 State=UP"
        " TRESBillingWeights=CPU=1.37"
    )
    return "\nPartitionName=".join(lines)


def to_run(owners: Sequence[JobOwner], rng: Random) -> Iterator[PlannedJob]:
    """Generate short jobs of about half of the owners."""
    for owner in rng.sample(list(owners), min(len(owners), rng.randint(6, 10))):
        partition = owner.partition or rng.choice(list(PARTITIONS))
        options = [
            f"--partition={partition}",
            f"--account={owner.account}",
            f"--qos={rng.choice(QOS_NAMES)}",
            "--time=5",
        ]
        tasks = rng.randint(1, 3)
        options += [f"--cpus-per-task={rng.randint(1, 6)}", f"--array=1-{tasks}"]
        options += [f"--gres=gpu:{rng.randint(1, 2)}"] if partition in _GPUS else []
        yield PlannedJob(
            owner, tuple(options), script=f"sleep {rng.choice(('0.5', '1', '2'))}", tasks=tasks
        )


def to_disturb(owners: Sequence[JobOwner], rng: Random) -> Iterator[PlannedJob]:
    """Generate two jobs that an operator suspends or requeues."""
    for owner in rng.choices([owner for owner in owners if not owner.partition], k=2):
        options = (
            f"--partition={ALWAYS_UP}",
            f"--account={owner.account}",
            f"--qos={rng.choice(QOS_NAMES)}",
        )
        yield PlannedJob(
            owner,
            (*options, f"--cpus-per-task={rng.randint(1, 6)}", "--time=5"),
            script=UNTIL_RELEASED,
        )


def to_stay(owners: Sequence[JobOwner], rng: Random) -> Iterator[PlannedJob]:
    """Generate a few jobs that run during the tick."""
    for owner in rng.sample([owner for owner in owners if not owner.partition], rng.randint(1, 3)):
        options = (
            f"--partition={ALWAYS_UP}",
            f"--account={owner.account}",
            f"--qos={rng.choice(QOS_NAMES)}",
        )
        size = f"--cpus-per-task={rng.randint(1, 6)}", f"--time={rng.randint(10, 60)}"
        yield PlannedJob(owner, (*options, *size), script="sleep 600")


def to_wait(owners: Sequence[JobOwner], rng: Random, count: int = 12) -> Iterator[PlannedJob]:
    """Generate pending jobs of all kinds, some of several partitions."""
    for _ in range(count):
        owner = rng.choice(owners)
        alone = owner.partition or any(
            other.partition and other[:2] == owner[:2] for other in owners
        )
        partitions = (
            [owner.partition]
            if owner.partition
            else rng.sample(list(PARTITIONS), 1 if alone else rng.choice((1, 1, 2, 3)))
        )
        if not owner.partition and partitions == ["pa"] and alone:
            partitions = ["pc"]  # in pa the association of that partition would be charged
        options = [
            f"--partition={','.join(partitions)}",
            f"--account={owner.account}",
            f"--qos={rng.choice(QOS_NAMES)}",
        ]
        options += [
            f"--nodes={rng.randint(1, 2)}",
            f"--ntasks={rng.randint(2, 45)}",
            f"--time={rng.randint(1, 600)}",
        ]
        options += [f"--mem={rng.randint(1, 9)}G"] if rng.random() < 0.5 else []
        options += [f"--nice={rng.randint(0, 300)}"] if rng.random() < 0.4 else []
        options += ["--array=1-5"] if rng.random() < 0.1 else []
        options += [f"--gres=gpu:{rng.randint(1, 4)}"] if partitions == list(_GPUS) else []
        site = rng.randint(-500, 5_000) if rng.random() < 0.3 else 0
        priority = rng.randint(1, 10**6) if rng.random() < 0.08 else None
        # If such a job has a given priority, sprio of 22.05 prints site and nice as -2147483648.
        several = len(partitions) > 1
        yield PlannedJob(owner, tuple(options), site=site, priority=None if several else priority)
