"""Between people and the bank: a job's name and TRES as reports take them, and the bank's no as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairbank.values.ids import as_job_name
from fairbank.values.sizes import TRES_MAX
from fairbank.values.tres import parse_held
from fairbank.values.trouble import Malformed


def words_of(name: str, tres: str) -> dict[str, Any]:
    """`name` and `tres` by the names of the REST language, each only where there is something to tell, and as a report takes it: what it
    would be refused for is left out, for nothing of it is worth a job's start."""
    said: dict[str, Any] = {}
    if (told := as_job_name(name)) is not None:
        said["name"] = told
    if tres and len(tres) <= TRES_MAX and _is_known(tres):
        said["tres"] = tres
    return said


def _is_known(tres: str) -> bool:
    try:
        parse_held(tres, prices=False)
    except Malformed:
        return False
    return True


def sentence(detail: str | None, remedies: Sequence[str]) -> str:
    """What the bank says against a report, with what would help."""
    said = detail or "the bank refuses this"
    return f"{said.removesuffix('.')}. Try {'; or '.join(remedies)}" if remedies else said
