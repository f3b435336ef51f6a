"""Servers of the tests: none outlives the tests, even if they are killed; killing one kills its
children.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK
from tests.support.supervisor import ProcessSpec, SupervisedProcess, children

FAMILY = ["sh", "-c", "sleep 1000 & sleep 1000 & wait"]


def test_stop_ends_the_server_and_leaves_its_directory(tmp_path: Path) -> None:
    server = SupervisedProcess(_process_spec(tmp_path))
    server.stop()
    assert not server.running
    assert tmp_path.is_dir()


def test_kill_ends_the_children_too(tmp_path: Path) -> None:
    server = SupervisedProcess(_process_spec(tmp_path))
    wait_until(lambda: len(children(server.pid)) == 2, "the server to have two children")
    family = [server.pid, *children(server.pid)]
    server.kill()
    wait_until(lambda: not any(map(_alive, family)), "the whole family to be gone")


def test_stop_and_kill_can_be_repeated(tmp_path: Path) -> None:
    server = SupervisedProcess(_process_spec(tmp_path))
    for end in (server.kill, server.kill, server.stop):
        end()
        assert not server.running


@pytest.mark.parametrize(
    ("around", "command"),
    [
        ("nullcontext", FAMILY),
        ("preloaded", [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "0"]),
    ],
    ids=["executed", "forked"],
)
def test_server_ends_when_the_tests_are_killed(
    tmp_path: Path, checkout: Path, around: str, command: list[str]
) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    program = (
        "import sys; from contextlib import nullcontext\n"
        "from tests.support.preloaded import preloaded\n"
        "from tests.support.supervisor import SupervisedProcess, ProcessSpec\n"
        f"spec = ProcessSpec(**{asdict(_process_spec(folder, command))!r})\n"
        f"with {around}():\n"
        # Without a name it would be collected, and its pipe closed, which ends the server.
        "    server = SupervisedProcess(spec)\n"
        "    print(server.pid, flush=True)\n"
        "    sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as tests:
        assert tests.stdout is not None
        server = int(tests.stdout.readline())
        wait_until((folder / "log").exists, "the server to begin")
        assert _alive(server)
        tests.kill()
    wait_until(lambda: not _alive(server), "the server to end with its tests")
    wait_until(lambda: not folder.exists(), "its folder to be removed")


@pytest.mark.parametrize(("word", "code"), [("-V", 0), ("no-such-command", 2)])
def test_forked_program_has_its_own_log_and_exit_code(tmp_path: Path, word: str, code: int) -> None:
    server = SupervisedProcess(_process_spec(tmp_path, [FAIRBANK, word]))
    wait_until(lambda: not server.running, "the command to end")
    assert server.stop() == code
    assert "fairbank" in (tmp_path / "log").read_text()


def _process_spec(folder: Path, command: list[str] = FAMILY) -> ProcessSpec:
    us = Account.ourselves()
    return ProcessSpec(
        command=command,
        environment={"PATH": "/usr/bin:/bin"},
        folder=str(folder),
        log=str(folder / "log"),
        uid=us.uid,
        gid=us.gid,
        groups=us.groups,
        stop_signal=int(signal.SIGTERM),
    )


def _alive(pid: int) -> bool:
    """Return True while the process runs; a zombie does not."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
