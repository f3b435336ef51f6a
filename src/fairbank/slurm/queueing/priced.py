"""What the bank is asked about a job that waits: what it would hold when the job starts."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.scheduling.pending import Pending
from fairbank.slurm.answers.jobs import Told


def requests(job: Pending, told: Told, cluster: str | None) -> Iterator[dict[str, object]]:
    """The body of `POST /quote` for each partition that it may run in. None for a job without a time limit of its own, whose hold depends
    on how long its partition lets it run."""
    if job.limit is None:
        return
    tres = ",".join(
        f"{name}={count}{'M' if name == 'mem' else ''}" for name, count in told.tres.items()
    )
    for partition in job.partitions:
        yield {
            "account": told.account,
            "cluster": cluster,
            "partition": partition,
            "tres": tres,
            "time_limit": job.limit,
            "qos": told.qos or None,
        }
