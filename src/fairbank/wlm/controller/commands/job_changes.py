"""Fields of scontrol update job become the request that the core accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from fairbank.core.errors import Conflict, InvalidInput
from fairbank.core.hostlist import expand
from fairbank.core.submission import values as v
from fairbank.core.time import LIMIT_MAX_SECONDS, MINUTE, parse_moment
from fairbank.jobqueue.arrays import JobSelection
from fairbank.scheduling.placement import constraint
from fairbank.wlm.controller.commands.field_names import field_name
from fairbank.wlm.controller.commands.submissions import check_licenses, check_text, known_qos
from fairbank.wlm.core.events import UpdateJob
from fairbank.wlm.core.jobs import Moment, WlmJob
from fairbank.wlm.core.requests.known_names import unknown
from fairbank.wlm.core.state import CoreState


class ChangeContext(NamedTuple):
    """Job that changes, and what the meaning of its fields depends on."""

    job: WlmJob
    state: CoreState
    now: Moment


Change = Callable[[str, str, ChangeContext], Mapping[str, Any]]
"""Function from text, name of the field and context to fields of `UpdateJob`."""


def job_update(
    selection: JobSelection, fields: Mapping[str, str], context: ChangeContext
) -> UpdateJob:
    """Return the request for the core from texts by the names of scontrol.

    The context has the first of the jobs, for what is relative to its values. Raises InvalidInput.
    """
    changes: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    for written, text in fields.items():
        name = field_name(written, FIELDS)
        change = FIELDS[name]
        check_text(text, name, is_list=change in _LISTS)
        target = wanted if change in _OF_REQUEST else changes
        target.update(change(text, name, context))
    if wanted:
        changes["wanted"] = msgspec.structs.replace(context.job.request.wanted, **wanted)
    if not changes:
        raise InvalidInput("no field is named", field="fields", remedy="write for example Nice=10")
    return UpdateJob(jobs=selection, **changes)


def _text(field: str) -> Change:
    return lambda text, name, context: {field: text}


def _word_or_none(field: str) -> Change:
    return lambda text, name, context: {field: text or None}


def _value(field: str, read: v.Reader) -> Change:
    return lambda text, name, context: {field: read(text, name)}


def _moment(field: str) -> Change:
    return lambda text, name, context: {
        field: parse_moment(text, context.now.wall, context.state.settings.zone, field=name)
    }


def _limit(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    """Return the time limit of `30`, `+30` or `-1:00:00`."""
    sign = text[:1]
    if sign not in ("+", "-"):
        return {"limit": v.time_limit(text, name) or LIMIT_MAX_SECONDS}
    before, change = context.job.request.limit, v.time_limit(text[1:], name) or 0
    if before is None or before >= LIMIT_MAX_SECONDS:
        raise Conflict(
            f"job {context.job.name} has no time limit of its own", field=name, remedy="set one"
        )
    limit = before + change if sign == "+" else before - change
    if limit < MINUTE:
        raise InvalidInput(
            f"TimeLimit decrement larger than current time limit ({change // MINUTE} >"
            f" {before // MINUTE})",
            field=name,
            remedy="leave a minute or more",
        )
    return {"limit": limit}


def _end(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    """Return the time limit with which a running job ends at a time."""
    run = context.job.active_run
    if run is None or run.started is None:
        raise Conflict(
            f"job {context.job.name} is not running",
            field="running",
            remedy="set TimeLimit instead",
        )
    end = parse_moment(text, context.now.wall, context.state.settings.zone, field=name)
    seconds = max(end - context.now.wall + run.ran(context.now), 1)
    return {"limit": -(-seconds // MINUTE) * MINUTE}


def _partitions(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    names = tuple(dict.fromkeys(filter(None, text.split(","))))
    for one in names or (text,):
        if one not in context.state.partitions:
            raise unknown("partition", one)
    return {"partitions": names}


def _dependencies(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    return {"dependencies": None if text in ("", "0") else v.dependencies(text, name)}


def _throttle(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    return {"throttle": None if text == "0" else v.count(text, name)}


def _licenses(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    counts = v.licenses(text, name) if text else {}
    check_licenses(counts, context.state, name)
    return {"licenses": counts}


def _qos(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    return {"qos": known_qos(text, context.state, "qos")}


# --- fields of the request of resources ---


def _nodes(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    least, most = v.nodes(text, name)
    return {"nodes": least, "max_nodes": most}


def _memory(field: str, other: str) -> Change:
    return lambda text, name, context: {
        field: v.memory(text, name),
        other: None,
        "memory_per_gpu": None,
    }


def _hosts(field: str) -> Change:
    return lambda text, name, context: {
        field: tuple(dict.fromkeys(expand(text, field=name))) if text else ()
    }


def _features(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    constraint.parse(text, name)
    return {"constraint": text}


def _sharing(text: str, name: str, context: ChangeContext) -> Mapping[str, Any]:
    shares = _is_yes(text, name)
    return {"shared": shares, "exclusive": not shares}


def _is_yes(text: str, name: str) -> bool:
    return v.word(text, name, "1 yes y 0 no n") in ("1", "yes", "y")


_WANTED: Mapping[str, Change] = {
    "NumNodes": _nodes,
    "NumTasks": _value("tasks", v.count),
    "NumCPUs": _value("min_cpus", v.count),
    "CpusPerTask": _value("cpus_per_task", v.count),
    "MinCPUsNode": _value("cpus_per_node", v.count),
    "MinMemoryNode": _memory("memory_per_node", "memory_per_cpu"),
    "MinMemoryCPU": _memory("memory_per_cpu", "memory_per_node"),
    "MinTmpDiskNode": _value("tmp", v.memory),
    "ReqNodeList": _hosts("required"),
    "ExcNodeList": _hosts("excluded"),
    "Features": _features,
    "Contiguous": _value("contiguous", _is_yes),
    "OverSubscribe": _sharing,
}
_OF_REQUEST = frozenset(_WANTED.values())
_LISTS = frozenset({_WANTED["ReqNodeList"], _WANTED["ExcNodeList"], _dependencies})
FIELDS: Mapping[str, Change] = {
    **_WANTED,
    "Account": _text("account"),
    "AdminComment": _text("admin_comment"),
    "ArrayTaskThrottle": _throttle,
    "Comment": _text("comment"),
    "Deadline": _moment("deadline"),
    "Dependency": _dependencies,
    "EndTime": _end,
    "Extra": _text("extra"),
    "JobName": _text("name"),
    "Licenses": _licenses,
    "MailType": _value("mail_types", v.mail_types),
    "MailUser": _text("mail_user"),
    "Name": _text("name"),
    "Nice": _value("nice", v.nice),
    "Partition": _partitions,
    "Priority": _value("priority", v.priority),
    "QOS": _qos,
    "Requeue": _value("may_requeue", v.zero_or_one),
    "ReservationName": _word_or_none("reservation"),
    "SiteFactor": _value("site_factor", v.nice),
    "StartTime": _moment("eligible"),
    "StdErr": _text("error"),
    "StdOut": _text("output"),
    "TimeLimit": _limit,
    "TimeMin": _value("time_min", v.time_limit),
    "WorkDir": _text("directory"),
}
"""By the names of scontrol."""
