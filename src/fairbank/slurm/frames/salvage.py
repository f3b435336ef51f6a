"""A frame whose end is known but whose body is not understood: what must be known of it to answer it all the same."""

from __future__ import annotations

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.slurm.frames.grammar import KINDS
from fairbank.slurm.frames.lines import whole_number

OTHER = "other"


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is one of ours or `other`; `partition` and `batch` are empty and False where they cannot be read; `why` is what is wrong."""

    number: int
    kind: str
    partition: str
    batch: bool
    body: bytes
    why: InvalidInput

    @property
    def is_question(self) -> bool:
        """Whether the plug-in waits for a verdict, as far as one can see."""
        return self.kind == "prolog"


def salvaged(body: bytes, why: InvalidInput) -> Unread | None:
    """What can be answered by its number; None for what cannot: without a number, with two, or a hello."""
    word, *lines = body.decode("utf-8", "replace").split("\n")
    found: dict[str, list[str]] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals:
            found.setdefault(key, []).append(value)
    number = whole_number(found["number"][0]) if len(found.get("number", ())) == 1 else None
    if number is None or word == "hello":
        return None
    partitions = found.get("partition", [])
    return Unread(
        number=number,
        kind=word if word in KINDS else OTHER,
        partition=partitions[0] if len(partitions) == 1 else "",
        batch=found.get("batch") == ["1"],
        body=body,
        why=why,
    )
