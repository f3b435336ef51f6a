"""Rows of the bank's API as values: complete rows are parsed, and invalid ones are reported with
the field.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fairbank.cluster.job import JobDetails
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import InvalidInput
from fairbank.rest.client.bank_client import BankClient, parse_cluster, parse_run
from fairbank.rest.schemas.job import JobRow
from fairbank.rest.schemas.server import cluster_row
from tests.csv_import.test_storage import ClientInProcess
from tests.rest.world import CLUSTERS, MEMBER, create_world

RUN = msgspec.to_builtins(
    JobRow(
        id=7, cluster="lab", job_id=41, submitted="2026-11-20T10:00:00Z", restart=0, project=3,
        account="chem", allocation=5, resource="cpu",
        owner_uid=60_601, partition="cpu", state="held", status="executing", held=240, charged=0,
        refunded=0, written_off=0,
        start="2026-11-20T10:00:05Z", until="2026-11-20T11:00:05Z", ended=None, outcome=None,
        elapsed=None, set_by=9,
        name=None, qos=None, nodes=None, cpus=None, tres=None, time_limit=3_600, exit_code=None,
        exit_signal=None, cpu_seconds=None, cpu_given=None, wasted=None, occupied=None,
    )
)  # fmt: skip


def test_run_has_the_account_of_its_row() -> None:
    run = parse_run(RUN)
    assert (run.account, run.reported.project, run.is_open) == ("chem", 3, True)
    assert (run.job_id, run.submitted, run.reported.start) == (41, 1_795_168_800, 1_795_168_805)
    assert run.reported.job_details == JobDetails(limit_seconds=3_600)
    resolved = {"ended": "2026-11-20T10:10:05Z", "outcome": "COMPLETED", "elapsed": 600}
    assert [
        parse_run({**RUN, "state": state, **resolved}).is_open
        for state in ("lapsed", "charged", "released")
    ] == [True, False, False]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({**RUN, "charged": "60"}, "charged"),
        ({**RUN, "submitted": None}, "submitted"),
        ({**RUN, "state": "paid"}, "state"),
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
    row = msgspec.to_builtins(cluster_row(cluster, ("TIMEOUT",), ()))
    parsed = parse_cluster(row)
    assert (parsed.partitions, parsed.qos_factors) == (cluster.partitions, cluster.qos_factors)
    assert parsed.free_states == {"TIMEOUT"}
    del row["free_states"]
    with pytest.raises(InvalidInput, match="free_states"):
        parse_cluster(row)


def test_members_through_the_unix_group_are_apart_from_those_of_the_bank() -> None:
    with create_world(members_of=lambda gid: frozenset({MEMBER, 9_000})) as world:
        chem, _ = BankClient(ClientInProcess(world)).projects()  # type: ignore[arg-type]
    assert (MEMBER in chem.members, chem.group_members) == (True, {9_000})


def test_bank_of_two_clusters_asks_for_the_name_of_one() -> None:
    two = {name: replace(CLUSTERS["alpha"], name=name) for name in ("alpha", "beta")}
    with create_world(clusters=two) as world, pytest.raises(InvalidInput) as missing:
        BankClient(ClientInProcess(world)).cluster(None)  # type: ignore[arg-type]
    assert missing.value.remedy == (
        "name one with -M CLUSTER, or FAIRBANK_CLUSTER; the settings know: alpha, beta"
    )
