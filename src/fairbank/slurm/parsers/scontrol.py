"""slurm.conf, and partitions, nodes and settings as `scontrol show` prints them, of any version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.time import parse_instant
from fairbank.core.tres import parse_weights
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Record, read_rows
from fairbank.slurm.parsers.values import ParsedRows, SlurmNode, SlurmPartition, UnreadableLine

_LINE = re.compile(r"\s*(\w+)\s*=\s*(.*)")
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)#.*")
_CONTINUED = re.compile(r"\\\r?\n")


class Conf(NamedTuple):
    """Settings of slurm.conf by lower-case name, since Slurm ignores case; and its include
    lines.
    """

    settings: Mapping[str, str]
    includes: Sequence[str]


def read_conf(text: str) -> Conf:
    """Read lines of one setting each.

    Of nodes, partitions and the like only the last line is kept.
    """
    lines = [_COMMENT.sub("", line).strip() for line in _CONTINUED.sub(" ", text).splitlines()]
    settings = {
        match[1].lower(): match[2].strip().strip('"')
        for line in lines
        if (match := _LINE.fullmatch(line))
    }
    return Conf(settings, [match[1] for line in lines if (match := _INCLUDE.fullmatch(line))])


def split_list(value: str) -> list[str]:
    """Return the words of a setting such as `PrEpPlugins=prep/fairbank,prep/script`."""
    return [word for part in value.split(",") if (word := part.strip())]


def split_parameters(value: str) -> dict[str, str]:
    """Return a setting such as `PrEpParameters=fairbank_poll_interval=1` by name; "" for a bare
    name.
    """
    return {
        name.rstrip(): setting.lstrip()
        for name, _, setting in (word.partition("=") for word in split_list(value))
    }


ANY_GPU = "any"
_SETTING = re.compile(r"(\S+)\s+= ?(.*)")
_AS_OF = re.compile(r"Configuration data as of (\S+)\n")
_GPU = re.compile(r"gpu(?::([A-Za-z][\w.-]*))?:\d+(?:\([^)]*\))?", re.ASCII)


def read_partitions(text: str) -> ParsedRows[SlurmPartition]:
    """Read `scontrol --oneliner show partition`."""
    return read_rows(
        "scontrol show partition",
        key_value_records("scontrol show partition", text, "PartitionName"),
        _partition,
    )


def read_nodes(text: str) -> ParsedRows[SlurmNode]:
    """Read `scontrol --oneliner show node`."""
    return read_rows(
        "scontrol show node", key_value_records("scontrol show node", text, "NodeName"), _node
    )


def read_config(text: str) -> Mapping[str, str]:
    """Read `scontrol show config`; `(null)` becomes an empty text."""
    found = (_SETTING.fullmatch(line) for line in text.splitlines())
    return {
        match[1]: "" if match[2].strip() == "(null)" else match[2].strip()
        for match in found
        if match
    }


def slurm_uid(config: Mapping[str, str]) -> int | None:
    """Return the uid in `SlurmUser = slurm(64030)`, or None."""
    number = config.get("SlurmUser", "").rpartition("(")[2].rstrip(")")
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 10 else None


def read_clock(text: str) -> int:
    """Return the time of `scontrol show config` by slurmctld's clock, run in UTC.

    Raises InvalidInput.
    """
    match = _AS_OF.match(text)
    if match is None:
        remedy = "keep the whole output, with its first line: TZ=UTC scontrol show config"
        raise InvalidInput(
            f"{words.quoted(text)} does not begin with its time",
            field="scontrol show config",
            remedy=remedy,
        )
    return parse_instant(match[1], field="scontrol show config")


def key_value_records(command: str, text: str, key: str) -> Iterator[Record | UnreadableLine]:
    """Yield records of `Key=value Key=value`.

    Words without a sign belong to values that are not read, such as an administrator's reason.

    Args:
        command: that printed them, for errors.
        text: its output.
        key: that each line must have.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells: dict[str, str] = {}
        for word in line.split():
            name, sign, value = word.partition("=")
            if sign:
                cells.setdefault(
                    name, value
                )  # what comes first is Slurm's; a Reason at the end may say anything
        if key in cells:
            yield Record(number, cells)
        else:
            yield UnreadableLine(command, number, key, f"is not there: {words.quoted(line)}")


def _partition(cells: dict[str, str]) -> SlurmPartition:
    weights = cells.get("TRESBillingWeights", "")
    if weights in ("", "(null)"):
        weights = ""
    else:
        parse_weights(weights, field="TRESBillingWeights")
    memory = cells.get("DefMemPerCPU", "")
    return SlurmPartition(
        ids.name(cells["PartitionName"], field="PartitionName"),
        cells.get("Nodes", ""),
        weights or None,
        words.length_minutes(cells.get("DefaultTime", ""), "DefaultTime"),
        0 if memory in ("", "UNLIMITED") else words.number(memory, "DefMemPerCPU"),
        words.length_minutes(cells.get("MaxTime", ""), "MaxTime"),
        words.number(cells.get("PriorityJobFactor", "1"), "PriorityJobFactor", most=65_535),
        words.tres(cells.get("TRES", "").replace("(null)", ""), "TRES"),
    )


def _node(cells: dict[str, str]) -> SlurmNode:
    return SlurmNode(
        cells["NodeName"],
        words.number(words.required(cells, "CPUTot"), "CPUTot"),
        words.number(words.required(cells, "RealMemory"), "RealMemory"),
        tuple(name for name in cells.get("Partitions", "").split(",") if name),
        tuple(sorted({match[1] or ANY_GPU for match in _GPU.finditer(cells.get("Gres", ""))})),
    )
