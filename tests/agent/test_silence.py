"""What is said when the bank says nothing."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from fairbank.slurm.agent.letters import Kind, report
from fairbank.slurm.agent.silence import Credit, PartitionTerms, Silence, deadline, unanswered
from fairbank.slurm.report_results import Judgement, ReportResult
from tests.agent.plugin import asks


def test_a_question_waits_for_its_patience_but_not_where_the_bank_is_away_for_longer() -> None:
    terms = PartitionTerms(patience=10)
    assert deadline(100, terms, None) == 110
    assert deadline(100, terms, 95) == 110
    assert deadline(100, terms, 90) == 100


def test_open_runs_and_closed_waits() -> None:
    said = msgspec.json.decode(report(asks(1), Kind.HOLD, "k"))
    assert unanswered(PartitionTerms(silence=Silence.OPEN), said, Credit(), batch=True) is None
    no = unanswered(PartitionTerms(silence=Silence.CLOSED), said, Credit(), batch=True)
    assert no is not None
    assert (no.say, no.reason) == ("hold", "Fairbank_does_not_answer")


def test_credit_runs_what_the_last_known_balance_pays() -> None:
    terms, credit = PartitionTerms(silence=Silence.CREDIT), Credit()
    said = msgspec.json.decode(report(asks(1, billing=Fraction(2)), Kind.HOLD, "k"))  # two SU
    assert unanswered(terms, said, credit, batch=True) is not None, "nothing is known"
    credit.learn(
        said, Judgement(ReportResult.GRANTED, amount=120, available=250, allocation=7), 0.0
    )
    again = Credit()
    again.load(credit.dump())
    for known in (credit, again):
        assert [unanswered(terms, said, known, batch=True) is None for _ in range(3)] == [
            True,
            True,
            False,
        ]


def test_a_no_that_is_not_about_credit_leaves_what_was_known() -> None:
    terms, credit = PartitionTerms(silence=Silence.CREDIT), Credit()
    said = msgspec.json.decode(report(asks(1, billing=Fraction(2)), Kind.HOLD, "k"))  # two SU
    credit.learn(
        said, Judgement(ReportResult.GRANTED, amount=120, available=250, allocation=7), 0.0
    )
    credit.learn(
        said, Judgement(ReportResult.REFUSED, "Too_large", amount=10**15, allocation=7), 1.0
    )
    assert unanswered(terms, said, credit, batch=True) is None


def test_the_factor_of_a_qos_is_learnt_from_what_was_held() -> None:
    terms, credit = PartitionTerms(silence=Silence.CREDIT), Credit()
    said = msgspec.json.decode(
        report(asks(1, billing=Fraction(20), qos="low"), Kind.HOLD, "k")
    )  # twenty SU, or half of it
    credit.learn(
        said, Judgement(ReportResult.GRANTED, amount=600, available=650, allocation=7), 0.0
    )
    assert unanswered(terms, said, credit, batch=True) is None
    assert unanswered(terms, said, credit, batch=True) is not None
