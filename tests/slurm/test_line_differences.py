"""Differences that the comparison with a real Slurm finds."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.slurm.line_differences import compare_lines

HEAD = "Account|User|FairShare"


def differences(theirs: str, ours: str, head: str = HEAD) -> list[str]:
    return list(compare_lines("sshare -P", [head, theirs], [head, ours], Counter()))


def test_different_cell_is_named() -> None:
    assert differences("bio|ada|0.5", "bio|ada|0.6") == [
        "sshare -P: bio ada 0.5: FairShare: Slurm says\n    0.5\n and we\n    0.6"
    ]


@pytest.mark.parametrize("ours", ["bio|ada", "bio|ada|0.5|0.5", "bio|ada| 0.5", "bio |ada|0.5"])
def test_cell_count_and_width_are_compared(ours: str) -> None:
    assert differences("bio|ada|0.5", ours) == [
        f"sshare -P: Slurm says\n    bio|ada|0.5\n and we\n    {ours}"
    ]


def test_line_without_columns_is_reported_whole() -> None:
    assert differences("bio   ada", "bio  ada", head="Account User") == [
        "sshare -P: Slurm says\n    bio   ada\n and we\n    bio  ada"
    ]


def test_trailing_blanks_are_ignored() -> None:
    assert differences("bio|ada|0.5 ", "bio|ada|0.5") == []
