"""Names, kinds, keys, comments and Unix numbers: accepted values, and the message for rejected
ones.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core import ids
from fairbank.core.errors import InvalidInput

NAMES = [
    "a",
    "_",
    "physics",
    "Bio.2-x",
    "122825900664",
    "193000-ab0001",
    "bio@gpu",
    "dept bio",
    "CORP\\bin",
    "1080ti-long",
    "128x24",
    "1d",
    "a" * 66,
    "a" * 255,
    "caf\u00e9",
    "\u00e9" * 127,
    "ch|em",
    "a/b",
]
NOBODYS_NAME = [
    *("", " ", " a", "a ", "a\n", "\na", "a\nb", "a\x00", "a\tb", "a\x7f", "a\u202eb"),
    *(
        "a'b",
        'a"b',
        "a,b",
        "a=b",
        "=1+1",
        "+a",
        "-a",
        "\ud800",
        "ch\ufffdm",
        "a" * 256,
        "\u00e9" * 128,
    ),
]


@pytest.mark.parametrize("text", NAMES)
def test_name_is_as_wide_as_slurms(text: str) -> None:
    assert ids.name(text) == text


@pytest.mark.parametrize("text", NOBODYS_NAME)
def test_name_has_no_separator_of_slurm_and_no_control_character(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a name") as no:
        ids.name(text, field="gname")
    assert no.value.field == "gname"
    assert "255 bytes" in str(no.value.remedy)


@pytest.mark.parametrize("text", [*NOBODYS_NAME, "a b", "a/b", "a@b", "a:b"])
def test_cluster_has_no_separator_of_run_ids_and_scopes(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not the name of a cluster"):
        ids.cluster(text)


@pytest.mark.parametrize("text", ["cpu", "gpu", "a100-80g", "x", "s" * 32])
def test_resources_and_categories_are_lower_case_words(text: str) -> None:
    assert ids.kind(text) == text


@pytest.mark.parametrize("text", [*NOBODYS_NAME, "CPU", "Cpu", "_cpu", "c.pu", "c" * 33])
def test_other_words_are_no_resource(text: str) -> None:
    for noun in ("resource", "category"):
        with pytest.raises(InvalidInput, match=f"is not a {noun}$") as no:
            ids.kind(text, field="clusters.alpha.qos_resources.x", noun=noun)
        assert no.value.field == "clusters.alpha.qos_resources.x"


@pytest.mark.parametrize("text", ["1", "darwin/12@1795000000.0:hold", "=1", "~" * 128])
def test_keys_are_printable_and_have_no_blanks(text: str) -> None:
    assert ids.key(text) == text


@pytest.mark.parametrize("text", ["", "a b", "a\n", "\x7f", "caf\u00e9", "~" * 129, "\x00"])
def test_other_texts_are_no_keys(text: str) -> None:
    with pytest.raises(InvalidInput) as no:
        ids.key(text)
    assert no.value.field == "key"


@pytest.mark.parametrize("text", ["", "annual grant", "Bewilligt für Zoë, 50 % \u2713", "x" * 500])
def test_comments_are_one_line_for_people(text: str) -> None:
    assert ids.comment(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines",
        "a\tb",
        "a\rb",
        "\x1b[31mred",
        "a\x00",
        "\u2028",
        "\u202eabc",
        "\ud800",
        "x" * 501,
    ],
)
def test_comments_cannot_move_a_terminal(text: str) -> None:
    with pytest.raises(InvalidInput) as no:
        ids.comment(text, field="reason")
    assert no.value.field == "reason"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("two\nlines", "it has more than one line"),
        ("x" * 501, "it has 501 characters"),
        ("\udcff", "it is no UTF-8"),
        ("a\x1b", r"it has the character '\x1b'"),
    ],
)
def test_comment_that_cannot_be_kept_is_explained(text: str, fault: str) -> None:
    with pytest.raises(InvalidInput) as no:
        ids.comment(text, field="reason")
    assert no.value.message == f"this reason cannot be kept: {fault}"


def test_unix_numbers() -> None:
    assert (ids.uid(0), ids.uid(ids.UID_MAX)) == (0, 4_294_967_294)


@pytest.mark.parametrize("number", [-1, -(2**31), 2**32 - 1, 2**32, 2**64])
def test_uid_of_nobody_is_no_unix_id(number: int) -> None:
    with pytest.raises(InvalidInput) as no:
        ids.uid(number, field="gid")
    assert no.value.field == "gid"


FIELD_REMEDIES = {
    (
        "name",
        "1 to 255 bytes of printable text without , = or quotes, no blank at its ends, no + or -"
        " at its start",
    ),
    (
        "cluster",
        "1 to 255 bytes of printable text without blanks , = / : @ or quotes, no + or - at its"
        " start",
    ),
    ("resource", "a lower-case letter, then letters, digits, _ or -; at most 32 characters"),
    ("key", "1 to 128 printable ASCII characters without blanks"),
    ("comment", "one line of printable text, at most 500 characters"),
}


@pytest.mark.parametrize("door", [ids.name, ids.cluster, ids.kind, ids.key, ids.comment])
@given(text=st.text() | st.text("aA0_.-=/ \n\u00e9", max_size=40))
def test_any_text_passes_unchanged_or_is_malformed(door: Callable[[str], str], text: str) -> None:
    try:
        passed = door(text)
    except InvalidInput as no:
        assert (no.field, no.remedy) in FIELD_REMEDIES
        assert len(no.message) < 500  # whoever sends a megabyte does not get it back
        assert "\n" not in no.message
    else:
        assert passed == text
        assert "\n" not in text
