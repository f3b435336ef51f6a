"""Resources of QOS: which one is billed, and the settings."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Page
from fairbank.bank.requests import Open
from fairbank.bank.rules import Done
from fairbank.bank.rules.short_term import RequestedPlace
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, Partition, one_su, price_groups, unbilled_warnings
from fairbank.cluster.run_report import RunReport
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.units import SuMinutes
from fairbank.service.access.identity import Staff, identity_of
from fairbank.service.settings import read_settings
from tests.service.reporting_agent import END, NOW, ReportingSite, run_ended, run_started

LAB = Cluster(
    "lab",
    {"std": Partition("std", "cpu"), "gpu": Partition("gpu", "gpu")},
    {"standby": Fraction(0)},
    qos_resources={"debug": "debug", "condo": "condo"},
)


def test_resource_of_a_qos_comes_before_the_partitions() -> None:
    assert [LAB.resource("std", qos) for qos in (None, "normal", "debug")] == [
        "cpu",
        "cpu",
        "debug",
    ]
    assert LAB.resource("gpu", "condo") == "condo"
    assert sorted(LAB.resources) == ["condo", "cpu", "debug", "gpu"]
    with pytest.raises(NotFound):
        LAB.resource("nowhere", "debug")


def test_resource_of_a_qos_is_billed_and_priced_by_every_partition() -> None:
    assert unbilled_warnings("debug", {"lab": LAB}) == []
    assert one_su("debug", {"lab": LAB}) == "1 core"
    assert {resource for resource, _, _ in price_groups({"lab": LAB})} == LAB.resources


RESOURCES = {"std": "cpu", "gpu": "gpu"}
RUNS = st.lists(
    st.tuples(
        st.sampled_from(["std", "gpu"]),
        st.sampled_from([None, "normal", "standby", "debug", "condo"]),
        st.integers(1, 64),
        st.integers(1, 7_200),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)
"""Partition, QOS, CPUs and seconds of runs, and whether a hold precedes their end."""


@settings(max_examples=25, deadline=None)
@given(runs=RUNS, data=st.data())
def test_run_of_a_qos_is_billed_on_its_resource_only(
    runs: list[tuple[str, str | None, int, int, bool]], data: st.DataObject
) -> None:
    """A CPU-hour costs 1 SU on every resource, and nothing in QOS standby."""
    site = ReportingSite(Policy(), None)
    site.clusters["darwin"] = msgspec.structs.replace(LAB, name="darwin")
    site.project("chem", 1, credit=10**9)
    for resource in ("gpu", "debug", "condo"):
        terms = AllocationTerms(1, resource, "startup", NOW, END)
        site.apply(Open(terms=terms, deposit=SuMinutes(10**9)))
    starts: list[RunReport] = []
    ends: list[RunReport] = []
    due = Counter[str]()
    for number, (partition, qos, cpus, seconds, is_held) in enumerate(runs, 1):
        facts = {"job_id": number, "partition": partition, "qos": qos, "tres": f"cpu={cpus}"}
        facts |= {"resource": None, "billing": None}
        resource = {"debug": "debug", "condo": "condo"}.get(qos or "", RESOURCES[partition])
        due[resource] += 0 if qos == "standby" else ceil(Fraction(cpus * seconds, 60))
        if is_held:
            starts.append(msgspec.structs.replace(run_started("chem"), **facts))
        facts |= {"elapsed": seconds, "end": NOW + seconds, "key": None}
        ends.append(msgspec.structs.replace(run_ended("chem"), **facts))
        quoted = site.services.quotes.quote(
            identity_of(0, Staff(superusers=frozenset({0})), {}),
            "chem",
            JobRequest("darwin", partition, {"cpu": Fraction(cpus)}, seconds, qos),
            RequestedPlace(partition),
        )
        assert (quoted.quote.bill.resource, quoted.refusal) == (resource, None)
    for report in (*data.draw(st.permutations(starts)), *data.draw(st.permutations(ends))):
        assert isinstance(site.report_run(report), Done)
    with site.services.store.reading() as reader:
        allocations = reader.allocations(AllocationQuery(), Page(PAGE_MAX))
    assert {allocation.terms.resource: allocation.charged for allocation in allocations} == {
        resource: due[resource] for resource in ("cpu", "gpu", "debug", "condo")
    }
    assert not any(allocation.held for allocation in allocations)
    site.services.close()


SETTINGS = """
secret_file = "secret"
[store]
url = "sqlite:///x"
[server]
socket = "s"
[clusters.lab.partitions.std]
resource = "cpu"
[clusters.lab.qos_resources]
"""


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('debug = "Debug Credit"', "clusters.lab.qos_resources.debug"),
        ('debug = ""', "clusters.lab.qos_resources.debug"),
        ("debug = 3", "clusters.lab.qos_resources"),
        ('"a,b" = "debug"', "clusters.lab.qos_resources"),
    ],
)
def test_wrong_resource_of_a_qos_is_named(tmp_path: Path, line: str, field: str) -> None:
    path = tmp_path / "fairbank.toml"
    path.write_text(f"{SETTINGS}{line}\n")
    with pytest.raises(InvalidInput) as error:
        read_settings(path)
    assert field in str((error.value.field, error.value.message))
    path.write_text(f'{SETTINGS}debug = "debug"\n')
    assert read_settings(path).cluster_map()["lab"].qos_resources == {"debug": "debug"}
