"""The usage of associations, told from job records alone: what slurmctld must have written down when it stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairbank.priority.billing import allocated, billable, prices
from fairbank.priority.charging import Jobs, usage_factors
from fairbank.priority.columns import Ints, Long, Longs
from fairbank.priority.decay import fading, parse_half_life
from fairbank.priority.resets import Reset
from fairbank.priority.ticks import Books, Payers, Rules, ended, started, ticked, unused
from fairbank.priority.tree import Tree, summed
from fairbank.priority.usage import Usage
from fairbank.slurm.answers.priority import read_adding
from fairbank.slurm.answers.scontrol import read_config
from fairbank.values.slurm_numbers import STATIC_TRES
from fairbank.values.tres import parse_counts, parse_weights
from tests.slurm.forest import COSTLY, QUALITIES
from tests.slurm.frozen import Row, Said, instant, minutes

COLUMNS = ("JobIDRaw", "User", "Account", "Partition", "QOS", "State", "Start", "End", "TimelimitRaw", "AllocTRES")
NAMES = (*STATIC_TRES, "gres/gpu")
AS_WRITTEN = 2e-6
"""slurmctld writes six decimals."""


class Before(NamedTuple):
    """What Slurm said after a tick, and the usage of each association itself, by its number."""

    said: Said
    usage: Mapping[int, np.longdouble]


def recounted(before: Before, records: Sequence[Row], now: Said, tree: Tree) -> Longs:
    """The usage of each association itself, of the tree that is there now: what was, and what the jobs of the records have cost."""
    was = np.array([before.usage.get(int(row["ID"]), Long(0)) for row in now.associations], Long)
    jobs, last = jobs_of(records, before.said, tree), before.said.counted_at
    alone, books = _books(was, np.full(len(was), -1, np.int64))  # who is above has no usage of its own
    return ended(books, jobs, alone, _rules(before.said), last=last, now=int(jobs.end.max(initial=last))).associations.raw


def at_tick(own: Longs, counted_at: int, said: Said, tree: Tree, *, alone: bool = False) -> Usage:
    """The usage of each association after the tick, of the usage before it and of the jobs that run: with all below it, or `alone`."""
    above = np.full(len(own), -1, np.int64) if alone else tree.parent.astype(np.int64)
    payers, books = _books(own if alone else summed(tree, own), above)
    jobs = jobs_of([_record(job) for job in said.running], said, tree)
    books = started(books, jobs, payers, _rules(said))
    return ticked(books, jobs, payers, _rules(said), last=counted_at, now=said.counted_at).associations


def _books(raw: Longs, parent: Ints) -> tuple[Payers, Books]:
    payers = Payers(parent, np.zeros(len(QUALITIES), np.bool_))
    books = unused(payers, len(NAMES))
    return payers, Books(books.associations._replace(raw=raw), books.qos)


def _rules(said: Said) -> Rules:
    return Rules(fading(parse_half_life(read_config(said.config)["PriorityDecayHalfLife"]), Reset.NONE))


def _record(job: Row) -> Row:
    """A job that runs, in the words of accounting."""
    user, limit = job["UserId"].partition("(")[0], str(minutes(job["TimeLimit"]))
    return {**job, "User": user, "Start": job["StartTime"], "End": "Unknown", "TimelimitRaw": limit, "AllocTRES": job["TRES"]}


def jobs_of(records: Sequence[Row], said: Said, tree: Tree) -> Jobs:
    """The jobs of these records, priced as partitions and settings are."""
    flags = read_config(said.config)["PriorityFlags"]
    places, qualities = [each["PartitionName"] for each in said.partitions], list(QUALITIES)
    rows = {row[:3]: at for at, row in enumerate(tree.rows)}
    weights = [parse_weights(each["TRESBillingWeights"], field="TRESBillingWeights") for each in said.partitions]
    table = prices(NAMES, weights, read_adding(flags))
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
