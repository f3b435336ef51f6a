"""Credit: deposits, withdrawals, transfers, refunds, credit limits, caps, and what parents share."""

from __future__ import annotations

from fairbank.bank.refusal import Refusal, remedies, sentence
from fairbank.values.units import AMOUNT_MAX, SUM_MAX
from tests.bank.story import tell

PHYSICS = """
    project physics
    open physics/cpu 0..1000 with 100
"""


def test_credit_comes_and_goes() -> None:
    tell(
        PHYSICS
        + """
        deposit physics/cpu 50          -> ok left 150 amount 50
        withdraw physics/cpu 120        -> ok left 30 amount 120
        hold 1 alice physics/cpu 20
        withdraw physics/cpu 11         -> NOT_ENOUGH asked 11 left 10 short 1  # what is held stays
        withdraw physics/cpu 10         -> ok left 0
        kept physics/cpu 0                                                      # staff read the answer; no owner looks for it
        deposit chemistry/cpu 1         -> UNKNOWN_ALLOCATION
        withdraw chemistry/cpu 1        -> UNKNOWN_ALLOCATION
        """
    )


def test_a_transfer_is_two_entries_or_none() -> None:
    told = tell(
        """
        project physics
        project optics
        open physics/cpu 0..1000 with 100
        open optics/cpu 0..1000
        open optics/gpu 0..1000
        hold 1 alice physics/cpu 30
        transfer 60 physics/cpu => optics/cpu           -> ok left 10 amount 60 from physics/cpu
        left optics/cpu 60
        transfer 11 physics/cpu => optics/cpu           -> NOT_ENOUGH asked 11 left 10
        transfer 1 physics/cpu => optics/gpu            -> OTHER_RESOURCE
        transfer 1 physics/cpu => physics/cpu           -> SAME_ALLOCATION
        transfer 1 physics/cpu => chemistry/cpu         -> UNKNOWN_ALLOCATION
        transfer 1 chemistry/cpu => physics/cpu         -> UNKNOWN_ALLOCATION
        left physics/cpu 10
        left optics/cpu 60
        left optics/gpu 0
        """
    )
    out, into = told.work.entries[-2:]
    assert (out.kind.value, out.details, into.kind.value, into.details) == ("transfer-out", '{"to":2}', "transfer-in", '{"from":1}')


