"""Tasks of arrays that leave their record, and the ids that they get."""

from __future__ import annotations

import msgspec

from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.transition import Transition


def split_task(tx: Transition, record: WlmJob, task: int) -> WlmJob:
    """Return a task of an array as a job of its own, and take it out of the record.

    The last task keeps the id of the record.
    """
    tasks = tuple(other for other in record.tasks if other != task)
    if not tasks:
        request = msgspec.structs.replace(record.request, task=task)
        return tx.put_job(record, request=request, tasks=())
    request = msgspec.structs.replace(record.request, number=next_id(tx), task=task)
    tx.put_job(record, tasks=tasks)
    return tx.put_job(record, request=request, tasks=())


def next_id(tx: Transition) -> int:
    """Return a job id that no known job has: after the last one, then from FirstJobId again."""
    cluster = tx.state.settings.cluster
    number = tx.state.counters.get("job", cluster.first_job_id)
    while number > cluster.max_job_id or number in tx.state.jobs:
        number = cluster.first_job_id if number > cluster.max_job_id else number + 1
    tx.put("counters", "job", number + 1)
    return number
