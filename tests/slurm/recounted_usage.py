"""The usage of associations and of QOS, computed from job records alone: what slurmctld must have
written down when it stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairbank.core.slurm_numbers import STATIC_TRES
from fairbank.core.tres import parse_counts, parse_weights
from fairbank.priority.fairshare.charges import (
    ChargedJobs,
    allocated,
    billable,
    prices,
    usage_factors,
)
from fairbank.priority.fairshare.columns import Ints, Longs
from fairbank.priority.fairshare.decay import Reset, fading, parse_half_life
from fairbank.priority.fairshare.tree import Tree, summed
from fairbank.priority.fairshare.usage_ticks import (
    ChargedRows,
    Rules,
    UsageLedger,
    ended,
    started,
    ticked,
    unused,
)
from fairbank.slurm.parsers.config import read_billing_rule, read_config
from tests.slurm.frozen_cluster import (
    ByNumber,
    Own,
    Row,
    Said,
    Start,
    in_order,
    instant,
    left_usage,
    minutes,
)

COLUMNS = (
    "JobIDRaw",
    "User",
    "Account",
    "Partition",
    "QOS",
    "State",
    "Start",
    "End",
    "TimelimitRaw",
    "AllocTRES",
)
NAMES = (*STATIC_TRES, "gres/gpu")
AS_WRITTEN = 2e-6
"""slurmctld writes six decimals."""


class Before(NamedTuple):
    """Output of Slurm after a tick, and the own usage of each association and each QOS that was
    left then, by their numbers.
    """

    said: Said
    associations: ByNumber
    qualities: ByNumber


def before(said: Said, start: Start, tree: Tree) -> Before:
    """For the next time: what is left at the tick of which `said` is."""
    own = at_tick(left_usage(said, start), start.counted_at, said, tree, alone=True)
    return Before(
        said,
        _by_number(said.associations, own.associations.raw),
        _by_number(said.qualities, own.qos.raw),
    )


def _by_number(rows: Sequence[Row], figures: Longs) -> ByNumber:
    return {int(row["ID"]): one for row, one in zip(rows, figures, strict=True)}


def recounted(then: Before, records: Sequence[Row], now: Said, tree: Tree) -> Own:
    """Return the usage of each association and QOS of now: the earlier usage, and the cost of the
    recorded jobs.
    """
    was = Own(
        in_order(now.associations, then.associations), in_order(now.qualities, then.qualities)
    )
    jobs, last = jobs_of(records, then.said, tree), then.said.counted_at
    alone, books = _books(
        was, np.full(len(tree.rows), -1, np.int64), then.said
    )  # who is above has no usage of its own
    found = ended(
        books, jobs, alone, _rules(then.said), last=last, now=int(jobs.end.max(initial=last))
    )
    return Own(found.associations.raw, found.qos.raw)


def at_tick(
    own: Own, counted_at: int, said: Said, tree: Tree, *, alone: bool = False
) -> UsageLedger:
    """The usage after the tick, of the usage before it and of the jobs that run: of associations
    with all below them, or `alone`.
    """
    above = np.full(len(tree.rows), -1, np.int64) if alone else tree.parent.astype(np.int64)
    payers, books = _books(
        own if alone else own._replace(associations=summed(tree, own.associations)), above, said
    )
    jobs = jobs_of([_record(job) for job in said.running], said, tree)
    books = started(books, jobs, payers, _rules(said))
    return ticked(books, jobs, payers, _rules(said), last=counted_at, now=said.counted_at)


def _books(raw: Own, parent: Ints, said: Said) -> tuple[ChargedRows, UsageLedger]:
    payers = ChargedRows(parent, np.array(["NoDecay" in each["Flags"] for each in said.qualities]))
    books = unused(payers, len(NAMES))
    return payers, UsageLedger(
        books.associations._replace(raw=raw.associations), books.qos._replace(raw=raw.qualities)
    )


def _rules(said: Said) -> Rules:
    return Rules(
        fading(parse_half_life(read_config(said.config)["PriorityDecayHalfLife"]), Reset.NONE)
    )


def _record(job: Row) -> Row:
    """A job that runs, in the words of accounting."""
    user, limit = job["UserId"].partition("(")[0], str(minutes(job["TimeLimit"]))
    return {
        **job,
        "User": user,
        "Start": job["StartTime"],
        "End": "Unknown",
        "TimelimitRaw": limit,
        "AllocTRES": job["TRES"],
    }


def jobs_of(records: Sequence[Row], said: Said, tree: Tree) -> ChargedJobs:
    """The jobs of these records, priced as partitions and settings are."""
    flags = read_config(said.config)["PriorityFlags"]
    places, qualities = (
        [each["PartitionName"] for each in said.partitions],
        [each["Name"] for each in said.qualities],
    )
    rows = {row[:3]: at for at, row in enumerate(tree.rows)}
    weights = [
        parse_weights(each["TRESBillingWeights"], field="TRESBillingWeights")
        for each in said.partitions
    ]
    table = prices(NAMES, weights, read_billing_rule(flags))
    counts = np.array([_counts(each["AllocTRES"]) for each in records], np.uint64).reshape(
        len(records), len(NAMES)
    )
    where = np.array([places.index(each["Partition"]) for each in records], np.int64)
    units = billable(counts, where, table)
    of_places = np.array(
        [
            qualities.index(each["QoS"]) if each["QoS"] in qualities else -1
            for each in said.partitions
        ],
        np.int64,
    )
    qos = np.array([qualities.index(each["QOS"]) for each in records], np.int64)
    return ChargedJobs(
        association=np.array([_payer(each, rows) for each in records], np.int64),
        qos=qos,
        partition_qos=of_places[where],
        factor=usage_factors(
            qos, np.array([float(each["UsageFactor"]) for each in said.qualities])
        ),
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
