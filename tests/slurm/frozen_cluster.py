"""Real Slurm whose controller counts usage once and then not for a long time: the state it started
from, and its output.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import NamedTuple

import numpy as np

from fairbank.priority.fairshare.columns import Long, Longs
from fairbank.priority.fairshare.decay import last_reset, parse_reset
from fairbank.slurm.fairshare_view.priorities import PriorityInputs
from fairbank.slurm.parsers import sacctmgr
from fairbank.slurm.parsers.config import TRACKED, read_config, read_settings
from fairbank.slurm.parsers.job_lines import read_pending
from fairbank.slurm.parsers.machine import read_nodes, read_partitions
from tests.slurm.lab import output_parsers
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import SLURMCTLD
from tests.support.conditions import wait_until

ASSOCIATIONS = (
    "ID",
    "Account",
    "User",
    "Partition",
    "ParentName",
    "Share",
    "Priority",
    "GrpTRESMins",
)

OF_QOS = ("ID", "Name", "UsageFactor", "Flags")

Row = Mapping[str, str]
ByNumber = Mapping[int, np.longdouble]


class OwnUsage(NamedTuple):
    """Own usage of each association and each QOS, in the order of `SlurmState`."""

    associations: Longs
    qos_list: Longs


class StartState(NamedTuple):
    """State that slurmctld starts from: own usage of user associations and QOS by number, and the
    times of the last tick and of the last usage reset.
    """

    associations: ByNumber
    qos_list: ByNumber
    counted_at: int
    reset_at: int


class SlurmState(NamedTuple):
    """Output of Slurm without sshare and sprio, and the time of its tick."""

    counted_at: int
    config: str
    associations: list[dict[str, str]]
    partitions: list[dict[str, str]]
    jobs: list[dict[str, str]]
    """Pending jobs."""
    running: list[dict[str, str]]
    qos_list: list[dict[str, str]]
    priority_inputs: PriorityInputs
    """Inputs of priorities, as Fairbank reads them."""


def run_sacctmgr_commands(cluster: Cluster, commands: Sequence[str]) -> None:
    """Run several sacctmgr commands at once."""
    cluster.run(
        "root",
        "sacctmgr",
        "--immediate",
        "--quiet",
        stdin="\n".join([*commands, "quit\n"]),
        seconds=90,
    ).checked()


def restart_controller(
    cluster: Cluster, changes: Mapping[str, str], commands: Sequence[str] = ()
) -> StartState:
    """Restart slurmctld and return the state that it had saved. Settings and sacctmgr commands are
    applied while it is down, so that they do not affect earlier jobs. Wait for the first tick; for
    DEPTH_OBLIVIOUS also for the next tick after a command has read every row.
    """
    cluster.stop(SLURMCTLD)
    state = cluster.place.state
    associations, qos_list = (
        _usage((state / file).read_bytes()) for file in ("assoc_usage", "qos_usage")
    )
    start = StartState(associations, qos_list, *_ticks(cluster))
    run_sacctmgr_commands(cluster, commands)
    wait_until(
        lambda: time.time() >= start.counted_at + 1,
        "the second of the last tick to be over, so that the next one differs",
    )
    cluster.start_controller(changes)
    _wait_for_tick(cluster, start.counted_at)
    if "DEPTH_OBLIVIOUS" in changes["PriorityFlags"]:
        first = counted_at(cluster)
        cluster.root("sshare", "--all")
        _wait_for_tick(cluster, first)
    return start


def _wait_for_tick(cluster: Cluster, last: int) -> None:
    wait_until(lambda: counted_at(cluster) > last, "slurmctld to count usage", seconds=90)


def read_state(cluster: Cluster, flags: str) -> SlurmState:
    """Return the current output, with the PriorityFlags of slurm.conf: 22.05 shows NO_NORMAL_ALL
    for any one of the four.
    """
    config = re.sub(
        r"(?m)^(PriorityFlags *= ).*$", rf"\g<1>{flags}", cluster.root("scontrol", "show", "config")
    )
    jobs = [_one_tres(job) for job in _scontrol_rows(cluster, "job")]
    return SlurmState(
        counted_at=counted_at(cluster),
        config=config,
        associations=_associations(cluster),
        partitions=_scontrol_rows(cluster, "partition"),
        jobs=[job for job in jobs if job["JobState"] == "PENDING"],
        running=[job for job in jobs if job["JobState"] == "RUNNING"],
        qos_list=_listed(cluster, "qos", OF_QOS),
        priority_inputs=_priority_inputs(cluster, read_config(config)),
    )


def _one_tres(job: dict[str, str]) -> dict[str, str]:
    """Return the TRES allocated to a job, or requested while it is pending: newer releases show
    both.
    """
    return (
        {"TRES": job["ReqTRES" if job["JobState"] == "PENDING" else "AllocTRES"]} | job
        if "ReqTRES" in job
        else job
    )


def _associations(cluster: Cluster) -> list[dict[str, str]]:
    """Return associations in the order of Slurm's own list, which decides ties between levels: by
    left number, and since 23.11 by lineage, compared as bytes.
    """
    if cluster.release < (23, 11):
        return sorted(
            _listed(cluster, "associations", (*ASSOCIATIONS, "LFT")),
            key=lambda row: int(row["LFT"]),
        )
    return sorted(
        _listed(cluster, "associations", (*ASSOCIATIONS, "Lineage")),
        key=lambda row: row["Lineage"].encode(),
    )


def _priority_inputs(cluster: Cluster, config: Mapping[str, str]) -> PriorityInputs:
    shown = {
        kind: cluster.root("scontrol", "--oneliner", "show", kind)
        for kind in ("job", "partition", "node")
    }
    listed = [
        _sacctmgr_list(cluster, kind, columns)
        for kind, columns in (
            ("qos", sacctmgr.QOS.columns),
            ("associations", sacctmgr.PRIORITIES.columns),
        )
    ]
    jobs, partitions, nodes = (
        read_pending(shown["job"]),
        read_partitions(shown["partition"]),
        read_nodes(shown["node"]),
    )
    qos_list, priorities = sacctmgr.QOS.read(listed[0]), sacctmgr.PRIORITIES.read(listed[1])
    unreadable = (
        *jobs.unreadable,
        *partitions.unreadable,
        *nodes.unreadable,
        *qos_list.unreadable,
        *priorities.unreadable,
    )
    assert unreadable == ()
    return PriorityInputs(
        read_settings(config).factors,
        config[TRACKED],
        jobs.rows,
        partitions.rows,
        nodes.rows,
        qos_list.rows,
        priorities.rows,
    )


def _listed(cluster: Cluster, what: str, columns: Sequence[str]) -> list[dict[str, str]]:
    return [
        dict(zip(columns, line.split("|"), strict=True))
        for line in _sacctmgr_list(cluster, what, columns).splitlines()
    ]


def _sacctmgr_list(cluster: Cluster, what: str, columns: Sequence[str]) -> str:
    return cluster.root(
        "sacctmgr", "--noheader", "--parsable2", "list", what, f"format={','.join(columns).lower()}"
    )


def _scontrol_rows(cluster: Cluster, what: str) -> list[dict[str, str]]:
    return [
        output_parsers.fields(line)
        for line in cluster.root("scontrol", "--oneliner", "show", what).splitlines()
        if "=" in line
    ]


def counted_at(cluster: Cluster) -> int:
    """Return the last tick that slurmctld has saved."""
    return _ticks(cluster)[0]


def _ticks(cluster: Cluster) -> tuple[int, int]:
    """Return the last tick and the last reset that slurmctld has saved."""
    file = cluster.place.state / "priority_last_decay_ran"
    last, reset = struct.unpack(">QQ", file.read_bytes()[-16:]) if file.exists() else (0, 0)
    return int(last), int(reset)


def _usage(state: bytes) -> ByNumber:
    """Parse slurmctld's file of usage: long doubles as text with six decimals."""
    usage: dict[int, np.longdouble] = {}
    position = 10  # after the version and the time
    while position < len(state):
        number, length = struct.unpack_from(">II", state, position)
        usage[number] = Long(state[position + 8 : position + 8 + length - 1].decode())
        position += 8 + length
        (length,) = struct.unpack_from(">I", state, position)
        position += 4 + length + 4  # usage of each TRES, and the wall time
    return usage


