"""Probe of the bank: when it is due, its results, and its limits."""

from __future__ import annotations

import pytest

from fairbank.agent.reports.bank_status import (
    LONGEST_PAUSE,
    PROBE_SECONDS,
    STABLE_SECONDS,
    ProbeResults,
    missing_right,
    read_identity,
    retry_pause,
)
from fairbank.core.errors import FairbankError, Forbidden, Unavailable
from tests.agent.plugin import CLUSTER, epilog_event, prolog_request
from tests.agent.world import World

HERE = frozenset({CLUSTER})
AWAY = Unavailable("nobody answers")


def is_due(world: World, probes: ProbeResults, clusters: frozenset[str] = HERE) -> bool:
    return probes.is_due(world.engine.flow, clusters, world.now)


def reachable(world: World, probes: ProbeResults) -> bool | None:
    return probes.reachability(world.engine.flow.bank).reachable


def test_reachability_is_unknown_before_a_report_or_probe(world: World) -> None:
    probes = ProbeResults()
    assert reachable(world, probes) is None
    assert not is_due(world, probes, frozenset())
    assert is_due(world, probes)
    assert probes.record(None, HERE, world.engine.flow, world.now)
    assert reachable(world, probes)
    assert not is_due(world, probes)
    assert is_due(world, probes, frozenset({"moon"}))
    world.pass_time(PROBE_SECONDS)
    assert is_due(world, probes)


def test_report_is_a_first_contact_too(world: World) -> None:
    probes = ProbeResults()
    world.deliver(prolog_request(1))
    assert not is_due(world, probes), "a report waits"
    world.send()
    assert not is_due(world, probes), "a request is in flight"
    world.finish_request()
    assert reachable(world, probes)


def test_bank_that_is_down_is_probed_until_it_answers(world: World) -> None:
    probes, bank = ProbeResults(), world.engine.flow.bank
    began = world.now
    assert probes.record(AWAY, HERE, world.engine.flow, world.now)
    assert (reachable(world, probes), probes.reachability(bank).error) == (False, AWAY)
    assert not is_due(world, probes)
    world.pass_time(retry_pause(1))
    assert is_due(world, probes)
    assert not probes.record(AWAY, HERE, world.engine.flow, world.now)
    assert (probes.reachability(bank).since, probes.reachability(bank).failures) == (began, 2)
    world.pass_time(retry_pause(2))
    assert probes.record(None, HERE, world.engine.flow, world.now)
    assert (reachable(world, probes), probes.reachability(bank).since) == (True, world.now)


def test_probe_decides_no_job(world: World) -> None:
    """Ask the bank for each job, whatever the last probe found."""
    probes = ProbeResults()
    probes.record(AWAY, HERE, world.engine.flow, world.now)
    world.pass_time(world.terms.patience * 10)
    world.deliver(prolog_request(1))
    assert world.send()
    world.finish_request()
    world.write()
    world.read_replies()
    assert [verdict.action for _, verdict in world.verdicts] == ["run"]
    assert reachable(world, probes)
    assert probes.reachability(world.engine.flow.bank).since == probes.at


def test_probe_clears_no_error_of_a_report(world: World) -> None:
    probes, error = ProbeResults(), Forbidden("you may not report runs of cluster local")
    world.deliver(prolog_request(1))
    world.send()
    world.fail_request(world.in_flight.pop(), error)
    world.pass_time(1.0)
    probes.record(
        None, HERE, world.engine.flow, world.now
    )  # it was in flight when the report came back
    assert (reachable(world, probes), probes.reachability(world.engine.flow.bank).error) == (
        False,
        error,
    )
    world.pass_time(1.0)
    assert not is_due(world, probes), "the report will find out"


def test_outage_that_a_probe_found_is_not_younger_for_the_next_report(world: World) -> None:
    probes, bank = ProbeResults(), world.engine.flow.bank
    began = world.now
    probes.record(AWAY, HERE, world.engine.flow, world.now)
    world.pass_time(3)
    world.deliver(prolog_request(1))
    world.send()
    world.fail_request(world.in_flight.pop(), AWAY)
    assert not bank.is_up
    assert probes.reachability(bank).since == began
    bank.record_success(world.now)
    world.pass_time(3)
    bank.record_failure(AWAY, world.now)
    assert probes.reachability(bank).since == world.now, "another outage"


def outage_without_reports(world: World) -> None:
    """Have a report dropped by a bank that fails at it, so that no report waits afterwards."""
    world.deliver(epilog_event(1))
    for _ in range(6):
        world.pass_time(LONGEST_PAUSE)
        world.send()
        world.fail_request(world.in_flight.pop(), FairbankError("a bug of the bank"))
    assert not len(world.engine.flow.queue)
    assert not world.engine.flow.bank.is_up


def test_outage_without_reports_is_ended_by_a_probe(world: World) -> None:
    outage_without_reports(world)
    probes, bank = ProbeResults(), world.engine.flow.bank
    world.pass_time(bank.retry_at - world.now)
    assert is_due(world, probes)
    probes.record(AWAY, HERE, world.engine.flow, world.now)
    assert (bank.is_up, bank.error, reachable(world, probes)) == (False, AWAY, False)
    assert not is_due(world, probes)
    world.pass_time(bank.retry_at - world.now)
    assert is_due(world, probes)
    assert probes.record(None, HERE, world.engine.flow, world.now)
    assert (bank.is_up, reachable(world, probes)) == (True, True)
    assert probes.reachability(bank).since == world.now


def test_deferred_jobs_are_released_after_an_outage_without_reports(world: World) -> None:
    world.deliver(prolog_request(1))
    world.send()
    world.fail_request(world.in_flight.pop(), AWAY)
    world.pass_time(world.terms.patience)
    world.write()
    world.read_replies()
    assert [verdict.action for _, verdict in world.verdicts] == ["hold"]
    probes = ProbeResults()
    world.pass_time(60)
    assert is_due(world, probes)
    probes.record(None, HERE, world.engine.flow, world.now)
    assert not world.engine.take_reconnect(world.now)
    world.pass_time(STABLE_SECONDS)
    assert world.engine.take_reconnect(world.now) == HERE


ME = {
    "actor": 64_030, "uid": 64_030, "user": None, "superuser": False, "admin": False,
    "roles": [], "clusters": [], "scopes": ["read", "write"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("who", "why"),
    [
        ({"superuser": True}, None),
        ({"clusters": ["lab", "local"], "scopes": ["agent:local"]}, None),
        ({"clusters": ["lab"], "scopes": ["agent:lab"]}, Forbidden),
        ({"superuser": True, "scopes": ["read"]}, Forbidden),
        ({}, Forbidden),
    ],
)
def test_missing_right_is_an_error_with_its_remedy(
    who: dict[str, object], why: type[FairbankError] | None
) -> None:
    error = missing_right(read_identity(ME | who), CLUSTER)
    assert (None if error is None else type(error)) is why
    assert why is not Forbidden or "agents = [64030] under [clusters.local]" in str(
        error and error.remedy
    )


@pytest.mark.parametrize("answer", [ME | {"superuser": "yes"}, {}, None, []])
def test_other_answer_is_not_of_a_bank(answer: object) -> None:
    with pytest.raises(Unavailable, match="what answers is not a bank: ") as raised:
        read_identity(answer)
    assert raised.value.remedy == "name the bank's address"
