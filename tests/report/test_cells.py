"""Table cells: width on a terminal, and untrusted text made harmless there and in a spreadsheet."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.report.cells import cut, folded, for_spreadsheet, padded, plain, width, without

texts = st.text(max_size=40)
foreign = st.text(alphabet=st.characters(), max_size=40)


@pytest.mark.parametrize(
    ("original", "shown"),
    [
        ("chem_qmc", "chem_qmc"),
        ("red \x1b[31malarm", "red \\x1b[31malarm"),
        ("two\nlines\ttab\r", "two\\nlines\\ttab\\r"),
        ("\u202eevil", "\\u202eevil"),
        ("\x9b31m", "\\x9b31m"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("a\udc80b", "a\\udc80b"),
        ("化学", "化学"),
        ("naïve", "naïve"),
    ],
)
def test_control_characters_are_escaped(original: str, shown: str) -> None:
    assert plain(original) == shown


@given(foreign)
def test_plain_text_is_printable(original: str) -> None:
    assert plain(original).isprintable()


@pytest.mark.parametrize(
    ("original", "columns"),
    [("", 0), ("cpu", 3), ("化学", 4), ("ﾊﾝｶｸ", 4), ("e\u0301", 1), ("🧪", 2)],
)
def test_width_counts_terminal_columns(original: str, columns: int) -> None:
    assert width(original) == columns


@given(texts, st.integers(1, 30))
def test_cut_text_fits_and_is_a_prefix(original: str, columns: int) -> None:
    shown = cut(original, columns)
    assert width(shown) <= columns
    assert shown == original or (shown.endswith("+") and original.startswith(shown[:-1]))


@given(texts, st.integers(0, 60), st.booleans())
def test_padding_adds_only_spaces(original: str, columns: int, right: bool) -> None:
    shown = padded(original, columns, right=right)
    assert width(shown) == max(columns, width(original))
    assert shown.strip(" ") == original.strip(" ")


@pytest.mark.parametrize(
    ("original", "written"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1-2", "'+1-2"),
        ("-1+2", "'-1+2"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ('=1,"x"', '"\'=1,""x"""'),
        ("\uff1d1", "'\uff1d1"),
        ("-1.50", "-1.50"),
        ("-12", "-12"),
        ("-", "-"),
        ("36%", "36%"),
        ("a,b", '"a,b"'),
        ("chem_qmc", "chem_qmc"),
    ],
)
def test_no_cell_is_a_formula(original: str, written: str) -> None:
    assert for_spreadsheet(original) == written


@given(st.lists(foreign, min_size=1, max_size=5))
def test_csv_line_is_read_back_as_one_row(original: list[str]) -> None:
    cells = [plain(text) for text in original]
    line = ",".join(for_spreadsheet(cell) for cell in cells)
    (read,) = list(csv.reader(io.StringIO(line + "\n"))) or [[""]]
    assert [cell.removeprefix("'") for cell in (read or [""])] == [
        cell.removeprefix("'") for cell in cells
    ]
    assert not any(cell[:1] in "=@\t\r" for cell in read if cell)


@given(texts, st.sampled_from(["|", ";", "::", "\\"]))
def test_cell_never_contains_the_delimiter(original: str, delimiter: str) -> None:
    if delimiter != "\\":
        assert delimiter not in without(delimiter, original)


@given(st.text(alphabet="ab -", max_size=200), st.integers(10, 60))
def test_folding_keeps_every_word(original: str, columns: int) -> None:
    lines = folded(original, columns)
    assert " ".join(lines).split() == original.split()
    assert all(len(line) <= columns or " " not in line.strip() for line in lines)
