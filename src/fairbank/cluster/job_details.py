"""Details of a run that do not affect its price: name, QOS, TRES, exit status, processor time."""

from __future__ import annotations

import msgspec


class JobDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Details of a run; None if unknown.

    `tres` is what the run holds, as Slurm writes it, and `cpus` the processors in it. `exit_status`
    is that of wait(2): exit code times 256, plus the signal. `cpu_seconds` is the time that all
    processors of the run were busy.
    """

    name: str | None = None
    qos: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    tres: str | None = None
    limit_seconds: int | None = None
    exit_status: int | None = None
    cpu_seconds: int | None = None


NO_DETAILS = JobDetails()


def split_status(status: int | None) -> tuple[int | None, int | None]:
    """Return the exit code and the signal, or None for both."""
    return (None, None) if status is None else divmod(status, 256)


def new_details(told: JobDetails | None, known: JobDetails | None) -> JobDetails | None:
    """Return the details that are not known yet, or None if all of them are."""
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
    return JobDetails(**new) if new else None


def merge_details(known: JobDetails | None, new: JobDetails | None) -> JobDetails | None:
    """Return the known details, updated by the new ones."""
    if new is None or known is None:
        return known if new is None else new
    said = msgspec.structs.asdict(new)
    return msgspec.structs.replace(
        known, **{field: value for field, value in said.items() if value is not None}
    )
