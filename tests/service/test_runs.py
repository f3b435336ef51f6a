"""What clusters report, as the service takes it: accounts that nobody knows, banks that only observe, and who else could pay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import msgspec
import pytest

from fairbank.bank.ledger import Done, Outcome
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusal import Alternative, Reason, Refusal, remedies
from fairbank.bank.wish import Asked, CreateProject, Open, Request, SetCap, SetMember
from fairbank.cluster.job import Run
from fairbank.cluster.partition import Cluster, Partition
from fairbank.cluster.report import Changed, Ended, Report, Started
from fairbank.service.askers import Staff, asker_of
from fairbank.service.services import services
from fairbank.store.memory import MemoryStore
from fairbank.values.time import Instant, StoppedClock
from fairbank.values.trouble import Malformed
from fairbank.values.units import SuMinutes
from tests.support.ticks import Ticks

NOW, END = Instant(1_000), Instant(9_000)
AGENT, ALICE = 7, 1001
STAFF = Staff(agents={AGENT: frozenset({"darwin"})})
GROUPS = {ALICE: frozenset({30})}


class Centre:
    """The services of a bank in memory, and the agent of its cluster."""

    def __init__(self, policy: Policy, groups: Mapping[int, frozenset[int]] | None) -> None:
        groups_of = None if groups is None else lambda uid: groups.get(uid, frozenset())
        self.ticks = Ticks()
        self.clusters: dict[str, Cluster] = {}
        self.house = services(
            MemoryStore(),
            clock=StoppedClock(NOW),
            staff=STAFF,
            clusters=self.clusters,
            policy=policy,
            key=b"k" * 32,
            groups_of=groups_of,
            ticks=self.ticks,
        )

    def ask(self, *wishes: Request) -> list[Done]:
        """Set the scene."""
        outcomes = self.house.counter.ask([Asked(each, NOW, 0) for each in wishes])
        assert all(isinstance(each, Done) for each in outcomes), outcomes
        return [each for each in outcomes if isinstance(each, Done)]

    def project(self, name: str, number: int, *, credit: int = 0, parent: int | None = None, shared: bool = False) -> None:
        """A project with an allocation, both of the same number as long as each has one."""
        project = self.ask(CreateProject(gname=name, gid=10 * number, account=name, parent=parent))[0].project or 0
        opening = Open(project=project, resource="cpu", category="startup", start=NOW, end=END, shared=shared, deposit=SuMinutes(credit))
        self.ask(opening)
        self.house.directory.refresh()  # as the server does that enters a project

    def hear(self, report: Report) -> Outcome:
        """The agent's report, judged. Raises what keeps it from being a wish."""
        (prepared,) = self.house.reports.prepare(asker_of(AGENT, STAFF, {}), [report])
        if not isinstance(prepared, Asked):
            raise prepared
        return self.house.counter.ask([prepared])[0]

    def kept(self, entry: int | None) -> Refusal:
        """A refusal in the books, as staff see it."""
        return self.house.runs.refusal(asker_of(0, Staff(superusers=frozenset({0})), {}), entry or 0)[1]

    def refused_but_let_through(self, report: Report) -> Refusal:
        """The refusal behind an answer that holds nothing."""
        yes = self.hear(report)
        assert isinstance(yes, Done)
        assert (yes.amount, yes.allocation, yes.run) == (0, None, None)
        return self.kept(yes.entry)

    def others(self, asked: int, *, reason: Reason = Reason.OVERDRAWN) -> list[Alternative]:
        """Who else could pay for a job of Alice's that project 1 cannot."""
        return list(self.house.runs.alternatives(Refusal(reason=reason, project=1, resource="cpu", owner=ALICE, asked=asked)))


def made(policy: Policy | None = None, groups: Mapping[int, frozenset[int]] | None = None) -> Iterator[Centre]:
    centre = Centre(policy or Policy(), groups)
    yield centre
    centre.house.close()


@pytest.fixture
def centre() -> Iterator[Centre]:
    yield from made()


@pytest.fixture
def observing() -> Iterator[Centre]:
    yield from made(Policy(enforce=False))


@pytest.fixture
def of_groups() -> Iterator[Centre]:
    """A centre whose Unix groups make members."""
    yield from made(groups=GROUPS)


def started(account: str) -> Started:
    return Started(
        run=Run("darwin", 1, 900), owner=ALICE, account=account, resource="cpu", start=NOW, limit_seconds=3_600, billing=Fraction(1)
    )


