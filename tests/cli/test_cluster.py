"""Tests of `fairbank cluster` and `fairbank env` without a running cluster: wrong input."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairbank.cli import main
from fairbank.cli.commands.cluster import down
from fairbank.cli.commands.cluster.directory import ClusterDirectory
from fairbank.core.errors import NotFound, Unavailable
from fairbank.wlm.protocol.commands import (
    PAGE,
    AnyRequest,
    CancelRequest,
    RowsRequest,
    UpdateRequest,
)
from fairbank.wlm.protocol.messages import error_message
from tests.cli.conftest import Run, runner
from tests.wlm.client.recording_controller import Answer, RecordingController


@pytest.fixture
def fairbank(clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command without any cluster or bank."""
    for name in ("FAIRBANK_CLUSTER", "FAIRBANK_SERVER", "FAIRBANK_CONFIG"):
        clean_env.delenv(name, raising=False)
    return runner(main.run, capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--nodes", "0"), "'0' is not a whole number from 1 on"),
        (("--nodes", "-2"), "--nodes"),
        (("--nodes", "many"), "'many' is not a whole number"),
        (("--nodes", "1001"), "1001 is too many: at most 1,000"),
        (("--cpus", "0"), "'0' is not a whole number from 1 on"),
        (("--cpus", "2.5"), "'2.5' is not a whole number from 1 on"),
        (("--memory", "16X"), "'16X' is not a size of memory"),
        (("--memory", "-1G"), "--memory"),
        (("--memory", "0"), "a node needs memory"),
        (("--dir", ""), "the directory is empty"),
        (("--dir", "a:b"), "has a colon"),
        (("--dir", "a b"), "a blank"),
        (("--dir", "b\xfccher"), "not printable ASCII"),
        (("--dir", "a\nb"), "not printable ASCII"),
        (("--config", "no.toml"), "cannot read no.toml"),
        (("--config", "no.toml", "--nodes", "2"), "exclude each other"),
    ],
    ids=lambda value: " ".join(value).replace("\n", " ") if isinstance(value, tuple) else "",
)
def test_wrong_option_of_up_is_refused_by_name(
    fairbank: Run,
    clean_env: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    message: str,
) -> None:
    clean_env.chdir(tmp_path)
    refused = fairbank("cluster", "up", *words)
    assert refused.code in (2, 3)
    assert message in " ".join(refused.err.split())
    assert "try:" in refused.err


def test_path_too_long_for_a_socket_is_refused_with_one_that_fits(
    fairbank: Run, tmp_path: Path
) -> None:
    refused = fairbank("cluster", "up", "--dir", tmp_path / ("d" * 100))
    assert refused.code == 2
    assert "at most 107 bytes" in refused.err
    assert f"fairbank cluster up --dir /var/tmp/fairbank-{os.geteuid()}" in " ".join(
        refused.err.split()
    )


def test_directory_with_other_content_is_left_alone(fairbank: Run, tmp_path: Path) -> None:
    tmp_path.joinpath("thesis.txt").touch()
    mode = tmp_path.stat().st_mode
    refused = fairbank("cluster", "up", "--dir", tmp_path)
    assert (refused.code, "has other content" in " ".join(refused.err.split())) == (7, True)
    names = [path.name for path in tmp_path.iterdir()]
    assert (names, tmp_path.stat().st_mode) == (["thesis.txt"], mode)


