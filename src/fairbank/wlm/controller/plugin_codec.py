"""Codec of the protocol with the agent, on the side of slurmctld and its plug-in."""

from __future__ import annotations

import re
from typing import get_args

import msgspec

from fairbank.agent.protocol import (
    BODY_MAX,
    HEADER,
    REASON_MAX,
    TEXT_MAX,
    WORDS,
    Ack,
    Action,
    EpilogEvent,
    FromAgent,
    FromPlugin,
    Greeting,
    PluginMessage,
    Verdict,
    Welcome,
    frame,
    read_fields,
    read_values,
    unknown_kind,
)
from fairbank.core.errors import InvalidInput

AGENT_BODY_MAX = 4_096
"""Size of the plug-in's buffer for a message of the agent."""

_WORD = re.compile(r"[A-Za-z0-9_:.-]*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def decode_agent_message(body: bytes) -> FromAgent:
    """Return the agent's message in a body. Raises InvalidInput with the key for anything else."""
    word, fields = read_fields(body)
    if word == "hello":
        return Welcome(**read_values(fields, {"version"}))
    if word == "ack":
        return Ack(**read_values(fields, {"number"}))
    if word != "verdict":
        raise unknown_kind(word, "an agent")
    values = read_values(fields, {"number", "action"}, {"reason", "text"})
    action, reason, text = values["action"], values.get("reason", ""), values.get("text", "")
    if action not in get_args(Action):
        remedy = ", ".join(get_args(Action))
        raise InvalidInput(f"{action[:40]!r} is not a verdict", field="action", remedy=remedy)
    _check_line(reason, "reason", REASON_MAX)
    _check_line(text, "text", TEXT_MAX)
    return Verdict(number=values["number"], action=action, reason=reason, text=text)


def _check_line(text: str, field: str, max_bytes: int) -> None:
    """Raise InvalidInput for a text that a verdict cannot carry; a reason is one word."""
    has_form = _WORD.fullmatch(text) if field == "reason" else not _CONTROL.search(text)
    if len(text.encode("utf-8", "replace")) > max_bytes or not has_form:
        raise InvalidInput(
            f"{text[:40]!r} is no {field} for a verdict",
            field=field,
            remedy=f"one line of at most {max_bytes} bytes",
        )


def encode_plugin_message(message: FromPlugin) -> bytes:
    """Return the frame of a message of the plug-in. Raises InvalidInput if it does not fit."""
    if isinstance(message, Greeting):
        encoded = frame("hello", msgspec.structs.asdict(message))
    else:
        fields = _message_fields(message)
        given = {key: value for key, value in fields.items() if value is not None}
        encoded = frame(WORDS[type(message)], given)
    if len(encoded) > HEADER + BODY_MAX:
        raise InvalidInput(f"a frame of {len(encoded)} bytes", field="frame")
    return encoded


def _message_fields(message: PluginMessage) -> dict[str, object]:
    run = message.run
    array, het = message.array or (None, None), message.het or (None, None)
    fields: dict[str, object] = {
        "number": message.number,
        "cluster": run.cluster,
        "job": run.job_id,
        "submitted": run.submitted,
        "restart": run.restart,
        "uid": message.uid,
        "gid": message.gid,
        "account": message.account,
        "partition": message.partition,
        "tres": message.tres,
        "billing": f"{float(message.billing):.17g}",  # as the plug-in writes a double
        "start": message.start,
        "batch": int(message.batch),
        "qos": message.qos,
        "name": message.name or None,
        "limit": message.limit_seconds,
        "array": array[0],
        "task": array[1],
        "het": het[0],
        "component": het[1],
        "resized": message.resized,
        "suspended": message.suspended_seconds,
    }
    if isinstance(message, EpilogEvent):
        fields |= {
            "end": message.end,
            "elapsed": message.elapsed_seconds,
            "state": message.state,
            "exit": message.exit_status,
            "begun": int(message.begun),
        }
    return fields
