"""Tables: they fit the terminal, drop columns in a fixed order with a note, and never truncate a
figure.
"""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cli.commands.bank.balance import columns as balance_columns
from fairbank.core.errors import InvalidInput
from fairbank.report.cells import width
from fairbank.report.columns import (
    Column,
    DisplayFormat,
    Row,
    Summand,
    day,
    duration,
    moment,
    percent,
    su,
    text,
    with_minutes,
)
from fairbank.report.tables import choose, csv, separate_cells, table

COLUMNS = (
    Column("PROJECT", text("account")),
    Column("GRANTED", su("granted"), right=True, drop=2),
    Column("AVAILABLE", su("available"), right=True),
    Column("EXPIRES", day("end"), drop=1),
    Column("NOTE", text("note"), drop=3, min_width=6),
    Column("ALLOC", text("id"), right=True, extra=True),
)
EAST = timezone(timedelta(hours=-5))
LOOK = DisplayFormat(zone=EAST)


def row(
    account: str = "chem_qmc",
    granted: int = 6_000_000,
    available: int = 90,
    note: str = "",
    number: int = 1,
) -> Row:
    return {
        "account": account,
        "granted": granted,
        "available": available,
        "end": "2027-07-01T05:00:00Z",
        "note": note,
        "id": number,
    }


def test_table_lines() -> None:
    result = table(COLUMNS, [row(), row("bio", 60, -30)], LOOK)
    assert result.lines == [
        "PROJECT   GRANTED  AVAILABLE  EXPIRES     NOTE",
        "chem_qmc   100000       1.50  2027-07-01",
        "bio             1      -0.50  2027-07-01",
    ]
    assert result.dropped == []


def test_header_may_be_omitted() -> None:
    assert table(COLUMNS, [row()], LOOK, header=False).lines == [
        "chem_qmc  100000  1.50  2027-07-01"
    ]


def test_columns_move_closer_before_the_highest_is_dropped() -> None:
    rows = [row(note="x" * 5)]
    assert (
        table(COLUMNS, rows, LOOK, 47).lines[0] == "PROJECT   GRANTED  AVAILABLE  EXPIRES     NOTE"
    )
    assert table(COLUMNS, rows, LOOK, 46).lines[0] == "PROJECT  GRANTED AVAILABLE EXPIRES    NOTE"
    narrower = table(COLUMNS, rows, LOOK, 40)
    assert (narrower.lines[0], narrower.dropped) == (
        "PROJECT   GRANTED  AVAILABLE  EXPIRES",
        ["NOTE"],
    )
    narrowest = table(COLUMNS, rows, LOOK, 20)
    assert (narrowest.lines[0], narrowest.dropped) == (
        "PROJECT   AVAILABLE",
        ["GRANTED", "EXPIRES", "NOTE"],
    )


def test_column_is_cut_before_one_is_dropped() -> None:
    result = table(COLUMNS, [row(note="a long story about it")], LOOK, 50)
    assert result.lines[1] == "chem_qmc  100000      1.50 2027-07-01 a long stor+"
    assert result.dropped == []


def test_wide_terminal_shows_more_columns() -> None:
    assert table(COLUMNS, [row()], LOOK, 120).lines[0].split()[-1] == "ALLOC"
    assert "ALLOC" not in table(COLUMNS, [row()], LOOK, 119).lines[0]


def test_wide_characters_keep_the_columns_aligned() -> None:
    result = table(COLUMNS, [row("化学"), row("chem")], LOOK)
    assert result.lines == [
        "PROJECT  GRANTED  AVAILABLE  EXPIRES     NOTE",
        "化学      100000       1.50  2027-07-01",
        "chem      100000       1.50  2027-07-01",
    ]


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        ([60, 120], ["1", "2"]),
        ([60, 25], ["1.00", "0.42"]),
        ([6_061, 25], ["101.02", "0.42"]),
        ([-6_061, 45], ["-101.02", "0.75"]),
    ],
)
@pytest.mark.parametrize("short", [False, True])
def test_amounts_of_a_column_have_the_same_decimals(
    minutes: list[int], short: bool, expected: list[str]
) -> None:
    column = Column("USED", su("used"), right=True)
    assert (
        column.cells([{"used": amount} for amount in minutes], DisplayFormat(short=short))
        == expected
    )


