"""Settings of a wlm.toml or slurm.conf: all of them, or the first error with its place."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import dirname, join
from typing import Any, NamedTuple

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.decay import fading
from fairbank.scheduling.slurm.parameters import NOT_MODELLED
from fairbank.slurm.parsers.config import split_parameters
from fairbank.wlm.config.accounts import preemption_rules, with_associations, with_qos
from fairbank.wlm.config.entries import FileEntry, Record, read_values
from fairbank.wlm.config.keyword import ASSOCIATIONS, NAMES, NODES, PARTITIONS, QOS
from fairbank.wlm.config.machine import Item, build_nodes, build_partitions, read_items
from fairbank.wlm.config.slurm_conf import ReadFile, read_content, read_slurm_conf
from fairbank.wlm.config.toml_file import read_toml
from fairbank.wlm.core.settings import WlmSettings

SLURM_CONF = "slurm_conf"


class LoadedSettings(NamedTuple):
    """Settings, and sentences on keywords of the file that have no effect."""

    settings: WlmSettings
    notes: Sequence[str]


def load_settings(name: str, read: ReadFile) -> LoadedSettings:
    """Return the settings of a file: in TOML if its name ends in .toml, else in slurm.conf's form.

    Args:
        read: reader of this file, of slurm_conf and of included files; relative names are in the
            directory of the file that begins with them.

    Raises:
        InvalidInput: a file cannot be read or is damaged, a keyword is unknown or refused, or a
            value is not accepted. The message names file, line and keyword, the remedy the
            accepted form.
    """
    content = read_content(name, read)
    if not name.endswith(".toml"):
        return _build(name, list(read_slurm_conf(name, content, read)))
    records = list(read_toml(name, content))
    named = [entry for entry in records[0].entries if entry.keyword.name == SLURM_CONF]
    for entry in named:
        path = join(dirname(name), entry.value())
        content = read_content(path, read, entry.error)
        records += read_slurm_conf(path, content, read)
    return _build(name, records)


class _Notes(dict[str, str]):
    """Sentences by keyword: what a file has a thousand times is reported once."""

    def add(self, entry: FileEntry) -> None:
        reason = f": {entry.keyword.note}" if entry.keyword.note else ""
        self.setdefault(entry.keyword.name, f"{entry.place}, {entry.written} has no effect{reason}")

    def add_parameters(self, entry: FileEntry) -> None:
        """Add the parameters of the scheduler that would change its decisions, but are not read."""
        for word in NOT_MODELLED.intersection(map(str.lower, split_parameters(entry.text))):
            self[word] = f"{entry.place}, {entry.written}: {word} has no effect"


def _build(name: str, records: Sequence[Record]) -> LoadedSettings:
    notes = _Notes()
    settings = _read_settings(records, notes)

    def items(group: str) -> list[Item]:
        return list(read_items([r for r in records if r.group == group], notes.add))

    scheduling = settings.scheduling
    nodes = build_nodes(items(NODES), by_core=scheduling.by_core)
    partitions = build_partitions(items(PARTITIONS), nodes, scheduling)
    for group, count in ((NODES, len(nodes)), (PARTITIONS, len(partitions))):
        if not count:
            raise InvalidInput(
                f"{name}: there are no {group}", field=group, remedy=f"add {NAMES[group]}"
            )
    qos = items(QOS)
    accounting = with_associations(with_qos(settings.accounting, qos), items(ASSOCIATIONS))
    if settings.bank.server:
        accounting = msgspec.structs.replace(accounting, needs_association=True)
    return LoadedSettings(
        msgspec.structs.replace(
            settings,
            scheduling=msgspec.structs.replace(
                scheduling, preemption=preemption_rules(scheduling.preemption, qos)
            ),
            accounting=accounting,
            nodes=nodes,
            partitions=partitions,
        ),
        tuple(notes.values()),
    )


def _read_settings(records: Sequence[Record], notes: _Notes) -> WlmSettings:
    """Return the settings of the groups that are there once."""
    once = [entry for record in records if record.group not in NAMES for entry in record.entries]
    values, entries = read_values(
        (entry for entry in once if entry.keyword.name != SLURM_CONF), notes.add
    )
    if (parameters := entries.get("scheduling.parameters")) is not None:
        notes.add_parameters(parameters)
    settings = WlmSettings()
    for field, value in values.items():
        try:
            settings = _with_value(settings, field, value)
        except InvalidInput as bad:
            raise entries[field].error(bad.message, bad.remedy) from bad
    _check_together(settings, entries)
    return settings


def _with_value(struct: Any, path: str, value: object) -> Any:
    """Return the struct with another value at a path such as `priority.factors.flags`."""
    field, _, rest = path.partition(".")
    if rest:
        value = _with_value(getattr(struct, field), rest, value)
    return msgspec.structs.replace(struct, **{field: value})


def _check_together(settings: WlmSettings, entries: dict[str, FileEntry]) -> None:
    """Check settings that depend on each other. Raises InvalidInput."""
    cluster, share = settings.cluster, settings.priority.fair_share
    half_life, reset = "priority.fair_share.half_life_seconds", "priority.fair_share.reset"
    if half_life in entries:
        try:
            fading(share.half_life_seconds, share.reset if reset in entries else None)
        except InvalidInput as bad:
            remedy = "give PriorityUsageResetPeriod, if only as NONE"
            raise entries[half_life].error(bad.message, remedy) from bad
    if cluster.first_job_id >= cluster.max_job_id:
        entry = entries.get("cluster.first_job_id") or entries["cluster.max_job_id"]
        message = f"FirstJobId {cluster.first_job_id} is not below MaxJobId {cluster.max_job_id}"
        raise entry.error(message, "a smaller FirstJobId")
