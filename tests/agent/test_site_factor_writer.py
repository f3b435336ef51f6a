"""Table of site factors: written from a real bank, and kept during an outage."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fairbank.slurm.agent_settings import agent_settings
from fairbank.slurm.site_factor import SiteFactorTable, TableWriter, decode
from tests.agent.conftest import SU, Site
from tests.agent.running_agent import RunningAgent, agent_at
from tests.slurm.site_factor import value_of
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


def create_projects(site: Site) -> int:
    """Create two projects, one whose credit expires early; return the number of that allocation."""
    site.project("far", 10 * SU)
    return site.project("near", 10 * SU, end="2030-01-01")


def test_table_follows_the_bank(site: Site, tmp_path: Path) -> None:
    allocation, path = create_projects(site), tmp_path / "table"
    with agent_at(site.address, tables=settings(path)) as agent:
        wait_until(path.exists, "a table")
        full = read(path).values["near", "cpu"]
        assert WEIGHT // 10 < full < WEIGHT
        assert read(path).values["far", "cpu"] == 0
        assert read(path).resources == site.partitions()
        site.withdraw(allocation, 10 * SU)
        wait_until(lambda: read(path).values["near", "cpu"] == 0, "the table to follow")
        shown = agent.command("agent", "status").stdout
        assert "factors    2 values, written 20" in shown
        assert agent.status()["site_factor"]["error"] is None


def test_settings_choose_the_rule(site: Site, tmp_path: Path) -> None:
    create_projects(site)
    values = {}
    for rule in ("linear", "power", "sigmoid"):
        text = f'[bank]\nserver = "{site.address}"\n' + settings(
            tmp_path / rule, f'rule = "{rule}"'
        )
        writer = TableWriter(agent_settings((text + BENDS[rule]).encode()), now=time.time)
        writer.write()
        assert writer.status()["error"] is None
        values[rule] = read(tmp_path / rule).values["near", "cpu"]
    expiry = values["linear"] / WEIGHT  # all of the credit is left
    assert values["power"] == pytest.approx(WEIGHT * expiry**2, abs=3)
    assert values["sigmoid"] == (WEIGHT if expiry > 0.5 else 0)


def test_old_table_becomes_stale_without_a_bank(site: Site, tmp_path: Path) -> None:
    create_projects(site)
    path = tmp_path / "table"
    with agent_at(site.address, tables=settings(path, "stale = 1")) as agent:
        wait_until(path.exists, "a table")
        site.server.kill()
        wait_until(lambda: agent.status()["site_factor"]["error"], "the agent to notice")
        table = read(path)
        wait_until(
            lambda: value_of(table, "near", "cpu", int(time.time())) == 0, "the table to be stale"
        )
        assert read(path) == table
        wait_until(lambda: "site factors are not written" in agent.log_text(), "a line in the log")
        reported = agent.log_text().count("site factors are not written")
        site.server.start()
        wait_until(lambda: read(path).written > table.written, "a new table")
        assert reported <= 2  # again if the kind of outage changed
        assert "not written again" not in agent.command("agent", "status").stdout


def test_no_table_without_a_path(site: Site, agent: RunningAgent) -> None:
    assert agent.status()["site_factor"] is None
    assert "factors" not in agent.command("agent", "status").stdout


def test_other_server_is_an_error(agent: RunningAgent, tmp_path: Path) -> None:
    text = f'[bank]\nserver = "unix:{agent.control}"\n' + settings(tmp_path / "table")
    writer = TableWriter(agent_settings(text.encode()))
    writer.write()
    assert writer.status()["error"] == "the pages are /status, /metrics, /health"
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    ("lines", "folder", "text_part", "remedy"),
    [
        (
            'cluster = "elsewhere"',
            "",
            "the bank has no cluster 'elsewhere'",
            "settings know: local; ",
        ),
        ("", "no/such/", "cannot write", "make its directory, "),
    ],
)
def test_error_has_text_and_remedy(
    site: Site, tmp_path: Path, lines: str, folder: str, text_part: str, remedy: str
) -> None:
    text = f'[bank]\nserver = "{site.address}"\n' + settings(tmp_path / f"{folder}table", lines)
    writer = TableWriter(agent_settings(text.encode()))
    writer.write()
    assert text_part in writer.status()["error"]
    assert remedy in writer.status()["remedy"]
    assert writer.status()["written"] is None
