"""Parsers of the output of Slurm's commands, for what the lab itself needs."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from fairbank.cluster.accounting_job import UNFINISHED_STATES

DELIMITER = "\x1f"


def rows(text: str, columns: Sequence[str], delimiter: str = DELIMITER) -> list[dict[str, str]]:
    """Return the rows of `sacct -nP --delimiter=...`. A field may contain line feeds, unless it is
    the last one. Raises ValueError for other text.
    """
    parsed: list[dict[str, str]] = []
    unfinished = ""
    for line in text.split("\n")[:-1]:
        fields = (unfinished + line).split(delimiter)
        if len(fields) > len(columns):
            raise ValueError(
                f"{len(fields)} fields for {len(columns)} columns: {unfinished + line!r}"
            )
        if len(fields) == len(columns):
            parsed.append(dict(zip(columns, fields, strict=True)))
            unfinished = ""
        else:
            unfinished += line + "\n"
    if unfinished:
        raise ValueError(f"the answer ends within a row: {unfinished!r}")
    return parsed


def is_whole(row: Mapping[str, str]) -> bool:
    """Return True if slurmdbd has received the start of the job and, in a final state, its end.

    The end of a short job can be there a second earlier: the row then says COMPLETED, and has the
    name "allocation", the group root, no partition, and no requested TRES. The final state of a job
    that ends while it is suspended can be there without the end.
    """
    has_end = row["End"] != "Unknown" or row["State"] in UNFINISHED_STATES
    return row["Partition"] != "" and has_end


def tres(text: str) -> dict[str, str]:
    """Return `billing=24,cpu=16` as a dictionary."""
    return dict(part.split("=", 1) for part in text.split(",") if part)


def fields(line: str) -> dict[str, str]:
    """Return one line of `scontrol -o show` as a dictionary: of each value the first word, which is
    all of it for numbers, states and names of nodes.
    """
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def saved_time(state: bytes) -> int:
    """Return the time at which slurmctld began to write this `job_state`: it comes after a
    length-prefixed word and the protocol number.
    """
    (length,) = struct.unpack_from(">I", state)
    (time,) = struct.unpack_from(">Q", state, 4 + length + 2)
    return int(time)
