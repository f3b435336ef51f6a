"""The usage of associations, told from job records alone: what slurmctld must have written down when it stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairbank.priority.billing import STATIC, adding_by, allocated, billable, prices
from fairbank.priority.charging import Jobs, usage_factors
from fairbank.priority.columns import Long, Longs
from fairbank.priority.decay import fading, parse_half_life
from fairbank.priority.resets import Reset
from fairbank.priority.ticks import Books, Payers, Rules, ended, unused
from fairbank.priority.tree import Tree
from fairbank.slurm.answers.scontrol import read_config
from fairbank.values.tres import parse_counts, parse_weights
from tests.slurm.forest import COSTLY, QUALITIES
from tests.slurm.frozen import Row, Said
from tests.slurm.reckoned import instant

COLUMNS = ("JobIDRaw", "User", "Account", "Partition", "QOS", "State", "Start", "End", "TimelimitRaw", "AllocTRES")
NAMES = (*STATIC, "gres/gpu")
AS_WRITTEN = 2e-6
"""slurmctld writes six decimals."""


class Before(NamedTuple):
    """What Slurm said after a tick, and the usage of each association itself, by its number."""

    said: Said
    usage: Mapping[int, np.longdouble]


def recounted(before: Before, records: Sequence[Row], now: Said, tree: Tree) -> Longs:
    """The usage of each association itself, of the tree that is there now: what was, and what the jobs of the records have cost."""
    config = read_config(before.said.config)
    rules = Rules(fading(parse_half_life(config["PriorityDecayHalfLife"]), Reset.NONE))
    payers = Payers(np.full(len(tree.rows), -1, np.int64), np.zeros(len(QUALITIES), np.bool_))  # who is above has no usage of its own
    books = unused(payers, len(NAMES))
    was = np.array([before.usage.get(int(row["ID"]), Long(0)) for row in now.associations], Long)
    books = Books(books.associations._replace(raw=was), books.qos)
    jobs = _jobs(records, before.said, tree, config["PriorityFlags"])
    last = before.said.counted_at
    return ended(books, jobs, payers, rules, last=last, now=int(jobs.end.max(initial=last))).associations.raw


def _jobs(records: Sequence[Row], said: Said, tree: Tree, flags: str) -> Jobs:
    places, qualities = [each["PartitionName"] for each in said.partitions], list(QUALITIES)
    rows = {row[:3]: at for at, row in enumerate(tree.rows)}
    weights = [parse_weights(each["TRESBillingWeights"], field="TRESBillingWeights") for each in said.partitions]
    table = prices(NAMES, weights, adding_by(flags))
    counts = np.array([_counts(each["AllocTRES"]) for each in records], np.uint64).reshape(len(records), len(NAMES))
    units = billable(counts, np.array([places.index(each["Partition"]) for each in records], np.int64), table)
    qos = np.array([qualities.index(each["QOS"]) for each in records], np.int64)
    return Jobs(
        association=np.array([_payer(each, rows) for each in records], np.int64),
        qos=qos,
        partition_qos=np.full(len(records), -1, np.int64),
        factor=usage_factors(qos, np.array([float(COSTLY) if name == "costly" else 1.0 for name in qualities])),
        start=np.array([instant(each["Start"]) for each in records], np.int64),
        end=np.array([instant(each["End"]) for each in records], np.int64),
        limit=np.array([int(each["TimelimitRaw"]) for each in records], np.int64),
        billable=units,
        alloc=allocated(counts, units, NAMES),
    )


def _payer(record: Row, rows: Mapping[tuple[str, str, str], int]) -> int:
    key = (record["Account"], record["User"], record["Partition"])
    return rows[key] if key in rows else rows[(*key[:2], "")]


def _counts(text: str) -> list[int]:
    found = parse_counts(text)
    return [int(found.get(name, 0)) for name in NAMES]
