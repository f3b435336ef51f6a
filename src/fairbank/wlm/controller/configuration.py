"""Settings of the controller: those of the core, and their change while jobs run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from fairbank.cluster.node import Node
from fairbank.core.errors import Conflict
from fairbank.unix_users import user_name
from fairbank.wlm.config.comparison import InUse, compare
from fairbank.wlm.config.loader import LoadedSettings, load_settings
from fairbank.wlm.controller.clock import local_zone
from fairbank.wlm.core.effects import StoredRow
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.settings import WlmSettings
from fairbank.wlm.core.state import CoreState


def read_settings(directory: Path) -> LoadedSettings:
    """Read wlm.toml in the directory of a cluster. Raises InvalidInput.

    The user of the daemons is an operator, as SlurmUser is: they own the state and the processes.
    """
    loaded = load_settings(str(directory / "wlm.toml"), lambda name: Path(name).read_bytes())
    operators = loaded.settings.operators | {user_name(os.geteuid())}
    settings = replace(loaded.settings, operators=operators, zone=local_zone())
    return loaded._replace(settings=settings)


def resources_in_use(jobs: Iterable[WlmJob]) -> InUse:
    """Return what jobs have of nodes, and the partitions of those that have not ended."""
    cpus, memory, gpus = Counter[str](), Counter[str](), Counter[str]()
    partitions: set[str] = set()
    for job in jobs:
        if job.run is not None:
            for grant in job.run.allocation.grants:
                if grant.binding.node in job.run.left:
                    cpus[grant.binding.node] += grant.cpus
                    memory[grant.binding.node] += grant.memory
                    last = max(grant.binding.gpus, default=-1)
                    gpus[grant.binding.node] = max(gpus[grant.binding.node], last + 1)
        if not job.state.has_ended:
            partitions.update(job.request.partitions)
            if job.run is not None:
                partitions.add(job.run.allocation.partition)
    return InUse(cpus, memory, frozenset(partitions), gpus)


def check_stored_jobs(settings: WlmSettings, rows: Iterable[StoredRow]) -> None:
    """Check that stored jobs have their nodes and partitions also under these settings.

    Raises Conflict.
    """
    rows = list(rows)
    in_use = resources_in_use(row.value for row in rows if isinstance(row.value, WlmJob))
    # A partition that a request has created is in no file.
    created = {row.key for row in rows if row.table == "partitions"}
    created -= {row.key for row in rows if row.table == "partition_settings"}
    in_use = in_use._replace(partitions=in_use.partitions - created)
    missing = in_use.cpus.keys() - {node.name for node in settings.nodes}
    before = replace(settings, nodes=(*settings.nodes, *(Node(name=name) for name in missing)))
    if refused := compare(before, settings, in_use).refused:
        remedy = "configure them again until the jobs have ended"
        raise Conflict("; ".join(refused), field="nodes", remedy=remedy)


def stored_state(state: CoreState, settings: WlmSettings) -> Iterator[StoredRow]:
    """Yield the rows of a state that hold under other settings.

    Partitions, and the weights and features of nodes, are as configured.
    """
    nodes = {node.name for node in settings.nodes}
    for table, rows in state.tables.items():
        for key, value in rows.items():
            if table == "nodes" and key in nodes:
                yield StoredRow(table, key, replace(value, weight=None, features=None))
            elif table not in ("partitions", "partition_settings", "nodes"):
                yield StoredRow(table, str(key), value)


def dropped_rows(state: CoreState, settings: WlmSettings) -> list[StoredRow]:
    """Return changes of the stored rows that do not hold under other settings."""
    nodes = {node.name for node in settings.nodes}
    rows = [StoredRow("partitions", name, None) for name in state.partitions]
    rows += [StoredRow("partition_settings", name, None) for name in state.partition_settings]
    for name, status in state.nodes.items():
        kept = replace(status, weight=None, features=None) if name in nodes else None
        if kept != status:
            rows.append(StoredRow("nodes", name, kept))
    return rows
