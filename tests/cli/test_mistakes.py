"""Requests without permission, and names that the bank does not know."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.cli.served_site import Bank
from tests.cli.site import AYLA, CPU, DANA, FOLD, GPU, JORGE


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("deposit", "-A", "chem_qmc", "-r", "cpu", "-r", "gpu", 5, "--reason", "x"), "--resource"),
        (("deposit", CPU, 5, "--reason", "x", "--reason", "y"), "--reason"),
        (("alloc", "end", "-A", "chem_qmc", "--account=bio_fold", "--reason", "x"), "--account"),
        (("refund", 812_301, "-M", "darwin", "--cluster", "wolf", "--reason", "x"), "--cluster"),
    ],
)
def test_option_with_two_values_is_refused_where_credit_moves(
    changing: Run, words: tuple[object, ...], field: str
) -> None:
    refused = changing(*words)
    assert (refused.code, refused.out) == (2, "")
    assert "given twice, with different values" in refused.err
    assert f"field: {field}\n" in refused.err


def test_option_repeated_with_one_value_is_accepted(changing: Run) -> None:
    words = ("deposit", CPU, 5, "--reason", "x", "--dry-run")
    assert changing(*words, "--reason", "x") == changing(*words)


def test_missing_permission_is_reported(changing: Run) -> None:
    assert changing("deposit", CPU, 1, "--reason", "mine", "--as", AYLA).code == 4
    assert changing("alloc", "freeze", CPU, "--reason", "x", "--as", JORGE).code == 4
    assert (
        changing("deposit", FOLD, 1, "--reason", "x", "--as", AYLA).code == 3
    )  # not visible to her
    assert changing("project", "add-user", "chem_qmc", DANA, "--as", JORGE).code == 4


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("deposit", CPU, 1, "--reason", "x", "--as", "nosuchuser"), "--as"),
        (("balance", "--as=nosuchuser"), "--as"),
        (
            (
                "alloc",
                "create",
                "--project",
                "nope",
                "-r",
                "cpu",
                "--end",
                "2030-01-01",
                "--reason",
                "x",
            ),
            "--project",
        ),
        (
            ("alloc", "create", "-A", "nope", "-r", "cpu", "--end", "2030-01-01", "--reason", "x"),
            "-A",
        ),
        (
            (
                "alloc",
                "create",
                "--account=999",
                "-r",
                "cpu",
                "--end",
                "2030-01-01",
                "--reason",
                "x",
            ),
            "--account",
        ),
        (
            (
                "alloc",
                "create",
                "-A",
                "chem_qmc",
                "-r",
                "CPU",
                "--end",
                "2030-01-01",
                "--reason",
                "x",
            ),
            "-r",
        ),
        (("project", "create", "g", "--gid", 5, "--parent", "999"), "--parent"),
        (("project", "create", "g,h", "--gid", 5), "GROUP"),
        (("project", "show", "nope"), "PROJECT"),
        (("project", "show", "999"), "PROJECT"),
        (("alloc", "show", 999), "ALLOC"),
        (("token", "create", "x", "--scopes", "fly"), "--scopes"),
        (("token", "create", ""), "LABEL"),
        (("transfer", 999, CPU, 1, "--reason", "x"), "FROM"),
        (("transfer", CPU, 999, 1, "--reason", "x"), "TO"),
        (("transfer", CPU, GPU, 1, "--reason", "x", "--as", "nosuchuser"), "--as"),
        (("token", "create", "x", "--days", 100_000), "--days"),
        (("token", "revoke", 999, "--yes"), "ID"),
        (("quote", "-A", "chem_qmc", "-p", "nosuch", "-t", "60", "-M", "darwin"), "-p"),
        (
            ("quote", "-A", "chem_qmc", "-p", "idle-std", "-t", "60", "--cluster", "nosuch"),
            "--cluster",
        ),
    ],
)
def test_refused_value_is_reported_under_the_typed_option(
    changing: Run, words: tuple[object, ...], field: str
) -> None:
    result = changing(*words)
    assert result.code in (2, 3)
    assert f"  field: {field}\n" in result.err


def test_refused_as_names_the_option_not_the_header(
    changing: Run, own_bank: Bank, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_TOKEN_FILE", own_bank.token_file)  # ayla is not staff
    result = changing("balance", "--server", own_bank.http, "--as", JORGE)
    assert result.code == 4, result.err
    assert "  field: --as\n  try: send the request as yourself\n" in result.err