def changed(account: str, limit_seconds: int) -> Changed:
    return Changed(
        run=Run("darwin", 1, 900),
        owner=ALICE,
        account=account,
        resource="cpu",
        start=NOW,
        limit_seconds=limit_seconds,
        billing=Fraction(1),
        key="change",
    )


def ended(account: str) -> Ended:
    return Ended(
        run=Run("darwin", 1, 900),
        owner=ALICE,
        account=account,
        resource="cpu",
        start=NOW,
        billing=Fraction(1),
        ended=Instant(NOW + 600),
        outcome="COMPLETED",
        elapsed_seconds=600,
        key="end",
    )


@pytest.mark.parametrize("report", [started("chem"), changed("chem", 3_600)])
def test_a_start_and_a_change_have_a_limit_whoever_told_the_price(centre: Centre, report: Report) -> None:
    """Without one a hold would lapse while its job runs."""
    for amount in (None, SuMinutes(60)):
        with pytest.raises(Malformed) as bad:
            centre.hear(msgspec.structs.replace(report, limit_seconds=0, amount=amount))
        assert (bad.value.field, bad.value.remedy) == ("time_limit", "send the limit in seconds, at least 1")


# --- accounts that nobody knows ---


def test_the_end_of_a_job_of_an_unknown_account_is_kept_under_its_name_and_counts_once_the_project_is_entered(centre: Centre) -> None:
    no = centre.hear(ended("chem"))
    assert isinstance(no, Refusal)
    assert (no.reason, no.account, no.project, no.asked, no.owner) == (Reason.UNKNOWN_PROJECT, "chem", None, 10, ALICE)
    assert centre.kept(no.entry) == no
    centre.project("chem", 1, credit=100)
    centre.ticks.at += 1  # an unknown account is looked up once a second
    yes = centre.hear(ended("chem"))
    assert isinstance(yes, Done)
    assert (yes.amount, yes.available) == (10, 90)


def test_a_job_of_an_unknown_account_does_not_start(centre: Centre) -> None:
    no = centre.hear(started("chem"))
    assert isinstance(no, Refusal)
    assert (no.reason, no.account, no.project, no.asked, no.owner, no.observed) == (Reason.UNKNOWN_PROJECT, "chem", None, 60, ALICE, False)
    assert centre.kept(no.entry) == no


def test_a_changed_limit_of_a_job_that_runs_without_a_hold_is_noted_and_stops_nothing(observing: Centre, centre: Centre) -> None:
    observing.ask(CreateProject(gname="bio", gid=20, account="bio"))
    observing.hear(started("bio"))
    longer = changed("bio", 7_200)
    noted = observing.refused_but_let_through(longer)
    assert (noted.reason, noted.project, noted.asked, noted.owner) == (Reason.NO_HOLD, 1, 120, ALICE)
    no = centre.hear(longer)
    assert isinstance(no, Refusal)
    assert (no.reason, no.account, centre.kept(no.entry)) == (Reason.NO_HOLD, "bio", no)


def test_an_observing_bank_stops_no_job_whose_account_or_allocation_is_missing(observing: Centre) -> None:
    observing.ask(CreateProject(gname="bio", gid=20, account="bio"))
    unknown, homeless = (observing.refused_but_let_through(started(account)) for account in ("chem", "bio"))
    assert (unknown.reason, unknown.account, unknown.observed) == (Reason.UNKNOWN_PROJECT, "chem", True)
    assert (homeless.reason, homeless.project, homeless.asked, homeless.observed) == (Reason.NO_ALLOCATION, 1, 60, True)


# --- what is told of the price ---


def test_an_amount_is_the_price_also_of_a_run_that_took_no_time(centre: Centre) -> None:
    centre.project("chem", 1, credit=100)
    short = msgspec.structs.replace(ended("chem"), amount=40, elapsed_seconds=0)
    yes = centre.hear(short)
    assert isinstance(yes, Done)
    assert (yes.amount, yes.available) == (40, 60)
    for number, free in ((2, {"amount": 40, "outcome": "NODE_FAIL"}), (3, {"elapsed_seconds": 0})):
        other = centre.hear(msgspec.structs.replace(ended("chem"), run=Run("darwin", number, 900), key=None, **free))
        assert isinstance(other, Done)
        assert (other.amount, other.available) == (0, 60)


