"""Tests of the end of a daemon."""

from __future__ import annotations

import subprocess
import sys

WAITING = """
import threading
from fairbank.rest.server.daemon_tasks import limit_end
limit_end(0.1)
threading.Event().wait()
"""

FAILING = """
import asyncio, threading
from fairbank.rest.server import daemon_tasks
daemon_tasks.limit_end.__defaults__ = (0.1,)
async def fail():
    raise ValueError("planted")
async def run():
    stopping = asyncio.Event()
    tasks = daemon_tasks.DaemonTasks("the daemon", stopping.set)
    tasks.handle_signals()
    tasks.start(fail())
    await stopping.wait()
    threading.Event().wait()
asyncio.run(run())
"""


def test_end_of_a_daemon_whose_task_fails_is_bounded() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FAILING], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert "the daemon has a bug and stops" in ended.stderr
    assert "in run\n" in ended.stderr


def test_daemon_that_waits_for_others_ends_and_says_where_it_waited() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "in wait\n" in ended.stderr
