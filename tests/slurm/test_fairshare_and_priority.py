"""Fair share and priorities on a real Slurm: every row and column of `sshare -l -a`, `sprio -l` and
`sprio -n`, for random trees. Jobs of several users really run. Their usage is read from the state
that slurmctld saved when it stopped; all output after its first tick is computed from that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import numpy as np
import pytest

from fairbank.priority.fairshare.columns import Longs
from fairbank.priority.settings import Algorithm
from fairbank.report.slurm import sprio, sshare
from fairbank.report.slurm.sprio import PriorityRow, WeightRow, default_format, parse_format
from fairbank.report.slurm.sshare import ShareRow, default_fields
from fairbank.slurm.parsers.config import read_algorithm
from tests.slurm import random_associations
from tests.slurm.conftest import RecordFigure, own_cluster
from tests.slurm.expected_output import (
    compute_shares,
    expected_priorities,
    expected_shares,
    weights,
)
from tests.slurm.frozen_cluster import (
    SlurmState,
    own_usage,
    read_state,
    restart_controller,
    run_sacctmgr_commands,
)
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.fairshare_recorder import ALL_OF_PRIORITIES
from tests.slurm.line_differences import compare_lines
from tests.slurm.random_associations import AssociationTree, PlannedJob
from tests.slurm.recounted_usage import (
    AS_WRITTEN,
    COLUMNS,
    EarlierUsage,
    earlier_usage,
    recount_usage,
)
from tests.support import share_order
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1_800)]

SETUPS = 20, 4
"""Number of set-ups in a long and in a short run."""
PAUSE_SECONDS = 3


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    """Start a separate cluster: it gets hundreds of associations, which no other test expects."""
    with own_cluster("standings") as cluster:
        run_sacctmgr_commands(cluster, list(random_associations.initial_commands()))
        yield cluster


def test_every_row_and_column_equals_slurms(
    slurm: Cluster, record_figure: RecordFigure, rounds: Callable[[int, int], int]
) -> None:
    setups, counted, differences = rounds(*SETUPS), Counter[str](), list[str]()
    tree, earlier, stayed = (
        AssociationTree(),
        EarlierUsage(_initial_state(slurm), {}, {}),
        dict[int, int](),
    )
    for number in range(setups):
        rng = Random(number)
        tree, commands = random_associations.grow(tree, number, rng)
        run_sacctmgr_commands(slurm, commands)
        earlier, new_differences = _compare_set_up(
            slurm, tree, earlier, stayed, _settings(number, rng), rng, counted
        )
        differences += [f"set-up {number}, {difference}" for difference in new_differences]
    summary = ", ".join(f"{count} {what}" for what, count in counted.items())
    record_figure(
        f"fair share and priorities in {setups} set-ups: {summary}; {len(differences)} differences"
    )
    assert differences == [], "\n".join(differences[:6])


def _settings(number: int, rng: Random) -> dict[str, str]:
    return random_associations.settings(number, rng) | {
        "PartitionName": random_associations.partitions(rng)
    }


def _initial_state(slurm: Cluster) -> SlurmState:
    """Return the state with the partitions of the comparison, before any usage."""
    settings = _settings(0, Random("begin"))
    restart_controller(slurm, settings)
    return read_state(slurm, settings["PriorityFlags"])


def _compare_set_up(
    slurm: Cluster,
    associations: AssociationTree,
    earlier: EarlierUsage,
    stayed: dict[int, int],
    settings: dict[str, str],
    rng: Random,
    counted: Counter[str],
) -> tuple[EarlierUsage, list[str]]:
    """Run jobs and submit pending ones, start slurmctld with these settings, and compare its
    output.
    """
    _partitions(slurm, "up")
    ran = stayed | {
        _submit(slurm, planned): planned.tasks
        for planned in random_associations.to_run(associations.owners, rng)
    }
    ran |= _disturb_jobs(slurm, list(random_associations.to_disturb(associations.owners, rng)))
    wait_until(lambda: not slurm.queued(), "jobs to be over", seconds=120)
    _partitions(slurm, "down")
    pending = {
        _submit(slurm, planned): planned
        for planned in random_associations.to_wait(associations.owners, rng)
    }
    wait_until(lambda: _all_age(slurm), "jobs to age")
    stayed.clear()
    # The classic rule's tick sets accounts' figures before it adds the usage of running jobs.
    if read_algorithm(settings["PriorityFlags"]) is Algorithm.FAIR_TREE:
        stayed.update(
            {
                _submit(slurm, planned): planned.tasks
                for planned in random_associations.to_stay(associations.owners, rng)
            }
        )
        slurm.wait_for(",".join(map(str, stayed)), "RUNNING")
    start = restart_controller(slurm, settings, random_associations.qos_commands(rng))
    try:
        answers, state = _slurm_output(slurm), read_state(slurm, settings["PriorityFlags"])
        assert _slurm_output(slurm) == answers, (
            f"slurmctld has counted while we looked, with {settings['PriorityFlags']}"
        )
    finally:
        slurm.root("scancel", *map(str, (*pending, *stayed)))
    tree, figures, reserved = compute_shares(state, start)
    counted[f"by {_rule(settings)}"] += 1
    counted["associations"] += len(state.associations)
    counted["jobs that wait"] += len(pending)
    ours = _expected_output(
        _in_order(slurm, expected_shares(state, tree, figures, reserved)),
        expected_priorities(state, tree, figures, pending),
        weights(state),
        fair_tree=_has_levels(answers),
        named="QOSNAME" in answers["sprio -l"][0],
    )
    records = _records(slurm, ran)
    counted["jobs that ran"] += len(records)
    used, written = recount_usage(earlier, records, state, tree), own_usage(state, start)
    differences = [
        difference
        for command in COMMANDS
        for difference in compare_lines(command, answers[command], ours[command], counted)
    ]
    differences += _usage_differences(
        [str(row) for row in tree.rows], used.associations, written.associations, counted
    )
    differences += _usage_differences(
        [f"QOS {row['Name']}" for row in state.qos_list], used.qos_list, written.qos_list, counted
    )
    return earlier_usage(state, start, tree), [
        f"{settings['PriorityFlags']}: {difference}" for difference in differences
    ]


def _disturb_jobs(slurm: Cluster, jobs: Sequence[PlannedJob]) -> dict[int, int]:
    """Suspend one of two jobs for a while; requeue the other and cancel it while pending, so that
    it has two rows in accounting.
    """
    paused, requeued = (_submit(slurm, planned) for planned in jobs)
    slurm.wait_for(f"{paused},{requeued}", "RUNNING")
    slurm.root("scontrol", "suspend", str(paused))
    slurm.root("scontrol", "requeue", str(requeued))
    begun = time.monotonic()
    slurm.wait_for(requeued, "PENDING")
    slurm.root("scancel", str(requeued))
    wait_until(lambda: time.monotonic() > begun + PAUSE_SECONDS, "the pause to count")
    slurm.root("scontrol", "resume", str(paused))
    slurm.let_end(jobs[0].owner.user, paused)
    return {paused: 1, requeued: 2}


def _rule(settings: Mapping[str, str]) -> str:
    return read_algorithm(settings["PriorityFlags"]).value + (
        " after a reset" if settings["PriorityUsageResetPeriod"] == "NOW" else ""
    )


def _records(slurm: Cluster, jobs: Mapping[int, int]) -> list[dict[str, str]]:
    """Return the accounting records of the jobs that ran, as soon as each job has its number of
    complete rows.
    """
    records: list[dict[str, str]] = []

    def are_complete() -> bool:
        records[:] = slurm.sacct(
            "--duplicates", f"--jobs={','.join(map(str, jobs))}", columns=COLUMNS
        )
        return len(records) == sum(jobs.values()) and all(_is_over(record) for record in records)

    wait_until(are_complete, "accounting to have the jobs that ran", seconds=90)
    return [record for record in records if record["AllocTRES"]]


def _is_over(record: Mapping[str, str]) -> bool:
    return (
        bool(record["Partition"])
        and record["State"].split()[0] in ("COMPLETED", "CANCELLED", "REQUEUED")
        and record["End"] != "Unknown"
    )


def _usage_differences(
    names: Sequence[str], ours: Longs, theirs: Longs, counted: Counter[str]
) -> Iterator[str]:
    counted["usages recounted from job records"] += int(np.count_nonzero(theirs))
    for name, computed, saved in zip(names, ours, theirs, strict=True):
        if abs(computed - saved) > AS_WRITTEN:
            yield (
                f"usage of {name}: slurmctld wrote down {saved:.6f}, and the job records make"
                f" {computed:.6f}"
            )


def _submit(slurm: Cluster, planned: PlannedJob) -> int:
    job = slurm.submit(planned.owner.user, *planned.options, script=planned.script)
    if planned.site:
        slurm.root("scontrol", "update", f"jobid={job}", f"sitefactor={planned.site}")
    if planned.priority is not None:
        slurm.root("scontrol", "update", f"jobid={job}", f"priority={planned.priority}")
    return job


def _all_age(slurm: Cluster) -> bool:
    jobs = slurm.root("scontrol", "--oneliner", "show", "job").splitlines()
    return not any("AccrueTime=Unknown" in job for job in jobs if "JobState=PENDING" in job)


def _partitions(slurm: Cluster, state: str) -> None:
    for name in random_associations.PARTITIONS:
        slurm.root("scontrol", "update", f"partitionname={name}", f"state={state}")


# ---------------------------------------------------------------- compared output


COMMANDS = {
    "sshare -l -a": ("sshare", "-l", "-a"),
    "sshare -l -a -m -P": ("sshare", "-l", "-a", "-m", "-P"),
    "sprio -l": ("sprio", "-l"),
    "sprio -n": ("sprio", "-n"),
    "sprio with all": ("sprio", "-o", ALL_OF_PRIORITIES),
}


def _slurm_output(slurm: Cluster) -> dict[str, list[str]]:
    return {name: slurm.root(*words).splitlines() for name, words in COMMANDS.items()}


def _expected_output(
    rows: list[ShareRow], jobs: list[PriorityRow], by: WeightRow, *, fair_tree: bool, named: bool
) -> dict[str, list[str]]:
    waiting = sprio.sort_rows(jobs, by)
    every = default_fields(long=True, partitions=True, fair_tree=fair_tree)
    return {
        "sshare -l -a": list(sshare.lines(rows, default_fields(long=True, fair_tree=fair_tree))),
        "sshare -l -a -m -P": list(sshare.lines(rows, every, delimiter="|")),
        "sprio -l": sprio.lines(waiting, by, default_format(by, long=True, named=named)),
        "sprio -n": sprio.lines(waiting, by, default_format(by, norm=True, named=named)),
        "sprio with all": sprio.lines(waiting, by, parse_format(ALL_OF_PRIORITIES)),
    }


def _in_order(slurm: Cluster, rows: list[ShareRow]) -> list[ShareRow]:
    """Sort the rows: 22.05 prints the rows of a user in an account in the order of its list, and
    newer releases sort them by partition.
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
