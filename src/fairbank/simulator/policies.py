"""The policies by their names: for each, how the waiting jobs are kept and what a pass decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairbank.scheduling.conservative import conservative
from fairbank.scheduling.easy import easy
from fairbank.scheduling.fcfs import fcfs
from fairbank.scheduling.fifo import fifo
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.processors import Processors
from fairbank.scheduling.queue import ByPartition, ByWidth, InOrder
from fairbank.scheduling.snapshot import Queue, Snapshot
from fairbank.simulator.jobs import Job
from fairbank.values.trouble import Unknown


class Policy(NamedTuple):
    """How the next ones are chosen. `queue` makes an empty queue of the kind that `pass_` reads."""

    name: str
    about: str
    queue: Callable[[], Queue[Job]]
    pass_: Callable[[Snapshot[Job, int, Processors[Job]], int], Plan[Job, int]]


POLICIES: Mapping[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy("fifo", "first in, first out in each partition: whoever does not fit blocks its own", ByPartition[Job], fifo),
        Policy("fcfs", "first come, first served: whoever does not fit blocks everybody", InOrder[Job], fcfs),
        Policy("easy", "EASY backfill: room is kept for the first, others fill the gap before it", ByWidth[Job], easy),
        Policy("conservative", "conservative backfill: room is kept for everybody", ByWidth[Job], conservative),
    )
}


def policy_named(name: str) -> Policy:
    """Raises Unknown, listing the policies there are."""
    found = POLICIES.get(name)
    if found is None:
        raise Unknown(f"there is no policy {name!r}", field="policy", remedy=f"there are: {', '.join(POLICIES)}")
    return found
