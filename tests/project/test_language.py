"""Tests of the language check and of its file of known counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.language.__main__ import main
from tools.language.rules import RULES, File

Check = Callable[..., int]


def places(rule: str, **texts: str) -> list[str]:
    """Return the places found in files, given by name: `bank__hold` is
    src/fairbank/bank/hold.py.
    """
    files = [
        File(f"src/fairbank/{name.replace('__', '/')}.py", text) for name, text in texts.items()
    ]
    return [str(place).removeprefix("src/fairbank/") for place in RULES[rule](files)]


def test_class_name_has_one_meaning() -> None:
    result = places(
        "class names", bank__a="class Asked: ...\nclass Own: ...", rest__b="class Asked: ..."
    )
    assert result == [
        "bank/a.py:1: 2 classes have the name Asked",
        "rest/b.py:1: 2 classes have the name Asked",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""What it holds."""', 1),
        ('class A:\n    """Whether it holds."""', 2),
        ('def f():\n    """\n    How it holds.\n    """', 2),
        ('def f():\n    """`When` it holds."""', 2),
    ],
)
def test_docstring_does_not_begin_with_a_question_word(text: str, line: int) -> None:
    assert [place.split(":")[1] for place in places("docstrings", bank__hold=text)] == [str(line)]


@pytest.mark.parametrize(
    "text", ['"""Whatever it holds."""', 'X = "What"', '"""Return what it holds."""']
)
def test_other_docstrings_pass(text: str) -> None:
    assert places("docstrings", bank__hold=text) == []


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("start, end, *, unit", []),
        ("start, finish, *, unit", ["Args: end is no parameter"]),
        ("start, end, *unit", []),
        ("row", ["Args: end is no parameter", "Args: start is no parameter"]),
    ],
)
def test_described_arguments_are_parameters(parameters: str, expected: list[str]) -> None:
    docstring = """\"\"\"Return it.

    Args:
        start, end: the period: its end
            note: is not in it.

    Raises:
        InvalidInput: never.
    \"\"\""""
    result = places("docstring arguments", bank__hold=f"def f({parameters}):\n    {docstring}")
    assert sorted(result) == [f"bank/hold.py:1: {message}" for message in expected]


def test_files_and_folders_have_nouns_as_names() -> None:
    texts = dict.fromkeys(
        ("slurm__mending", "slurm_says", "judging__rules", "bank__pricing", "ring"), ""
    )
    assert [place.partition(":")[0] for place in places("file names", **texts)] == [
        "slurm/mending.py",
        "slurm_says.py",
        "judging/",
    ]


def test_lines_have_at_most_100_columns() -> None:
    text = f"{'#' * 100}\n{'#' * 101}\n\t{'#' * 93}\n"
    assert [place.split(":")[1] for place in places("line length", bank__hold=text)] == ["2", "3"]


def test_tables_and_urls_in_markdown_may_be_longer() -> None:
    text = f"| {'-' * 100} |\nhttps://example.org/{'x' * 100}\n{'x' * 101}\n"
    assert [place.line for place in RULES["line length"]([File("docs/a.md", text)])] == [3]


@pytest.mark.parametrize(
    ("count", "expected"), [(16, []), (17, ["bank/:1: 17 modules; at most 16"])]
)
def test_folder_has_at_most_16_modules(count: int, expected: list[str]) -> None:
    texts = {"bank____init__": "", **{f"bank__m{number}": "" for number in range(count)}}
    assert places("folder size", **texts) == expected


