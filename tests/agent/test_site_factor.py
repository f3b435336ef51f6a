"""The agent keeps the table of site factors up to date with a real bank, and goes on without one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fairbank.agent.settings import agent_settings
from fairbank.slurm.site_factor import SiteFactorTable, decode
from fairbank.slurm.site_factor_writer import TableWriter
from tests.agent.conftest import SU, Centre
from tests.agent.running import RunningAgent, agent_at
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow

WEIGHT = 1_000_000
BENDS = {
    "linear": "",
    "power": "expiry.exponent = 2\n",
    "sigmoid": "expiry.steepness = 1_000_000\n",
}


def settings(path: Path, *lines: str) -> str:
    return (
        "\n".join(
            ["[site_factor]", f'path = "{path}"', f"weight = {WEIGHT}", "refresh = 0.1", *lines]
        )
        + "\n"
    )


def read(path: Path) -> SiteFactorTable:
    return decode(path.read_bytes())


def prepared(centre: Centre) -> int:
    """A project that ends late, and one that ends early and has all its credit. The number of the latter's allocation."""
    centre.project("far", 10 * SU)
    return centre.project("near", 10 * SU, end="2030-01-01")


def test_the_table_follows_the_bank(centre: Centre, tmp_path: Path) -> None:
    allocation, path = prepared(centre), tmp_path / "table"
    with agent_at(centre.address, tables=settings(path)) as agent:
        wait_until(path.exists, "a table")
        full = read(path).values["near", "cpu"]
        assert WEIGHT // 10 < full < WEIGHT
        assert read(path).values["far", "cpu"] == 0
        assert read(path).resources == centre.partitions()
        centre.withdraw(allocation, 10 * SU)
        wait_until(lambda: read(path).values["near", "cpu"] == 0, "the table to follow")
        shown = agent.command("agent", "status").stdout
        assert "factors    2 values, written 20" in shown
        assert agent.status()["site_factor"]["error"] is None


def test_the_settings_choose_the_rule(centre: Centre, tmp_path: Path) -> None:
    prepared(centre)
    values = {}
    for rule in ("linear", "power", "sigmoid"):
        text = f'[bank]\nserver = "{centre.address}"\n' + settings(
            tmp_path / rule, f'rule = "{rule}"'
        )
        writer = TableWriter(agent_settings((text + BENDS[rule]).encode()), now=time.time)
        writer.write()
        assert writer.status()["error"] is None
        values[rule] = read(tmp_path / rule).values["near", "cpu"]
    expiry = values["linear"] / WEIGHT  # all of the credit is left
    assert values["power"] == pytest.approx(WEIGHT * expiry**2, abs=3)
    assert values["sigmoid"] == (WEIGHT if expiry > 0.5 else 0)


def test_without_a_bank_the_old_table_stays_and_grows_stale(centre: Centre, tmp_path: Path) -> None:
    prepared(centre)
    path = tmp_path / "table"
    with agent_at(centre.address, tables=settings(path, "stale = 1")) as agent:
        wait_until(path.exists, "a table")
        centre.server.kill()
        wait_until(lambda: agent.status()["site_factor"]["error"], "the agent to notice")
        table = read(path)
        wait_until(
            lambda: table.value("near", "cpu", int(time.time())) == 0, "the table to be stale"
        )
        assert read(path) == table
        wait_until(lambda: "site factors are not written" in agent.said(), "a line in the log")
        time_told = agent.said().count("site factors are not written")
        centre.server.start()
        wait_until(lambda: read(path).written > table.written, "a new table")
        assert time_told <= 2  # once, or once more when the bank's way of being away changed
        assert "not written again" not in agent.command("agent", "status").stdout


def test_nothing_is_written_unless_a_path_is_set(centre: Centre, agent: RunningAgent) -> None:
    assert agent.status()["site_factor"] is None
    assert "factors" not in agent.command("agent", "status").stdout


def test_what_is_no_bank_is_told(agent: RunningAgent, tmp_path: Path) -> None:
    text = f'[bank]\nserver = "unix:{agent.control}"\n' + settings(tmp_path / "table")
    writer = TableWriter(agent_settings(text.encode()))
    writer.write()
    assert writer.status()["error"]
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    ("lines", "folder", "said"),
    [
        ('cluster = "elsewhere"', "", "the bank has no cluster 'elsewhere'"),
        ("", "no/such/", "cannot write"),
    ],
)
def test_what_keeps_it_from_writing_is_told(
    centre: Centre, tmp_path: Path, lines: str, folder: str, said: str
) -> None:
    text = f'[bank]\nserver = "{centre.address}"\n' + settings(tmp_path / f"{folder}table", lines)
    writer = TableWriter(agent_settings(text.encode()))
    writer.write()
    assert said in writer.status()["error"]
    assert writer.status()["remedy"]
    assert writer.status()["written"] is None
