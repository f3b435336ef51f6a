"""Commands in this process, and the environment that they see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.program import run
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.shell import Shell
from tests.wlm.controller.small_cluster import SmallCluster


class Outcome(NamedTuple):
    """Exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


RunCommand = Callable[..., Outcome]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallCluster]:
    """Return a controller and a node daemon for the tests of a module."""
    one = SmallCluster(Path(tmp_path_factory.mktemp("cluster")))
    one.start()
    yield one
    with Controller(one.directory) as controller:
        requests.change_jobs(controller, "cancel", [], filter={"states": ["PENDING", "RUNNING"]})
    one.close()


@pytest.fixture
def shell(cluster: SmallCluster, tmp_path: Path) -> Shell:
    """Return the commands of a user of the cluster, in an empty directory."""
    return Shell(cluster, tmp_path)


@pytest.fixture
def cluster_directory(controller: RecordingController) -> Path:
    """Return the directory of a recording controller."""
    return controller.directory


@pytest.fixture
def command(
    cluster_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> RunCommand:
    """Return a function that runs a command in an empty directory beside the controller."""
    monkeypatch.setenv("FAIRBANK_CLUSTER", str(cluster_directory))
    monkeypatch.chdir(tmp_path)

    def execute(*words: str) -> Outcome:
        code = run(words[0], words[1:])
        return Outcome(code, *capfd.readouterr())

    return execute