def test_no_shorter_time_limit_is_advised_where_it_would_not_change_the_price(centre: Centre) -> None:
    centre.project("chem", 1, credit=30)
    priced = centre.hear(started("chem"))
    told = centre.hear(msgspec.structs.replace(started("chem"), amount=60))
    assert isinstance(priced, Refusal)
    assert isinstance(told, Refusal)
    assert any("a shorter time limit" in each for each in remedies(priced))
    assert not any("a shorter time limit" in each for each in remedies(told))


# --- partitions that the settings know no more ---


COUNTED = {"billing": None, "counts": {"cpu": Fraction(1)}, "partition": "old"}


def test_a_run_in_a_partition_that_was_renamed_is_kept_as_refused_and_counts_once_it_is_known_again(centre: Centre) -> None:
    centre.project("chem", 1, credit=100)
    held = centre.hear(started("chem"))
    assert isinstance(held, Done)
    report = msgspec.structs.replace(ended("chem"), **COUNTED)
    centre.clusters["darwin"] = Cluster("darwin", {"new": Partition("new", "cpu")})
    no = centre.hear(report)
    assert isinstance(no, Refusal)
    assert (no.reason, no.about, no.allocation, no.owner) == (Reason.UNPRICED, "cluster darwin has no partition 'old'", 1, ALICE)
    assert centre.kept(no.entry) == no
    assert "settings" in remedies(no)[0]
    centre.clusters["darwin"] = Cluster("darwin", {"old": Partition("old", "cpu")})
    yes = centre.hear(report)
    assert isinstance(yes, Done)
    assert (yes.amount, yes.available) == (10, 90)
    centre.clusters.clear()  # what was settled is answered again, priced or not
    again = centre.hear(report)
    assert isinstance(again, Done)
    assert again.again


def test_a_run_of_an_unknown_cluster_that_never_had_a_hold_is_kept_too(centre: Centre) -> None:
    centre.project("chem", 1, credit=100)
    no = centre.hear(msgspec.structs.replace(ended("chem"), **COUNTED))
    assert isinstance(no, Refusal)
    assert (no.reason, no.allocation, no.project) == (Reason.UNPRICED, None, 1)
    assert centre.kept(no.entry) == no
    centre.clusters["darwin"] = Cluster("darwin", {"old": Partition("old", "cpu")})
    assert isinstance(centre.hear(msgspec.structs.replace(ended("chem"), **COUNTED)), Done)


def test_a_start_that_tells_its_amount_asks_no_partition_for_a_price(centre: Centre) -> None:
    centre.project("chem", 1, credit=100)
    yes = centre.hear(msgspec.structs.replace(started("chem"), amount=30, **COUNTED))
    assert isinstance(yes, Done)
    assert yes.amount == 30


# --- who else could pay ---


def test_the_two_richest_of_ones_other_projects_are_named(centre: Centre) -> None:
    for number, (name, credit) in enumerate({"chem": 500, "bio": 100, "geo": 300, "astro": 200, "poor": 9}.items(), start=1):
        centre.project(name, number, credit=credit)
        centre.ask(SetMember(project=number, uid=ALICE, role=Role.MEMBER))
    assert centre.others(10) == [Alternative("geo", 300), Alternative("astro", 200)]
    assert centre.others(10, reason=Reason.RUN_TAKEN) == []


def test_a_project_whose_cap_a_user_has_reached_is_not_named(centre: Centre) -> None:
    centre.project("chem", 1)
    centre.project("bio", 2, credit=100)
    centre.ask(SetMember(project=2, uid=ALICE, role=Role.MEMBER), SetCap(allocation=2, uid=ALICE, cap=SuMinutes(40)))
    assert centre.others(40) == [Alternative("bio", 40)]
    assert centre.others(41) == []


def test_a_project_that_draws_on_its_parents_credit_is_named(centre: Centre) -> None:
    centre.project("chem", 1)
    centre.project("faculty", 2, credit=100, shared=True)
    centre.project("group", 3, credit=5, parent=2)
    centre.ask(SetMember(project=3, uid=ALICE, role=Role.MEMBER))
    assert centre.others(10) == [Alternative("group", 100)]


def test_a_project_one_belongs_to_only_by_a_unix_group_is_named_where_groups_count(centre: Centre, of_groups: Centre) -> None:
    for each in (centre, of_groups):
        for number, name in enumerate(("chem", "bio", "geo"), start=1):
            each.project(name, number, credit=100)
    assert of_groups.others(10) == [Alternative("geo", 100)]
    assert centre.others(10) == []
