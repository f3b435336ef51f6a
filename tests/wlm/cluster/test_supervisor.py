"""Tests of the supervisor with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.wlm import supervisor
from fairbank.wlm.stepd.processes import process_table
from fairbank.wlm.supervisor import PAUSE_SECONDS, SupervisedDaemon
from tests.support.conditions import wait_until

WORK = ["sh", "-c", "trap 'echo end; exit' TERM; echo start; while :; do sleep 0.02; done"]


class Supervised:
    """Supervisor of some programs in a directory."""

    def __init__(self, directory: Path, programs: dict[str, list[str]]) -> None:
        self.directory = directory
        rows = [
            {"name": name, "command": command, "log": str(directory / name)}
            for name, command in programs.items()
        ]
        (directory / "daemons.json").write_text(json.dumps(rows))
        command = [sys.executable, "-P", "-m", supervisor.__name__, str(directory)]
        self.process = subprocess.Popen(command)

    def state(self, name: str) -> dict[str, Any]:
        """Return the state of a daemon; empty before it is known."""
        try:
            written = json.loads((self.directory / "supervisor.json").read_bytes())
        except FileNotFoundError:
            return {}
        return next(daemon for daemon in written["daemons"] if daemon["name"] == name)

    def running(self, name: str, *, restarts: int = 0) -> int:
        """Return the process id of a daemon once it was started so often."""
        wait_until(
            lambda: self.state(name).get("pid") and self.state(name)["restarts"] == restarts,
            f"{name} to run",
        )
        wait_until(
            lambda: self.log(name).count("start") > restarts, "its trap, without which TERM ends it"
        )
        return int(self.state(name)["pid"])

    def log(self, name: str) -> str:
        file = self.directory / name
        return file.read_text() if file.exists() else ""


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    programs = {"first": WORK, "second": WORK, "missing": ["/no/such/program"]}
    started = Supervised(tmp_path, programs)
    yield started
    started.process.terminate()
    started.process.wait()


def is_alive(pid: int) -> bool:
    """Return True if the process runs: an orphan that has ended waits for its new parent."""
    process = process_table().get(pid)
    return process is not None and not process.is_zombie


def test_killed_daemon_is_started_again(supervised: Supervised) -> None:
    other = supervised.running("second")
    os.kill(supervised.running("first"), signal.SIGKILL)
    supervised.running("first", restarts=1)
    assert supervised.state("first")["end"] == "ended with signal 9"
    assert supervised.running("second") == other


def test_full_disk_ends_no_daemon_and_the_state_is_written_later(supervised: Supervised) -> None:
    first, second = supervised.running("first"), supervised.running("second")
    new = supervised.directory / ".supervisor.json"
    new.symlink_to("/dev/full")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: supervised.log("first").count("start") == 2, "the first to run again")
    assert supervised.state("first")["pid"] == first
    assert supervised.process.poll() is None
    new.unlink()
    supervised.running("first", restarts=1)
    assert supervised.running("second") == second


def test_program_that_cannot_be_started_stops_no_other(supervised: Supervised) -> None:
    supervised.running("first")
    state = supervised.state("missing")
    assert (state["pid"], state["end"].startswith("could not be started")) == (None, True)


def test_termination_ends_all_daemons_and_removes_the_state(supervised: Supervised) -> None:
    pids = [supervised.running(name) for name in ("first", "second")]
    supervised.process.terminate()
    assert supervised.process.wait() == 0
    assert not any(map(is_alive, pids))
    assert [supervised.log(name).split() for name in ("first", "second")] == [["start", "end"]] * 2
    assert not (supervised.directory / "supervisor.json").exists()


def test_daemons_end_with_a_killed_supervisor(supervised: Supervised) -> None:
    pids = [supervised.running(name) for name in ("first", "second")]
    supervised.process.kill()
    wait_until(lambda: not any(map(is_alive, pids)), "the daemons to end")


def test_pause_grows_while_a_daemon_fails(tmp_path: Path) -> None:
    daemon = SupervisedDaemon("failing", ["false"], str(tmp_path / "log"))
    pauses = []
    for _ in range(4):
        daemon.start()
        wait_until(daemon.has_ended, "the program to end")
        assert daemon.due is not None
        pauses.append(daemon.due - time.monotonic())
    assert [round(pause / PAUSE_SECONDS) for pause in pauses] == [1, 2, 4, 8]


def test_daemon_that_ignores_the_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.1)
    deaf = ["sh", "-c", "trap '' TERM; echo start; while :; do sleep 0.02; done"]
    daemon = SupervisedDaemon("deaf", deaf, str(tmp_path / "log"))
    daemon.start()
    wait_until(lambda: "start" in (tmp_path / "log").read_text(), "its trap")
    daemon.stop()
    wait_until(daemon.has_ended, "the program to end")
    assert daemon.state()["end"] == "ended with signal 9"


def test_large_log_is_emptied_and_its_daemon_writes_on(tmp_path: Path) -> None:
    chatty = (
        f"i=0; yes x | head -c {supervisor.LOG_BYTES}; while :; do echo $((i+=1)); sleep 0.02; done"
    )
    (tmp_path / "old").write_bytes(b"old\n" + bytes(supervisor.LOG_BYTES))
    # Each end of `short` is an occasion for a check.
    programs = {"chatty": ["sh", "-c", chatty], "short": ["true"], "old": ["echo", "new"]}
    supervised = Supervised(tmp_path, programs)
    try:
        saved = tmp_path / "chatty.1"
        wait_until(saved.exists, "the copy")
        wait_until(lambda: supervised.log("chatty")[:1] not in ("", "x"), "lines behind the copy")
        assert saved.stat().st_size > supervisor.LOG_BYTES
        assert (tmp_path / "chatty").stat().st_size < supervisor.LOG_BYTES
        assert supervised.log("chatty")[:1].isdigit()
        assert (tmp_path / "old.1").read_bytes()[:4] == b"old\n"
        assert supervised.log("old").startswith("new\n")
    finally:
        supervised.process.terminate()
        supervised.process.wait()
