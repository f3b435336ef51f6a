"""Runs, what came of reports about them, and jobs that were refused."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from fairbank.rest.bodies.answers.envelope import Granted, Refused

Status = Literal["executing", "completed"]


class JobRow(Struct, frozen=True, kw_only=True):
    """A run in the books. `project` and `account` are those that it ran for; `allocation` carries it, perhaps one that a parent of the
    project shares. `status` is HADM's word for its state; `set_by` is the entry that set its hold as it is, or closed it.

    `elapsed`, `time_limit` and `cpu_seconds` (of all its processors together) are in seconds. What nobody told is null.
    """

    id: int
    cluster: str
    job_id: int
    submitted: str
    restart: int
    project: int
    account: str
    allocation: int
    owner_uid: int
    partition: str
    state: Literal["held", "charged", "released", "lapsed"]
    status: Status
    held: int
    charged: int
    refunded: int
    written_off: int
    start: str
    until: str
    ended: str | None
    outcome: str | None
    elapsed: int | None
    set_by: int
    name: str | None
    qos: str | None
    nodes: int | None
    cpus: int | None
    tres: str | None
    time_limit: int | None
    exit_code: int | None
    exit_signal: int | None
    cpu_seconds: int | None


class ReportAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one report of many: granted (200, 201), refused (402, 404, 409) or not understood (400, 403, 404)."""

    status: int
    granted: Granted | None = None
    detail: str | None = None
    field: str | None = None
    remedy: str | None = None
    refusal: Refused | None = None


class FailureRow(Struct, frozen=True, kw_only=True):
    """Job that the bank refused, with the amounts and the remedies.

    HADM's schema 6: activity_id is `id`, allocation_id `allocation`, amount `asked`; `comments` are
    those of the job, else the message of the reason. `available` and `shortfall` are null unless
    the reason is a lack of credit (INSUFFICIENT_CREDIT, CAPPED, NO_ALLOCATION, FROZEN). Then `asked`
    is null as well, unless the refused request had an amount, such as the cost of a run without a
    hold.
    """

    id: int
    at: str
    allocation: int | None
    project: int | None
    account: str | None
    resource: str | None
    owner_uid: int | None
    cluster: str | None
    job_id: int | None
    run: str | None
    reason: str
    detail: str
    comments: str
    asked: int | None
    available: int | None
    shortfall: int | None
    remedies: list[str]