@pytest.mark.parametrize(
    ("granted", "used", "held", "expected"),
    [
        ([1_535], [0], [0], [["25.58"], ["0"], ["0"], ["25.58"]]),
        (
            [1_535, 6_000],
            [0, 25],
            [0, 0],
            [["25.58", "100.00"], ["0.00", "0.42"], ["0", "0"], ["25.58", "99.58"]],
        ),
        ([25], [10], [10], [["0.42"], ["0.17"], ["0.17"], ["0.08"]]),
    ],
)
@pytest.mark.parametrize("short", [False, True])
def test_amounts_of_an_allocation_are_rounded_as_everywhere(
    granted: list[int], used: list[int], held: list[int], short: bool, expected: list[list[str]]
) -> None:
    columns = [
        Column(name, Summand(name), right=True) for name in ("granted", "used", "held", "remaining")
    ]
    rows = [
        {"deposited": g, "charged": u, "held": h, "remaining": g - u - h}
        for g, u, h in zip(granted, used, held, strict=True)
    ]
    assert [column.cells(rows, DisplayFormat(short=short)) for column in columns] == expected


@pytest.mark.parametrize("state", ["active", "frozen"])
def test_width_of_the_terminal_changes_no_amount_of_a_balance(state: str) -> None:
    """Column STATE makes the table too wide for 80 columns: 100.50, 0.50 and 0.02 SU stay."""
    row = {
        "account": "chem_qmc",
        "resource": "cpu",
        "state": state,
        "deposited": 6_061,
        "credit_limit": 0,
        "charged": 30,
        "held": 1,
        "remaining": 6_030,
        "available": 6_030,
        "my_cap": None,
        "my_left": None,
        "used_percent": 1,
        "end": 1_800_000_000,
        "outlook": "too early",
    }
    amounts = {"GRANTED": "101.02", "USED": "0.50", "HELD": "0.02", "AVAILABLE": "100.50"}
    for columns in range(40, 118):
        result = table(balance_columns([row]), [row], DisplayFormat(), columns)
        heads, cells = (line.split() for line in result.lines)
        shown = dict(zip(heads, cells, strict=False))
        kept = {head: amount for head, amount in amounts.items() if head not in result.dropped}
        assert shown.items() >= kept.items()
    assert "AVAILABLE" in kept


def test_added_column_keeps_those_of_a_wide_terminal_and_of_long() -> None:
    """Column ALLOC is shown from 120 characters on, or with -l."""
    wide = table(choose(COLUMNS, "+EXPIRES"), [row()], LOOK, 120).lines[0].split()
    assert wide == ["PROJECT", "GRANTED", "AVAILABLE", "NOTE", "ALLOC", "EXPIRES"]
    assert "ALLOC" not in table(choose(COLUMNS, "+EXPIRES"), [row()], LOOK, 119).lines[0]
    for names in ("+EXPIRES", None):
        assert "ALLOC" in csv(choose(COLUMNS, names, extras=True), [row()], LOOK)[0]


@pytest.mark.parametrize(
    ("form", "cell"),
    [
        (DisplayFormat("M"), "<0.01"),
        (DisplayFormat("M", exact=True), "0.00036500"),
        (DisplayFormat("k", exact=True), "0.36500"),
        (DisplayFormat(exact=True), "365"),
    ],
)
def test_scripts_get_all_digits_of_a_large_unit(form: DisplayFormat, cell: str) -> None:
    assert su("used").in_minutes({"used": 365 * 60}, form) == "21900"
    assert Column("USED", su("used")).cell({"used": 365 * 60}, form) == cell


