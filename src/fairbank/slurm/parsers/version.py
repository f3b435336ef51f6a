"""Version of Slurm, and what its output contains."""

from __future__ import annotations

import re
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.words import quoted

_SAID = re.compile(r"slurm\S* (\d{2})\.(\d{2})\.(\d{1,3})\S*", re.ASCII)


class Version(NamedTuple):
    """Year, month and number, as in 22.05.8."""

    year: int
    month: int
    micro: int

    def __str__(self) -> str:
        return f"{self.year}.{self.month:02}.{self.micro}"


OLDEST = Version(22, 5, 0)
RECORDED = frozenset({(22, 5), (24, 11), (26, 5)})
"""Year and month of the versions whose real output the tests read."""

COMPLETE_JSON = Version(23, 11, 0)
"""First version whose JSON has everything that the columns have, and tells "not set" from 0."""


def support_note(version: Version) -> str:
    """Describe how well the output of this version is known."""
    if version[:2] in RECORDED:
        return "its answers are known"
    return (
        "its answers were never recorded, only those of"
        f" {' and '.join(f'{year}.{month:02}' for year, month in sorted(RECORDED))}"
    )


def read_version(text: str) -> Version:
    """Read `sinfo --version`.

    Raises InvalidInput for another program, or a version that is too old.
    """
    match = _SAID.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"{quoted(text)} is not a version of Slurm",
            field="version",
            remedy="is it Slurm's sinfo that PATH finds?",
        )
    version = Version(*map(int, match.groups()))
    if version < OLDEST:
        raise InvalidInput(
            f"Slurm {version} is too old",
            field="version",
            remedy=f"Fairbank reads the answers of Slurm {OLDEST} and newer",
        )
    return version