def test_private_words_are_found_in_texts_and_names() -> None:
    text = 'told = 1  # told\n\ndef f():\n    """Return it.\n\n    Somebody was told.\n    """'
    text += '\n    return f"{told} nobody knows"\n'
    assert places("private words", bank__hold=text) == [
        "bank/hold.py:6: private word 'Somebody'; use a standard term",
        "bank/hold.py:6: private word 'told'; use a standard term",
        "bank/hold.py:8: private word 'nobody'; use a standard term",
        "bank/hold.py:1: private word 'told'; use a standard term",
        "bank/hold.py:1: private word 'told' in told",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'X = "heads"',
        "heads = nobody = 1",
        "X = 'name a file of fairbank audit heads'",
        "X = '--heads FILE'",
    ],
)
def test_names_and_commands_are_no_private_words(text: str) -> None:
    assert places("private words", bank__hold=text) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("PATIENCE_SECONDS = 3", "PATIENCE"),
        ("class BookedAmounts: ...", "Booked"),
        ("def _objection(): ...", "objection"),
        ("quote_card = 1", "card"),
        ("licences = 1", "licences"),
    ],
)
def test_private_words_are_found_in_names(text: str, word: str) -> None:
    (place,) = places("private words", bank__hold=text)
    assert f": private word {word!r} in " in place


@pytest.mark.parametrize(
    "text", ["patience = 1", 'X = "still booked, while patience lasts"', "discard = 1"]
)
def test_words_of_sentences_and_settings_are_no_private_words(text: str) -> None:
    assert places("private words", bank__hold=text) == []


def test_private_words_are_found_in_prose_but_not_in_code() -> None:
    text = "Ask `wish`.\n```text\nwish\n```\nA wish.\n"
    assert [place.line for place in RULES["private words"]([File("docs/a.md", text)])] == [5]


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "def hold(asked): ...",
        "jobs = [each for each in queue]",
        "with opened as said: ...",
        "class Hold:\n    def total(self):\n        got: int = 1",
    ],
)
def test_variable_is_named_after_what_it_holds(text: str) -> None:
    (place,) = places("act names", bank__hold=text)
    assert place.endswith("name it after what it holds")


@pytest.mark.parametrize("text", ["class Limit:\n    each: int", "found(1)", "row.asked = 1"])
def test_fields_and_functions_may_be_named_after_an_act(text: str) -> None:
    assert places("act names", bank__hold=text) == []


@pytest.mark.parametrize(
    "use",
    [
        "from fairbank.bank.hold import _limit",
        "holds._limit",
        "hold.holds._limit()",
        "patch.setattr(hold, '_limit', 1)",
    ],
)
def test_tests_use_no_private_names_of_the_product(use: str) -> None:
    files = [File("src/fairbank/bank/hold.py", "_limit = 1"), File("tests/test_hold.py", use)]
    assert [str(place).partition(";")[0] for place in RULES["private names"](files)] == [
        "tests/test_hold.py:1: _limit is private"
    ]


@pytest.mark.parametrize(
    "use", ["self._limit", "super()._limit", "job._replace(limit=1)", "holds._limits"]
)
def test_own_and_standard_private_names_may_be_used(use: str) -> None:
    text = "_limit = 1\n_replace = 2"
    files = [File("src/fairbank/bank/hold.py", text), File("tests/test_hold.py", use)]
    assert list(RULES["private names"](files)) == []


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Write a file of the package bank, then run the check there."""
    module = tmp_path / "src" / "fairbank" / "bank" / "hold.py"
    module.parent.mkdir(parents=True)
    (tmp_path / "Makefile").write_text("all:\n")

    def check(text: str, *options: str) -> int:
        module.write_text(text)
        return main(options, tmp_path, tmp_path / "known.json")

    return check


def test_count_may_neither_rise_nor_stay_too_high(
    check: Check, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = '"""What."""\n', '"""What."""\n\n\ndef f():\n    """How."""\n'
    assert check(one) == 1
    assert "bank/hold.py:1: docstring begins with 'What'" in capsys.readouterr().err
    assert check(one, "--update") == 0
    assert check(one) == 0
    assert check(two) == 1
    assert "bank: docstrings: 2 places, more than in known.json (1)" in capsys.readouterr().err
    assert check("") == 1
    assert "bank: docstrings: 0 places, fewer than in known.json (1)" in capsys.readouterr().err
    assert check("", "--update") == 0
    assert not (tmp_path / "known.json").exists()
    assert check("") == 0
