"""Reload of the site factor plug-in's table without Slurm, built with sanitizers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.slurm.site_factor import SiteFactorTable, encode
from fairbank.slurm.sync import replace_file
from tests.slurm.site_factor import SANITIZERS, compiled
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow


class Reload:
    """Process in which the plug-in's thread reloads a file."""

    def __init__(self, program: Path, file: Path) -> None:
        self.file = file
        self.process = subprocess.Popen(
            [program, "reload", file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.logged: list[str] = []

    def value(self, account: str = "chem", partition: str = "cpu") -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{account}\t{partition}\n")
        self.process.stdin.flush()
        while (line := self.process.stdout.readline().strip()).startswith(("info ", "error ")):
            self.logged.append(line)
        return int(line)

    def wait_for(self, value: int) -> None:
        wait_until(lambda: self.value() == value, f"the value {value}")

    def wait_for_line(self, level: str, text: str) -> None:
        def is_logged() -> bool:
            self.value()
            return (
                bool(self.logged) and self.logged[-1].startswith(level) and text in self.logged[-1]
            )

        wait_until(is_logged, f"the line: {text}")

    def write(self, value: int, *, written: float | None = None, stale: int = 600) -> None:
        table = SiteFactorTable(
            int(time.time() if written is None else written),
            stale,
            {"cpu": "cpu"},
            {("chem", "cpu"): value},
        )
        replace_file(self.file, encode(table))


@pytest.fixture(params=SANITIZERS)
def reload(request: pytest.FixtureRequest, checkout: Path, tmp_path: Path) -> Iterator[Reload]:
    process = Reload(compiled(checkout, tmp_path, request.param), tmp_path / "table")
    try:
        yield process
        _, errors = process.process.communicate(timeout=20)
        assert (process.process.returncode, errors) == (0, "")
    finally:
        process.process.kill()


def test_new_table_is_loaded_and_each_error_logged_once(reload: Reload) -> None:
    reload.wait_for_line("error", "No such file")
    assert reload.value() == 0
    reload.write(7)
    reload.wait_for(7)
    reload.wait_for_line("info", "in use")
    reload.write(-8)
    reload.wait_for(-8)
    reload.write(9, written=time.time() - 601)
    reload.wait_for(0)
    reload.wait_for_line("error", "stale")
    reload.write(9, written=time.time() + 3_600)
    reload.wait_for(0)
    reload.write(10)
    reload.wait_for(10)
    reload.file.write_bytes(b"FBSITEF\n")  # shortened in place, as no agent would
    reload.wait_for(0)
    reload.wait_for_line("error", "not a table")
    reload.write(11)
    reload.wait_for(11)
    reload.file.unlink()
    reload.wait_for(0)
    reload.file.mkdir()
    reload.wait_for_line("error", "not a plain file")
    assert [line.split()[0] for line in reload.logged] == [
        "error",
        "info",
        "error",
        "info",
        "error",
        "info",
        "error",
        "error",
    ]


def test_table_becomes_stale(reload: Reload) -> None:
    reload.write(7, stale=2)
    reload.wait_for(7)
    reload.wait_for(0)
    reload.wait_for_line("error", "stale")


def test_reader_gets_the_old_or_the_new_table(reload: Reload) -> None:
    reload.write(1)
    reload.wait_for(1)
    values = set()
    for value in range(2, 120):
        reload.write(value)
        values |= {reload.value() for _ in range(20)}
    reload.wait_for(119)
    assert values <= set(range(1, 120))
