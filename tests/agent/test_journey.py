"""A job's journey through a real agent and a real bank: held, charged, refused in words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from fairbank.agent.protocol.messages import Ack, Verdict
from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, Plugin, asks, ends, limits
from tests.agent.running import RunningAgent, agent_at
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow


def test_a_job_is_held_let_run_and_charged_what_it_took(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    assert plugin.verdict(asks(1, billing=Fraction(16))).action == "run"
    assert centre.sums(allocation) == (0, 16 * SU)
    (noted,) = plugin.settle(ends(1, 600, billing=Fraction(16)))
    assert isinstance(noted, Ack)
    agent.wait_until_empty()
    assert centre.sums(allocation) == (160, 0)
    assert centre.job(1)["state"] == "charged"


def test_a_poor_project_is_refused_with_figures_and_remedies(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, 10 * SU)
    said = plugin.verdict(asks(1, billing=Fraction(16)))
    assert (said.action, said.reason) == ("hold", "Allocation_exhausted")
    assert said.text.startswith(
        "chem: not enough credit: requested 16 SU, available 10 SU, short by 6 SU. Try a shorter time limit: -t 00:37:00"
    )
    plugin.settle(ends(1, 0, begun=False, state="REQUEUED"))
    agent.wait_until_empty()
    assert centre.sums(allocation) == (0, 0)
    assert centre.jobs() == []
    assert [each["job_id"] for each in centre.failures()] == [1]


def test_a_no_is_the_same_no_when_it_is_asked_again(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    centre.project(ACCOUNT, 10 * SU)
    first = plugin.verdict(asks(1, billing=Fraction(16)))
    agent.kill()
    agent.start()
    plugin.connect()
    again = plugin.verdict(asks(1, billing=Fraction(16)))
    assert (again.action, again.reason, again.text) == (first.action, first.reason, first.text)
    assert len(centre.failures()) == 1


def test_whoever_never_began_pays_nothing_though_the_clock_went_on(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    plugin.verdict(asks(1))
    plugin.settle(ends(1, 2, begun=False, state="CANCELLED"))
    agent.wait_until_empty()
    assert centre.sums(allocation) == (0, 0)
    assert centre.job(1)["state"] == "released"


def test_a_changed_limit_changes_the_hold(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    plugin.verdict(asks(1))
    plugin.settle(limits(1, 7_200), limits(1, 10_800))
    agent.wait_until_empty()
    assert centre.sums(allocation) == (0, 3 * SU)
    plugin.settle(limits(1, 10_800))
    assert agent.status()["reports_answered"]["adjust"]["granted"] <= 2


def test_what_nobody_asked_us_about_is_held_when_it_is_found_running(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    plugin.settle(limits(1, 7_200))
    agent.wait_until_empty()
    assert centre.sums(allocation) == (0, 2 * SU)
    plugin.settle(ends(1))
    agent.wait_until_empty()
    assert centre.sums(allocation) == (SU, 0)


def test_a_lost_memory_changes_nothing(centre: Centre, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    plugin.verdict(asks(1))
    agent.stop()
    agent.outbox.unlink()
    agent.start()
    plugin.connect()
    plugin.settle(limits(1, 7_200), asks(1))
    agent.wait_until_empty()
    assert centre.sums(allocation) == (0, 2 * SU)
    plugin.settle(ends(1), ends(1))
    agent.wait_until_empty()
    assert centre.sums(allocation) == (SU, 0)


def test_the_end_of_a_run_with_its_question_open_answers_it(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    centre.server.stop()
    answers = plugin.settle(asks(1), ends(1, 0, begun=False, state="CANCELLED"))
    assert isinstance(answers[0], Verdict)
    centre.server.start()
    agent.wait_until_empty()
    assert centre.sums(allocation) == (0, 0)


@pytest.mark.parametrize(
    ("wrong", "reason", "text"),
    [
        ({"account": "nobody"}, "Fairbank_cannot_bill_this", "no project has the account 'nobody'"),
        ({"partition": "moon"}, "Fairbank_cannot_bill_this", "has no partition 'moon'"),
        ({"limit_seconds": None}, "No_time_limit", "no time limit"),
        ({"account": ""}, "Fairbank_cannot_bill_this", "is not a name"),
    ],
)
def test_what_cannot_be_billed_is_refused_with_the_reason(
    centre: Centre,
    agent: RunningAgent,
    plugin: Plugin,
    wrong: dict[str, Any],
    reason: str,
    text: str,
) -> None:
    centre.project(ACCOUNT, 100 * SU)
    said = plugin.verdict(asks(1, **wrong))
    assert (said.action, said.reason) == ("hold", reason)
    assert text in said.text
    assert plugin.verdict(asks(2)).action == "run"
    plugin.settle(ends(1, 1, begun=False, **wrong))
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
def test_what_cannot_be_billed_runs_where_the_terms_say_so(
    centre: Centre, wrong: dict[str, Any], charged: int, failures: list[str]
) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    with (
        agent_at(centre.address, tables='[terms]\nunbillable = "run"\n') as agent,
        Plugin(agent.socket) as plugin,
    ):
        assert plugin.verdict(asks(1, **wrong)).action == "run"
        assert centre.sums(allocation) == (0, 0)
        plugin.settle(ends(1, **wrong))
        agent.wait_until_empty()
    assert centre.sums(allocation) == (charged, 0)
    assert [each["reason"] for each in centre.failures()] == failures


def test_an_agent_of_another_cluster_loses_nothing_while_it_may_not_report(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    """The superuser may report any; so this is about a bank whose settings do not know the cluster, which is unbillable, not stuck."""
    centre.project(ACCOUNT, 100 * SU)
    moon = asks(1)
    run = moon.run._replace(cluster="moon")
    said = plugin.verdict(asks(1, run=run))
    assert said.action == "hold"
    wait_until(lambda: agent.status()["outbox"]["reports"] == 0, "nothing to be stuck")
