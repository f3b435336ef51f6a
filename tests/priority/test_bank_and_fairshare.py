"""Credit and fair share together: the bank refuses and charges, decayed usage ranks, and neither
changes the other. For comparison, from the same runs: Slurm's single counter, where GrpTRESMins
limits the usage that decays for fair share. Source: RCAC.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.time import DAY
from fairbank.priority.fairshare.decay import Decay, Reset, fading
from tests.priority.bank_and_fairshare_site import SiteWithBank

WEEK, NEVER = fading(7 * DAY), fading(0, Reset.NONE)

SPENT = """
    alice runs 1 physics 90
    remaining physics/cpu 10
    first chem
"""
PAUSED = """
    8 weeks pass
    carol runs 2 chem 10
"""


def test_credit_and_fair_share_work_together() -> None:
    SiteWithBank(WEEK).play(
        SPENT
        + """
        hold 9 alice physics/cpu 20 -> INSUFFICIENT_CREDIT requested 20 available 10 shortfall 10
        """
        + PAUSED
        + """
        first physics                   # alice's usage has decayed
        remaining physics/cpu 10             # the spent credit has not
        hold 9 alice physics/cpu 20 -> INSUFFICIENT_CREDIT requested 20 available 10 shortfall 10
        deposit physics/cpu 50
        first physics
        alice runs 9 physics 20         # the project with the better rank uses its credit
        remaining physics/cpu 40
        first chem
        """
    )


def test_one_decaying_counter_returns_spent_credit() -> None:
    site = SiteWithBank(WEEK).play(
        SPENT
        + """
        slurm physics 20 -> AssocGrpCPUMinutesLimit
        """
        + PAUSED
        + """
        first physics
        slurm physics 20 -> ok
        slurm physics 99 -> ok          # nearly the whole grant a second time
        hold 9 alice physics/cpu 20     -> INSUFFICIENT_CREDIT available 10
        """
    )
    assert site.first_project() == "physics"


def test_one_counter_without_decay_loses_fair_share() -> None:
    """PriorityDecayHalfLife=0, as on credit clusters: credit is right, but a project that used more
    stays last forever.
    """
    SiteWithBank(NEVER).play(
        SPENT
        + PAUSED
        + """
        slurm physics 20 -> AssocGrpCPUMinutesLimit
        first chem                      # fair share alone would rank physics first
        250 weeks pass
        first chem
        slurm physics 20 -> AssocGrpCPUMinutesLimit
        """
    )


def test_reset_of_single_counter_returns_all_credit() -> None:
    SiteWithBank(NEVER).play(
        SPENT
        + """
        usage is reset
        carol runs 2 chem 10
        first physics
        slurm physics 99 -> ok
        remaining physics/cpu 10
        """
    )


@pytest.mark.parametrize("decay", [NEVER, fading(DAY), fading(365 * DAY)])
def test_usage_decay_does_not_change_the_ledger(decay: Decay) -> None:
    """Every entry of the journal, and its link, stays the same."""
    story = SPENT + PAUSED + "hold 9 alice physics/cpu 20 -> INSUFFICIENT_CREDIT available 10"
    assert (
        SiteWithBank(decay).play(story).journal_links()
        == SiteWithBank(WEEK).play(story).journal_links()
    )


@pytest.mark.parametrize(
    "line",
    [
        "deposit physics/cpu 500",
        "withdraw physics/cpu 10",
        "refund 1 all",
        "transfer 10 physics/cpu => chem/cpu",
        "hold 9 alice physics/cpu 2000 until 1900000000 -> INSUFFICIENT_CREDIT available 10",
        "hold 9 alice physics/cpu 5 until 1900000000",  # held, but not started
        "freeze physics/cpu",
    ],
)
def test_bank_entries_do_not_change_fair_share(line: str) -> None:
    site = SiteWithBank(WEEK).play(SPENT)
    before, entries = site.usage, len(site.journal_links())
    site.play(line)
    assert len(site.journal_links()) > entries
    assert np.array_equal(site.usage.associations.raw, before.associations.raw)
    site.play(PAUSED)
    without = SiteWithBank(WEEK).play(SPENT + PAUSED)
    assert np.array_equal(site.usage.associations.raw, without.usage.associations.raw)


runs = st.lists(
    st.tuples(
        st.sampled_from([("alice", "physics"), ("carol", "chem")]),
        st.integers(1, 40),
        st.integers(0, 9),
    ),
    max_size=6,
)


@given(runs, st.sampled_from([WEEK, fading(DAY), NEVER]))
def test_credit_and_fair_share_are_independent(
    runs: list[tuple[tuple[str, str], int, int]], decay: Decay
) -> None:
    story = "".join(
        f"{who} runs {number} {project_name} {su}\n{weeks} weeks pass\n"
        for number, ((who, project_name), su, weeks) in enumerate(runs, 1)
    )
    site = SiteWithBank(decay, {"physics": 300, "chem": 300}).play(story)
    assert (
        site.journal_links()
        == SiteWithBank(WEEK, {"physics": 300, "chem": 300}).play(story).journal_links()
    )
    richer = SiteWithBank(decay, {"physics": 900, "chem": 250}).play(story)
    assert np.array_equal(richer.usage.associations.raw, site.usage.associations.raw)
    assert richer.first_project() == site.first_project()
    for name in ("physics", "chem"):
        spent = sum(su for (_, project_name), su, _ in runs if project_name == name)
        assert site.bank.allocation(f"{name}/cpu").charged == spent * 60
