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


def test_daemon_that_waits_for_others_ends_and_says_where_it_waited() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "in wait\n" in ended.stderr
