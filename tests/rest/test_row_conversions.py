"""Rows of the API carry the domain values: what a client reads is what the server had."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.allocation import NO_LINK, Allocation, AllocationState, AllocationTerms
from fairbank.bank.project import Project
from fairbank.bank.query import Balance
from fairbank.bank.run import ReportedRun, RunEnd, RunRecord, RunState, UserSums
from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.job import NO_DETAILS, JobDetails, Run
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.ids import OVERFLOW_UID
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.tres import BillingRule
from fairbank.rest.schemas.activity import activity_row
from fairbank.rest.schemas.alloc import (
    AllocationRow,
    ProjectRow,
    allocation_record,
    allocation_row,
    project_record,
    project_row,
)
from fairbank.rest.schemas.job import JobRow, job_row, run_record
from fairbank.rest.schemas.server import ClusterRow, cluster_record, cluster_row
from fairbank.rest.schemas.statement import entry_row
from tests.bank.test_entry import ENTRY

Row = TypeVar("Row")
Value = TypeVar("Value", bound=msgspec.Struct)


def drawn(kind: type[Value], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    """Return values of a struct of which all fields are drawn: a conversion may lose none."""
    assert set(fields) == set(kind.__struct_fields__)
    return st.builds(kind, **fields)


counts = st.integers(0, 2**53)
numbers = st.integers(1, 2**53)
names = st.text("abc_0", min_size=1, max_size=4)
instants = st.integers(0, LAST_INSTANT)
details = drawn(
    JobDetails,
    name=st.none() | names,
    qos=st.none() | names,
    nodes=st.none() | numbers,
    cpus=st.none() | numbers,
    tres=st.none() | names,
    limit_seconds=st.none() | numbers,
    exit_status=st.none() | st.integers(0, 65_535),
    cpu_seconds=st.none() | counts,
    occupied=st.none() | counts,
).filter(NO_DETAILS.__ne__)
runs = drawn(
    RunRecord,
    id=numbers,
    reported=drawn(
        ReportedRun,
        run=st.builds(Run, names, numbers, instants, st.integers(0, 65_535)),
        project=numbers,
        partition=names,
        start=instants,
        until=instants,
        job_details=st.none() | details,
    ),
    allocation=numbers,
    owner=counts,
    state=st.sampled_from(RunState),
    held=counts,
    set_by=numbers,
    charged=counts,
    written_off=counts,
    refunded=counts,
    end=st.none() | drawn(RunEnd, outcome=names, elapsed_seconds=counts, ended=instants),
)
allocations = drawn(
    Allocation,
    id=numbers,
    terms=drawn(
        AllocationTerms,
        project=numbers,
        resource=names,
        category=names,
        start=instants,
        end=instants,
        shared=st.booleans(),
        partition=st.none() | names,
        reservation=st.none() | names,
        credit_limit=counts,
    ),
    state=st.sampled_from(AllocationState),
    deposited=counts,
    charged=counts,
    held=counts,
    overrun=st.just(0),  # the row has neither this nor the last entry
    seq=st.just(0),
    link=st.just(NO_LINK),
)
projects = drawn(
    Project,
    id=numbers,
    gname=names,
    gid=counts,
    account=names,
    parent=st.none() | numbers,
    removed=st.booleans(),
)
fractions = st.builds(Fraction, counts, st.integers(1, 10**6))
partitions = drawn(
    Partition,
    name=names,
    resource=names,
    weights=st.none() | st.dictionaries(names, fractions, max_size=2),
    billing_rule=st.sampled_from(BillingRule),
    size=drawn(
        NodeSize,
        cpus=st.none() | numbers,
        memory=st.none() | numbers,
        gres=st.none() | st.dictionaries(names, numbers, max_size=2),
        kinds=st.lists(st.dictionaries(names, numbers, max_size=2), max_size=2).map(tuple),
        least_cpus=st.none(),  # the settings do not have it
    ),
    default_memory=st.none()
    | st.builds(Memory, counts, st.sampled_from([MemoryUnit.NODE, MemoryUnit.CPU])),
    exclusive=st.booleans(),
)
clusters = drawn(
    Cluster,
    name=names,
    partitions=st.lists(partitions, max_size=2).map(
        lambda places: {place.name: place for place in places}
    ),
    qos_factors=st.dictionaries(names, fractions, max_size=2),
    capacity=st.just({}),  # the row does not have it
    qos_resources=st.dictionaries(names, names, max_size=2),
    default_partition=st.none() | names,
    cpus=st.none(),  # nor these
    gpus=st.none(),
)


def received(row: Row) -> Row:
    """Return the row as a client decodes it."""
    return msgspec.json.decode(msgspec.json.encode(row), type=type(row))


@given(runs)
def test_run_survives_its_row(record: RunRecord) -> None:
    row: JobRow = received(job_row(record, "chem", "cpu"))
    assert (run_record(row), row.account) == (record, "chem")


@given(runs)
def test_measured_use_has_no_user(record: RunRecord) -> None:
    """It has neither partition nor user; a job whose user has no uid here has a partition."""
    reported = msgspec.structs.replace(record.reported, partition="")
    job = msgspec.structs.replace(record, owner=OVERFLOW_UID)
    measured = msgspec.structs.replace(job, reported=reported)
    for run, user in ((job, OVERFLOW_UID), (measured, None)):
        row: JobRow = received(job_row(run, "chem", "tape"))
        assert (row.owner_uid, run_record(row)) == (user, run)
        entry = msgspec.structs.replace(ENTRY, run=run.id, owner=run.owner)
        assert activity_row(entry, run).owner_uid == user
        assert entry_row(entry, run).owner_uid == user


@given(allocations, projects, instants)
def test_allocation_survives_its_row(
    allocation: Allocation, project: Project, now: Instant
) -> None:
    row: AllocationRow = received(
        allocation_row(Balance(allocation, UserSums(), None), project, now)
    )
    record = allocation_record(row)
    assert record.shown_state(now) is allocation.shown_state(now)
    assert record == msgspec.structs.replace(allocation, state=record.state)


@given(projects)
def test_project_survives_its_row(project: Project) -> None:
    row: ProjectRow = received(project_row(project))
    assert project_record(row) == project


@given(clusters)
def test_cluster_survives_its_row(cluster: Cluster) -> None:
    row: ClusterRow = received(cluster_row(cluster, ("TIMEOUT",), ()))
    assert cluster_record(row) == cluster
