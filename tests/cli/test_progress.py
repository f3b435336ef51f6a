"""Progress of long tasks on a terminal."""

from __future__ import annotations

import io
from argparse import Namespace

import pytest

from fairbank.cli.framework.progress import CLEAR_LINE, ProgressBar

OPTIONS = Namespace(progress="auto", quiet=False)


class Terminal(io.StringIO):
    """Screen of a user."""

    def isatty(self) -> bool:
        return True


def progress_lines(screen: Terminal) -> list[str]:
    """Return the successive contents of the progress line."""
    return screen.getvalue().split(CLEAR_LINE)[1:]


def test_progress_without_a_total_shows_the_elapsed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at, lines = [100.0], Terminal()
    monkeypatch.setattr("sys.stderr", lines)
    monkeypatch.setattr("time.monotonic", lambda: at[0])
    with ProgressBar("backup", OPTIONS) as progress:
        for seconds in (100.0, 100.05, 175.0, 175.01, 180.0):
            at[0] = seconds
            progress.wait("is it sound")
        at[0] = 182.0
        progress(50, 100)
        at[0] = 192.0
        progress(100, 100)
    assert progress_lines(lines)[:3] == [
        "backup: is it sound",
        "backup: is it sound (1:15)",
        "backup: is it sound (1:20)",
    ]
    assert progress_lines(lines)[-2].endswith("100%  10/s"), (
        "by the time since it was counted, not since it was waited for"
    )
    assert progress_lines(lines)[-1] == "", "the line is gone at the end"


def test_progress_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Terminal()
    monkeypatch.setattr("sys.stderr", lines)
    monkeypatch.setenv("COLUMNS", "40")
    with ProgressBar("read the journals", OPTIONS) as progress:
        progress(100, 100)
    assert max(map(len, progress_lines(lines))) == 39
