"""Outage policies: decisions without the bank's answer."""

from __future__ import annotations

from fractions import Fraction

from fairbank.agent.outage_policy import (
    KnownCredit,
    OutagePolicy,
    PartitionTerms,
    answer_deadline,
    decide_without_bank,
)
from fairbank.agent.reports.report import ReportResult, ResultKind, hold_facts
from tests.agent.plugin import prolog_request


def test_request_waits_until_the_outage_has_lasted_its_time() -> None:
    terms = PartitionTerms(patience=10)
    assert answer_deadline(100, terms, None) == 110
    assert answer_deadline(100, terms, 101) == 110
    assert answer_deadline(100, terms, 95) == 105
    assert answer_deadline(100, terms, 90) == 100


def test_open_policy_runs_and_closed_policy_defers() -> None:
    report = hold_facts(prolog_request(1))
    assert (
        decide_without_bank(
            PartitionTerms(outage_policy=OutagePolicy.OPEN), report, KnownCredit(), batch=True
        )
        is None
    )
    refusal = decide_without_bank(
        PartitionTerms(outage_policy=OutagePolicy.CLOSED), report, KnownCredit(), batch=True
    )
    assert refusal is not None
    assert (refusal.action, refusal.reason) == ("hold", "Fairbank_does_not_answer")


def test_credit_policy_runs_what_the_known_balance_pays() -> None:
    terms, credit = PartitionTerms(outage_policy=OutagePolicy.CREDIT), KnownCredit()
    report = hold_facts(prolog_request(1, billing=Fraction(2)))  # 2 SU
    assert decide_without_bank(terms, report, credit, batch=True) is not None, "nothing is balance"
    credit.learn(
        report, ReportResult(ResultKind.GRANTED, amount=120, available=250, allocation=7), 0.0
    )
    again = KnownCredit()
    again.load(credit.dump())
    for balance in (credit, again):
        assert [
            decide_without_bank(terms, report, balance, batch=True) is None for _ in range(3)
        ] == [True, True, False]


def test_other_refusal_keeps_the_known_balance() -> None:
    terms, credit = PartitionTerms(outage_policy=OutagePolicy.CREDIT), KnownCredit()
    report = hold_facts(prolog_request(1, billing=Fraction(2)))  # 2 SU
    credit.learn(
        report, ReportResult(ResultKind.GRANTED, amount=120, available=250, allocation=7), 0.0
    )
    credit.learn(
        report, ReportResult(ResultKind.REFUSED, "Too_large", amount=10**15, allocation=7), 1.0
    )
    assert decide_without_bank(terms, report, credit, batch=True) is None


def test_qos_factor_is_learned_from_holds() -> None:
    terms, credit = PartitionTerms(outage_policy=OutagePolicy.CREDIT), KnownCredit()
    report = hold_facts(
        prolog_request(1, billing=Fraction(20), qos="low")
    )  # twenty SU, or half of it
    credit.learn(
        report, ReportResult(ResultKind.GRANTED, amount=600, available=650, allocation=7), 0.0
    )
    assert decide_without_bank(terms, report, credit, batch=True) is None
    assert decide_without_bank(terms, report, credit, batch=True) is not None