names = st.text(max_size=30)
amounts = st.integers(-(2**53) + 1, 2**53 - 1)
rows = st.lists(st.builds(row, names, amounts, amounts, names, st.integers(0, 2**53)), max_size=8)


@given(rows, st.integers(40, 200))
def test_every_table_fits(sample: list[Row], limit: int) -> None:
    for line in table(COLUMNS, sample, DisplayFormat(separators=True, zone=EAST), limit).lines:
        assert width(line) <= limit
        assert line.isprintable()


@given(rows, st.integers(20, 200))
def test_figures_are_never_cut(sample: list[Row], limit: int) -> None:
    look = DisplayFormat(zone=EAST)
    lines = table(COLUMNS, sample, look, limit, header=False).lines
    figures = next(column for column in COLUMNS if column.head == "AVAILABLE").cells(sample, look)
    for figure, line in zip(figures, lines, strict=True):
        assert figure in line


def test_columns_given_by_name_are_never_dropped() -> None:
    chosen = choose(COLUMNS, "alloc,available%12,project%-20")
    assert table(chosen, [row()], LOOK, 20).lines == [
        "ALLOC    AVAILABLE PROJECT",
        "    1         1.50 chem_qmc",
    ]


def test_plus_adds_to_the_default_columns() -> None:
    assert [column.head for column in choose(COLUMNS, "+ALLOC")] == [
        "PROJECT",
        "GRANTED",
        "AVAILABLE",
        "EXPIRES",
        "NOTE",
        "ALLOC",
    ]
    assert choose(COLUMNS, "+ALLOC,NOTE") == choose(COLUMNS, "+ALLOC,+NOTE")
    assert [column.head for column in choose(COLUMNS, "+ALLOC,NOTE")][-3:] == [
        *("EXPIRES", "ALLOC", "NOTE")
    ]
    assert [column.head for column in choose(COLUMNS, "alloc")] == ["ALLOC"]
    assert [column.head for column in choose(COLUMNS, None)] == [column.head for column in COLUMNS]


@pytest.mark.parametrize(
    ("spec", "wide"), [("USED%", None), ("used", None), ("USED%%9", 9), ("USED%9", 9)]
)
def test_column_name_may_end_with_a_percent_sign(spec: str, wide: int | None) -> None:
    (column,) = choose([Column("USED%", text("used"))], spec)
    assert (column.head, column.fixed_width) == ("USED%", wide)


def test_width_truncates_the_cell() -> None:
    (line,) = table(choose(COLUMNS, "PROJECT%4"), [row()], LOOK, header=False).lines
    assert line == "che+"


@pytest.mark.parametrize(
    "format_", ["NOPE", "PROJECT%", "PROJECT%x", "PROJECT%0", "+NOPE", "PROJECT%99999", "\x1b[31m"]
)
def test_unknown_column_is_reported_with_the_known_ones(format_: str) -> None:
    with pytest.raises(InvalidInput) as expected:
        choose(COLUMNS, format_)
    assert expected.value.field == "--format"
    assert expected.value.remedy is not None
    assert "PROJECT" in expected.value.remedy
    assert expected.value.message.isprintable()


def test_parsable_lines_always_have_the_same_columns() -> None:
    assert separate_cells(COLUMNS, [row(note="a|b\x1b")], LOOK) == [
        "PROJECT|GRANTED|AVAILABLE|EXPIRES|NOTE",
        "chem_qmc|100000|1.50|2027-07-01|a\\x7cb\\x1b",
    ]
    assert separate_cells(COLUMNS, [row(note="a;b")], LOOK, ";", header=False) == [
        "chem_qmc;100000;1.50;2027-07-01;a\\x3bb"
    ]


def test_csv_lines_contain_no_formula() -> None:
    lines = csv(COLUMNS, [row("=cmd()", available=-90, note='say "no", please\n')], LOOK)
    assert lines == [
        "PROJECT,GRANTED,AVAILABLE,EXPIRES,NOTE",
        '\'=cmd(),100000,-1.50,2027-07-01,"say ""no"", please\\n"',
    ]


