"""Resources of QOS: which one is billed, and the settings."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from fairbank.cluster.partition import Cluster, Partition, one_su, price_groups, unbilled_warnings
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.service.settings import read_settings

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
