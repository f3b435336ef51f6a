"""Fair share and priorities beside a real Slurm: every row and column of `sshare -l -a`, `sprio -l`
and `sprio -n`, of trees drawn by lot.

Jobs of several users really run. What each used is read from what slurmctld wrote down when it
stopped; all that it says after its first tick is reckoned from that.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from fairbank.priority.fairshare.columns import Longs
from fairbank.priority.settings import Algorithm
from fairbank.report import sprio, sshare
from fairbank.report.sprio import PriorityRow, WeightRow, default_format, parse_format
from fairbank.report.sshare import LineFormat, ShareRow, default_fields
from fairbank.slurm.parsers.config import read_algorithm
from tests.slurm import random_associations
from tests.slurm.conftest import Tell, guarded
from tests.slurm.expected_output import queue, reckoned, standings, weights
from tests.slurm.frozen_cluster import Said, own_usage, said, started, tell_accounting
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.fairshare_recorder import ALL_OF_PRIORITIES
from tests.slurm.lab.packages import Unobtainable, check
from tests.slurm.line_differences import compared
from tests.slurm.random_associations import Planted, Wish
from tests.slurm.recounted_usage import AS_WRITTEN, COLUMNS, Before, before, recounted
from tests.support import share_order
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1_800)]

SETUPS = 20, 4
"""At length and in short."""
PAUSE_SECONDS = 3


@pytest.fixture(scope="module")
def slurm(checkout: Path) -> Iterator[Cluster]:
    """A cluster of its own: it is given hundreds of associations, which no other test expects."""
    try:
        check()
    except Unobtainable as why:
        pytest.skip(f"Slurm: {why}")
    name = f"standings-{os.getpid()}"
    with guarded(name, checkout):
        cluster = Cluster.up(name)
        try:
            tell_accounting(cluster, list(random_associations.first_words()))
            yield cluster
        finally:
            cluster.down()


def test_every_row_and_column_is_what_slurm_prints(
    slurm: Cluster, tell: Tell, rounds: Callable[[int, int], int]
) -> None:
    setups, counted, wrong = rounds(*SETUPS), Counter[str](), list[str]()
    there, then, stayed = Planted(), Before(_begun(slurm), {}, {}), dict[int, int]()
    for number in range(setups):
        chance = Random(number)
        there, words = random_associations.grown(there, number, chance)
        tell_accounting(slurm, words)
        then, differences = _set_up(
            slurm, there, then, stayed, _settings(number, chance), chance, counted
        )
        wrong += [f"set-up {number}, {each}" for each in differences]
    told = ", ".join(f"{count} {what}" for what, count in counted.items())
    tell(f"fair share and priorities in {setups} set-ups: {told}; {len(wrong)} differences")
    assert wrong == []


def _settings(number: int, chance: Random) -> dict[str, str]:
    return random_associations.settings(number, chance) | {
        "PartitionName": random_associations.partitions(chance)
    }


def _begun(slurm: Cluster) -> Said:
    """With the partitions of the proof, and before any usage."""
    settings = _settings(0, Random("begin"))
    started(slurm, settings)
    return said(slurm, settings["PriorityFlags"])


def _set_up(
    slurm: Cluster,
    there: Planted,
    then: Before,
    stayed: dict[int, int],
    settings: dict[str, str],
    chance: Random,
    counted: Counter[str],
) -> tuple[Before, list[str]]:
    """Jobs run and others wait, slurmctld starts with these settings, and all that it then says is
    compared.
    """
    _partitions(slurm, "up")
    ran = stayed | {
        _submit(slurm, wish): wish.tasks for wish in random_associations.to_run(there.seats, chance)
    }
    ran |= _disturbed(slurm, list(random_associations.to_disturb(there.seats, chance)))
    wait_until(lambda: not slurm.queued(), "jobs to be over", seconds=120)
    _partitions(slurm, "down")
    wishes = {
        _submit(slurm, wish): wish for wish in random_associations.to_wait(there.seats, chance)
    }
    wait_until(lambda: _all_age(slurm), "jobs to age")
    stayed.clear()
    # The classic rule's tick sets accounts' figures before it adds what running jobs used.
    if read_algorithm(settings["PriorityFlags"]) is Algorithm.FAIR_TREE:
        stayed.update(
            {
                _submit(slurm, wish): wish.tasks
                for wish in random_associations.to_stay(there.seats, chance)
            }
        )
        slurm.wait_for(",".join(map(str, stayed)), "RUNNING")
    start = started(slurm, settings, random_associations.repriced(chance))
    try:
        answers, state = _answers(slurm), said(slurm, settings["PriorityFlags"])
        assert _answers(slurm) == answers, (
            f"slurmctld has counted while we looked, with {settings['PriorityFlags']}"
        )
    finally:
        slurm.root("scancel", *map(str, (*wishes, *stayed)))
    tree, figures, usage = reckoned(state, start)
    counted[f"by {_rule(settings)}"] += 1
    counted["associations"] += len(state.associations)
    counted["jobs that wait"] += len(wishes)
    ours = _ours(
        _in_order(slurm, standings(state, tree, figures, usage)),
        queue(state, tree, figures, wishes),
        weights(state),
        fair_tree=_has_levels(answers),
        named="QOSNAME" in answers["sprio -l"][0],
    )
    records = _records(slurm, ran)
    counted["jobs that ran"] += len(records)
    used, written = recounted(then, records, state, tree), own_usage(state, start)
    wrong = [
        each
        for question in QUESTIONS
        for each in compared(question, answers[question], ours[question], counted)
    ]
    wrong += _unlike(
        [str(row) for row in tree.rows], used.associations, written.associations, counted
    )
    wrong += _unlike(
        [f"QOS {row['Name']}" for row in state.qualities],
        used.qualities,
        written.qualities,
        counted,
    )
    return before(state, start, tree), [f"{settings['PriorityFlags']}: {each}" for each in wrong]


def _disturbed(slurm: Cluster, wishes: Sequence[Wish]) -> dict[int, int]:
    """Of two jobs one stands still for a while, and one is put back into the queue, and cancelled
    there: it has two rows in accounting.
    """
    paused, put_back = (_submit(slurm, wish) for wish in wishes)
    slurm.wait_for(f"{paused},{put_back}", "RUNNING")
    slurm.root("scontrol", "suspend", str(paused))
    slurm.root("scontrol", "requeue", str(put_back))
    begun = time.monotonic()
    slurm.wait_for(put_back, "PENDING")
    slurm.root("scancel", str(put_back))
    wait_until(lambda: time.monotonic() > begun + PAUSE_SECONDS, "the pause to count")
    slurm.root("scontrol", "resume", str(paused))
    return {paused: 1, put_back: 2}


def _rule(settings: Mapping[str, str]) -> str:
    return read_algorithm(settings["PriorityFlags"]).value + (
        " after a reset" if settings["PriorityUsageResetPeriod"] == "NOW" else ""
    )


def _records(slurm: Cluster, jobs: Mapping[int, int]) -> list[dict[str, str]]:
    """Return the accounting records of jobs with so many rows, as soon as all are complete: those
    that ran.
    """
    found: list[dict[str, str]] = []

    def there() -> bool:
        found[:] = slurm.sacct(
            "--duplicates", f"--jobs={','.join(map(str, jobs))}", columns=COLUMNS
        )
        return len(found) == sum(jobs.values()) and all(_is_over(each) for each in found)

    wait_until(there, "accounting to have the jobs that ran", seconds=90)
    return [each for each in found if each["AllocTRES"]]


def _is_over(record: Mapping[str, str]) -> bool:
    return (
        bool(record["Partition"])
        and record["State"].split()[0] in ("COMPLETED", "CANCELLED", "REQUEUED")
        and record["End"] != "Unknown"
    )


def _unlike(
    whose: Sequence[str], ours: Longs, theirs: Longs, counted: Counter[str]
) -> Iterator[str]:
    counted["usages recounted from job records"] += int(np.count_nonzero(theirs))
    for name, found, wrote in zip(whose, ours, theirs, strict=True):
        if abs(found - wrote) > AS_WRITTEN:
            yield (
                f"usage of {name}: slurmctld wrote down {wrote:.6f}, and the job records make"
                f" {found:.6f}"
            )


def _submit(slurm: Cluster, wish: Wish) -> int:
    job = slurm.submit(wish.seat.user, *wish.options, script=wish.script)
    if wish.site:
        slurm.root("scontrol", "update", f"jobid={job}", f"sitefactor={wish.site}")
    if wish.given is not None:
        slurm.root("scontrol", "update", f"jobid={job}", f"priority={wish.given}")
    return job


def _all_age(slurm: Cluster) -> bool:
    jobs = slurm.root("scontrol", "--oneliner", "show", "job").splitlines()
    return not any("AccrueTime=Unknown" in job for job in jobs if "JobState=PENDING" in job)


def _partitions(slurm: Cluster, state: str) -> None:
    for name in random_associations.PLACES:
        slurm.root("scontrol", "update", f"partitionname={name}", f"state={state}")


# ---------------------------------------------------------------- what is compared


QUESTIONS = {
    "sshare -l -a": ("sshare", "-l", "-a"),
    "sshare -l -a -m -P": ("sshare", "-l", "-a", "-m", "-P"),
    "sprio -l": ("sprio", "-l"),
    "sprio -n": ("sprio", "-n"),
    "sprio with all": ("sprio", "-o", ALL_OF_PRIORITIES),
}


def _answers(slurm: Cluster) -> dict[str, list[str]]:
    return {name: slurm.root(*words).splitlines() for name, words in QUESTIONS.items()}


def _ours(
    rows: list[ShareRow], jobs: list[PriorityRow], by: WeightRow, *, fair_tree: bool, named: bool
) -> dict[str, list[str]]:
    waiting = sprio.sort_rows(jobs, by)
    every = default_fields(long=True, partitions=True, fair_tree=fair_tree)
    return {
        "sshare -l -a": list(sshare.lines(rows, default_fields(long=True, fair_tree=fair_tree))),
        "sshare -l -a -m -P": list(sshare.lines(rows, every, LineFormat.BETWEEN)),
        "sprio -l": sprio.lines(waiting, by, default_format(by, long=True, named=named)),
        "sprio -n": sprio.lines(waiting, by, default_format(by, norm=True, named=named)),
        "sprio with all": sprio.lines(waiting, by, parse_format(ALL_OF_PRIORITIES)),
    }


def _in_order(slurm: Cluster, rows: list[ShareRow]) -> list[ShareRow]:
    """22.05 lists the rows of a user in an account as they stand in its list, and newer ones sort
    them by partition.
    """
    if slurm.release > (22, 5):
        return share_order.in_order(rows)
    by_number = {row.number: row for row in rows}
    return [
        by_number[row.number]
        for row in share_order.in_order([row._replace(partition="") for row in rows])
    ]


def _has_levels(answers: dict[str, list[str]]) -> bool:
    return "LevelFS" in answers["sshare -l -a"][0]
