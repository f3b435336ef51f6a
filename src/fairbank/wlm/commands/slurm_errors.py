"""Sentences of Slurm for errors of the controller, so that scripts find what they look for.

Source: strerror of Slurm 24.11. The sentence of the controller, which names values and remedy, is
printed before them.
"""

from __future__ import annotations

import sys

from fairbank.core.errors import (
    Busy,
    Conflict,
    FairbankError,
    Forbidden,
    InvalidInput,
    NotFound,
    Unavailable,
)

NO_ACCESS = "Access/permission denied"
_BY_FIELD = {
    (Unavailable, "controller"): "Unable to contact slurm controller (connect failure)",
    (NotFound, "job"): "Invalid job id specified",
    (InvalidInput, "job"): "Invalid job id specified",
    (Conflict, "pending"): "Job is pending execution",
    (Conflict, "running"): "Job is not running",
    (Conflict, "started"): "Job is no longer pending execution",
    (Conflict, "held"): "Job is in held state, pending scheduler release",
    (Conflict, "ended"): "Job has already finished",
    (Conflict, "completing"): "Job/step already completing or completed",
    (Conflict, "requeue"): "Requested operation is presently disabled",
    (Conflict, "suspended"): "Job is not suspended",
    (Conflict, "altered"): "Job can not be altered now, try again later",
    (Conflict, "dependency"): "Job dependency problem",
    (InvalidInput, "field"): "Update of this parameter is not supported",
    (InvalidInput, "fields"): "No changes specified",
    (NotFound, "partition"): "Invalid partition name specified",
    (InvalidInput, "partition"): "No partition specified or system default partition",
    (InvalidInput, "deadline"): "Requested time limit is invalid (missing or exceeds some limit)",
    (
        InvalidInput,
        "time-min",
    ): "Invalid time-min specification (exceeds job's time or other limits)",
    (Conflict, "partition"): "Requested partition configuration not available now",
    (Forbidden, "account"): "Invalid account or account/partition combination specified",
    (NotFound, "account"): "Invalid account or account/partition combination specified",
    (NotFound, "qos"): "Invalid qos specification",
    (Forbidden, "qos"): "Invalid qos specification",
    (NotFound, "users"): "Invalid user id",
    (NotFound, "reservation"): "Requested reservation is invalid",
    (NotFound, "dependency"): "Job dependency problem",
    (InvalidInput, "dependency"): "Job dependency problem",
    (Forbidden, "groups"): "User's group not permitted to use this partition",
    (Forbidden, "time"): "Requested time limit is invalid (missing or exceeds some limit)",
    (Forbidden, "nodes"): "Node count specification invalid",
    (Forbidden, "ntasks"): "More processors requested than permitted",
    (
        Forbidden,
        "limits",
    ): "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
    (Conflict, "tasks"): "More processors requested than permitted",
    (Forbidden, "mem"): "Memory required by task is not available",
    (Conflict, "mem"): "Memory required by task is not available",
    (InvalidInput, "nodes"): "Requested node configuration is not available",
    (InvalidInput, "nodelist"): "Requested node configuration is not available",
    (NotFound, "nodelist"): "Invalid node name specified",
    (NotFound, "node"): "Invalid node name specified",
    (InvalidInput, "constraint"): "Invalid feature specification",
    (InvalidInput, "licenses"): "Invalid license specification",
    (InvalidInput, "gres"): "Invalid generic resource (gres) specification",
    (InvalidInput, "array"): "Invalid job array specification",
    (InvalidInput, "script"): "Pathname of a file, directory or other parameter too long",
}
_BY_CLASS = {Forbidden: NO_ACCESS, Busy: "Resource temporarily unavailable"}


def slurm_sentence(error: FairbankError) -> str | None:
    """Return the sentence of Slurm for an error; None if Slurm has none."""
    kind = type(error)
    by_field = _BY_FIELD.get((kind, (error.field or "").removeprefix("--").lower()))
    return by_field or _BY_CLASS.get(kind)


def error_of_sentence(name: str, printed: str) -> FairbankError:
    """Return the error that a command of Slurm printed; `printed` is its standard error.

    A sentence that stands for several errors is taken for the first one in the table.
    """
    lines = [line.removeprefix(f"{name}: ").removeprefix("error: ") for line in printed.split("\n")]
    message = "; ".join(filter(None, lines)) or f"{name} failed without a message"
    for (kind, field), sentence in _BY_FIELD.items():
        if sentence in printed:
            return kind(message, field=field)
    if NO_ACCESS in printed:
        return Forbidden(message)
    return InvalidInput(message)


def print_error(name: str, error: FairbankError) -> None:
    """Print an error, and its remedy on a line of its own."""
    option = error.field if (error.field or "").startswith("-") else None
    before = f"{option}: " if option and option not in error.message else ""
    for line in f"{before}{error.message}".split("\n"):
        print(f"{name}: error: {line}", file=sys.stderr)
    if error.remedy:
        print(f"{name}: {error.remedy}", file=sys.stderr)


def print_failure(name: str, error: FairbankError, before: str, after: str = "") -> None:
    """Print an error of the controller, its remedy on a line of its own, and the sentence of Slurm
    for it if there is one.

    The line with Slurm's sentence is the last. It begins with `before`, such as
    `slurm_update error: `, and ends with `after`, such as ` for job 7`.
    """
    sentence = slurm_sentence(error)
    print(f"{name}: " if sentence else before, error.message, sep="", file=sys.stderr)
    if error.remedy:
        print(f"{name}: {error.remedy}", file=sys.stderr)
    if sentence:
        print(f"{before}{sentence}{after}", file=sys.stderr)
