"""Associations, settings, jobs that run and jobs that wait, drawn by lot for a proof beside a real
Slurm. Nothing here speaks to one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from fairbank.priority.settings import RAW, Flag
from tests.slurm.lab import people
from tests.slurm.lab.configuration import CLUSTER

PLACES = {"pa": "c[01-06]", "pb": "g[01-02]", "pc": "c01,g[03-04]"}
"""The partitions of the proof, which is alone on them, and their nodes."""
ALWAYS_UP = "pr"
"""A further one, where jobs go on while slurmctld starts again. Its weight never changes: slurmctld
would price them again.
"""
QUALITIES = ("normal", "high", "low", "costly", "endless")
ENDLESS = "endless"
"""Its usage never fades (NoDecay)."""
DEEPEST = 4
_FEW = (0, 1, 1, 2, 3, 5, 10, 40)  # so that many tie
_FACTORS = (
    "1",
    "1",
    "0",
    "0.5",
    "2",
    "1234.56789",
)  # the last one so that a second of usage has many digits
_FLAGS = sorted(flag.value for flag in (*RAW, Flag.SMALL_RELATIVE_TO_TIME, Flag.ACCRUE_ALWAYS))
_GPUS = ("pb",)


class Account(NamedTuple):
    name: str
    depth: int


class Seat(NamedTuple):
    """Owner of jobs that are charged to an association: of one partition, or (empty) of any."""

    user: str
    account: str
    partition: str = ""


class Wish(NamedTuple):
    """A job: who submits it with which options, and what an operator then says of it."""

    seat: Seat
    options: tuple[str, ...]
    script: str = "true"
    tasks: int = 1
    site: int = 0
    given: int | None = None


class Planted(NamedTuple):
    accounts: tuple[Account, ...] = (Account("root", 0),)
    seats: tuple[Seat, ...] = ()


def first_words() -> Iterator[str]:
    """Generate the calls of sacctmgr that are made once."""
    yield from (f"add qos {name}" for name in QUALITIES if name not in people.QUALITIES)
    yield f"modify qos {ENDLESS} set flags=NoDecay"
    yield f"modify account root set qos={','.join(QUALITIES)} defaultqos=normal"


def repriced(chance: Random) -> list[str]:
    """Return the calls of sacctmgr that give each QOS another priority and another usage factor."""
    return [
        f"modify qos {name} set priority={_priority(chance)} usagefactor={chance.choice(_FACTORS)}"
        for name in QUALITIES
    ]


def _priority(chance: Random) -> int:
    return chance.choice((0, 1, 40, 100, 100, chance.randint(0, 10**6)))


def grown(there: Planted, number: int, chance: Random) -> tuple[Planted, list[str]]:
    """A few more accounts and users, some shares changed, and what sacctmgr is told of them."""
    accounts, seats, words = list(there.accounts), list(there.seats), []
    for each in range(chance.randint(2, 5)):
        above = chance.choice([account for account in accounts if account.depth < DEEPEST])
        account = Account(f"s{number}_{each}", above.depth + 1)
        accounts.append(account)
        limits = (
            f" grptresmins=cpu={chance.randint(10**6, 10**8)},billing={10**9}"
            if chance.random() < 0.2
            else ""
        )
        words.append(
            f"add account {account.name} parent={above.name} cluster={CLUSTER}"
            f" fairshare={_shares(chance)}{limits}"
        )
    for account in chance.sample(accounts[1:], min(4, len(accounts) - 1)):
        for person in chance.sample(people.PEOPLE, chance.randint(1, 3)):
            if (seat := Seat(person.name, account.name)) not in seats:
                seats.append(seat)
                words.append(
                    f"add user {person.name} account={account.name} fairshare={_shares(chance)}"
                    f" priority={chance.randint(0, 90)}"
                )
            if chance.random() < 0.15 and (only := seat._replace(partition="pa")) not in seats:
                seats.append(only)
                words.append(
                    f"add user {person.name} account={account.name} partition=pa"
                    f" fairshare={_shares(chance)}"
                )
    changed = chance.sample(accounts[1:], min(2, len(accounts) - 1))
    words += [
        f"modify account {account.name} set fairshare={_shares(chance)}" for account in changed
    ]
    return Planted(tuple(accounts), tuple(seats)), words


def _shares(chance: Random) -> str:
    return (
        "parent" if chance.random() < 0.12 else str(chance.choice((*_FEW, chance.randint(0, 300))))
    )


def settings(number: int, chance: Random) -> dict[str, str]:
    """slurm.conf for one set-up: Fair Tree and a classic rule in turn, every fourth
    DEPTH_OBLIVIOUS, usage reset before every fifth, and everything else by lot.

    There one row is worked out after the other with what later siblings used when they were last
    looked at. So two ticks must come, and without a half-life both see the same usage.
    """
    oblivious = number % 4 == 3
    flags = ["MAX_TRES"] if chance.random() < 0.8 else []
    flags += sorted(chance.sample(_FLAGS, chance.randint(0, 2)))
    flags += ["DEPTH_OBLIVIOUS"] if oblivious else ["NO_FAIR_TREE"] if number % 2 else []
    by_tres = (
        f"CPU={chance.randint(0, 3000)},Mem={chance.random() * 100:.3f},"
        f"GRES/gpu={chance.randint(1, 500)}.25"
    )
    names = ("Age", "Assoc", "JobSize", "Partition", "QOS")
    return {
        "PriorityFlags": ",".join(flags),
        "PriorityCalcPeriod": (
            "1" if oblivious else "600"
        ),  # so that one tick comes, when slurmctld starts, and no other while we look
        "PriorityDecayHalfLife": "0" if oblivious else chance.choice(["0", "7-0", "1-0", "0-02"]),
        "PriorityUsageResetPeriod": (
            "NOW" if number % 5 == 2 else chance.choice(["NONE", "MONTHLY", "YEARLY"])
        ),
        "FairShareDampeningFactor": str(chance.choice([1, 1, 2, 5])) if number % 2 else "1",
        "PriorityFavorSmall": chance.choice(["YES", "NO"]),
        "PriorityMaxAge": chance.choice(["0-00:03", "0-01", "7-0"]),
        "PriorityWeightFairshare": str(chance.choice([100_000, chance.randint(1, 10**6)])),
        "PriorityWeightTRES": by_tres if chance.random() < 0.7 else "",
        **{
            f"PriorityWeight{name}": str(chance.choice([0, *[chance.randint(1, 99_999)] * 3]))
            for name in names
        },
    }


def partitions(chance: Random) -> str:
    """Their lines in slurm.conf, from behind the first `PartitionName=`. They are down, so that
    what waits there is never tried.
    """
    lines = []
    for name, nodes in PLACES.items():
        weights = f"CPU={chance.random() * 3:.2f},Mem={chance.random():.3f}G" + (
            f",GRES/gpu={chance.randint(1, 30)}" if name in _GPUS else ""
        )
        limits = "DefaultTime=30 MaxTime=7-0 DefMemPerCPU=1000 State=DOWN"
        quality = f" QOS={chance.choice(QUALITIES)}" if chance.random() < 0.4 else ""
        lines.append(
            f"{name} Nodes={nodes} {limits} PriorityJobFactor={chance.randint(0, 50)}"
            f' TRESBillingWeights="{weights}"{quality}'
        )
    lines.append(
        f"{ALWAYS_UP} Nodes=c[04-05] DefaultTime=30 MaxTime=7-0 DefMemPerCPU=1000 State=UP"
        " TRESBillingWeights=CPU=1.37"
    )
    return "\nPartitionName=".join(lines)


def to_run(seats: Sequence[Seat], chance: Random) -> Iterator[Wish]:
    """Short jobs of about half of the seats."""
    for seat in chance.sample(list(seats), min(len(seats), chance.randint(6, 10))):
        place = seat.partition or chance.choice(list(PLACES))
        options = [
            f"--partition={place}",
            f"--account={seat.account}",
            f"--qos={chance.choice(QUALITIES)}",
            "--time=5",
        ]
        tasks = chance.randint(1, 3)
        options += [f"--cpus-per-task={chance.randint(1, 6)}", f"--array=1-{tasks}"]
        options += [f"--gres=gpu:{chance.randint(1, 2)}"] if place in _GPUS else []
        yield Wish(
            seat, tuple(options), script=f"sleep {chance.choice(('0.5', '1', '2'))}", tasks=tasks
        )


def to_disturb(seats: Sequence[Seat], chance: Random) -> Iterator[Wish]:
    """Two jobs that an operator will not leave alone."""
    for seat in chance.choices([each for each in seats if not each.partition], k=2):
        options = (
            f"--partition={ALWAYS_UP}",
            f"--account={seat.account}",
            f"--qos={chance.choice(QUALITIES)}",
        )
        yield Wish(
            seat,
            (*options, f"--cpus-per-task={chance.randint(1, 6)}", "--time=5"),
            script="sleep 3",
        )


def to_stay(seats: Sequence[Seat], chance: Random) -> Iterator[Wish]:
    """A few jobs that run when the tick comes."""
    for seat in chance.sample([each for each in seats if not each.partition], chance.randint(1, 3)):
        options = (
            f"--partition={ALWAYS_UP}",
            f"--account={seat.account}",
            f"--qos={chance.choice(QUALITIES)}",
        )
        size = f"--cpus-per-task={chance.randint(1, 6)}", f"--time={chance.randint(10, 60)}"
        yield Wish(seat, (*options, *size), script="sleep 600")


def to_wait(seats: Sequence[Seat], chance: Random, count: int = 12) -> Iterator[Wish]:
    """Jobs of all kinds; some to several partitions."""
    for _ in range(count):
        seat = chance.choice(seats)
        alone = seat.partition or any(other.partition and other[:2] == seat[:2] for other in seats)
        places = (
            [seat.partition]
            if seat.partition
            else chance.sample(list(PLACES), 1 if alone else chance.choice((1, 1, 2, 3)))
        )
        if not seat.partition and places == ["pa"] and alone:
            places = ["pc"]  # in pa the association of that partition would be charged
        options = [
            f"--partition={','.join(places)}",
            f"--account={seat.account}",
            f"--qos={chance.choice(QUALITIES)}",
        ]
        options += [
            f"--nodes={chance.randint(1, 2)}",
            f"--ntasks={chance.randint(2, 45)}",
            f"--time={chance.randint(1, 600)}",
        ]
        options += [f"--mem={chance.randint(1, 9)}G"] if chance.random() < 0.5 else []
        options += [f"--nice={chance.randint(0, 300)}"] if chance.random() < 0.4 else []
        options += ["--array=1-5"] if chance.random() < 0.1 else []
        options += [f"--gres=gpu:{chance.randint(1, 4)}"] if places == list(_GPUS) else []
        site = chance.randint(-500, 5_000) if chance.random() < 0.3 else 0
        given = chance.randint(1, 10**6) if chance.random() < 0.08 else None
        several = (
            len(places) > 1
        )  # of such a job whose priority is given, sprio of 22.05 tells site and nice as -2147483648
        yield Wish(seat, tuple(options), site=site, given=None if several else given)
