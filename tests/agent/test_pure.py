"""The agent's decisions as functions: how many senders, how long to wait, what is sent, what an answer means, what silence means."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.rest.bodies.answers import Granted, Refused, ReportAnswer
from fairbank.slurm.agent.faring import SETTLED_SECONDS, Faring, Next, after_failure
from fairbank.slurm.agent.judging import Came, Judgement, judged, words
from fairbank.slurm.agent.letters import Kind, Letter, decimal, facts, report, turned
from fairbank.slurm.agent.pool import GROW_SECONDS, LONGEST_PAUSE, SHRINK_SECONDS, Senders, pause, resized
from fairbank.slurm.agent.queue import Queue, slimmed
from fairbank.slurm.agent.silence import Credit, PartitionTerms, Silence, deadline, unanswered
from fairbank.slurm.frames import TEXT_MAX
from fairbank.slurm.wording import words_of
from fairbank.values import ids
from fairbank.values.trouble import Busy, Forbidden, Malformed, Trouble, Unreachable
from tests.agent.plugin import asks, ends

# ---------------------------------------------------------------- senders


def test_the_pool_grows_while_letters_wait_and_shrinks_when_idle() -> None:
    limits = Senders(1, 3)
    assert [resized(size, limits, waited=GROW_SECONDS, idle=0) for size in (1, 2, 3)] == [2, 3, 3]
    assert [resized(size, limits, waited=0, idle=SHRINK_SECONDS) for size in (3, 2, 1)] == [2, 1, 1]
    assert resized(2, limits, waited=GROW_SECONDS / 2, idle=SHRINK_SECONDS / 2) == 2


@given(st.integers(0, 100), st.integers(1, 9), st.integers(0, 9), st.floats(0, 99), st.floats(0, 99))
def test_the_pool_stays_within_its_limits(size: int, least: int, more: int, waited: float, idle: float) -> None:
    limits = Senders(least, least + more)
    if limits.minimum <= size <= limits.maximum:
        assert limits.minimum <= resized(size, limits, waited=waited, idle=idle) <= limits.maximum


def test_pauses_grow_to_a_limit() -> None:
    pauses = [pause(failures) for failures in range(1, 100)]
    assert pauses == sorted(pauses)
    assert (pause(0), pauses[0], pauses[-1]) == (0, 0.1, LONGEST_PAUSE)


def test_a_bank_is_back_when_it_has_answered_for_a_while() -> None:
    bank = Faring(0.0)
    assert bank.failed(Unreachable("x"), 10.0)
    assert not bank.failed(Unreachable("x"), 11.0)
    assert (bank.down_since, bank.retry_at) == (10.0, 11.0 + pause(2))
    assert bank.answered(20.0)
    assert not bank.is_back(20.0)
    assert bank.is_back(20.0 + SETTLED_SECONDS)


@pytest.mark.parametrize(
    ("trouble", "size", "tried", "then"),
    [
        (Unreachable("x"), 1_000, 99, Next.AGAIN),
        (Busy("x"), 1, 99, Next.AGAIN),
        (Forbidden("x"), 1, 99, Next.AGAIN),
        (Malformed("x"), 2, 1, Next.SPLIT),
        (Malformed("x"), 1, 1, Next.ASIDE),
        (Trouble("a bug"), 1_000, 1, Next.AGAIN),
        (Trouble("a bug"), 1_000, 3, Next.SPLIT),
        (Trouble("a bug"), 1, 3, Next.AGAIN),
        (Trouble("a bug"), 1, 6, Next.ASIDE),
    ],
)
def test_what_a_failed_request_means_for_its_letters(trouble: Trouble, size: int, tried: int, then: Next) -> None:
    assert after_failure(trouble, size, tried) is then


# ---------------------------------------------------------------- what is sent


def letter(seq: int, run: str, kind: Kind, **more: Any) -> Letter:
    return Letter(seq, run, kind, b"{}", 0.0, **more)


def test_limits_before_another_limit_or_the_end_are_not_sent() -> None:
    batch = [letter(1, "a", Kind.HOLD), letter(2, "a", Kind.ADJUST), letter(3, "a", Kind.ADJUST), letter(4, "a", Kind.COMPLETE)]
    sent, needless = slimmed(batch)
    assert [each.seq for each in sent] == [1, 4]
    assert [each.seq for each in needless] == [2, 3]


RUNS = st.sampled_from("abc")
STEPS = st.lists(st.tuples(st.sampled_from(("news", "question", "take", "done", "back", "split", "leave")), RUNS), max_size=60)


@given(STEPS)
def test_letters_of_a_run_go_in_order_one_request_at_a_time_and_none_is_lost(steps: list[tuple[str, str]]) -> None:
    queue, seq, disk = Queue(window=3), 0, dict[int, Letter]()
    under_way: list[list[Letter]] = []
    sent: dict[str, list[int]] = {}
    asked: set[str] = set()
    added = answered = 0

    def done(batch: list[Letter]) -> None:
        nonlocal answered
        for each in batch:
            queue.done(each)
            sent.setdefault(each.run, []).append(each.seq)
            answered += 1

    def take() -> bool:
        batch, needless = queue.take(2)
        assert not needless
        runs = {each.run for each in batch}
        assert all(runs.isdisjoint(each.run for each in other) for other in under_way)
        if batch:
            under_way.append(batch)
        return bool(batch)

    for step, run in steps:
        match step:
            case "news" | "question":
                urgent = step == "question" and run not in asked
                asked.add(run)
                seq += 1
                added += 1
                new = letter(seq, run, Kind.HOLD)
                if not queue.add(new, urgent=urgent):
                    disk[seq] = new
                    queue.leave([seq])
            case "take":
                take()
            case "done" if under_way:
                done(under_way.pop(0))
            case "back" if under_way:
                queue.back(under_way.pop())
            case "split" if under_way:
                queue.split(under_way.pop())
            case "leave":
                queue.loaded([disk[number] for number in queue.wanted()])
    while len(queue):
        while take():
            pass
        while under_way:
            done(under_way.pop())
        queue.loaded([disk[number] for number in queue.wanted()])
    assert answered == added
    assert all(numbers == sorted(numbers) for numbers in sent.values())


def test_billing_is_told_exactly() -> None:
    for exact in (Fraction(1, 16), Fraction("0.1"), Fraction(24), Fraction(0), Fraction("123456.000244140625"), Fraction("1e-12")):
        assert Fraction(decimal(exact)) == exact


def test_a_run_that_never_began_has_lasted_no_time() -> None:
    said = msgspec.json.decode(report(ends(1, 7, begun=False), Kind.COMPLETE, "k"))
    assert (said["elapsed"], said["state"]) == (0, "COMPLETED")
    assert msgspec.json.decode(report(ends(1, 7), Kind.COMPLETE, "k"))["elapsed"] == 7


def test_a_report_tells_name_size_and_exit() -> None:
    named: dict[str, Any] = {"name": "relax w64", "tres": "cpu=8,mem=64G,node=1,billing=32"}
    hold = msgspec.json.decode(report(asks(1, **named), Kind.HOLD, "k"))
    end = msgspec.json.decode(report(ends(1, exit_status=127 * 256, **named), Kind.COMPLETE, "k"))
    killed = msgspec.json.decode(report(ends(1, exit_status=0x80 | 9, **named), Kind.COMPLETE, "k"))  # with a core dump
    assert named.items() <= hold.items()
    assert named.items() <= end.items()
    assert [(each["exit_code"], each["exit_signal"]) for each in (end, killed)] == [(127, 0), (0, 9)]
    never = msgspec.json.decode(report(ends(1, begun=False, exit_status=256), Kind.COMPLETE, "k"))
    assert never.keys().isdisjoint({"exit_code", "name", "tres"})


@pytest.mark.parametrize(
    ("name", "tres", "told"),
    [
        ("", "", {}),
        ("two\nlines\x1b[31m", "cpu=1", {"name": "two?lines?[31m", "tres": "cpu=1"}),
        ("n" * 300, "bananas=7", {"name": "n" * 128}),
        ("job", "cpu=1" + ",gres/gpu:x=1" * 40, {"name": "job"}),
    ],
)
def test_what_the_bank_would_refuse_of_a_job_is_not_told(name: str, tres: str, told: dict[str, str]) -> None:
    assert words_of(name, tres) == told
    if "name" in told:
        assert ids.job_name(told["name"])


def test_a_letter_turned_says_the_same_of_the_run() -> None:
    hold = Letter(1, "r", Kind.HOLD, report(asks(1), Kind.HOLD, "a.1"), 0.0, stored=True, tried=2)
    other = turned(hold, Kind.ADJUST, "a.2")
    assert facts(other) == facts(hold) | {"do": "adjust", "key": "a.2"}
    assert (other.turned, other.stored, other.tried) == (True, False, 0)


# ---------------------------------------------------------------- what an answer means


def refused(reason: str, remedies: list[str] | None = None) -> ReportAnswer:
    no = Refused(
        reason=reason,
        asked=10,
        available=4,
        shortfall=6,
        allocation=7,
        project=1,
        resource="cpu",
        owner=1,
        run="r",
        entry=1,
        remedies=remedies or [],
    )
    return ReportAnswer(status=402, detail="there is too little left.", refusal=no)


def granted(amount: int, available: int) -> ReportAnswer:
    return ReportAnswer(status=201, granted=Granted(entry=1, amount=amount, allocation=7, run=1, available=available))


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (granted(1, 2), Came.GRANTED),
        (refused("OVERDRAWN"), Came.REFUSED),
        (refused("NO_ALLOCATION"), Came.REFUSED),
        (refused("RUN_TAKEN"), Came.TAKEN),
        (refused("RUN_RESOLVED"), Came.RESOLVED),
        (refused("NO_HOLD"), Came.NO_HOLD),
        (refused("FROM_FUTURE"), Came.EARLY),
        (refused("SOMETHING_NEW"), Came.UNBILLABLE),
        (ReportAnswer(status=404, detail="no such account"), Came.UNBILLABLE),
        (ReportAnswer(status=403, detail="not your cluster"), Came.NOT_ALLOWED),
    ],
)
def test_answers(answer: ReportAnswer, came: Came) -> None:
    assert judged(answer).came is came


def test_a_no_is_put_in_words_that_fit_into_a_verdict() -> None:
    no = words("hold", judged(refused("OVERDRAWN", ["a shorter time limit: -t 1", "more credit"])), "chem")
    assert no.text == "chem: there is too little left. Try a shorter time limit: -t 1; or more credit"
    long = words("cancel", judged(refused("OVERDRAWN", ["ü" * 2_000])), "chem")
    assert len(long.text.encode()) <= TEXT_MAX


# ---------------------------------------------------------------- silence


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
    credit.learn(said, Judgement(Came.GRANTED, amount=120, available=250, allocation=7), 0.0)
    again = Credit()
    again.load(credit.dump())
    for known in (credit, again):
        assert [unanswered(terms, said, known, batch=True) is None for _ in range(3)] == [True, True, False]


def test_the_factor_of_a_qos_is_learnt_from_what_was_held() -> None:
    terms, credit = PartitionTerms(silence=Silence.CREDIT), Credit()
    said = msgspec.json.decode(report(asks(1, billing=Fraction(20), qos="low"), Kind.HOLD, "k"))  # twenty SU, or half of it
    credit.learn(said, Judgement(Came.GRANTED, amount=600, available=650, allocation=7), 0.0)
    assert unanswered(terms, said, credit, batch=True) is None
    assert unanswered(terms, said, credit, batch=True) is not None
