"""Life of a job through a real agent and a real bank: hold, charge, refusal."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any

import pytest

from fairbank.agent.protocol import Ack, Verdict
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, START, Plugin, epilog_event, limit_event, prolog_request
from tests.agent.running_agent import RunningAgent, agent_at
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow


def test_run_is_held_and_charged(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    assert plugin.verdict(prolog_request(1, billing=Fraction(16))).action == "run"
    assert site.sums(allocation) == (0, 16 * SU)
    (noted,) = plugin.exchange(epilog_event(1, 600, billing=Fraction(16)))
    assert isinstance(noted, Ack)
    agent.wait_until_empty()
    assert site.sums(allocation) == (160, 0)
    assert site.job(1)["state"] == "charged"


def test_refusal_has_amounts_and_remedies(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = site.project(ACCOUNT, 10 * SU)
    verdict = plugin.verdict(prolog_request(1, billing=Fraction(16)))
    assert (verdict.action, verdict.reason) == ("hold", "Allocation_exhausted")
    assert verdict.text.startswith(
        "chem: not enough credit: requested 16 SU, available 10 SU, short by 6 SU. "
        "Remedy: a shorter time limit: -t 00:37:00"
    )
    plugin.exchange(epilog_event(1, 0, begun=False, state="REQUEUED"))
    agent.wait_until_empty()
    assert site.sums(allocation) == (0, 0)
    assert site.jobs() == []
    assert [failure["job_id"] for failure in site.failures()] == [1]


def test_repeated_request_gets_the_same_refusal(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    site.project(ACCOUNT, 10 * SU)
    first = plugin.verdict(prolog_request(1, billing=Fraction(16)))
    agent.kill()
    agent.start()
    plugin.connect()
    again = plugin.verdict(prolog_request(1, billing=Fraction(16)))
    assert (again.action, again.reason, again.text) == (first.action, first.reason, first.text)
    assert len(site.failures()) == 1


def test_run_that_never_started_costs_nothing(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    plugin.verdict(prolog_request(1))
    plugin.exchange(epilog_event(1, 2, begun=False, state="CANCELLED"))
    agent.wait_until_empty()
    assert site.sums(allocation) == (0, 0)
    assert site.job(1)["state"] == "released"


def test_changed_limit_changes_the_hold(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    plugin.verdict(prolog_request(1))
    plugin.exchange(limit_event(1, 7_200), limit_event(1, 10_800))
    agent.wait_until_empty()
    assert site.sums(allocation) == (0, 3 * SU)
    plugin.exchange(limit_event(1, 10_800))
    assert agent.status()["reports_answered"]["adjust"]["granted"] <= 2


def test_suspension_moves_the_end_of_the_hold_and_costs_nothing(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    plugin.verdict(prolog_request(1))
    agent.wait_until_empty()
    until = datetime.fromisoformat(site.job(1)["until"])
    for _ in range(2):
        plugin.exchange(limit_event(1, 3_600, suspended_seconds=50_000))
        agent.wait_until_empty()
    assert site.sums(allocation) == (0, SU)
    moved = datetime.fromisoformat(site.job(1)["until"]) - until
    assert moved.total_seconds() == 50_000
    assert agent.status()["reports_answered"]["adjust"]["granted"] == 1
    plugin.exchange(epilog_event(1, 1_800, end=START + 51_800, suspended_seconds=50_000))
    agent.wait_until_empty()
    assert site.sums(allocation) == (SU // 2, 0)


def test_running_job_without_request_is_held(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    plugin.exchange(limit_event(1, 7_200))
    agent.wait_until_empty()
    assert site.sums(allocation) == (0, 2 * SU)
    plugin.exchange(epilog_event(1))
    agent.wait_until_empty()
    assert site.sums(allocation) == (SU, 0)


def test_lost_outbox_changes_no_charge(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    plugin.verdict(prolog_request(1))
    agent.stop()
    agent.outbox.unlink()
    agent.start()
    plugin.connect()
    plugin.exchange(limit_event(1, 7_200), prolog_request(1))
    agent.wait_until_empty()
    assert site.sums(allocation) == (0, 2 * SU)
    plugin.exchange(epilog_event(1), epilog_event(1))
    agent.wait_until_empty()
    assert site.sums(allocation) == (SU, 0)


def test_end_of_a_run_answers_its_open_request(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    site.server.stop()
    answers = plugin.exchange(prolog_request(1), epilog_event(1, 0, begun=False, state="CANCELLED"))
    assert isinstance(answers[0], Verdict)
    site.server.start()
    agent.wait_until_empty()
    assert site.sums(allocation) == (0, 0)


@pytest.mark.parametrize(
    ("wrong", "reason", "text"),
    [
        ({"account": "nobody"}, "Fairbank_cannot_bill_this", "no project has the account 'nobody'"),
        ({"partition": "moon"}, "Fairbank_cannot_bill_this", "has no partition 'moon'"),
        ({"limit_seconds": None}, "No_time_limit", "no time limit"),
        ({"account": ""}, "Fairbank_cannot_bill_this", "is not a name"),
    ],
)
def test_unbillable_job_is_refused_with_the_reason(
    site: Site, agent: RunningAgent, plugin: Plugin, wrong: dict[str, Any], reason: str, text: str
) -> None:
    site.project(ACCOUNT, 100 * SU)
    verdict = plugin.verdict(prolog_request(1, **wrong))
    assert (verdict.action, verdict.reason) == ("hold", reason)
    assert text in verdict.text
    assert plugin.verdict(prolog_request(2)).action == "run"
    plugin.exchange(epilog_event(1, 1, begun=False, **wrong))
    agent.wait_until_empty()


@pytest.mark.parametrize(
    ("wrong", "charged", "failures"),
    [
        ({"account": "nobody"}, 0, ["UNKNOWN_PROJECT", "UNKNOWN_PROJECT"]),
        ({"partition": "moon"}, 0, ["NO_HOLD"]),
        ({"limit_seconds": None}, SU, []),
    ],
    ids=["account", "partition", "limit"],
)
def test_unbillable_job_runs_where_the_terms_allow(
    site: Site, wrong: dict[str, Any], charged: int, failures: list[str]
) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    with (
        agent_at(site.address, tables='[terms]\nunbillable = "run"\n') as agent,
        Plugin(agent.socket) as plugin,
    ):
        assert plugin.verdict(prolog_request(1, **wrong)).action == "run"
        assert site.sums(allocation) == (0, 0)
        plugin.exchange(epilog_event(1, **wrong))
        agent.wait_until_empty()
    assert site.sums(allocation) == (charged, 0)
    assert [failure["reason"] for failure in site.failures()] == failures


def test_unknown_cluster_is_unbillable(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    """Refuse the runs of a cluster that the bank's settings do not have; nothing waits."""
    site.project(ACCOUNT, 100 * SU)
    moon = prolog_request(1)
    run = moon.run._replace(cluster="moon")
    verdict = plugin.verdict(prolog_request(1, run=run))
    assert verdict.action == "hold"
    wait_until(lambda: agent.status()["outbox"]["reports"] == 0, "nothing to be stuck")
