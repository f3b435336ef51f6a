"""Reports of clusters that this agent may not report, or that the bank does not know, are set
aside; the others go on.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest

from fairbank.agent.metrics import AgentMetrics, status
from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.reports.bank_status import STABLE_SECONDS, ProbeResults
from fairbank.agent.reports.denied_clusters import LONGEST_PAUSE
from fairbank.cluster.partition import Cluster
from tests.agent.bank import OLD_CLUSTER
from tests.agent.plugin import CLUSTER, RunMessage, epilog_event, limit_event, prolog_request
from tests.agent.world import World


def of_old_cluster(message: RunMessage) -> RunMessage:
    return msgspec.structs.replace(message, run=message.run._replace(cluster=OLD_CLUSTER))


@pytest.fixture
def denying(world: World) -> World:
    """Provide a world whose bank does not let the agent report runs of cluster `old`."""
    world.bank.denies_old = True
    return world


def settle(world: World, seconds: float = 30) -> None:
    """Run without faults for some seconds."""
    for _ in range(int(seconds)):
        world.load()
        while world.send():
            pass
        while world.in_flight:
            world.finish_request()
        world.write()
        world.read_replies()
        world.pass_time(1.0)


def denied_status(world: World) -> list[dict[str, object]]:
    denied: list[dict[str, object]] = status(world.engine, ProbeResults(), world.now, 0)["denied"]
    return denied


def test_report_of_a_denied_cluster_does_not_make_the_bank_count_as_down(denying: World) -> None:
    denying.deliver(of_old_cluster(epilog_event(1)))
    denying.deliver(prolog_request(2))
    denying.send()
    denying.finish_request()
    denying.read_replies()
    assert denying.engine.flow.bank.is_up
    assert [verdict.action for _, verdict in denying.verdicts] == ["run"]
    settle(denying)
    denying.deliver(prolog_request(3))
    settle(denying, 1)
    assert [verdict.action for _, verdict in denying.verdicts] == ["run", "run"]
    assert denying.bank.sums() == (0, 120)


def test_denied_cluster_is_in_the_status_with_its_remedy(denying: World) -> None:
    denying.deliver(of_old_cluster(epilog_event(1)))
    denying.deliver(of_old_cluster(epilog_event(2)))
    settle(denying)
    (denied,) = denied_status(denying)
    assert (denied["cluster"], denied["reports"]) == (OLD_CLUSTER, 2)
    assert "may not report runs of cluster old" in str(denied["error"])
    assert "agents under [clusters.old]" in str(denied["remedy"])
    page = AgentMetrics(denying.engine, ProbeResults()).page(denying.now)
    assert b"fairbank_agent_reports_denied 2.0" in page


def test_denied_reports_are_kept_and_sent_once_they_may_be(denying: World) -> None:
    for job in range(1, 21):
        denying.deliver(of_old_cluster(epilog_event(job)))
    settle(denying, 5)
    assert denying.unanswered == {}
    assert len(denying.outbox.content()[1]) == 20
    denying.kill()
    settle(denying, 5)
    assert len(denying.outbox.content()[1]) == 20
    denying.bank.denies_old = False
    settle(denying, LONGEST_PAUSE + 5)
    assert denying.outbox.content()[1] == []
    assert denied_status(denying) == []
    assert denying.bank.sums() == (20 * 60, 0)


def test_denied_reports_are_kept_while_the_disk_is_full(denying: World) -> None:
    denying.disk_full = True
    denying.deliver(of_old_cluster(epilog_event(1)))
    settle(denying, 5)
    denying.disk_full = False
    denying.bank.denies_old = False
    settle(denying, LONGEST_PAUSE + 5)
    assert denying.bank.sums() == (60, 0)


def test_denied_cluster_is_tested_with_one_report_at_a_time(denying: World) -> None:
    for job in range(1, 21):
        denying.deliver(of_old_cluster(epilog_event(job)))
    settle(denying, 5)
    sent = []
    for _ in range(600):
        denying.pass_time(1.0)
        denying.load()
        while denying.send():
            sent.append(len(denying.in_flight[-1]))
            denying.finish_request()
        denying.write()
    assert set(sent) == {1}
    assert len(sent) <= 15


def test_job_of_a_denied_cluster_is_decided_by_the_outage_policy(denying: World) -> None:
    denying.terms = PartitionTerms(patience=4)
    denying.deliver(of_old_cluster(prolog_request(1)))
    settle(denying, 3)
    assert denying.verdicts == []
    settle(denying, 3)
    assert [verdict.reason for _, verdict in denying.verdicts] == ["Fairbank_does_not_answer"]
    denying.deliver(of_old_cluster(prolog_request(2)))
    denying.write()
    denying.read_replies()
    assert len(denying.verdicts) == 2, "it waits no longer"
    assert denying.engine.flow.bank.outage_since is None


def test_jobs_of_a_denied_cluster_are_released_only_when_it_is_accepted(denying: World) -> None:
    denying.deliver(of_old_cluster(prolog_request(1)))
    settle(denying, 10)
    denying.deliver(of_old_cluster(epilog_event(1, 0, begun=False, state="REQUEUED")))
    settle(denying, 10)
    assert denying.engine.take_reconnect(denying.now) == frozenset()
    denying.bank.denies_old = False
    settle(denying, LONGEST_PAUSE + STABLE_SECONDS + 2)
    assert denying.engine.take_reconnect(denying.now) == {OLD_CLUSTER}
    assert denying.engine.take_reconnect(denying.now) == frozenset()
    assert denying.bank.sums() == (0, 0)


@pytest.fixture
def renamed(world: World) -> World:
    """Provide a world whose bank has no cluster `old` in its settings."""
    del world.bank.clusters[OLD_CLUSTER]
    return world


@pytest.mark.parametrize(
    "messages",
    [
        (prolog_request(1), epilog_event(2)),
        (epilog_event(2), prolog_request(1)),
        (limit_event(2, 120), epilog_event(2)),
    ],
    ids=["prolog first", "epilog first", "limit first"],
)
def test_end_in_a_cluster_that_the_bank_does_not_know_is_kept_and_charged_later(
    renamed: World, messages: tuple[RunMessage, ...]
) -> None:
    cluster = Cluster(OLD_CLUSTER, renamed.bank.clusters[CLUSTER].partitions)
    for message in messages:
        renamed.deliver(of_old_cluster(message))
        settle(renamed, 5)
    settle(renamed, 2 * LONGEST_PAUSE)
    assert renamed.engine.flow.bank.is_up
    (denied,) = denied_status(renamed)
    assert denied["error"] == "the bank's settings do not have this cluster"
    assert str(denied["remedy"]).startswith("add [clusters.old] to the bank's settings")
    assert renamed.bank.refusals() == []
    renamed.bank.clusters[OLD_CLUSTER] = cluster
    settle(renamed, LONGEST_PAUSE + 5)
    assert (denied_status(renamed), renamed.bank.sums()[0]) == ([], 60)


def test_job_held_before_its_cluster_left_the_settings_is_charged_by_its_qos_later(
    world: World,
) -> None:
    partitions = world.bank.clusters[CLUSTER].partitions
    cluster = Cluster(OLD_CLUSTER, partitions, {"high": Fraction(3)})
    world.bank.clusters[OLD_CLUSTER] = cluster
    for job in (1, 2):
        world.deliver(of_old_cluster(prolog_request(job, qos="high")))
    settle(world, 2)
    assert world.bank.sums() == (0, 2 * 180)
    del world.bank.clusters[OLD_CLUSTER]
    for message in (
        limit_event(1, 1_800, qos="high"),
        epilog_event(1, qos="high"),
        epilog_event(2, qos="high", state="NODE_FAIL"),
    ):
        world.deliver(of_old_cluster(message))
        settle(world, 2)
    settle(world, 2 * LONGEST_PAUSE)
    (denied,) = denied_status(world)
    assert (denied["reports"], world.bank.sums(), world.bank.refusals()) == (3, (0, 2 * 180), [])
    assert world.engine.counts["reports_answered", "complete", "granted"] == 0, "all are set aside"
    world.bank.clusters[OLD_CLUSTER] = cluster
    settle(world, LONGEST_PAUSE + 5)
    assert (denied_status(world), world.bank.sums()) == ([], (180, 0))


def test_agent_without_the_right_learns_that_its_cluster_is_missing(
    denying: World, renamed: World
) -> None:
    denying.deliver(of_old_cluster(epilog_event(1)))
    settle(denying, 5)
    (denied,) = denied_status(renamed)
    assert str(denied["error"]).endswith("of cluster old, which the settings do not have")
    assert "with that table if they lack it" in str(denied["remedy"])