def test_file_in_place_of_the_directory_is_refused(fairbank: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert fairbank("cluster", "up", "--dir", file).code == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory away")
def test_directory_of_another_user_is_refused(fairbank: Run, tmp_path: Path) -> None:
    place = tmp_path / "theirs"
    place.mkdir()
    os.chown(place, 65_534, 65_534)
    refused = fairbank("cluster", "up", "--dir", place)
    assert (refused.code, "belongs to another user" in " ".join(refused.err.split())) == (4, True)


def test_settings_with_a_fault_change_nothing(fairbank: Run, tmp_path: Path) -> None:
    file, place = tmp_path / "wlm.toml", tmp_path / "q"
    file.write_text('[cluster]\ncluster_name = "ws17"\nspeed = 3\n')
    refused = fairbank("cluster", "up", "--dir", place, "--config", file)
    assert (refused.code, "line 3" in refused.err) == (2, True)
    assert [path.name for path in place.iterdir()] == ["lock"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "words", [("cluster", "down"), ("cluster", "status"), ("env",)], ids=" ".join
)
def test_commands_without_a_cluster_say_how_to_start_one(
    fairbank: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    refused = fairbank(*words)
    assert refused.code == 3
    assert f"there is no cluster in {tmp_path}/.local/state/fairbank/cluster" in " ".join(
        refused.err.split()
    )
    assert "fairbank cluster up" in refused.err


class ClusterWithJobs:
    """Controller of a cluster with jobs, which end when they are canceled.

    The cluster counts as up until its jobs are seen as ended. `refuse_changes` is how many jobs or
    partitions it does not change, because its state cannot be stored. `starting` begins before the
    first partition is closed.
    """

    def __init__(self, directory: Path, *, jobs: int = 1, partitions: int = 1) -> None:
        (directory / "wlm.toml").touch()
        self._supervisor: int | None = ClusterDirectory(directory).lock()
        self.jobs: list[list[object]] = [
            [number, "task", None, None] for number in range(1, jobs + 1)
        ]
        self.partitions = [[f"p{number}", "UP"] for number in range(partitions)]
        self.changed: list[tuple[str, str]] = []
        self.canceled: list[Sequence[str]] = []
        self.refuse_changes = 0
        self.starting: list[list[object]] = []
        self._controller = RecordingController(directory)
        self._controller.answer = self._answer

    def close(self) -> None:
        self._controller.close()
        if self._supervisor is not None:
            os.close(self._supervisor)

    def _answer(self, request: AnyRequest) -> Answer:
        if isinstance(request, CancelRequest):
            self.canceled.append(request.jobs)
            return {"results": [self._cancel(job) for job in request.jobs]}
        if isinstance(request, UpdateRequest):
            return self._refusal() or self._set_state(request.fields)
        assert isinstance(request, RowsRequest)
        rows, first = getattr(self, request.of), int(request.after or 0)
        if request.of == "jobs" and not rows and self._supervisor is not None:
            os.close(self._supervisor)
            self._supervisor = None
        after = str(first + PAGE) if len(rows) > first + PAGE else None
        page = rows[first : first + PAGE]
        return {"change": 1, "columns": [], "rows": page, "after": after, "now": 0, "cluster": ""}

    def _cancel(self, name: str) -> dict[str, Any]:
        refusal = self._refusal()
        if refusal is None:
            self.jobs = [job for job in self.jobs if str(job[0]) != name]
        return {"job": name, "error": None if refusal is None else error_message(refusal)}

    def _set_state(self, fields: Mapping[str, str]) -> Answer:
        if fields["PartitionName"] not in [name for name, _ in self.partitions]:
            return NotFound("there is no such partition")
        self.changed.append((fields["PartitionName"], fields["State"]))
        self.jobs += self.starting
        self.starting = []
        return {}

    def _refusal(self) -> Unavailable | None:
        if not self.refuse_changes:
            return None
        self.refuse_changes -= 1
        return Unavailable("the controller cannot store its state now", remedy="free disk space")


@pytest.fixture
def cluster_directory(tmp_path: Path, clean_env: pytest.MonkeyPatch, fairbank: Run) -> Path:
    clean_env.setenv("FAIRBANK_CLUSTER", str(tmp_path))
    return tmp_path


def test_down_now_ends_more_jobs_than_an_answer_has(fairbank: Run, cluster_directory: Path) -> None:
    with closing(ClusterWithJobs(cluster_directory, jobs=PAGE + 1, partitions=PAGE + 1)) as many:
        code, _, err = fairbank("cluster", "down")
        assert (code, f"{PAGE + 1} jobs run: 1 (task)" in " ".join(err.split())) == (7, True)
        assert fairbank("cluster", "down", "--now")[0] == 0
    assert many.jobs == []
    assert len(many.changed) == PAGE + 1


def test_down_now_ends_a_job_that_starts_before_its_partition_is_closed(
    fairbank: Run, cluster_directory: Path
) -> None:
    with closing(ClusterWithJobs(cluster_directory)) as cluster:
        cluster.starting = [[2, "late", None, None]]
        assert fairbank("cluster", "down", "--now").code == 0
    assert cluster.canceled == [("1", "2")]


@pytest.mark.parametrize("partitions", [1, 0], ids=["partition", "job"])
def test_down_now_repeats_a_change_that_could_not_be_stored(
    fairbank: Run, cluster_directory: Path, partitions: int
) -> None:
    with closing(ClusterWithJobs(cluster_directory, jobs=2, partitions=partitions)) as cluster:
        cluster.refuse_changes = 3
        assert fairbank("cluster", "down", "--now").code == 0
    assert (len(cluster.changed), cluster.jobs) == (partitions, [])


def test_down_now_ends_nothing_while_the_state_cannot_be_stored(
    fairbank: Run, cluster_directory: Path, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setattr(down, "STORAGE_SECONDS", 0.2)
    with closing(ClusterWithJobs(cluster_directory)) as cluster:
        cluster.refuse_changes = 1_000_000
        code, out, err = fairbank("cluster", "down", "--now")
        assert (code, out) == (6, "")
        assert "the controller cannot store its state now" in " ".join(err.split())
        assert ClusterDirectory(cluster_directory).is_up()


def test_partitions_of_every_down_now_are_opened_by_the_next_up(
    fairbank: Run, cluster_directory: Path, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setattr(down, "STORAGE_SECONDS", 0.0)
    with closing(ClusterWithJobs(cluster_directory, partitions=2)) as cluster:
        cluster.partitions = [["p0", "UP"], ["p1", "DOWN"]]
        cluster.refuse_changes = 1_000_000
        assert fairbank("cluster", "down", "--now").code == 6
        cluster.partitions = [["p0", "DOWN"], ["p1", "UP"]]
        assert fairbank("cluster", "down", "--now").code == 6
        cluster.refuse_changes = 0
        down.open_partitions(ClusterDirectory(cluster_directory))
        assert cluster.changed == [("p0", "UP"), ("p1", "UP")]


def test_closed_partition_that_is_gone_keeps_no_other_one_closed(
    fairbank: Run, cluster_directory: Path
) -> None:
    directory = ClusterDirectory(cluster_directory)
    (directory.path / down.CLOSED).write_text('["gone", "p0"]')
    with closing(ClusterWithJobs(cluster_directory)) as cluster:
        for _ in range(2):
            down.open_partitions(directory)
    assert cluster.changed == [("p0", "UP")]
