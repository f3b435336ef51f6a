"""Output files that cannot be written: the message names the file and has no error number."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.small_disk import small_disk

TRACE = "; UnixStartTime: 0\n1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Mount a directory read-only."""
    with small_disk(tmp_path / "ro", "64k") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        yield disk


def test_replay_into_a_read_only_directory_names_its_field(
    fairbank: Run, read_only: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "good.swf"
    trace.write_text(TRACE)
    result = fairbank("replay", trace, "--store", f"sqlite:///{read_only}/x.sqlite")
    words = " ".join(result.err.split())
    assert (result.code, "read-only" in words, "field: --store" in words, "Errno" in words) == (
        4,
        True,
        True,
        False,
    ), result.err


def test_backup_into_read_only_directory_does_not_blame_disk_space(
    fairbank: Run, read_only: Path, tmp_path: Path
) -> None:
    assert fairbank("init", tmp_path / "bank").code == 0
    result = fairbank(
        "backup", "create", read_only / "a.fbk", "--config", tmp_path / "bank" / "fairbank.toml"
    )
    words = " ".join(result.err.split())
    assert (
        result.code,
        "read-only" in words,
        "field: FILE" in words,
        "free disk space" in words,
    ) == (4, True, True, False), result.err


def test_output_on_a_full_disk() -> None:
    with open("/dev/full", "w", encoding="ascii") as full:
        process = subprocess.run(
            [sys.executable, "-m", "fairbank.cli", "help", "exit-codes"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr.splitlines() == [
        "fairbank: the output cannot be written: the disk is full",
        "  try: free disk space, or name a path on another disk",
    ]
