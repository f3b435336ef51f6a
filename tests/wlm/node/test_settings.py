"""Settings and start of the node daemon: each mistake is named, and nothing starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from fairbank.wlm.node.settings import HostedNode, NodeSettings
from fairbank.wlm.node.usage import read_host
from tests.wlm.node.running_node import StartNode


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "fairbank.wlm.node", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, 3, "no such file or directory"),
        ("{", 2, "has no settings of a node"),
        ('{"nodes": []}', 2, "nodes"),
        ('{"nodes": [{"name": "n", "spool": "/s", "socket": "/s", "cpus": 0}]}', 2, "cpus"),
        ('{"nodes": [{"name": "n", "spool": "/s", "socket": "/s"}], "x": 1}', 2, "`x`"),
    ],
    ids=["missing", "cut", "no-nodes", "no-cpus", "unknown"],
)
def test_wrong_settings_are_named(
    tmp_path: Path, content: str | None, code: int, message: str
) -> None:
    path = tmp_path / "node.json"
    if content is not None:
        path.write_text(content)
    result = start(str(path))
    assert result.returncode == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_missing_argument_shows_the_usage() -> None:
    result = start()
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage:")


def test_spool_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    hosted = HostedNode(name="n1", spool=f"{tmp_path}/file/spool", socket=f"{tmp_path}/s")
    path = tmp_path / "node.json"
    path.write_bytes(msgspec.json.encode(NodeSettings(nodes=(hosted,))))
    result = start(str(path))
    assert result.returncode == 2
    assert f"cannot create {tmp_path}/file/spool/jobs" in result.stderr


def test_node_without_resources_has_those_of_the_host(
    start_node: StartNode, tmp_path: Path
) -> None:
    hosted = HostedNode(name="n1", spool=f"{tmp_path}/spool", socket=f"{tmp_path}/n1.sock")
    host = read_host()
    registration = start_node(nodes=(hosted,)).controller.registration
    assert (registration.cpus, registration.memory) == (host.cpus, host.memory)
    mode = (tmp_path / "spool").stat().st_mode & 0o777
    assert mode == 0o700