def test_a_refund_gives_back_at_most_the_charge() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        refund 1 10                     -> WRONG_STATE          # still running
        charge 1 45
        refund 1 10                     -> ok left 65 amount 10
        refund 1 36                     -> TOO_MUCH_BACK asked 36 left 35 short 1
        used alice physics/cpu 35
        refund 1 all                    -> ok left 100 amount 35
        refund 1 all                    -> NOTHING_BACK
        refund 1 1m                     -> TOO_MUCH_BACK left 0
        used alice physics/cpu 0
        charged physics/cpu 0
        run 1 charged charged 45 refunded 45
        hold 2 alice physics/cpu 5
        release 2
        refund 2 all                    -> WRONG_STATE
        refund 3 all                    -> NO_HOLD
        """
    )


def test_a_refund_that_is_taken_back_is_charged_again() -> None:
    told = tell(
        PHYSICS
        + """
        cap alice physics/cpu 50
        hold 1 alice physics/cpu 45
        charge 1 45
        """
    )
    before = len(told.work.entries)
    told = tell(
        PHYSICS
        + f"""
        cap alice physics/cpu 50
        hold 1 alice physics/cpu 45
        charge 1 45
        refund 1 10                     -> ok left 65 amount 10
        refund 1 5                      -> ok left 70 amount 5
        recharge 1 {before + 1}         -> ok left 60 amount 10
        recharge 1 {before + 1}         -> UNDONE
        used alice physics/cpu 40
        charged physics/cpu 40
        run 1 charged charged 45 refunded 5
        recharge 1 {before}             -> NO_REVERSE       # a charge
        recharge 1 99                   -> NO_REVERSE
        recharge 7 {before + 2}         -> NO_HOLD
        hold 2 bob physics/cpu 58
        freeze physics/cpu
        recharge 1 {before + 2}         -> NOT_ENOUGH asked 5 left 2 short 3
        release 2
        recharge 1 {before + 2}         -> ok left 55 amount 5
        run 1 charged charged 45 refunded 0
        """
    )
    assert told.work.entries[-1].details == f'{{"undoes":{before + 2}}}'


def test_what_policy_let_run_below_zero_is_charged_again_too() -> None:
    tell(
        PHYSICS
        + """
        policy record
        charge 1 alice physics/cpu 130  -> ok left -30
        refund 1 all                    -> ok left 100
        recharge 1 5                    -> ok left -30
        """
    )


def test_an_overrun_of_before_is_no_leave_to_run_below_zero_again() -> None:
    told = tell(
        PHYSICS
        + """
        policy record
        charge 1 alice physics/cpu 130  -> ok left -30
        refund 1 20                     -> ok left -10
        deposit physics/cpu 25
        policy write_off
        recharge 1 5                    -> NOT_ENOUGH asked 20 left 15 short 5
        """
    )
    assert isinstance(told.said, Refusal)
    (help_,) = remedies(told.said)
    assert "fairbank deposit 1 5 --reason" in help_


def test_where_what_goes_beyond_the_credit_is_recorded_a_refund_is_always_taken_back() -> None:
    for policy in ("record", "observe"):
        tell(
            PHYSICS
            + f"""
            policy {policy}
            charge 1 alice physics/cpu 20
            refund 1 all                    -> ok left 100
            hold 2 bob physics/cpu 100
            recharge 1 5                    -> ok left -20
            used alice physics/cpu 20
            charge 2 100                    -> ok left -20
            """
        )


def test_nothing_is_recharged_that_cannot_be_counted() -> None:
    most = f"alice physics/cpu {AMOUNT_MAX}m"
    charges = "\n".join(f"charge {number} {most}" for number in range(2, 2 + SUM_MAX // AMOUNT_MAX))
    tell(f"{PHYSICS}\n policy record\n charge 1 {most}\n refund 1 all\n {charges}\n recharge 1 5 -> TOO_LARGE")


def test_a_refund_of_nothing_is_told_so() -> None:
    for lines in ("charge 1 alice physics/cpu 0", "charge 1 alice physics/cpu 5\n refund 1 all"):
        told = tell(PHYSICS + lines + "\n refund 1 all -> NOTHING_BACK")
        assert isinstance(told.said, Refusal)
        assert "nothing is left of what the run was charged: it was charged" in sentence(told.said)


def test_a_refund_goes_to_the_allocation_that_was_charged_even_after_its_end() -> None:
    tell(
        """
        project physics
        open physics/cpu 0..100 with 50
        open physics/cpu:next 100..200 with 50
        hold 1 alice physics/cpu 20
        charge 1 20
        now 150
        expire physics/cpu
        refund 1 all                    -> ok left 50 from physics/cpu
        """
    )


def test_what_was_written_off_is_not_refunded() -> None:
    tell(PHYSICS + "charge 1 alice physics/cpu 130 -> ok amount 100 off 30\n refund 1 101 -> TOO_MUCH_BACK left 100")


# --- credit limits ---


def test_a_credit_limit_can_be_drawn_but_not_taken_away() -> None:
    tell(
        """
        project physics
        open physics/cpu 0..1000 with 10 limit 5        -> ok left 15
        open physics/cpu:next 1000..2000
        transfer 11 physics/cpu => physics/cpu:next     -> NOT_ENOUGH left 10
        withdraw physics/cpu 11                         -> NOT_ENOUGH left 10
        hold 1 alice physics/cpu 13                     -> ok left 2
        withdraw physics/cpu 1                          -> NOT_ENOUGH left 0
        hold 2 alice physics/cpu 3                      -> OVERDRAWN left 2 short 1
        charge 1 13                                     -> ok left 2
        amend physics/cpu limit 2                       -> LIMIT_IN_USE asked 3 left 2 short 1
        amend physics/cpu limit 3                       -> ok left 0
        limit physics/cpu 3
        deposit physics/cpu 4                           -> ok left 4
        amend physics/cpu limit 0                       -> ok left 1
        withdraw physics/cpu 1                          -> ok left 0
        """
    )


def test_usage_is_written_off_only_beyond_the_credit_limit() -> None:
    tell(
        """
        project physics
        open physics/cpu 0..1000 with 10 limit 5
        charge 1 alice physics/cpu 20   -> ok left 0 amount 15 off 5
        """
    )


# --- caps ---


def test_a_cap_bounds_one_user() -> None:
    tell(
        PHYSICS
        + """
        cap alice physics/cpu 30
        hold 1 alice physics/cpu 20     -> ok
        hold 2 alice physics/cpu 11     -> CAPPED asked 11 left 10 short 1
        kept physics/cpu 1
        hold 2 bob physics/cpu 40       -> ok left 40
        hold 3 alice physics/cpu 10     -> ok left 30
        charge 1 5                      -> ok
        hold 4 alice physics/cpu 16     -> CAPPED asked 16 left 15
        cap alice physics/cpu none
        hold 4 alice physics/cpu 16     -> ok
        cap carol physics/cpu 0
        hold 5 carol physics/cpu 1m     -> CAPPED left 0
        cap carol chemistry/cpu 10      -> UNKNOWN_ALLOCATION
        """
    )


def test_a_cap_below_what_is_drawn_only_stops_new_holds() -> None:
    tell(
        PHYSICS
        + """
        hold 1 alice physics/cpu 50
        cap alice physics/cpu 20
        adjust 1 51                     -> CAPPED asked 1 left 0
        charge 1 60                     -> ok left 40          # it happened
        hold 2 alice physics/cpu 1      -> CAPPED left 0
        refund 1 50                     -> ok
        hold 2 alice physics/cpu 10     -> ok
        """
    )


def test_an_empty_allocation_is_told_before_a_cap() -> None:
    tell(PHYSICS + "cap alice physics/cpu 1\n hold 1 alice physics/cpu 101 -> OVERDRAWN left 100")


# --- parents ---

FAMILY = """
    project college
    project physics under college
    project optics under physics
    open college/cpu 0..1000 with 100 shared yes
    open physics/cpu 0..1000 with 50
    open optics/cpu 0..1000 with 10
