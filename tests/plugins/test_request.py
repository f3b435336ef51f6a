"""Requests of resources, as the Lua of the submission plug-ins reads them."""

from __future__ import annotations

import pytest

from tests.plugins.interpreter import Lua
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


@pytest.mark.parametrize(
    ("name", "word"),
    [("bio@gpu", "bio@gpu"), ("dept bio", "'dept bio'"), ("a;b", "'a;b'"), ("1d", "1d")],
)
def test_names_are_quoted_for_the_shell(lua: Lua, name: str, word: str) -> None:
    assert lua.module("text").shell_word(name) == word
