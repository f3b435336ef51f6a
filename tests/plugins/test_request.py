"""Requests of resources, as the Lua of the submission plug-ins reads them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize, allocated_tres
from fairbank.cluster.job import JobRequest
from fairbank.cluster.node import Gpus
from fairbank.cluster.partition import Partition
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.gres import parse_gres
from fairbank.core.tres import BillingRule, parse_weights
from fairbank.core.units import round_up
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.explain.admission_rules import PricedPartition, read_admission_rules
from fairbank.slurm.policy_file import PolicyPartition, render
from tests.plugins.interpreter import Lua
from tests.plugins.policies import CPU, GPU, OPEN_POLICY
from tests.support.gres import GPU_EXAMPLES, GRES_EXAMPLES, TYPE_EXAMPLES


def _gpus(lua: Lua, text: str, *, only_gpus: bool) -> list[tuple[str, int]]:
    gpus = lua.module("request").add_gpus(lua.table(), text, "node", only_gpus)
    return [(gpu.type or "", int(gpu.count)) for gpu in gpus.values()]


def test_lua_reads_gres_as_the_bank_does(lua: Lua) -> None:
    for text, gres in GRES_EXAMPLES:
        expected = [(type_, count) for name, type_, count in gres if name == "gpu" and count]
        assert (text, _gpus(lua, text, only_gpus=False)) == (text, expected)


def test_lua_reads_options_for_gpus_as_the_bank_does(lua: Lua) -> None:
    for text, gpus in GPU_EXAMPLES:
        assert (text, _gpus(lua, text, only_gpus=True)) == (text, gpus)


@pytest.mark.parametrize(
    ("tasks", "per_node", "nodes"), [(8, 4, 2), (7, 4, 2), (4, 4, 1), (1, None, 1)]
)
def test_nodes_follow_from_the_tasks_of_each_node(
    lua: Lua, tasks: int, per_node: int | None, nodes: int
) -> None:
    job = lua.table(tasks=tasks, tasks_per_node=per_node, gpus=lua.table(), cpus=tasks)
    partition = lua.table(
        node_cpus=0, most_cpus=0, node_memory=0, memory_per_cpu=0, gpus=lua.table()
    )
    assert lua.module("request").counts(job, partition).node == nodes


@pytest.mark.parametrize("memory", [None, Memory(10_240)])
@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize("is_exclusive", [True, False])
def test_whole_nodes_have_all_their_cpus_and_gpus_as_in_a_quote(
    lua: Lua, is_exclusive: bool, gpus: int, memory: Memory | None
) -> None:
    """Both with --exclusive and in a partition that gives each job whole nodes."""
    place = msgspec.structs.replace(GPU, exclusive=not is_exclusive)
    policy = msgspec.structs.replace(OPEN_POLICY, partitions=(CPU, place))
    listed = lua.module("request").add_gpus(lua.table(), f"gpu:{gpus}", "job")
    mebibytes = memory and lua.table(mib=memory.mebibytes, per="node")
    job = lua.table(whole_nodes=is_exclusive, nodes=2, cpus=2, gpus=listed, memory=mebibytes)
    partition = lua.module("policy_file").parse(render(policy)).partitions.gpu
    counts = {
        name: int(count) for name, count in lua.module("request").counts(job, partition).items()
    }
    size = NodeSize(48, 512_000, {"gres/gpu": 4, "gres/gpu:a100": 4})
    described = {"cpu": Fraction(2), "node": Fraction(2), "gres/gpu": Fraction(gpus)}
    quoted = Partition("gpu", "gpu", size=size, default_memory=Memory(1_000, MemoryUnit.CPU))
    request = JobRequest("lab", "gpu", described, 60, exclusive=True, memory=memory)
    assert counts == allocated_tres(request, quoted)


def _read_by_both(lua: Lua, place: PolicyPartition) -> tuple[Any, Any, PricedPartition]:
    """Return the policy and the partition as the Lua reads them, and the partition that
    `fairbank why` reads.
    """
    policy = msgspec.structs.replace(OPEN_POLICY, partitions=(place,))
    table, prices = (
        lua.module("policy_file").parse(render(policy)),
        read_admission_rules(render(policy).encode()).prices,
    )
    assert prices is not None
    return table, table.partitions[place.partition.name], prices.partitions[place.partition.name]


def _lua_job(lua: Lua, wanted: ResourceRequest) -> Any:
    """Return a request as job_submit.lua reads it from a job description."""
    gpus = ",".join(f"gpu:{kind}:{number}".replace("::", ":") for kind, number in wanted.gpus)
    memory = {"cpu": wanted.memory_per_cpu, "node": wanted.memory_per_node}
    sizes = [lua.table(per=unit, mib=size) for unit, size in memory.items() if size is not None]
    return lua.table(
        cpus=wanted.cpus,
        nodes=wanted.nodes,
        tasks=wanted.tasks,
        tasks_per_node=wanted.tasks_per_node,
        gpus=lua.module("request").add_gpus(lua.table(), gpus, "node"),
        memory=sizes[0] if sizes else None,
        whole_nodes=wanted.exclusive,
    )


@pytest.mark.parametrize(("types", "text", "tres"), TYPE_EXAMPLES)
def test_types_of_gpus_are_counted_as_why_counts_them(
    lua: Lua, types: Mapping[str, int], text: str, tres: Mapping[str, int]
) -> None:
    _, partition, priced = _read_by_both(lua, msgspec.structs.replace(GPU, gpus=types))
    gpus = tuple(Gpus(gres.type, gres.number) for gres in parse_gres(text))
    wanted = ResourceRequest(gpus=gpus, memory_per_node=1)
    counts = lua.module("request").counts(_lua_job(lua, wanted), partition)
    expected = {f"gres/{name}": count for name, count in tres.items()}
    assert dict(counts.items()) == {"cpu": 1, "node": 1, "mem": 1, **expected}
    ours = priced.counts(PendingJob(number=1, wanted=wanted))
    assert {name: ours[name] for name in ours if name != "gres/gpu:any"} == dict(counts.items())


def test_job_that_fits_the_largest_node_has_one_node(lua: Lua) -> None:
    """A node has 32 or 128 CPUs: the memory of four nodes would be four times the price."""
    place = msgspec.structs.replace(CPU, node_cpus=32, most_cpus=128)
    _, partition, priced = _read_by_both(lua, place)
    for exclusive, cpus in ((False, 100), (True, 100), (True, 129)):
        wanted = ResourceRequest(cpus_per_task=cpus, memory_per_node=100, exclusive=exclusive)
        counts = lua.module("request").counts(_lua_job(lua, wanted), partition)
        nodes = 1 if cpus == 100 else 2
        assert dict(counts.items()) == {"cpu": cpus, "node": nodes, "mem": 100 * nodes}
        ours = priced.counts(PendingJob(number=1, wanted=wanted))
        assert {name: ours[name] for name in ours if ours[name]} == dict(counts.items())


def test_whole_nodes_are_not_counted_if_the_smallest_node_has_no_known_cpus(lua: Lua) -> None:
    place = msgspec.structs.replace(CPU, node_cpus=0, most_cpus=128)
    _, partition, priced = _read_by_both(lua, place)
    wanted = ResourceRequest(memory_per_node=100, exclusive=True)
    counts = lua.module("request").counts(_lua_job(lua, wanted), partition)
    assert dict(counts.items()) == {"cpu": 1, "node": 1, "mem": 100}
    assert priced.counts(PendingJob(number=1, wanted=wanted)) == dict(counts.items())


_PRICED = Partition(
    "p", "gpu", parse_weights("CPU=1,Mem=1G,node=17,GRES/gpu=3,GRES/gpu:a100=5,GRES/gpu:t4=11")
)


@st.composite
def _places(draw: st.DrawFn) -> PolicyPartition:
    """Draw a partition, also of nodes that differ, or whose size is unknown."""
    least = draw(st.sampled_from([0, 4, 64]))
    return PolicyPartition(
        msgspec.structs.replace(_PRICED, billing_rule=draw(st.sampled_from(BillingRule))),
        gpus=draw(st.dictionaries(st.sampled_from(["A100", "t4", "any"]), st.integers(0, 8))),
        memory_per_cpu=draw(st.sampled_from([0, 1000])),
        node_cpus=least,
        most_cpus=draw(st.sampled_from([least, 128])),
        node_memory=draw(st.sampled_from([0, 4096])),
        exclusive=draw(st.booleans()),
    )


@st.composite
def _requests(draw: st.DrawFn) -> ResourceRequest:
    kinds = draw(st.lists(st.sampled_from(["", "A100", "t4", "v100"]), max_size=2, unique=True))
    memory_per_node = draw(st.sampled_from([None, 0, 3000]))
    return ResourceRequest(
        nodes=draw(st.integers(1, 3)),
        tasks=draw(st.none() | st.integers(1, 90)),
        tasks_per_node=draw(st.none() | st.integers(1, 8)),
        cpus_per_task=draw(st.integers(1, 3)),
        memory_per_node=memory_per_node,
        memory_per_cpu=draw(st.sampled_from([None, 700])) if memory_per_node is None else None,
        gpus=tuple(Gpus(kind, draw(st.integers(1, 9))) for kind in kinds),
        exclusive=draw(st.booleans()),
    )


@given(place=_places(), wanted=_requests())
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_price_by_which_why_judges_is_that_of_the_policy(
    lua: Lua, place: PolicyPartition, wanted: ResourceRequest
) -> None:
    policy, partition, priced = _read_by_both(lua, place)
    counts = lua.module("request").counts(_lua_job(lua, wanted), partition)
    price = lua.module("price").amount(policy, partition, counts, "normal", 1)
    assert round_up(priced.units(PendingJob(number=1, wanted=wanted))) == price


@pytest.mark.parametrize(
    ("name", "word"),
    [("bio@gpu", "bio@gpu"), ("dept bio", "'dept bio'"), ("a;b", "'a;b'"), ("1d", "1d")],
)
def test_names_are_quoted_for_the_shell(lua: Lua, name: str, word: str) -> None:
    assert lua.module("text").shell_word(name) == word