def test_csv_has_exact_minutes() -> None:
    """25 minutes are 0.41666... SU, and three times 0.42 are not 1.25."""
    lines = csv(
        with_minutes(COLUMNS),
        [row(granted=25, available=-25), row(granted=3_564_500)],
        LOOK._replace(exact=True),
    )
    assert lines == [
        "PROJECT,GRANTED,AVAILABLE,EXPIRES,NOTE,GRANTED-MINUTES,AVAILABLE-MINUTES",
        "chem_qmc,0.42,-0.42,2027-07-01,,25,-25",
        "chem_qmc,59408.33,1.50,2027-07-01,,3564500,90",
    ]
    (only,) = choose(with_minutes(COLUMNS), "available-minutes")
    assert separate_cells([only], [row()], LOOK._replace(units="k"), header=False) == ["90"]


def test_times_are_shown_in_the_given_zone() -> None:
    sample = {"at": "2026-11-21T02:14:00Z", "ran": 90_061, "share": 36, "none": None}
    assert Column("X", moment("at")).cell(sample, LOOK) == "2026-11-20 21:14:00"
    short = LOOK._replace(short=True, year=2026)
    assert Column("X", moment("at")).cell(sample, short) == "11-20 21:14"
    # The time is in the last year of the people who look at it in 2027.
    assert Column("X", moment("at")).cell(sample, short._replace(year=2027)) == "2026-11-20 21:14"
    assert (
        Column("X", moment("at")).cell(sample, LOOK._replace(exact=True))
        == "2026-11-20T21:14:00-05:00"
    )
    assert Column("X", day("at")).cell(sample, LOOK) == "2026-11-20"
    assert Column("X", duration("ran")).cell(sample, LOOK) == "1-01:01:01"
    assert Column("X", percent(lambda row: row["share"])).cell(sample, LOOK) == "3.6%"
    assert Column("X", percent(lambda row: row["none"])).cell(sample, LOOK) == "-"
    assert LOOK.as_of(1_795_264_212) == "2026-11-21 07:30:12 -05:00"
    for show in (moment, day, duration, su, text):
        assert Column("X", show("none")).cell(sample, LOOK) == ""


def test_times_in_a_sentence_are_shown_in_the_given_zone() -> None:
    """A reason that staff gave may have what only looks like a time."""
    text = "frozen since 2026-11-21T02:14:00Z: audit of 2026-02-30T00:00:00Z"
    shown = "frozen since 2026-11-20 21:14:00: audit of 2026-02-30T00:00:00Z"
    assert LOOK.sentence(text) == shown


def test_times_to_type_typed_times_and_names_of_files_stay_as_they_are() -> None:
    """A local time has a blank: it would be two words of a command."""
    for sentence in (
        "fairbank alloc set 7 --start 2026-11-21T02:14:00Z --reason '...'",
        "jobs -S 2026-11-21T02:14:00Z",
        "jobs -S2026-11-21T02:14:00Z",
        "cannot read /backup/2026-11-21T02:14:00Z.fbk: no such file",
        "cannot read 2026-11-21T02:14:00Z.fbk: no such file",
        "/backup/2026-11-21T02:14:00Z/monday.fbk",
        "'2026-11-21T02:14:00Z' is in the future",
    ):
        assert LOOK.sentence(sentence) == sentence


def test_extra_columns_do_not_shorten_the_others() -> None:
    columns = (
        Column("OUTLOOK", lambda row, form: "short" if form.short else "the long text"),
        *(Column(f"MORE-{place}", text("note"), extra=True) for place in range(4)),
    )
    rows = [row(note="x" * 30)]
    for limit in (119, 120, 140, 200):
        assert table(columns, rows, LOOK, limit).lines[1].startswith("the long text")
