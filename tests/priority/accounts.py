"""Small cluster for the usage ledgers: rows to charge, and jobs as lines of text."""

from __future__ import annotations

import math

import numpy as np

from fairbank.core.slurm_numbers import STATIC_TRES
from fairbank.priority.fairshare.charges import ChargedJobs
from fairbank.priority.fairshare.usage_ticks import ChargedRows

NAMES = (*STATIC_TRES, "gres/gpu")
CPU, MEM, BILLING, GPU = (NAMES.index(name) for name in ("cpu", "mem", "billing", "gres/gpu"))

# root - physics - (alice, optics - bob), chem - carol
ROOT, PHYSICS, ALICE, OPTICS, BOB, CHEM, CAROL = range(7)
PARENT = np.array([-1, ROOT, PHYSICS, PHYSICS, OPTICS, ROOT, CHEM], np.int64)
NORMAL, STANDBY, KEPT = range(3)
PAYERS = ChargedRows(PARENT, np.array([False, False, True]))
"""Three QOS; the last has NoDecay."""


def job(
    who: int,
    start: int,
    end: int = 0,
    *,
    cpus: int = 1,
    qos: int = -1,
    partition_qos: int = -1,
    factor: float = 1.0,
    billable: float | None = None,
) -> ChargedJobs:
    """Return a job that bills its CPUs, or `billable`."""
    units = float(cpus) if billable is None else billable
    alloc = np.zeros((1, len(NAMES)), np.uint64)
    alloc[0, CPU], alloc[0, BILLING] = cpus, math.trunc(units)
    numbers = [np.array([number], np.int64) for number in (who, qos, partition_qos, start, end)]
    who_, qos_, other, began, ended = numbers
    return ChargedJobs(
        who_, qos_, other, np.array([factor]), began, ended, np.array([units]), alloc
    )


def together(*jobs: ChargedJobs) -> ChargedJobs:
    """Return many jobs in this order."""
    return ChargedJobs(*(np.concatenate(column) for column in zip(*jobs, strict=True)))
