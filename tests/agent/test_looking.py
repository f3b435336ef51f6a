"""When the bank is looked at, what looks find, and what they leave alone."""

from __future__ import annotations

import pytest

from fairbank.core.errors import FairbankError, Forbidden, Unavailable
from fairbank.slurm.agent.look_rounds import read_me
from fairbank.slurm.agent.looking import LOOK_SECONDS, Looks, barred, wants_a_look
from fairbank.slurm.agent.pool import pause
from tests.agent.plugin import CLUSTER, asks
from tests.agent.world import World

HERE = frozenset({CLUSTER})
AWAY = Unavailable("nobody answers")


def wants(world: World, looks: Looks, clusters: frozenset[str] = HERE) -> bool:
    return wants_a_look(world.core, looks, clusters, world.now)


def reachable(world: World, looks: Looks) -> bool | None:
    return looks.standing(world.core.bank).reachable


def test_nothing_is_known_before_a_report_or_a_look(world: World) -> None:
    looks = Looks()
    assert reachable(world, looks) is None
    assert not wants(world, looks, frozenset())
    assert wants(world, looks)
    assert looks.found(None, HERE, world.core.bank, world.now)
    assert reachable(world, looks)
    assert not wants(world, looks)
    assert wants(world, looks, frozenset({"moon"}))
    world.pass_time(LOOK_SECONDS)
    assert wants(world, looks)


def test_a_report_is_a_first_contact_too(world: World) -> None:
    looks = Looks()
    world.say(asks(1))
    assert not wants(world, looks), "a letter waits"
    world.send()
    assert not wants(world, looks), "a request is under way"
    world.arrive()
    assert reachable(world, looks)


def test_a_bank_that_a_look_found_away_is_looked_for_until_it_is_there(world: World) -> None:
    looks, bank = Looks(), world.core.bank
    began = world.now
    assert looks.found(AWAY, HERE, bank, world.now)
    assert (reachable(world, looks), looks.standing(bank).trouble) == (False, AWAY)
    assert not wants(world, looks)
    world.pass_time(pause(1))
    assert wants(world, looks)
    assert not looks.found(AWAY, HERE, bank, world.now)
    assert (looks.standing(bank).since, looks.standing(bank).failures) == (began, 2)
    world.pass_time(pause(2))
    assert looks.found(None, HERE, bank, world.now)
    assert (reachable(world, looks), looks.standing(bank).since) == (True, world.now)


def test_what_a_look_finds_decides_no_job(world: World) -> None:
    """Somebody's look may be wrong, or of a moment ago: the bank is asked all the same, at once and for as long as ever."""
    looks = Looks()
    looks.found(AWAY, HERE, world.core.bank, world.now)
    world.pass_time(world.terms.patience * 10)
    world.say(asks(1))
    assert world.send()
    world.arrive()
    world.write()
    world.listen()
    assert [verdict.say for _, verdict in world.settled] == ["run"]
    assert reachable(world, looks)
    assert looks.standing(world.core.bank).since == looks.at


def test_a_look_clears_no_trouble_that_a_report_found(world: World) -> None:
    looks, no = Looks(), Forbidden("you may not report runs of cluster local")
    world.say(asks(1))
    world.send()
    world.trouble(world.under_way.pop(), no)
    world.pass_time(1.0)
    looks.found(
        None, HERE, world.core.bank, world.now
    )  # it was under way when the report came back
    assert (reachable(world, looks), looks.standing(world.core.bank).trouble) == (False, no)
    world.pass_time(LOOK_SECONDS * 10)
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
    found = barred(read_me(ME | who), CLUSTER)
    assert (None if found is None else type(found)) is why
    assert why is not Forbidden or "agents = [64030] under [clusters.local]" in str(
        found and found.remedy
    )


@pytest.mark.parametrize("answer", [ME | {"superuser": "yes"}, {}, None, []])
def test_who_answers_otherwise_than_a_bank_is_none(answer: object) -> None:
    with pytest.raises(Unavailable, match="what answers is not a bank: ") as told:
        read_me(answer)
    assert told.value.remedy == "name the bank's address"
