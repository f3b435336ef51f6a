"""Values of options, as Slurm's manual describes them, and array expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.arrays import ArrayTasks, parse_array
from fairbank.core.submission.dependencies import DependencyExpression, RequestedDependency
from fairbank.core.submission.options import options_by_flag
from fairbank.core.submission.values import NodeRange, WarningSignal


def value(flag: str, text: str) -> object:
    option = options_by_flag("sbatch")[flag]
    return option.reader(text, option.flag)


VALID: list[tuple[str, str, object]] = [
    ("--ntasks", "01", 1),
    ("--nodes", "2", NodeRange(2, 2)),
    ("--nodes", "2-4", NodeRange(2, 4)),
    ("--nodes", "2-4k", NodeRange(2, 4096)),
    ("--nodes", "1M", NodeRange(1_048_576, 1_048_576)),
    ("--nodes", "1-0", NodeRange(1, None)),
    ("--nodes", "1,3-5:2", NodeRange(1, 5)),
    ("--nodes", "8,4", NodeRange(4, 8)),
    ("--mem", "5KB", 1),
    ("--mem", "1g", 1024),
    ("--tmp", "100", 100),
    ("--time", "1-2", 26 * 3600),
    ("--time", "90:90", 92 * 60),
    ("--time", "35791393", 35_791_393 * 60),
    ("--mem", "2147483647M", 2**31 - 1),
    ("--time", "1:60:15", (2 * 60 + 1) * 60),
    *(("--time", text, None) for text in ("0", "0:00", "-1", "infinite", "UNLIMITED")),
    ("--time-min", "5", 300),
    ("--array", "1-7:2,9%3", ArrayTasks((range(1, 8, 2), range(9, 10)), 3)),
    ("--array", "[1-3]", ArrayTasks((range(1, 4),))),
    ("--array", "[1-3]%2", ArrayTasks((range(1, 4),), 2)),
    ("--array", "[1-3%2]", ArrayTasks((range(1, 4),), 2)),
    (
        "--dependency",
        "afterok:31:32_4,after:33+10,aftercorr:34_*,35",
        DependencyExpression(
            (
                RequestedDependency(kind="afterok", job=31),
                RequestedDependency(kind="afterok", job=32, task=4),
                RequestedDependency(kind="after", job=33, minutes=10),
                RequestedDependency(kind="aftercorr", job=34, all_tasks=True),
                RequestedDependency(kind="afterany", job=35),
            )
        ),
    ),
    (
        "--dependency",
        "afterany:31?singleton",
        DependencyExpression(
            (RequestedDependency(kind="afterany", job=31), RequestedDependency(kind="singleton")),
            any_of=True,
        ),
    ),
    ("--exclusive", "USER", "user"),
    ("--exclusive", "allocation", "exclusive"),
    ("--gres", "none", []),
    ("--nice", "-5", -5),
    ("--nice", "2147483645", 2_147_483_645),
    ("--priority", "TOP", 4_294_967_293),
    ("--priority", "0", 0),
    ("--no-kill", "no", False),
    ("--kill-on-invalid-dep", "YES", True),
    ("--wait-all-nodes", "0", False),
    ("--open-mode", "A", "append"),
    ("--open-mode", "truncate", "truncate"),
    ("--signal", "USR1", WarningSignal(10)),
    ("--signal", "sigterm@120", WarningSignal(15, 120)),
    ("--signal", "10@0", WarningSignal(10, 0)),
    ("--signal", "64", WarningSignal(64)),
    ("--signal", "B:USR1@100", WarningSignal(10, 100, to_script=True)),
    ("--signal", "R:10", WarningSignal(10, for_reservation=True)),
    ("--signal", "RB10", WarningSignal(10, 60, to_script=True, for_reservation=True)),
    ("--mail-type", "end,fail,lunch", frozenset({"END", "FAIL"})),
    ("--mail-type", "END,NONE", frozenset()),
    ("--mail-type", "ALL", frozenset("BEGIN END FAIL REQUEUE INVALID_DEPEND STAGE_OUT".split())),
    ("--propagate", "core,STACK", frozenset({"CORE", "STACK"})),
    ("--propagate", "NONE", frozenset()),
    ("--hint", "compute_bound,NoMultithread", "compute_bound,NoMultithread"),
    ("--hold", "", True),
]


@pytest.mark.parametrize(("flag", "text", "expected"), VALID)
def test_values_are_those_of_the_manual(flag: str, text: str, expected: object) -> None:
    assert value(flag, text) == expected


INVALID = [
    ("--ntasks", "0 2-4 2k 5.5 1234567890 \N{ARABIC-INDIC DIGIT ONE}"),
    ("--nodes", "0 2-1 x 3- 1,x 4,8%2 [4,8] [4-8:2] 4:2 0,4"),
    ("--mem", "1.5G lots 2147483648M 9999999T"),
    ("--time", "60: -60:10 1:2:3:4 soon 35791394 9999999-0"),
    ("--array", "foo 5-1 1-5:0 1% %2 1%x [1-3 [1%2]%3 1,,2 0-9999999 1%\N{ARABIC-INDIC DIGIT ONE}"),
    (
        "--dependency",
        "afterlunch:31 afterok afterok:31,after:32?after:33 31?32 afterok:31+ afterok:31_ ,",
    ),
    ("--exclusive", "foo"),
    ("--nice", "x 2147483646"),
    ("--priority", "-1 4294967294"),
    ("--kill-on-invalid-dep", "maybe y"),
    ("--open-mode", "x foo"),
    ("--hint", "foo compute_bound,x help"),
    ("--signal", "foo BUS 10@70000 X:10 B: 0 USR1@5x"),
    ("--mail-type", "lunch"),
    ("--propagate", "CORE,FOO"),
    ("--hold", "yes"),
]


@pytest.mark.parametrize(("flag", "texts"), INVALID)
def test_invalid_values_are_refused_by_their_option(flag: str, texts: str) -> None:
    for text in texts.split(" "):
        with pytest.raises(InvalidInput) as error:
            value(flag, text)
        assert error.value.field == flag, text


@pytest.mark.parametrize("text", ["1,x", "4,8%2", "[4,8]"])
def test_refused_nodes_are_called_nodes(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a number of nodes"):
        value("--nodes", text)


ranges = st.builds(
    lambda first, length, step: range(first, first + length, step),
    st.integers(0, 4_000_000),
    st.integers(1, 100),
    st.integers(1, 50),
)


@given(st.lists(ranges, min_size=1, max_size=8), st.none() | st.integers(0, 9_999_999))
def test_array_is_read_as_it_is_written(parts: list[range], throttle: int | None) -> None:
    tasks = ArrayTasks(tuple(parts), throttle)
    assert parse_array(str(tasks), field="--array") == tasks


@given(st.text(alphabet="0123456789,-:%[]", max_size=12))
def test_any_array_is_read_or_refused(text: str) -> None:
    try:
        tasks = parse_array(text, field="--array")
    except InvalidInput:
        return
    assert list(tasks.numbers) == sorted({n for part in tasks.ranges for n in part})


def test_refusal_of_a_distribution_names_each_accepted_one() -> None:
    with pytest.raises(InvalidInput) as refused:
        value("--distribution", "foo")
    assert refused.value.remedy == "one of block, cyclic, arbitrary, plane=SIZE"
