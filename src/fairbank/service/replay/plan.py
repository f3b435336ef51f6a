"""What is replayed, and how it meets the bank."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec

from fairbank.simulator.replay import Payer
from fairbank.simulator.swf import Trace, read
from fairbank.values.trouble import Unknown

OpenTrace = Callable[[], AbstractContextManager[Trace]]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


class Plan(msgspec.Struct, frozen=True):
    """How the trace meets the bank. `percent` of what each fund really used is granted, in `periods` allocations one
    after the other; `payer` names the column that pays (None: groups where there are any, else users).
    `days`: how long the periods are together (None: as long as the trace)."""

    cluster: str
    percent: int = 90
    periods: int = 1
    days: int | None = None
    payer: Payer | None = None
    actor: int = 0


@contextmanager
def open_trace(path: Path) -> Iterator[Trace]:
    """A trace from a file, compressed or not. Raises Unknown when it cannot be opened."""
    try:
        file = path.open("rb")
    except OSError as error:
        remedy = "name a trace in the Standard Workload Format"
        raise Unknown(f"cannot read {path}: {error.strerror}", field="FILE", remedy=remedy) from error
    with file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        with gzip.open(file) if packed else file as stream:
            yield read(stream)
