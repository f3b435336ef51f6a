"""Fair share in sshare's format, byte for byte as a real Slurm 22.05 printed it, and of known
vectors.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.slurm.sshare import (
    COLUMNS,
    ShareRow,
    default_fields,
    lines,
    parse_fields,
    select_rows,
)
from tests.support.fairshare_recordings import printed, recorded_commands, standings

RULES = ("fair-tree", "classic")
QUESTIONS = [
    (rule, name)
    for rule in RULES
    for name in recorded_commands(rule, "sshare")
    if name not in ("everything", "unknown-field")  # the source of the rows, and an error message
]


@pytest.mark.parametrize(("rule", "name"), QUESTIONS)
def test_output_equals_that_of_slurm(rule: str, name: str) -> None:
    user, words = recorded_commands(rule, "sshare")[name]
    result = dict(pairwise(words))
    expected = result.get("-o")
    fields = (
        parse_fields(expected)
        if expected
        else default_fields(
            long="-l" in words, partitions="-m" in words, fair_tree=rule == "fair-tree"
        )
    )
    rows = select_rows(
        standings(rule),
        users=None if "-a" in words else result["-u"].split(",") if "-u" in words else [user],
        accounts=result["-A"].split(",") if "-A" in words else None,
        users_only="-U" in words,
    )
    made = lines(
        rows,
        fields,
        delimiter="|" if {"-p", "-P"} & set(words) else "",
        is_ended="-p" in words,
        header=not {"-n", "-h"} & set(words),
    )
    output = "".join(f"{line}\n" for line in made)
    assert output == printed(rule, f"sshare-{name}")


def test_output_of_vector_v7() -> None:
    # vector V7, whose text is V17
    rows = [
        ShareRow("root", usage=1000, effective=1.0),
        *_account("bio", 0, 0.0, 0, 0.0, 0.0),
        _user("erin", "bio", 1, 1.0, 0, 0.0, 0.2),
        *_account("chem", 40, 0.4, 600, 0.6, 2 / 3),
        _user("carol", "chem", 1, 1.0, 600, 1.0, 0.4),
        _user("dave", "chem", ON_PARENT, 0.4, 0, 0.0, 0.6),
        *_account("physics", 60, 0.6, 400, 0.4, 1.5),
        _user("alice", "physics", 1, 0.25, 300, 0.75, 0.8),
        _user("bob", "physics", 3, 0.75, 100, 0.25, 1.0),
    ]
    assert list(lines(rows, default_fields(), header=False)) == [
        (
            "root                                          0.000000        1000      1.000000      "
            "      "
        ),
        (
            " bio                                     0    0.000000           0      0.000000      "
            "      "
        ),
        (
            "  bio                      erin          1    1.000000           0      0.000000  "
            " 0.200000 "
        ),
        (
            " chem                                   40    0.400000         600      0.600000      "
            "      "
        ),
        (
            "  chem                    carol          1    1.000000         600      1.000000  "
            " 0.400000 "
        ),
        (
            "  chem                     dave     parent    0.400000           0      0.000000  "
            " 0.600000 "
        ),
        (
            " physics                                60    0.600000         400      0.400000      "
            "      "
        ),
        (
            "  physics                 alice          1    0.250000         300      0.750000  "
            " 0.800000 "
        ),
        (
            "  physics                   bob          3    0.750000         100      0.250000  "
            " 1.000000 "
        ),
    ]


def _account(
    name: str, shares: int, norm: float, usage: float, effective: float, level: float
) -> list[ShareRow]:
    return [
        ShareRow(
            name,
            parent="root",
            shares=shares,
            norm_shares=norm,
            usage=usage,
            effective=effective,
            level=level,
        )
    ]


def _user(
    name: str, account: str, shares: int, norm: float, usage: float, effective: float, factor: float
) -> ShareRow:
    return ShareRow(
        account,
        name,
        shares=shares,
        norm_shares=norm,
        usage=usage,
        effective=effective,
        factor=factor,
    )


@pytest.mark.parametrize(
    ("level", "column", "shown"),
    [
        (1468.76359, "levelfs", "1.4688e+03"),
        (999.999999, "levelfs", "999.999999"),
        (123456.789, "levelfs%11", "1.23457e+05"),
        (1234567.123456, "levelfs%13", "1.2345671e+06"),
        (math.inf, "levelfs", "       inf"),
        (None, "levelfs", "          "),
        (1e-9, "levelfs", "  0.000000"),
    ],
)
def test_too_wide_number_is_written_with_an_exponent(
    level: float | None, column: str, shown: str
) -> None:
    (output,) = lines([ShareRow("a", level=level)], parse_fields(column), header=False)
    assert output == f"{shown} "


def test_usage_is_truncated_and_integers_are_never_cut() -> None:
    (output,) = lines(
        [ShareRow("a", usage=123456789012.9, number=7)],
        parse_fields("rawusage%3,id%3"),
        header=False,
    )
    assert output == "123456789012   7 "


def test_abbreviated_name_means_the_first_matching_column() -> None:
    assert [field.name for field in parse_fields("A,e,f,g,l,n,p,r,t,u,GRPTRESR,rawu,normu")] == [
        "Account", "EffectvUsage", "FairShare", "GrpTRESMins", "LevelFS", "NormShares", "Partition",
        "RawShares", "TRESRunMins", "User",
        "GrpTRESRaw", "RawUsage", "NormUsage",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong", ["nonsense", "account%", "account%x", "%5", "account user", "account%99999"]
)
def test_unknown_column_is_reported_with_the_known_ones(wrong: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_fields(wrong)
    assert error.value.field == "--format"
    assert re.fullmatch(
        r"there are Account,.*,User|write NAME or NAME%WIDTH, as in account%30,user",
        error.value.remedy or "",
    )


def test_widths_of_the_columns() -> None:
    assert {field.name: field.width for field in COLUMNS.values()} == {
        "Account": -20, "Cluster": 10, "EffectvUsage": 13, "FairShare": 10, "GrpTRESMins": 30,
        "GrpTRESRaw": 30, "ID": 6, "LevelFS": 10,
        "NormShares": 11, "NormUsage": 11, "Partition": 12, "RawShares": 10, "RawUsage": 11,
        "TRESRunMins": 30, "User": 10,
    }  # fmt: skip