def own_usage(state: SlurmState, start: StartState) -> OwnUsage:
    """Return the usage before the tick."""
    return OwnUsage(
        in_order(state.associations, start.associations), in_order(state.qos_list, start.qos_list)
    )


def in_order(rows: Sequence[Row], by_number: ByNumber) -> Longs:
    """Return a figure for each row; 0 if there is none."""
    return np.array([by_number.get(int(row["ID"]), Long(0)) for row in rows], Long)


def left_usage(state: SlurmState, start: StartState) -> OwnUsage:
    """Return the usage that remains at the tick: none if usage was reset before it."""
    own, period = (
        own_usage(state, start),
        parse_reset(read_config(state.config)["PriorityUsageResetPeriod"]),
    )
    since = start.reset_at or state.counted_at
    return (
        OwnUsage(*map(np.zeros_like, own))
        if last_reset(period, since, state.counted_at, UTC) > since
        else own
    )


def instant(text: str) -> int:
    """Parse Slurm's time in the lab's time zone; 0 if there is none."""
    return 0 if text in ("Unknown", "N/A") else int(np.datetime64(text, "s").astype(np.int64))


def minutes(text: str) -> int:
    """Parse Slurm's time limit."""
    days, _, clock = text.rpartition("-")
    hours, rest, _ = clock.split(":")
    return int(days or 0) * 1_440 + int(hours) * 60 + int(rest)
