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
from tests.priority.site_with_bank import Centre

WEEK, NEVER = fading(7 * DAY), fading(0, Reset.NONE)

SPENT = """
    alice runs 1 physics 90
    left physics/cpu 10
    first chem
"""
PAUSED = """
    8 weeks pass
    carol runs 2 chem 10
"""


def test_both_work_at_once() -> None:
    Centre(WEEK).tell(
        SPENT
        + """
        hold 9 alice physics/cpu 20     -> INSUFFICIENT_CREDIT asked 20 left 10 short 10
        """
        + PAUSED
        + """
        first physics                   # what alice used has faded
        left physics/cpu 10             # what she spent has not
        hold 9 alice physics/cpu 20     -> INSUFFICIENT_CREDIT asked 20 left 10 short 10
        deposit physics/cpu 50
        first physics
        alice runs 9 physics 20         # and the credit is used by whoever is first
        left physics/cpu 40
        first chem
        """
    )


def test_with_one_counter_that_fades_spent_credit_comes_back() -> None:
    there = Centre(WEEK).tell(
        SPENT
        + """
        slurm physics 20 -> AssocGrpCPUMinutesLimit
        """
        + PAUSED
        + """
        first physics
        slurm physics 20 -> ok
        slurm physics 99 -> ok          # nearly the whole grant a second time
        hold 9 alice physics/cpu 20     -> INSUFFICIENT_CREDIT left 10
        """
    )
    assert there.first() == "physics"


def test_with_one_counter_that_never_fades_fair_share_is_lost() -> None:
    """PriorityDecayHalfLife=0, as on credit clusters: credit is right, but a project that used more
    stays last forever.
    """
    Centre(NEVER).tell(
        SPENT
        + PAUSED
        + """
        slurm physics 20 -> AssocGrpCPUMinutesLimit
        first chem                      # here fair share would say physics
        250 weeks pass
        first chem
        slurm physics 20 -> AssocGrpCPUMinutesLimit
        """
    )


def test_a_reset_of_the_one_counter_gives_all_credit_back() -> None:
    Centre(NEVER).tell(
        SPENT
        + """
        usage is reset
        carol runs 2 chem 10
        first physics
        slurm physics 99 -> ok
        left physics/cpu 10
        """
    )


@pytest.mark.parametrize("decay", [NEVER, fading(DAY), fading(365 * DAY)])
def test_usage_decay_does_not_change_the_ledger(decay: Decay) -> None:
    """Every entry of the journal, and its link, stays the same."""
    story = SPENT + PAUSED + "hold 9 alice physics/cpu 20 -> INSUFFICIENT_CREDIT left 10"
    assert Centre(decay).tell(story).books() == Centre(WEEK).tell(story).books()


@pytest.mark.parametrize(
    "deed",
    [
        "deposit physics/cpu 500",
        "withdraw physics/cpu 10",
        "refund 1 all",
        "transfer 10 physics/cpu => chem/cpu",
        "hold 9 alice physics/cpu 2000 until 1900000000 -> INSUFFICIENT_CREDIT left 10",
        "hold 9 alice physics/cpu 5 until 1900000000",  # set aside, but not run yet
        "freeze physics/cpu",
    ],
)
def test_what_the_bank_does_is_nothing_to_fair_share(deed: str) -> None:
    there = Centre(WEEK).tell(SPENT)
    before, entries = there.usage, len(there.books())
    there.tell(deed)
    assert len(there.books()) > entries
    assert np.array_equal(there.usage.associations.raw, before.associations.raw)
    there.tell(PAUSED)
    without = Centre(WEEK).tell(SPENT + PAUSED)
    assert np.array_equal(there.usage.associations.raw, without.usage.associations.raw)


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
        f"{who} runs {number} {where} {su}\n{weeks} weeks pass\n"
        for number, ((who, where), su, weeks) in enumerate(runs, 1)
    )
    there = Centre(decay, {"physics": 300, "chem": 300}).tell(story)
    assert there.books() == Centre(WEEK, {"physics": 300, "chem": 300}).tell(story).books()
    richer = Centre(decay, {"physics": 900, "chem": 250}).tell(story)
    assert np.array_equal(richer.usage.associations.raw, there.usage.associations.raw)
    assert richer.first() == there.first()
    for name in ("physics", "chem"):
        spent = sum(su for (_, where), su, _ in runs if where == name)
        assert there.bank.allocation(f"{name}/cpu").charged == spent * 60
