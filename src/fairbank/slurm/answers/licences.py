"""The licences of the cluster: `scontrol --oneliner show license`, of any version."""

from __future__ import annotations

import msgspec

from fairbank.slurm.answers import words
from fairbank.slurm.answers.scontrol import words_of
from fairbank.slurm.answers.separated import read
from fairbank.slurm.answers.values import Answer

_COMMAND = "scontrol show license"


class Licence(msgspec.Struct, frozen=True):
    """So many are there, and so many of them are free to jobs."""

    name: str
    total: int
    free: int


def read_licences(text: str) -> Answer[Licence]:
    """None where it says that none are configured."""
    told = "" if text.startswith("No licenses") else text
    return read(_COMMAND, words_of(_COMMAND, told, "LicenseName"), _licence)


def _licence(cells: dict[str, str]) -> Licence:
    total, used = (words.number(cells.get(field, "0"), field) for field in ("Total", "Used"))
    reserved = words.number(cells.get("Reserved", "0"), "Reserved")
    return Licence(cells["LicenseName"], total, max(total - used - reserved, 0))
