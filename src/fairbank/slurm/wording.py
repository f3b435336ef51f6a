"""A job's name and TRES as reports to the bank take them: what they would refuse is left out, for nothing of it is worth a job's start."""

from __future__ import annotations

from typing import Any

from fairbank.values.ids import as_job_name
from fairbank.values.tres import parse_counts
from fairbank.values.trouble import Malformed

TRES_MAX = 500


def words_of(name: str, tres: str) -> dict[str, Any]:
    """`name` and `tres` by the names of the REST language, each only where there is something to tell."""
    said: dict[str, Any] = {}
    if (told := as_job_name(name)) is not None:
        said["name"] = told
    if tres and len(tres) <= TRES_MAX and _is_known(tres):
        said["tres"] = tres
    return said


def _is_known(tres: str) -> bool:
    try:
        parse_counts(tres)
    except Malformed:
        return False
    return True
