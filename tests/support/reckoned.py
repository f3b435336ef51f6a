"""The lines of sprio computed from what Slurm tells of its jobs, partitions, settings and accounting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairbank.priority.multifactor.composing import priorities, shown, weighted
from fairbank.priority.multifactor.pending import NO_QOS, Scale, pending, scale
from fairbank.report.priorities import PriorityRow
from fairbank.slurm.answers.pending import Pending, read_pending
from fairbank.slurm.answers.priority import read_settings
from fairbank.slurm.answers.scontrol import read_config, read_places
from fairbank.values.tres import parse_counts


class Told(NamedTuple):
    """What Slurm told: of scontrol show config, show job and show partition; which jobs sprio lists, with their site factors, which
    scontrol does not tell; nodes and CPUs of the cluster; priorities of QOS and of associations.

    `tested` are CPUs of jobs that the scheduler tried to place on whole nodes: scontrol goes on showing those that they ask for.
    """

    config: str
    jobs: str
    partitions: str
    listed: Sequence[PriorityRow]
    nodes: int
    cpus: int
    qos: Mapping[str, int]
    associations: Mapping[tuple[str, str], int]
    tested: Mapping[int, int] = {}


FairShare = Callable[[Pending, str], float]
"""The factor of a job in one of its partitions."""


def reckoned(told: Told, fair_share: FairShare) -> list[PriorityRow]:
    """Each row of sprio but those whose priority was given."""
    config = read_config(told.config)
    settings = read_settings(config).factors
    jobs = {job.job_id: job for job in read_pending(told.jobs).rows}
    rows = [row for row in told.listed if row.direct is None]
    pairs = [(jobs[row.job], row.partition_name) for row in rows]
    places = {place.name: place for place in read_places(told.partitions).rows}
    names = [name.lower() for name in config["AccountingStorageTRES"].split(",") if name != "billing"]
    to = _scale(told, [place.tres for place in places.values()], [place.factor for place in places.values()], names)
    columns = pending(
        to,
        len(pairs),
        accrued_at=[job.accrued or 0 for job, _ in pairs],
        association=[told.associations.get((job.account, job.user), 0) for job, _ in pairs],
        fairshare=[fair_share(job, partition) for job, partition in pairs],
        nodes=[job.nodes for job, _ in pairs],
        cpus=[told.tested.get(job.job_id, job.cpus) for job, _ in pairs],
        limit_minutes=[job.limit_minutes for job, _ in pairs],
        nice=[job.nice for job, _ in pairs],
        site=[row.site for row in rows],
        partition=[list(places).index(partition) for _, partition in pairs],
        qos=[list(told.qos).index(job.qos[0]) if job.qos else NO_QOS for job, _ in pairs],
        tres={name: [float(parse_counts(job.tres).get(name, 0)) for job, _ in pairs] for name in names},
    )
    now = _now(rows, [job.accrued or 0 for job, _ in pairs], settings.weights.age, settings.max_age_seconds)
    terms = weighted(columns, to, settings, now)
    totals = shown(terms)
    assert (np.abs(priorities(columns, to, settings, now) - totals) < 1).all(), (
        "the controller's sum is that of sprio but for the last digit"
    )
    return [
        PriorityRow(
            job=job.job_id, partition_name=partition, user=job.user, account=job.account,
            age=float(terms.age[at]), association=float(terms.association[at]), fair_share=float(terms.fairshare[at]),
            job_size=float(terms.job_size[at]), partition=float(terms.partition[at]), qos=float(terms.qos[at]),
            tres={name: float(terms.tres[row][at]) for row, name in enumerate(to.tres) if terms.tres[row][at]},
            site=int(terms.site[at]), nice=int(terms.nice[at]), total=float(totals[at]),
        )
        for at, (job, partition) in enumerate(pairs)
    ]  # fmt: skip


def _scale(told: Told, tres: Sequence[str], factors: Sequence[int], names: Sequence[str]) -> Scale:
    counts = [parse_counts(text) if text else {} for text in tres]
    return scale(
        nodes=told.nodes,
        cpus=told.cpus,
        partition_factors=factors,
        qos_priorities=list(told.qos.values()),
        association_max=max(told.associations.values(), default=0),
        totals={name: [float(each.get(name, 0)) for each in counts] for name in names},
    )


def _now(rows: Sequence[PriorityRow], accrued: Sequence[int], weight: int, max_age: int) -> int:
    """When slurmctld reckoned: the age of the oldest job tells, which is less than PriorityMaxAge here."""
    return max(
        (round(row.age / weight * max_age) + since for row, since in zip(rows, accrued, strict=True) if row.age and weight), default=0
    )
