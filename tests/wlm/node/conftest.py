"""Node daemons of a test; what their jobs leave behind is ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wlm.node.running_node import RunningNode, StartNode


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[StartNode]:
    nodes: list[RunningNode] = []

    def start(**settings: Any) -> RunningNode:
        nodes.append(RunningNode(tmp_path, **settings))
        return nodes[-1]

    yield start
    for node in nodes:
        node.close()


@pytest.fixture
def node(start_node: StartNode) -> RunningNode:
    return start_node()
