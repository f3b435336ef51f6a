"""Usage of associations and QOS, computed from job records alone: slurmctld must save the same
figures when it stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairbank.core.slurm_numbers import STATIC_TRES
from fairbank.core.tres import parse_counts, parse_weights
from fairbank.priority.fairshare.charges import ChargedJobs, seconds_run
from fairbank.priority.fairshare.columns import Ints, Longs, Wholes
from fairbank.priority.fairshare.decay import Reset, fading, parse_half_life
from fairbank.priority.fairshare.tree import Tree, sum_usage
from fairbank.priority.fairshare.usage import lines
from fairbank.priority.fairshare.usage_ticks import (
    ChargedRows,
    Rules,
    UsageLedger,
    apply_tick,
    end_jobs,
)
from fairbank.slurm.parsers.config import read_billing_rule, read_config
from tests.priority.double_billing import billable, limit_counts, prices, usage_factors
from tests.priority.recomputed_usage import zero_usage
from tests.slurm.frozen_cluster import (
    ByNumber,
    OwnUsage,
    Row,
    SlurmState,
    StartState,
    in_order,
    instant,
    left_usage,
    minutes,
)

COLUMNS = ("JobIDRaw", "User", "Account", "Partition", "QOS", "State", "Start", "End", "AllocTRES")
NAMES = (*STATIC_TRES, "gres/gpu")
AS_WRITTEN = 2e-6
"""Allowed difference: slurmctld writes six decimals."""


class EarlierUsage(NamedTuple):
    """Output of Slurm after a tick, and the own usage of each association and each QOS at that
    time, by number.
    """

    state: SlurmState
    associations: ByNumber
    qos_list: ByNumber


def earlier_usage(state: SlurmState, start: StartState, tree: Tree) -> EarlierUsage:
    """Return the usage that remains at the tick of `state`, for the next comparison."""
    own = at_tick(left_usage(state, start), start.counted_at, state, tree, alone=True)
    return EarlierUsage(
        state,
        _by_number(state.associations, own.associations.raw),
        _by_number(state.qos_list, own.qos.raw),
    )


def _by_number(rows: Sequence[Row], figures: Longs) -> ByNumber:
    return {int(row["ID"]): figure for row, figure in zip(rows, figures, strict=True)}


def recount_usage(
    earlier: EarlierUsage, records: Sequence[Row], now: SlurmState, tree: Tree
) -> OwnUsage:
    """Return the current usage of each association and QOS: the earlier usage plus the cost of the
    recorded jobs.
    """
    own = OwnUsage(
        in_order(now.associations, earlier.associations), in_order(now.qos_list, earlier.qos_list)
    )
    jobs, last = jobs_of(records, earlier.state, tree), earlier.state.counted_at
    alone, ledger_before = _new_ledger(
        own, np.full(len(tree.rows), -1, np.int64), earlier.state
    )  # parents have no usage of their own
    ledger = end_jobs(
        ledger_before,
        jobs,
        alone,
        _rules(earlier.state),
        last=last,
        now=int(jobs.end.max(initial=last)),
    )
    return OwnUsage(ledger.associations.raw, ledger.qos.raw)


def at_tick(
    own: OwnUsage, counted_at: int, state: SlurmState, tree: Tree, *, alone: bool = False
) -> UsageLedger:
    """Return the usage after the tick, from the usage before it and the running jobs: of
    associations with all below them, or `alone`.
    """
    above = np.full(len(tree.rows), -1, np.int64) if alone else tree.parent.astype(np.int64)
    payers, ledger = _new_ledger(
        own if alone else own._replace(associations=sum_usage(tree, own.associations)), above, state
    )
    jobs = jobs_of([_record(job) for job in state.running], state, tree)
    return apply_tick(ledger, jobs, payers, _rules(state), last=counted_at, now=state.counted_at)


def reserved_minutes(counted_at: int, state: SlurmState, tree: Tree) -> Wholes:
    """Return the minutes of each TRES that running jobs may still use, by association with all
    below it, after a tick: those of their whole limits, less what the tick gives back.
    """
    jobs = jobs_of([_record(job) for job in state.running], state, tree)
    limits = np.array([60 * minutes(job["TimeLimit"]) for job in state.running], np.float64)
    left = np.maximum(jobs.start + limits - np.maximum(jobs.start, counted_at), 0)
    given_back = np.minimum(left, seconds_run(jobs, counted_at, state.counted_at))
    seconds = np.trunc(limits * jobs.factor) - np.trunc(given_back * jobs.factor)
    to = lines(jobs.association, tree.parent.astype(np.int64))
    reserved = np.zeros((len(tree.rows), len(NAMES)), np.uint64)
    np.add.at(reserved, to.row, (seconds.astype(np.uint64)[:, None] * jobs.alloc)[to.job])
    whole: Wholes = reserved // np.uint64(60)
    return whole


def _new_ledger(raw: OwnUsage, parent: Ints, state: SlurmState) -> tuple[ChargedRows, UsageLedger]:
    payers = ChargedRows(parent, np.array(["NoDecay" in qos["Flags"] for qos in state.qos_list]))
    ledger = zero_usage(payers, len(NAMES))
    return payers, UsageLedger(
        ledger.associations._replace(raw=raw.associations), ledger.qos._replace(raw=raw.qos_list)
    )


def _rules(state: SlurmState) -> Rules:
    return Rules(
        fading(parse_half_life(read_config(state.config)["PriorityDecayHalfLife"]), Reset.NONE)
    )


def _record(job: Row) -> Row:
    """Return a running job with the column names of accounting."""
    user = job["UserId"].partition("(")[0]
    return {
        **job,
        "User": user,
        "Start": job["StartTime"],
        "End": "Unknown",
        "AllocTRES": job["TRES"],
    }


def jobs_of(records: Sequence[Row], state: SlurmState, tree: Tree) -> ChargedJobs:
    """Return the jobs of these records, priced by partitions and settings."""
    flags = read_config(state.config)["PriorityFlags"]
    partitions, qos_list = (
        [partition["PartitionName"] for partition in state.partitions],
        [qos["Name"] for qos in state.qos_list],
    )
    rows = {row[:3]: at for at, row in enumerate(tree.rows)}
    weights = [
        parse_weights(partition["TRESBillingWeights"], field="TRESBillingWeights")
        for partition in state.partitions
    ]
    table = prices(NAMES, weights, read_billing_rule(flags))
    counts = np.array([_counts(record["AllocTRES"]) for record in records], np.uint64).reshape(
        len(records), len(NAMES)
    )
    where = np.array([partitions.index(record["Partition"]) for record in records], np.int64)
    units = billable(counts, where, table)
    partition_qos = np.array(
        [
            qos_list.index(partition["QoS"]) if partition["QoS"] in qos_list else -1
            for partition in state.partitions
        ],
        np.int64,
    )
    qos = np.array([qos_list.index(record["QOS"]) for record in records], np.int64)
    return ChargedJobs(
        association=np.array([_payer(record, rows) for record in records], np.int64),
        qos=qos,
        partition_qos=partition_qos[where],
        factor=usage_factors(qos, np.array([float(qos["UsageFactor"]) for qos in state.qos_list])),
        start=np.array([instant(record["Start"]) for record in records], np.int64),
        end=np.array([instant(record["End"]) for record in records], np.int64),
        billable=units,
        alloc=limit_counts(counts, units, NAMES),
    )


def _payer(record: Row, rows: Mapping[tuple[str, str, str], int]) -> int:
    key = (record["Account"], record["User"], record["Partition"])
    return rows[key] if key in rows else rows[(*key[:2], "")]


def _counts(text: str) -> list[int]:
    counts = parse_counts(text)
    return [int(counts.get(name, 0)) for name in NAMES]
