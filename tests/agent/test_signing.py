"""The agent on another host than the bank: over HTTP, signed in by a token that may report for its cluster and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, Plugin, asks, ends
from tests.agent.running import agent_at
from tests.cli.served_site import free_port
from tests.support.conditions import wait_until
from tests.support.server import banking

pytestmark = pytest.mark.slow

PATIENT = "[terms]\npatience = 60"


@pytest.fixture(scope="module")
def networked() -> Iterator[tuple[Centre, str]]:
    """A bank on TCP too, and its address there."""
    port = free_port()
    with banking(server=f"port = {port}") as server:
        centre = Centre(server)
        centre.project(ACCOUNT, 1_000 * SU)
        yield centre, f"http://127.0.0.1:{port}"


def token(centre: Centre, scopes: str) -> str:
    """A new token's file."""
    path = centre.server.folder / f"token-{scopes.replace(':', '-')}"
    made = centre.server.command(
        "token", "create", "agent", "--scopes", scopes, "--output", str(path), "--yes"
    )
    assert made.returncode == 0, made.stderr
    return str(path)


def test_a_token_for_the_cluster_is_enough(networked: tuple[Centre, str]) -> None:
    centre, address = networked
    signed = f'token_file = "{token(centre, "agent:local")}"'
    with agent_at(address, bank_lines=signed) as agent, Plugin(agent.socket) as plugin:
        assert plugin.verdict(asks(1)).action == "run"
        plugin.settle(ends(1))
        agent.wait_until_empty()
    assert centre.job(1)["state"] == "charged"


@pytest.mark.parametrize(
    ("scopes", "why"),
    [
        ("read", "lacks the scope write or agent:CLUSTER"),
        ("agent:moon", "may not report runs of cluster local"),
    ],
)
def test_a_token_without_the_right_drops_nothing_and_says_why(
    networked: tuple[Centre, str], scopes: str, why: str
) -> None:
    centre, address = networked
    job = 10 + len(scopes)
    signed = f'token_file = "{token(centre, scopes)}"'
    with (
        agent_at(address, bank_lines=signed, tables=PATIENT) as agent,
        Plugin(agent.socket) as plugin,
    ):
        (number,) = plugin.say(asks(job))
        wait_until(
            lambda: plugin.hear() and why in (agent.status()["bank"]["error"] or ""),
            "the bank to say no",
        )
        assert agent.status()["bank"]["reachable"] is False
        config = agent.config.read_text()
        agent.stop()
        agent.config.write_text(
            config.replace(signed, f'token_file = "{token(centre, f"agent:local,agent:x{job}")}"')
        )
        agent.start()
        plugin.connect()
        (said,) = plugin.wait([number])
        assert centre.job(job)["state"] == "held", said


@pytest.mark.parametrize("scopes", ["read,agent:mars", "agent:mars"])
def test_a_token_without_the_right_is_told_before_a_job_asks(
    networked: tuple[Centre, str], scopes: str
) -> None:
    centre, address = networked
    signed = f'token_file = "{token(centre, scopes)}"'
    with agent_at(address, bank_lines=signed) as agent, Plugin(agent.socket).connect():
        wait_until(lambda: agent.status()["bank"]["reachable"] is False, "a look at the bank")
        bank = agent.status()["bank"]
        assert "may not report runs of cluster local" in bank["error"]
        assert "under [clusters.local]" in bank["remedy"]
        wait_until(lambda: agent.status()["bank"]["failures"] > 2, "further looks")
        assert agent.status()["bank"]["reachable"] is False


def test_a_look_hides_no_trouble_that_a_report_found(networked: tuple[Centre, str]) -> None:
    """The bank knows this agent, and would let it report the cluster that the plug-in greets with; but the runs are another's."""
    centre, address = networked
    signed = f'token_file = "{token(centre, "agent:moon,agent:look")}"'
    with (
        agent_at(address, bank_lines=signed, tables=PATIENT) as agent,
        Plugin(agent.socket, "moon") as plugin,
    ):
        wait_until(lambda: agent.status()["bank"]["reachable"], "a look at the bank")
        plugin.say(asks(70))
        wait_until(
            lambda: plugin.hear() and agent.status()["bank"]["failures"] > 3,
            "the bank to say no again and again",
        )
        assert "may not report runs of cluster local" in agent.status()["bank"]["error"]


def test_a_token_that_is_none_is_told(networked: tuple[Centre, str]) -> None:
    centre, address = networked
    wrong = centre.server.folder / "wrong"
    wrong.write_text("fbk_nothing\n")
    wrong.chmod(0o600)
    with (
        agent_at(address, bank_lines=f'token_file = "{wrong}"', tables=PATIENT) as agent,
        Plugin(agent.socket) as plugin,
    ):
        plugin.say(asks(30))
        wait_until(
            lambda: plugin.hear() and agent.status()["request_errors"].get("unauthenticated"),
            "the bank to know nobody",
        )
        assert agent.status()["outbox"]["reports"] == 1


def test_the_table_of_site_factors_wants_a_token_that_reads(
    networked: tuple[Centre, str], tmp_path: Path
) -> None:
    centre, address = networked
    signed = f'token_file = "{token(centre, "agent:local,agent:y")}"'
    table = f'[site_factor]\npath = "{tmp_path}/table"\nrefresh = 0.1\n'
    with agent_at(address, bank_lines=signed, tables=table) as agent:
        wait_until(lambda: agent.status()["site_factor"]["error"], "the bank to say no")
        assert "lacks the scope read" in agent.status()["site_factor"]["error"]
        assert (
            "not written again: this token lacks the scope read"
            in agent.command("agent", "status").stdout
        )
    with agent_at(
        address,
        bank_lines=signed,
        tables=f'{table}token_file = "{token(centre, "read,agent:z")}"\n',
    ) as agent:
        wait_until((tmp_path / "table").exists, "a table")
        assert agent.status()["site_factor"]["error"] is None
