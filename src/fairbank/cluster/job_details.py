"""What a cluster tells of a run beside what it costs: its name, its QOS, what it holds, how it ended, the processor time that it used."""

from __future__ import annotations

import msgspec


class Particulars(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """None for what nobody told. `tres` is what the run holds, as Slurm writes it, `cpus` the processors among it.

    `exit_status` is that of wait(2): the exit code times 256, plus the signal. `cpu_seconds` is what all its processors together were
    busy with it.
    """

    name: str | None = None
    qos: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    tres: str | None = None
    limit_seconds: int | None = None
    exit_status: int | None = None
    cpu_seconds: int | None = None


NO_DETAILS = Particulars()


def split_status(status: int | None) -> tuple[int | None, int | None]:
    """Exit code and signal; both None where nobody told."""
    return (None, None) if status is None else divmod(status, 256)


def new_details(told: Particulars | None, known: Particulars | None) -> Particulars | None:
    """What of `told` is not known yet; None when all of it is."""
    if told is None or told == known:
        return None
    if known is None:
        return told if told != NO_DETAILS else None
    said = msgspec.structs.asdict(told)
    new = {
        field: value
        for field, value in said.items()
        if value is not None and value != getattr(known, field)
    }
    return Particulars(**new) if new else None


def merge_details(known: Particulars | None, new: Particulars | None) -> Particulars | None:
    """What is known after `new` was told: it takes the place of what was said of the same before."""
    if new is None or known is None:
        return known if new is None else new
    said = msgspec.structs.asdict(new)
    return msgspec.structs.replace(
        known, **{field: value for field, value in said.items() if value is not None}
    )
