"""Sentences on the factors of a pending job: why it does not age, and whose priorities count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairbank.core.time import DAY, iso
from fairbank.priority.fairshare.decay import Reset
from fairbank.priority.settings import FairShare, Flag, MultifactorSettings, PriorityWeights
from fairbank.report.slurm.sprio import PriorityRow
from fairbank.slurm.fairshare_view.factor_notes import FactorInputs, FactorNotes
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.values import AssociationFactors, QosFactors

NOON = 1_800_000_000
WEIGHTS = PriorityWeights(age=16_800)
MULTIFACTOR = MultifactorSettings(weights=WEIGHTS, max_age_seconds=7 * DAY)
NORMAL = QosFactors("normal", 0, None, None, None)
HIGH = QosFactors("high", 25, None, 3, 2)
LOW = QosFactors("low", 100, 3, None, None)
ACCOUNTS = [
    AssociationFactors("root", "", "", "", 0, None, None),
    AssociationFactors("bio", "", "", "root", 40, 4, None),
    AssociationFactors("wg_bio", "", "", "bio", 0, None, 1),
    AssociationFactors("wg_bio", "bob", "", "", 10, None, None),
    AssociationFactors("wg_bio", "carol", "", "", 0, None, 1),
]


def job(
    number: int,
    user: str = "bob",
    qos: Sequence[str] = ("normal",),
    *,
    since: int | None = None,
    submitted: int = NOON - 3_600,
    tasks: str = "",
) -> PendingFactors:
    return PendingFactors(
        job_id=number,
        user=user,
        account="wg_bio",
        qos=tuple(qos),
        partitions=("cpu",),
        priority=1,
        nice=0,
        submitted=submitted,
        accrued=since,
        limit_minutes=10,
        nodes=1,
        cpus=1,
        tres="cpu=1",
        tasks=tasks,
    )


def notes(
    *jobs: PendingFactors,
    settings: MultifactorSettings = MULTIFACTOR,
    fair_share: FairShare | None = None,
    limits: bool = True,
    first_of_qos: bool = False,
) -> dict[str, str]:
    """Return the sentences on the first job."""
    inputs = FactorInputs(
        settings,
        fair_share or FairShare(),
        limits,
        jobs,
        [NORMAL, HIGH, LOW],
        ACCOUNTS,
        first_of_qos,
    )
    by_factor = FactorNotes(inputs).of(PriorityRow(jobs[0].job_id, "cpu"), NOON, iso)
    return {name: note.text for name, note in by_factor.items()}


def age_of(*jobs: PendingFactors, limits: bool = True, first_of_qos: bool = False) -> str:
    return notes(*jobs, limits=limits, first_of_qos=first_of_qos)["age"]


def test_limit_of_a_user_in_a_qos_stops_the_age() -> None:
    """An array has two tasks that age; those of other users and QOS do not count."""
    others = [
        job(2, qos=["high"], since=NOON, tasks="1-2"),
        job(3, "carol", ["high"], since=NOON),
        job(4, since=NOON),
    ]
    assert age_of(job(1, qos=["high"]), *others) == (
        "does not age: QOS high lets 3 jobs of an account age at once (MaxJobsAccruePerAccount),"
        " and 3 of wg_bio do; it begins when one of these leaves the queue"
    )
    assert age_of(job(1, qos=["high"]), others[0]) == (
        "does not age: QOS high lets 2 jobs of a user age at once (MaxJobsAccruePerUser), and 2 of"
        " bob do; it begins when one of these leaves the queue"
    )
    assert age_of(job(1, qos=["high"]), others[1]) == (
        "begins with the scheduler's next pass (QOS high lets 3 jobs of an account age at once"
        " (MaxJobsAccruePerAccount), and 1 of wg_bio does; QOS high lets 2 jobs of a user age at"
        " once (MaxJobsAccruePerUser), and 0 of bob do)"
    )


def test_only_the_first_limit_of_a_qos_counts_in_22_05() -> None:
    """Of the limits of an account (3) and of a user (2) in QOS high, it is that of the account."""
    ageing = job(2, qos=["high"], since=NOON, tasks="1-2")
    assert age_of(job(1, qos=["high"]), ageing, first_of_qos=True) == (
        "begins with the scheduler's next pass (QOS high lets 3 jobs of an account age at once"
        " (MaxJobsAccruePerAccount), and 2 of wg_bio do)"
    )


def test_group_limit_of_an_association_counts_before_that_of_its_jobs() -> None:
    own = AssociationFactors("wg_bio", "dan", "", "", 0, 5, 1)
    inputs = FactorInputs(
        MULTIFACTOR, FairShare(), True, [job(1, "dan")], [NORMAL], [*ACCOUNTS, own]
    )
    note = FactorNotes(inputs).of(PriorityRow(1, "cpu"), NOON, iso)["age"]
    assert note.text == (
        "begins with the scheduler's next pass (association dan in wg_bio lets 5 jobs age at once"
        " (GrpJobsAccrue), and 0 do)"
    )


def test_accounts_above_themselves_are_read_once() -> None:
    accounts = [
        AssociationFactors("wg_bio", "", "", "bio", 0, None, None),
        AssociationFactors("bio", "", "", "wg_bio", 0, None, None),
    ]
    inputs = FactorInputs(MULTIFACTOR, FairShare(), True, [job(1)], [NORMAL], accounts)
    note = FactorNotes(inputs).of(PriorityRow(1, "cpu"), NOON, iso)["age"]
    assert note.text == "begins with the scheduler's next pass"


def test_limit_of_the_best_of_several_qos_counts() -> None:
    ageing = [job(number, "carol", ["low"], since=NOON) for number in (2, 3, 4)]
    assert age_of(job(1, qos=["high", "low"]), *ageing).startswith(
        "does not age: QOS low lets 3 jobs age at once (GrpJobsAccrue), and 3 do; it begins"
    )


def test_limits_of_associations_count_if_the_qos_has_none() -> None:
    """carol has a limit of her own; bob has not, nor has wg_bio for its group, so that of bio
    counts, which is above them.
    """
    ageing = [job(number, "bob", since=NOON) for number in (2, 3, 4)]
    ageing.append(job(5, "carol", since=NOON))
    assert age_of(job(1), *ageing).startswith(
        "does not age: account bio lets 4 jobs age at once (GrpJobsAccrue), and 4 do; it begins"
    )
    assert age_of(job(1, "carol"), *ageing).startswith(
        "does not age: association carol in wg_bio lets 1 job age at once (MaxJobsAccrue), and 1"
        " does; it begins"
    )
    assert age_of(job(1), *ageing, limits=False) == "begins with the scheduler's next pass"


def test_limit_of_no_job_says_so() -> None:
    inputs = FactorInputs(
        MULTIFACTOR, FairShare(), True, [job(1)], [QosFactors("normal", 0, None, None, 0)], ACCOUNTS
    )
    sentences = FactorNotes(inputs).of(PriorityRow(1, "cpu"), NOON, iso)
    assert sentences["age"].text == "does not age: QOS normal lets no jobs of a user age" + (
        " (MaxJobsAccruePerUser=0)"
    )


def test_age_rises_by_the_weight_over_the_maximum() -> None:
    """16,800 in 168 hours are 100 per hour."""
    assert (
        age_of(job(1, since=NOON - 3_600)) == f"+100 per hour until {iso(NOON - 3_600 + 7 * DAY)}"
    )
    assert age_of(job(1, since=NOON - 60)).startswith(
        f"counts since {iso(NOON - 60)}, not since the submission; +100 per hour until"
    )
    old = job(1, since=NOON - 8 * DAY, submitted=NOON - 8 * DAY)
    assert age_of(old) == (f"at its maximum since {iso(NOON - DAY)}: PriorityMaxAge is 7-00:00:00")
    always = MultifactorSettings(weights=WEIGHTS, flags=frozenset({Flag.ACCRUE_ALWAYS}))
    begins = iso(NOON - 3_600 + 7 * DAY)
    assert notes(job(1, since=NOON), settings=always)["age"] == f"+100 per hour until {begins}"
    without = MultifactorSettings(weights=WEIGHTS, accounted=False)
    assert notes(job(1), settings=without)["age"] == "without slurmdbd Slurm counts no age"


def test_priorities_name_their_owner_and_the_highest() -> None:
    sentences = notes(job(1, qos=["high"], since=NOON))
    assert sentences["qos"] == "priority 25 of QOS high, divided by 100, that of QOS low"
    assert sentences["association"] == (
        "priority 10 of association bob in wg_bio, divided by 40, that of account bio"
    )
    assert notes(job(1, qos=["low"], since=NOON))["qos"] == "priority 100 of QOS low, the highest"
    raw = MultifactorSettings(flags=frozenset({Flag.NO_NORMAL_QOS, Flag.NO_NORMAL_ASSOC}))
    sentences = notes(job(1, qos=["high"], since=NOON), settings=raw)
    assert sentences["qos"] == "priority 25 of QOS high, not divided (NO_NORMAL_QOS)"
    assert sentences["association"].endswith("bob in wg_bio, not divided (NO_NORMAL_ASSOC)")


@pytest.mark.parametrize(
    ("highest", "flag", "divided"),
    [(100, None, True), (100, Flag.NO_NORMAL_QOS, False), (0, None, False)],
)
def test_priority_is_divided_only_by_a_highest_one(
    highest: int, flag: Flag | None, divided: bool
) -> None:
    """Without any priority the factor is 0, and nothing is divided."""
    settings = MultifactorSettings(flags=frozenset({flag} if flag else ()))
    qos = [NORMAL, QosFactors("low", highest, None, None, None)]
    inputs = FactorInputs(settings, FairShare(), True, [job(1)], qos, ACCOUNTS)
    note = FactorNotes(inputs).of(PriorityRow(1, "cpu"), NOON, iso)["qos"]
    assert note.facts["divided"] is divided


@pytest.mark.parametrize(
    ("reset", "clears"), [(Reset.NONE, "never clears"), (Reset.MONTHLY, "clears")]
)
def test_fair_share_says_that_usage_never_decays(reset: Reset, clears: str) -> None:
    never = FairShare(half_life_seconds=0, reset=reset)
    assert notes(job(1), fair_share=never)["fair_share"] == (
        "usage never decays (PriorityDecayHalfLife=0):"
        f" PriorityUsageResetPeriod={reset.value} {clears} it"
    )
    assert "fair_share" not in notes(job(1))


def test_fixed_priority_has_no_notes() -> None:
    inputs = FactorInputs(MULTIFACTOR, FairShare(), True, [job(1)], [NORMAL], ACCOUNTS)
    assert FactorNotes(inputs).of(PriorityRow(1, "cpu", direct=7), NOON, iso) == {}
    assert FactorNotes(inputs).of(PriorityRow(2, "cpu"), NOON, iso) == {}
