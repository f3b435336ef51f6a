"""Requests of resources, as the Lua of the submission plug-ins reads them."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize, allocated_tres
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Partition
from fairbank.slurm.policy_file import render
from tests.plugins.interpreter import Lua
from tests.plugins.policies import CPU, GPU, OPEN_POLICY
from tests.support.gres import GPU_EXAMPLES, GRES_EXAMPLES


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
    partition = lua.table(node_cpus=0, node_memory=0, memory_per_cpu=0, gpus=lua.table())
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


@pytest.mark.parametrize(
    ("name", "word"),
    [("bio@gpu", "bio@gpu"), ("dept bio", "'dept bio'"), ("a;b", "'a;b'"), ("1d", "1d")],
)
def test_names_are_quoted_for_the_shell(lua: Lua, name: str, word: str) -> None:
    assert lua.module("text").shell_word(name) == word
