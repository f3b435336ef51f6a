"""When the bank is looked at, what looks find, and what they leave alone."""

from __future__ import annotations

import pytest

from fairbank.agent.reports.bank_probe import (
    PROBE_SECONDS,
    ProbeResults,
    missing_right,
    read_identity,
)
from fairbank.agent.reports.bank_status import retry_pause
from fairbank.core.errors import FairbankError, Forbidden, Unavailable
from tests.agent.plugin import CLUSTER, asks
from tests.agent.world import World

HERE = frozenset({CLUSTER})
AWAY = Unavailable("nobody answers")


def wants(world: World, looks: ProbeResults, clusters: frozenset[str] = HERE) -> bool:
    return looks.is_due(world.engine.flow, clusters, world.now)


def reachable(world: World, looks: ProbeResults) -> bool | None:
    return looks.reachability(world.engine.flow.bank).reachable


def test_nothing_is_known_before_a_report_or_a_look(world: World) -> None:
    looks = ProbeResults()
    assert reachable(world, looks) is None
    assert not wants(world, looks, frozenset())
    assert wants(world, looks)
    assert looks.record(None, HERE, world.engine.flow.bank, world.now)
    assert reachable(world, looks)
    assert not wants(world, looks)
    assert wants(world, looks, frozenset({"moon"}))
    world.pass_time(PROBE_SECONDS)
    assert wants(world, looks)


def test_a_report_is_a_first_contact_too(world: World) -> None:
    looks = ProbeResults()
    world.say(asks(1))
    assert not wants(world, looks), "a letter waits"
    world.send()
    assert not wants(world, looks), "a request is under way"
    world.arrive()
    assert reachable(world, looks)


def test_a_bank_that_a_look_found_away_is_looked_for_until_it_is_there(world: World) -> None:
    looks, bank = ProbeResults(), world.engine.flow.bank
    began = world.now
    assert looks.record(AWAY, HERE, bank, world.now)
    assert (reachable(world, looks), looks.reachability(bank).error) == (False, AWAY)
    assert not wants(world, looks)
    world.pass_time(retry_pause(1))
    assert wants(world, looks)
    assert not looks.record(AWAY, HERE, bank, world.now)
    assert (looks.reachability(bank).since, looks.reachability(bank).failures) == (began, 2)
    world.pass_time(retry_pause(2))
    assert looks.record(None, HERE, bank, world.now)
    assert (reachable(world, looks), looks.reachability(bank).since) == (True, world.now)


def test_what_a_look_finds_decides_no_job(world: World) -> None:
    """Somebody's look may be wrong, or of a moment ago: the bank is asked all the same, at once and for as long as ever."""
    looks = ProbeResults()
    looks.record(AWAY, HERE, world.engine.flow.bank, world.now)
    world.pass_time(world.terms.patience * 10)
    world.say(asks(1))
    assert world.send()
    world.arrive()
    world.write()
    world.listen()
    assert [verdict.action for _, verdict in world.settled] == ["run"]
    assert reachable(world, looks)
    assert looks.reachability(world.engine.flow.bank).since == looks.at


def test_a_look_clears_no_trouble_that_a_report_found(world: World) -> None:
    looks, no = ProbeResults(), Forbidden("you may not report runs of cluster local")
    world.say(asks(1))
    world.send()
    world.trouble(world.under_way.pop(), no)
    world.pass_time(1.0)
    looks.record(
        None, HERE, world.engine.flow.bank, world.now
    )  # it was under way when the report came back
    assert (reachable(world, looks), looks.reachability(world.engine.flow.bank).error) == (
        False,
        no,
    )
    world.pass_time(PROBE_SECONDS * 10)
    assert not wants(world, looks), "only a report can tell"


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
def test_who_may_not_report_this_cluster_is_told_so(
    who: dict[str, object], why: type[FairbankError] | None
) -> None:
    found = missing_right(read_identity(ME | who), CLUSTER)
    assert (None if found is None else type(found)) is why
    assert why is not Forbidden or "agents = [64030] under [clusters.local]" in str(
        found and found.remedy
    )


@pytest.mark.parametrize("answer", [ME | {"superuser": "yes"}, {}, None, []])
def test_who_answers_otherwise_than_a_bank_is_none(answer: object) -> None:
    with pytest.raises(Unavailable, match="what answers is not a bank: ") as told:
        read_identity(answer)
    assert told.value.remedy == "name the bank's address"