"""


def test_children_draw_on_their_own_first_then_on_what_parents_share() -> None:
    tell(
        FAMILY
        + """
        hold 1 alice optics/cpu 8       -> ok from optics/cpu
        hold 2 alice optics/cpu 8       -> ok from college/cpu         # physics does not share
        hold 3 alice optics/cpu 2       -> ok from optics/cpu left 0
        amend physics/cpu shared yes
        hold 4 alice optics/cpu 8       -> ok from physics/cpu         # the nearest parent first
        hold 5 alice optics/cpu 93      -> OVERDRAWN asked 93 left 0 from optics/cpu
        hold 6 bob college/cpu 8        -> ok from college/cpu
        charge 2 5                      -> ok from college/cpu left 87
        charge 8 bob optics/cpu 60      -> ok from college/cpu left 27 # late, and to the first that can carry it all
        charge 9 bob optics/cpu 95      -> ok from optics/cpu left 0 off 95
        amend college/cpu shared no
        adjust 4 20                     -> ok from physics/cpu
        hold 7 alice optics/cpu 45      -> OVERDRAWN
        """
    )


def test_a_hold_is_never_split_over_two_allocations() -> None:
    tell(FAMILY + "amend physics/cpu shared yes\n hold 1 alice optics/cpu 120 -> OVERDRAWN left 10 short 110 from optics/cpu")


def test_a_project_without_credit_of_its_own_draws_on_its_parents() -> None:
    tell(
        """
        project college
        project physics under college
        open college/cpu 0..1000 with 100 shared yes
        cap alice college/cpu 10
        hold 1 alice physics/cpu 11     -> CAPPED left 10 from college/cpu
        hold 1 bob physics/cpu 11       -> ok from college/cpu
        charge 2 bob physics/cpu 20     -> ok from college/cpu
        """
    )


def test_parents_do_not_draw_on_their_children() -> None:
    tell(FAMILY + "amend optics/cpu shared yes\n hold 1 alice physics/cpu 60 -> ok from college/cpu\n left optics/cpu 10")


# --- what the bank can count ---


def test_no_sum_is_more_than_the_bank_can_count() -> None:
    steps = SUM_MAX // AMOUNT_MAX
    deposits = "\n".join([f"deposit physics/cpu {AMOUNT_MAX}m"] * steps)
    rest = SUM_MAX - steps * AMOUNT_MAX
    tell(
        f"""
        project physics
        open physics/cpu 0..1000
        {deposits}
        deposit physics/cpu {rest + 1}m         -> TOO_LARGE
        deposit physics/cpu {rest}m             -> ok
        amend physics/cpu limit 1m              -> TOO_LARGE
        withdraw physics/cpu 1m
        amend physics/cpu limit 1m              -> ok
        deposit physics/cpu 1m                  -> TOO_LARGE
        open physics/cpu:next 1000..2000 with {AMOUNT_MAX}m limit {AMOUNT_MAX}m
        transfer 1m physics/cpu:next => physics/cpu     -> TOO_LARGE
        """
    )


def test_a_charge_that_cannot_be_counted_is_refused() -> None:
    charges = "\n".join(f"charge {number} alice physics/cpu {AMOUNT_MAX}m" for number in range(1, 10))
    tell(
        f"{PHYSICS}\n policy record\n {charges}\n charge 10 alice physics/cpu {AMOUNT_MAX}m -> TOO_LARGE\n kept physics/cpu 1\n"
        f"policy observe\n hold 11 bob physics/cpu 1\n charge 11 {AMOUNT_MAX}m -> TOO_LARGE\n run 11 held"
    )


def test_an_old_overrun_is_no_licence_to_lower_the_limit() -> None:
    tell(
        """
        project physics
        open physics/cpu 0..1000 with 10 limit 10
        policy record
        charge 1 alice physics/cpu 30           -> ok left -10
        deposit physics/cpu 15                  -> ok left 5
        policy write_off
        amend physics/cpu limit 0               -> LIMIT_IN_USE asked 5 left 0
        amend physics/cpu limit 5               -> ok left 0
        """
    )
