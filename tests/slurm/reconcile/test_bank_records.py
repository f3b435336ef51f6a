"""Rows of the bank's API as values: complete rows are parsed, and invalid ones are reported with
the field.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import InvalidInput
from fairbank.rest.schemas.job import JobRow
from fairbank.rest.schemas.server import cluster_row
from fairbank.slurm.bank import parse_cluster
from fairbank.slurm.reconcile.bank_records import (
    BankRun,
    parse_allocation,
    parse_project,
    parse_run,
)

RUN = msgspec.to_builtins(
    JobRow(
        id=7, cluster="lab", job_id=41, submitted="2026-11-20T10:00:00Z", restart=0, project=3,
        account="chem", allocation=5,
        owner_uid=60_601, partition="cpu", state="held", status="executing", held=240, charged=0,
        refunded=0, written_off=0,
        start="2026-11-20T10:00:05Z", until="2026-11-20T11:00:05Z", ended=None, outcome=None,
        elapsed=None, set_by=9,
        name=None, qos=None, nodes=None, cpus=None, tres=None, time_limit=3_600, exit_code=None,
        exit_signal=None, cpu_seconds=None, cpu_given=None, wasted=None,
    )
)  # fmt: skip


def test_run_row_is_parsed() -> None:
    assert parse_run(RUN) == BankRun(
        id=7, job_id=41, submitted=1_795_168_800, restart=0, allocation=5, account="chem",
        owner=60_601, partition="cpu", state="held",
        held=240, charged=0, refunded=0, written_off=0, start=1_795_168_805, ended=None,
        outcome=None, elapsed=None,
        qos=None, tres=None, limit_seconds=3_600,
    )  # fmt: skip
    over = parse_run(
        {
            **RUN,
            "state": "charged",
            "ended": "2026-11-20T10:10:05Z",
            "outcome": "COMPLETED",
            "elapsed": 600,
        }
    )
    assert (over.ended, over.outcome, over.elapsed) == (1_795_169_405, "COMPLETED", 600)


def test_project_and_allocation_rows_are_parsed() -> None:
    names = {"gname": "chemistry", "account": "chem"}
    row = {"id": 3, "gid": 50_003, "parent": None, "removed": False, **names}
    project = parse_project(row, [{"uid": 60_601, "role": "pi"}])
    assert (project.group, project.parent, project.members) == ("chemistry", None, {60_601: "pi"})
    allocation = parse_allocation(
        {
            "id": 5,
            "project": 3,
            "resource": "cpu",
            "start": "2026-01-01",
            "end": "2027-01-01T00:00:00Z",
            "state": "active",
            "shared": True,
        }
        | {"deposited": 600, "charged": 60, "held": 240, "available": 300, "category": "default"}
    )
    assert (allocation.end - allocation.start, allocation.available, allocation.shared) == (
        365 * 86_400,
        300,
        True,
    )


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({**RUN, "charged": "60"}, "charged"),
        ({**RUN, "submitted": None}, "submitted"),
        ({**RUN, "submitted": "yesterday"}, "submitted"),
        ({key: value for key, value in RUN.items() if key != "owner_uid"}, "owner_uid"),
    ],
)
def test_invalid_run_row_names_the_field(row: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_run(row)
    assert field in f"{error.value.field} {error.value.message}"


def test_cluster_row_without_free_states_is_refused() -> None:
    """Else jobs that failed without their own fault would be charged by other rules than the
    bank's.
    """
    cluster = Cluster("lab", {"cpu": Partition("cpu", "cpu")}, {"high": Fraction(3, 2)})
    row = msgspec.to_builtins(cluster_row(cluster, ("TIMEOUT",)))
    parsed = parse_cluster(row)
    assert (parsed.partitions, parsed.qos_factors) == (cluster.partitions, cluster.qos_factors)
    assert parsed.free_states == {"TIMEOUT"}
    del row["free_states"]
    with pytest.raises(InvalidInput, match="free_states"):
        parse_cluster(row)
