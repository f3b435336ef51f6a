"""Agent on another host: over HTTP, with a token that may report for its cluster only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.cli.framework.exit_codes import FOUND
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, Plugin, epilog_event, prolog_request
from tests.agent.running_agent import agent_at
from tests.cli.served_site import free_port
from tests.support.conditions import wait_until
from tests.support.server import run_bank

pytestmark = pytest.mark.slow

PATIENT = "[terms]\npatience = 60"


@pytest.fixture(scope="module")
def tcp_bank() -> Iterator[tuple[Site, str]]:
    """Provide a bank that also listens on TCP, and its address."""
    port = free_port()
    with run_bank(server=f"port = {port}") as server:
        site = Site(server)
        site.project(ACCOUNT, 1_000 * SU)
        yield site, f"http://127.0.0.1:{port}"


def token(site: Site, scopes: str) -> str:
    """Create a token; return the path of its file."""
    path = site.server.folder / f"token-{scopes.replace(':', '-')}"
    made = site.server.command(
        "token", "create", "agent", "--scopes", scopes, "--output", str(path), "--yes"
    )
    assert made.returncode == 0, made.stderr
    return str(path)


def test_token_for_the_cluster_is_sufficient(tcp_bank: tuple[Site, str]) -> None:
    site, address = tcp_bank
    signed = f'token_file = "{token(site, "agent:local")}"'
    with agent_at(address, bank_lines=signed) as agent, Plugin(agent.socket) as plugin:
        assert plugin.verdict(prolog_request(1)).action == "run"
        plugin.exchange(epilog_event(1))
        agent.wait_until_empty()
    assert site.job(1)["state"] == "charged"


@pytest.mark.parametrize(
    ("scopes", "why"),
    [
        ("read", "lacks the scope write or agent:CLUSTER"),
        ("agent:moon", "may not report runs of cluster local"),
    ],
)
def test_token_without_the_right_drops_no_report(
    tcp_bank: tuple[Site, str], scopes: str, why: str
) -> None:
    site, address = tcp_bank
    job = 10 + len(scopes)
    signed = f'token_file = "{token(site, scopes)}"'
    with (
        agent_at(address, bank_lines=signed, tables=PATIENT) as agent,
        Plugin(agent.socket) as plugin,
    ):
        (number,) = plugin.send(prolog_request(job))
        wait_until(
            lambda: plugin.receive() and why in (agent.status()["bank"]["error"] or ""),
            "a refusal by the bank",
        )
        assert agent.status()["bank"]["reachable"] is False
        config = agent.config.read_text()
        agent.stop()
        agent.config.write_text(
            config.replace(signed, f'token_file = "{token(site, f"agent:local,agent:x{job}")}"')
        )
        agent.start()
        plugin.connect()
        (verdict,) = plugin.wait([number])
        assert site.job(job)["state"] == "held", verdict


@pytest.mark.parametrize("scopes", ["read,agent:mars", "agent:mars"])
def test_token_without_the_right_is_shown_before_a_job_starts(
    tcp_bank: tuple[Site, str], scopes: str
) -> None:
    site, address = tcp_bank
    signed = f'token_file = "{token(site, scopes)}"'
    with agent_at(address, bank_lines=signed) as agent, Plugin(agent.socket).connect():
        wait_until(lambda: agent.status()["bank"]["reachable"] is False, "a probe of the bank")
        bank = agent.status()["bank"]
        assert "may not report runs of cluster local" in bank["error"]
        assert "under [clusters.local]" in bank["remedy"]
        wait_until(lambda: agent.status()["bank"]["failures"] > 2, "further probes")
        assert agent.status()["bank"]["reachable"] is False


def test_reports_of_another_cluster_are_set_aside_while_the_bank_is_up(
    tcp_bank: tuple[Site, str],
) -> None:
    """The plug-in names its cluster moon, as after a cluster was renamed."""
    site, address = tcp_bank
    signed = f'token_file = "{token(site, "agent:moon,agent:probe")}"'
    with (
        agent_at(address, bank_lines=signed, tables=PATIENT) as agent,
        Plugin(agent.socket, "moon") as plugin,
    ):
        wait_until(lambda: agent.status()["bank"]["reachable"], "a probe of the bank")
        plugin.send(prolog_request(70))
        wait_until(
            lambda: (
                plugin.receive()
                and any(denied["failures"] > 3 for denied in agent.status()["denied"])
            ),
            "repeated refusals by the bank",
        )
        assert agent.status()["bank"]["reachable"]
        shown = agent.command("agent", "status")
        assert shown.returncode == FOUND
        assert "1 reports of cluster local are set aside since 20" in shown.stdout
        assert "may not report runs of cluster local" in shown.stdout
        assert "try: add the agent's user to agents under [clusters.local]" in shown.stdout


def test_invalid_token_is_counted_as_an_error(tcp_bank: tuple[Site, str]) -> None:
    site, address = tcp_bank
    wrong = site.server.folder / "wrong"
    wrong.write_text("fbk_nothing\n")
    wrong.chmod(0o600)
    with (
        agent_at(address, bank_lines=f'token_file = "{wrong}"', tables=PATIENT) as agent,
        Plugin(agent.socket) as plugin,
    ):
        plugin.send(prolog_request(30))
        wait_until(
            lambda: plugin.receive() and agent.status()["request_errors"].get("unauthenticated"),
            "the bank to refuse the token",
        )
        assert agent.status()["outbox"]["reports"] == 1


def test_site_factors_need_a_token_that_can_read(
    tcp_bank: tuple[Site, str], tmp_path: Path
) -> None:
    site, address = tcp_bank
    signed = f'token_file = "{token(site, "agent:local,agent:y")}"'
    table = f'[site_factor]\npath = "{tmp_path}/table"\nrefresh = 0.1\n'
    with agent_at(address, bank_lines=signed, tables=table) as agent:
        wait_until(lambda: agent.status()["site_factor"]["error"], "a refusal by the bank")
        assert "lacks the scope read" in agent.status()["site_factor"]["error"]
        assert (
            "not written again: this token lacks the scope read"
            in agent.command("agent", "status").stdout
        )
    with agent_at(
        address, bank_lines=signed, tables=f'{table}token_file = "{token(site, "read,agent:z")}"\n'
    ) as agent:
        wait_until((tmp_path / "table").exists, "a table")
        assert agent.status()["site_factor"]["error"] is None
