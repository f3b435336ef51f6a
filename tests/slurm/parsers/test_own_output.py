"""Fairbank's output in the formats of sshare and sprio, parsed again: rows of any shape."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.settings import MultifactorSettings
from fairbank.priority.settings import PriorityWeights as Weighed
from fairbank.report.slurm.sprio import PriorityRow, WeightRow, parse_format, sort_rows
from fairbank.report.slurm.sprio import lines as lines_of_ranks
from fairbank.report.slurm.sshare import ShareRow, default_fields, lines, parse_fields
from fairbank.slurm.fairshare_view.priorities import consistent_rows, priority_row
from fairbank.slurm.fairshare_view.shares import share_rows
from fairbank.slurm.parsers import sprio, sshare
from fairbank.slurm.parsers.config import OLDEST, Version
from tests.support.fairshare_recordings import printed
from tests.support.share_order import in_order as in_slurms_order

PARTS = st.floats(0, 1).map(lambda part: round(part, 6))
LEVELS = st.one_of(
    st.none(), st.just(math.inf), st.floats(0, 1e12).map(lambda level: round(level, 6))
)
NAMES = st.text("abcxyz_.-0129", min_size=1, max_size=24).map(lambda text: f"a{text}")
SHARES = st.one_of(st.integers(0, ON_PARENT - 1), st.just(ON_PARENT))


@st.composite
def trees(draw: st.DrawFn) -> list[ShareRow]:
    """Draw nested accounts with users, in any order."""
    accounts = draw(st.lists(NAMES, unique=True, max_size=8))
    rows = [ShareRow("root", usage=draw(st.integers(0, 2**50)), effective=1.0, number=1)]
    for number, name in enumerate(accounts):
        parent = draw(st.sampled_from(["root", *accounts[:number]]))
        rows.append(_row(draw, ShareRow(name, parent=parent, level=draw(LEVELS))))
        for user in draw(st.lists(NAMES, unique=True, max_size=3)):
            partition = draw(st.sampled_from(["", "gpu"]))
            rows.append(
                _row(draw, ShareRow(name, user, partition, factor=draw(PARTS), level=draw(LEVELS)))
            )
    return draw(st.permutations(rows))


def _row(draw: st.DrawFn, row: ShareRow) -> ShareRow:
    return row._replace(
        shares=draw(SHARES),
        norm_shares=draw(PARTS),
        usage=draw(st.integers(0, 2**50)),
        norm_usage=draw(PARTS),
        effective=draw(PARTS),
        limits=draw(st.sampled_from(["", "cpu=1000,gres/gpu=60"])),
        used="cpu=1,mem=2",
        running="cpu=0",
        cluster="lab",
        number=draw(st.integers(1, 2**31)),
    )


@given(trees())
def test_sshare_output_round_trips(rows: list[ShareRow]) -> None:
    ordered = in_slurms_order(rows)
    assert sorted(map(repr, ordered)) == sorted(map(repr, rows))
    text = "".join(
        f"{line}\n"
        for line in lines(
            ordered, parse_fields(",".join(sshare.SHARE_COLUMNS)), delimiter="|", header=False
        )
    )
    parsed = sshare.read_shares(text)
    assert parsed.unreadable == ()
    assert list(parsed.rows) == ordered


def test_rank_is_restored_unless_users_are_hidden() -> None:
    everyone = sshare.read_shares(printed("fair-tree", "sshare-everything")).rows
    without_bob = [row for row in everyone if row.user != "bob"]
    of_dave = [
        {row.account: row.factor for row in share_rows(shown, fair_tree=True) if row.user == "dave"}
        for shown in (everyone, without_bob)
    ]
    assert of_dave == [
        {"biology": 1 / 12, "wg_chem": 11 / 12},
        {"biology": 0.083333, "wg_chem": 0.916667},
    ]


@given(trees())
def test_lines_are_as_wide_as_the_header(rows: list[ShareRow]) -> None:
    head, dashes, *made = lines(in_slurms_order(rows), default_fields(long=True, partitions=True))
    assert len(dashes) == len(head)
    for line in made:
        assert len(line) - len(head) in range(-1, 6), (
            "whole numbers of up to 16 digits make a line wider, nothing else does"
        )


FACTORS = st.floats(0, 1)
WEIGHTS = st.one_of(st.floats(0.001, 1000), st.integers(1, 10**9).map(float))
SIGNED = st.integers(-(2**31) + 3, 2**31 - 3)


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[PriorityRow], WeightRow]:
    weight = st.one_of(st.integers(0, 1000), st.integers(0, 2**32 - 1))
    age, association, fair_share, size, place, qos = (draw(weight) for _ in range(6))
    weights = WeightRow(
        age,
        association,
        fair_share,
        size,
        place,
        qos,
        {"cpu": draw(WEIGHTS), "mem": draw(WEIGHTS)},
        "of both",
    )
    rows = []
    for job in draw(st.lists(st.integers(1, 2**31), unique=True, max_size=6)):
        tres = {
            name: value
            for name, weight_of_tres in weights.tres.items()
            if (value := draw(FACTORS) * weight_of_tres)
        }
        row = PriorityRow(
            job, draw(NAMES), draw(NAMES), site=draw(SIGNED), nice=draw(SIGNED), tres=tres
        )
        row = row._replace(
            age=draw(FACTORS) * age,
            association=draw(FACTORS) * association,
            fair_share=draw(FACTORS) * fair_share,
        )
        rows.append(
            row._replace(
                job_size=draw(FACTORS) * size,
                partition=draw(FACTORS) * place,
                qos=draw(FACTORS) * qos,
            )
        )
    return rows, weights


@given(queues(), st.sampled_from([OLDEST, sprio.NAMED_SINCE]))
def test_sprio_output_round_trips(
    queue: tuple[list[PriorityRow], WeightRow], version: Version
) -> None:
    rows, weights = queue
    if version >= sprio.NAMED_SINCE:
        rows = [row._replace(account="chem", qos_name="high") for row in rows]
    form = sprio.command(sprio.letters_of(version))[-1].removeprefix("--format=")
    text = "".join(
        f"{line}\n" for line in lines_of_ranks(rows, weights, parse_format(form), header=False)
    )
    age, association, fair_share, size, place, qos, tres, _ = weights
    weighed = Weighed(
        age=age,
        association=association,
        fairshare=fair_share,
        job_size=size,
        partition=place,
        qos=qos,
        tres=tres,
    )
    parsed = sprio.read_factors(text, sprio.letters_of(version))
    assert consistent_rows(parsed, MultifactorSettings(weights=weighed)) == parsed
    assert parsed.unreadable == ()
    again = [priority_row(row, weights) for row in parsed.rows]
    assert [int(row.priority) for row in again] == [int(row.priority) for row in rows]
    for form in ("%i %r %u %o %n %c %S %N %Y", "%A %B %F %J %P %Q %T", "%a %b %f %j %p %q %t"):
        assert lines_of_ranks(again, weights, parse_format(form)) == lines_of_ranks(
            rows, weights, parse_format(form)
        )


@given(queues(), st.sampled_from("iruYSABFJPQNT"))
def test_sorting_loses_no_row(queue: tuple[list[PriorityRow], WeightRow], letter: str) -> None:
    rows, weights = queue
    assert sorted(row.job for row in sort_rows(rows, weights, f"-{letter},i")) == sorted(
        row.job for row in rows
    )


@given(
    st.one_of(FACTORS, st.integers(0, 2**11).map(lambda part: part / 2**11)),
    st.one_of(st.integers(1, 2**12), st.integers(1, 2**32 - 1)),
)
def test_unrounded_value_rounds_to_both_columns(factor: float, weight: int) -> None:
    exact = factor * weight
    for digits in (2, 7):
        value = sprio.unrounded(
            float(f"{exact:.0f}"), float(f"{exact / weight:.{digits}f}"), weight, digits
        )
        assert (f"{value:.0f}", f"{value / weight:.{digits}f}") == (
            f"{exact:.0f}",
            f"{exact / weight:.{digits}f}",
        )


def test_young_age_equals_the_sprio_column() -> None:
    """505 of 604,800 seconds at a weight of 100,000 are 83.499; from the normalised column,
    83.5.
    """
    assert f"{sprio.unrounded(83, 0.000835, 100_000, 7):.0f}" == "83"


def test_weighted_column_counts_after_a_change_of_weights() -> None:
    assert f"{sprio.unrounded(84, 0.5, 1_000, 7):.0f}" == "84"
    assert f"{sprio.unrounded(84, math.inf, 1_000, 7):.0f}" == "84"
    assert sprio.unrounded(84, 0.5, 0, 7) == 84.0


def test_small_tres_stays_listed() -> None:
    first, *_ = printed("fair-tree", "sprio-everything").splitlines()
    cells = [cell.strip() for cell in first.split("|")]
    cells[-2:] = ["cpu=21,mem=0", "cpu=0.02,mem=0.00"]
    (row,) = sprio.read_factors("|".join(cells)).rows
    again = priority_row(row, WeightRow(tres={"cpu": 1000.0, "mem": 2000.0}))
    assert lines_of_ranks(
        [again], WeightRow(tres={"cpu": 1000.0, "mem": 2000.0}), parse_format("%T %t"), header=False
    ) == ["cpu=21,mem=0 cpu=0.02,mem=0.00"]
