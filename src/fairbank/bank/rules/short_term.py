"""Short-term allocations (HADM): partition and reservation of one account for a time.

The submission policy and `fairbank quote` judge new jobs by these rules, and `fairbank why` changed
jobs. plugins/fairbank/policy_file.lua and rules.lua have the same ones for Slurm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from fairbank.bank.allocation import Allocation, ShownState
from fairbank.bank.project import Project
from fairbank.cluster.partition import Cluster
from fairbank.core.errors import Forbidden
from fairbank.core.time import iso


class ShortTerm(msgspec.Struct, frozen=True):
    """Short-term allocation: while `start` <= now < `end` all jobs of the account go to its
    partition and reservation, and no others.
    """

    account: str
    partition: str | None
    reservation: str | None
    start: int
    end: int


Field = Literal["partition", "reservation"]


def short_terms(
    accounts: Mapping[int, str],
    allocations: Iterable[Allocation],
    partitions: Collection[str],
    now: int,
) -> Iterator[ShortTerm]:
    """Yield the short-term allocations that are not over, except those in a partition of another
    cluster.

    Args:
        accounts: the accounts of the projects that are not removed, by their numbers.
        partitions: names of the partitions of the cluster.
        now: current time.
    """
    for allocation in allocations:
        terms = allocation.terms
        is_here = terms.partition is None or terms.partition in partitions
        is_over = allocation.shown_state(now) is ShownState.ENDED
        account = accounts.get(terms.project)
        if allocation.is_short_term and is_here and not is_over and account is not None:
            yield ShortTerm(account, terms.partition, terms.reservation, terms.start, terms.end)


def forced_value(terms: Iterable[ShortTerm], field: Field, account: str, now: int) -> str | None:
    """Return the value that all jobs of the account have in a field now; None without one.

    Args:
        terms: short-term allocations of the cluster.
        field: partition or reservation.
        account: account of the job.
        now: time in seconds since 1970.
    """
    for term in terms:
        value: str | None = getattr(term, field)
        if term.account == account and value is not None and term.start <= now < term.end:
            return value
    return None


def closed_by(
    terms: Iterable[ShortTerm], field: Field, value: str, account: str, now: int
) -> ShortTerm | None:
    """Return the short-term allocation of another account that has this partition or reservation
    now: it is then hidden from the job, and refused to it. None without one.

    Args:
        terms: short-term allocations of the cluster.
        field: partition or reservation.
        value: name of the partition or reservation.
        account: account of the job.
        now: time in seconds since 1970.
    """
    for term in terms:
        is_same = getattr(term, field) == value and term.account != account
        if is_same and term.start <= now < term.end:
            return term
    return None


class RequestedPlace(NamedTuple):
    """Partitions with commas, None for the default one, and reservation that a job requests.

    `is_waiting`: the job is in the queue, so short-term allocations decided at its submission.
    """

    partitions: str | None = None
    reservation: str | None = None
    is_waiting: bool = False


class JobPlace(NamedTuple):
    """Partitions and reservation of a new job, and notes on what replaces its request.

    The cluster is without the partitions that are hidden from the job.
    """

    partitions: Sequence[str]
    reservation: str | None
    notes: Sequence[str]
    cluster: Cluster


def place_job(
    terms: Sequence[ShortTerm], project: Project, cluster: Cluster, place: RequestedPlace, now: int
) -> JobPlace:
    """Return where a new job goes, as plugins/job_submit.lua sends it.

    Args:
        terms: short-term allocations of the cluster.
        place: the place that the job requests.
        now: time of the submission.

    Raises:
        Forbidden: the partition or the reservation is another project's for now.
        InvalidInput: no partition is named, and there is no default.
    """
    notes = list[str]()
    account, reservation = project.account, place.reservation
    if forced := forced_value(terms, "reservation", account, now):
        notes += _replaced("reservation", reservation, forced, project)
        reservation = forced
    elif reservation and (term := closed_by(terms, "reservation", reservation, account, now)):
        raise _closed(term, "reservation", reservation, account, "leave out --reservation")
    if forced := forced_value(terms, "partition", account, now):
        notes += _replaced("partition", place.partitions, forced, project)
        return JobPlace((forced,), reservation, notes, cluster)
    open_partitions = {
        name: partition
        for name, partition in cluster.partitions.items()
        if closed_by(terms, "partition", name, account, now) is None
    }
    visible = msgspec.structs.replace(cluster, partitions=open_partitions)
    names = visible.partition_names(place.partitions)
    for name in names:
        if term := closed_by(terms, "partition", name, account, now):
            remedy = f"name another partition: {', '.join(sorted(open_partitions)) or 'none is'}"
            raise _closed(term, "partition", name, account, remedy)
    return JobPlace(names, reservation, notes, visible)


def _replaced(field: Field, value: str | None, forced: str, project: Project) -> Iterator[str]:
    if value is not None and value != forced:
        yield (
            f"{field} {value} replaced by {forced}, where all jobs of {project.gname} run:"
            f" leave out --{field}"
        )


def _closed(term: ShortTerm, field: Field, name: str, account: str, remedy: str) -> Forbidden:
    return Forbidden(
        f"{field} {name} takes no job of {account} until {iso(term.end)}: a short-term allocation"
        " of another project has it",
        field=field,
        remedy=remedy,
    )
