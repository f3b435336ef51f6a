"""Which Slurm answers, and in which form it is best asked."""

from __future__ import annotations

import re
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.words import shown

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
"""Year and month of those whose answers were recorded from the real thing, and are read in our tests."""

COMPLETE_JSON = Version(23, 11, 0)
"""From here on the JSON of sacct and squeue has everything that the columns have, and tells "not set" from 0."""


def acquaintance(version: Version) -> str:
    """How well its answers are known, in words."""
    if version[:2] in RECORDED:
        return "its answers are known"
    return f"its answers were never recorded, only those of {' and '.join(f'{year}.{month:02}' for year, month in sorted(RECORDED))}"


def read_version(text: str) -> Version:
    """What `sinfo --version` said. Raises InvalidInput when it is no Slurm, or older than what we know."""
    match = _SAID.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"{shown(text)} is not a version of Slurm",
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
