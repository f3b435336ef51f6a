"""The plug-in's keeper without Slurm: a thread that looks at the table. The compiler watches threads and memory."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.slurm.site_factor import SiteFactorTable, encode
from fairbank.slurm.sync import replace_file
from tests.slurm.site_factor import GUARDS, compiled
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


class Keeper:
    """The plug-in's thread at work on a file."""

    def __init__(self, program: Path, file: Path) -> None:
        self.file = file
        self.process = subprocess.Popen(
            [program, "keep", file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.logged: list[str] = []

    def value(self, account: str = "chem", partition: str = "cpu") -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{account} {partition}\n")
        self.process.stdin.flush()
        while (line := self.process.stdout.readline().strip()).startswith(("info ", "error ")):
            self.logged.append(line)
        return int(line)

    def wait_for(self, value: int) -> None:
        wait_until(lambda: self.value() == value, f"the keeper to say {value}")

    def wait_for_line(self, beginning: str, what: str) -> None:
        def told() -> bool:
            self.value()
            return (
                bool(self.logged)
                and self.logged[-1].startswith(beginning)
                and what in self.logged[-1]
            )

        wait_until(told, f"the keeper to tell: {what}")

    def write(self, value: int, *, written: float | None = None, stale: int = 600) -> None:
        table = SiteFactorTable(
            int(time.time() if written is None else written),
            stale,
            {"cpu": "cpu"},
            {("chem", "cpu"): value},
        )
        replace_file(self.file, encode(table))


@pytest.fixture(params=GUARDS)
def keeper(request: pytest.FixtureRequest, checkout: Path, tmp_path: Path) -> Iterator[Keeper]:
    found = Keeper(compiled(checkout, tmp_path, request.param), tmp_path / "table")
    try:
        yield found
        _, said = found.process.communicate(timeout=20)
        assert (found.process.returncode, said) == (0, "")
    finally:
        found.process.kill()


def test_a_new_table_is_seen_and_each_trouble_is_told_once(keeper: Keeper) -> None:
    keeper.wait_for_line("error", "No such file")
    assert keeper.value() == 0
    keeper.write(7)
    keeper.wait_for(7)
    keeper.wait_for_line("info", "in use")
    keeper.write(-8)
    keeper.wait_for(-8)
    keeper.write(9, written=time.time() - 601)
    keeper.wait_for(0)
    keeper.wait_for_line("error", "stale")
    keeper.write(9, written=time.time() + 3_600)
    keeper.wait_for(0)
    keeper.write(10)
    keeper.wait_for(10)
    keeper.file.write_bytes(b"FBSITEF\n")  # shortened in place, as no agent would
    keeper.wait_for(0)
    keeper.wait_for_line("error", "no table")
    keeper.write(11)
    keeper.wait_for(11)
    keeper.file.unlink()
    keeper.wait_for(0)
    keeper.file.mkdir()
    keeper.wait_for_line("error", "no plain file")
    assert [line.split()[0] for line in keeper.logged] == [
        "error",
        "info",
        "error",
        "info",
        "error",
        "info",
        "error",
        "error",
    ]


def test_a_table_grows_stale_by_itself(keeper: Keeper) -> None:
    keeper.write(7, stale=2)
    keeper.wait_for(7)
    keeper.wait_for(0)
    keeper.wait_for_line("error", "stale")


def test_whoever_asks_meanwhile_gets_the_old_or_the_new(keeper: Keeper) -> None:
    keeper.write(1)
    keeper.wait_for(1)
    seen = set()
    for value in range(2, 120):
        keeper.write(value)
        seen |= {keeper.value() for _ in range(20)}
    keeper.wait_for(119)
    assert seen <= set(range(1, 120))
