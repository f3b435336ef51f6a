"""Codec of the plug-in's side of the protocol, as an oracle for the C code and for test plug-ins."""

from __future__ import annotations

from typing import get_args

import msgspec

from fairbank.agent.protocol.codec import (
    BODY_MAX,
    WORDS,
    check_reason,
    check_text,
    frame,
    read_fields,
    unknown_kind,
)
from fairbank.agent.protocol.messages import (
    Ack,
    Action,
    EpilogEvent,
    FromAgent,
    FromPlugin,
    Greeting,
    PluginMessage,
    Verdict,
    Welcome,
)
from fairbank.core.errors import Malformed

_ACTIONS: tuple[Action, ...] = get_args(Action)


def decode_agent_message(body: bytes) -> FromAgent:
    """Return the agent's message in a body. Raises Malformed with the key for anything else."""
    word, fields = read_fields(body)
    message: FromAgent
    if word == "hello":
        message = Welcome(version=fields.integer("version", 0, 65_535))
    elif word == "ack":
        message = Ack(number=fields.integer("number"))
    elif word == "verdict":
        message = Verdict(
            number=fields.integer("number"),
            action=decode_action(fields.text("action")),
            reason=check_reason(fields.text("reason", "")),
            text=check_text(fields.text("text", "")),
        )
    else:
        raise unknown_kind(word, "an agent")
    fields.check_all_taken()
    return message


def decode_action(word: str) -> Action:
    for action in _ACTIONS:
        if action == word:
            return action
    raise Malformed(f"{word[:40]!r} is no verdict", field="action", remedy=", ".join(_ACTIONS))


def encode_plugin_message(message: FromPlugin) -> bytes:
    """Return the frame of a message of the plug-in. Raises Malformed if it does not fit."""
    if isinstance(message, Greeting):
        return frame("hello", msgspec.structs.asdict(message), BODY_MAX)
    return frame(WORDS[type(message)], _message_fields(message), BODY_MAX)


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
    }
    if isinstance(message, EpilogEvent):
        fields |= {
            "end": message.end,
            "elapsed": message.elapsed_seconds,
            "suspended": message.suspended_seconds,
            "state": message.state,
            "exit": message.exit_status,
            "begun": int(message.begun),
        }
    return fields
