"""Binding of tasks to CPUs, as --cpu-bind requests it."""

from __future__ import annotations

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.task_cpus import parse_binding

OWN, CPUS = [4, 5], [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("text", "local", "expected"),
    [
        ("none", 0, CPUS),
        ("cores", 0, OWN),
        ("quiet,threads", 0, OWN),
        ("verbose", 0, OWN),
        ("map_cpu:6,4", 0, [6]),
        ("map_cpu:6,4", 1, [4]),
        ("map_cpu:6,4", 2, [6]),
        ("v,map_cpu:0x5*2,7", 1, [5]),
        ("mask_cpu:0x60,f0", 0, [5, 6]),
        ("mask_cpu:0x60,f0", 1, CPUS),
        ("map_cpu:0", 0, CPUS),
    ],
)
def test_task_gets_cpus_of_its_step(text: str, local: int, expected: list[int]) -> None:
    assert list(parse_binding(text, field="--cpu-bind").cpus_of(local, OWN, CPUS)) == expected


@pytest.mark.parametrize("text", ["v,none", "verbose,cores", "VERBOSE"])
def test_verbose_binding_is_known(text: str) -> None:
    assert parse_binding(text, field="--cpu-bind").is_verbose


@pytest.mark.parametrize(
    "text",
    ["", "nosuch", "sockets", "map_cpu", "map_cpu:", "map_cpu:x", "map_cpu:10000", "mask_cpu:0x",
     "none:1", "map_cpu:1,,2", "mask_cpu:g", "map_cpu:f", "map_cpu:1*0", "mask_cpu:" + "f" * 65],
)  # fmt: skip
def test_bad_binding_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_binding(text, field="--cpu-bind")


def test_refusal_names_each_accepted_binding() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_binding("nosuch", field="--cpu-bind")
    for kind in ("none", "cores", "threads", "rank", "map_cpu:LIST", "mask_cpu:LIST"):
        assert kind in (refused.value.remedy or "")
