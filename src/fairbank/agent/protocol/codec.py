"""Encoding and decoding of the messages of the plug-in protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, get_args

import msgspec

from fairbank.agent.protocol.frames import (
    AGENT_BODY_MAX,
    BODY_MAX,
    HEADER,
    Fields,
    check_reason,
    check_text,
    escape,
    parse_integer,
    read_fields,
)
from fairbank.agent.protocol.messages import (
    VERSION,
    Ack,
    Action,
    EpilogEvent,
    FromAgent,
    FromPlugin,
    Greeting,
    LimitEvent,
    PluginMessage,
    PrologRequest,
    Verdict,
    Welcome,
)
from fairbank.cluster.job import Run, checked_run
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import UID_MAX

KINDS: Mapping[str, type[PrologRequest | LimitEvent | EpilogEvent]] = {
    "prolog": PrologRequest,
    "limit": LimitEvent,
    "epilog": EpilogEvent,
}
_WORDS = {message: word for word, message in KINDS.items()}
_ACTIONS: tuple[Action, ...] = get_args(Action)
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?(e[+-][0-9]{1,3})?", re.ASCII)


class UnreadableFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Frame with a number whose body cannot be decoded.

    `kind` is a word of the protocol or `other`. `partition` and `batch` are empty and False where
    they cannot be read. `why` is the error.
    """

    number: int
    kind: str
    partition: str
    batch: bool
    body: bytes
    why: InvalidInput

    @property
    def is_prolog(self) -> bool:
        """Return whether the plug-in waits for a verdict, as far as can be seen."""
        return self.kind == "prolog"

    @property
    def error(self) -> str:
        return f"{self.kind}: {self.why.message} ({self.why.field})"


# ------------------------------------------------------------------ decoding


def decode_plugin_message(body: bytes) -> FromPlugin:
    """Return the plug-in's message in a body. Raises InvalidInput with the key for anything else."""
    word, fields = read_fields(body)
    message: FromPlugin
    if word == "hello":
        message = Greeting(
            version=fields.integer("version", 0, 65_535),
            slurm=fields.text("slurm"),
            cluster=fields.text("cluster"),
        )
    elif word in KINDS:
        common = _common_fields(fields)
        end = _end_fields(fields) if word == "epilog" else {}
        message = KINDS[word](**common, **end)
    else:
        raise _unknown_kind(word, "a plug-in")
    fields.check_all_taken()
    return message


def decode_agent_message(body: bytes) -> FromAgent:
    """Return the agent's message in a body. Raises InvalidInput with the key for anything else."""
    word, fields = read_fields(body)
    message: FromAgent
    if word == "hello":
        message = Welcome(version=fields.integer("version", 0, 65_535))
    elif word == "ack":
        message = Ack(number=fields.integer("number"))
    elif word == "verdict":
        message = Verdict(
            number=fields.integer("number"),
            action=_action(fields.text("action")),
            reason=check_reason(fields.text("reason", "")),
            text=check_text(fields.text("text", "")),
        )
    else:
        raise _unknown_kind(word, "an agent")
    fields.check_all_taken()
    return message


def _unknown_kind(word: str, sender: str) -> InvalidInput:
    return InvalidInput(
        f"{word[:40]!r} is no message of {sender}",
        field="kind",
        remedy=f"speak version {VERSION} of the protocol",
    )


def _common_fields(fields: Fields) -> dict[str, Any]:
    run = Run(
        fields.text("cluster"),
        fields.integer("job"),
        fields.integer("submitted"),
        fields.integer("restart"),
    )
    return {
        "number": fields.integer("number"),
        "run": checked_run(run),
        "uid": fields.integer("uid", 0, UID_MAX),
        "gid": fields.integer("gid", 0, UID_MAX),
        "account": fields.text("account", ""),
        "partition": fields.text("partition", ""),
        "qos": fields.text("qos") if "qos" in fields else None,
        "tres": fields.text("tres", ""),
        "name": fields.text("name", ""),
        "billing": _billing(fields.text("billing", "0")),
        "limit_seconds": fields.integer("limit") if "limit" in fields else None,
        "start": fields.integer("start"),
        "batch": fields.integer("batch", 0, 1) == 1,
        "array": fields.pair("array", "task"),
        "het": fields.pair("het", "component"),
    }


def _end_fields(fields: Fields) -> dict[str, Any]:
    return {
        "end": fields.integer("end"),
        "elapsed_seconds": fields.integer("elapsed"),
        "suspended_seconds": fields.integer("suspended"),
        "state": fields.text("state"),
        "exit_status": fields.integer("exit"),
        "begun": fields.integer("begun", 0, 1) == 1,
    }


def _billing(text: str) -> Fraction:
    if _DECIMAL.fullmatch(text):
        # Nearly all billings are whole, and Fraction reads an int ten times faster than a text.
        return Fraction(int(text)) if text.isdigit() else Fraction(text)
    raise InvalidInput(
        f"{text[:40]!r} is no billing", field="billing", remedy="a decimal number, not negative"
    )


def _action(word: str) -> Action:
    for action in _ACTIONS:
        if action == word:
            return action
    raise InvalidInput(f"{word[:40]!r} is no verdict", field="action", remedy=", ".join(_ACTIONS))


def salvage(body: bytes, why: InvalidInput) -> UnreadableFrame | None:
    """Return what is needed to answer a body that cannot be decoded; None if it has no number.

    Args:
        body: a complete body.
        why: the error of decoding it.
    """
    word, *lines = body.decode("utf-8", "replace").split("\n")
    values: dict[str, list[str]] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals:
            values.setdefault(key, []).append(value)
    number = parse_integer(values["number"][0]) if len(values.get("number", ())) == 1 else None
    if number is None or word == "hello":
        return None
    partitions = values.get("partition", [])
    return UnreadableFrame(
        number=number,
        kind=word if word in KINDS else "other",
        partition=partitions[0] if len(partitions) == 1 else "",
        batch=values.get("batch") == ["1"],
        body=body,
        why=why,
    )


# ------------------------------------------------------------------ encoding


def encode(message: FromPlugin | FromAgent) -> bytes:
    """Return the frame of a message, header included. Raises InvalidInput if it does not fit."""
    word, fields = _fields_of(message)
    lines = [f"{key}={escape(str(value))}\n" for key, value in fields.items() if value is not None]
    body = "".join([f"{word}\n", *lines]).encode()
    max_body = AGENT_BODY_MAX if isinstance(message, FromAgent) else BODY_MAX
    if len(body) > max_body:
        raise InvalidInput(
            f"a frame of {len(body)} bytes", field="frame", remedy=f"at most {max_body} bytes"
        )
    return len(body).to_bytes(HEADER, "big") + body


def _fields_of(message: FromPlugin | FromAgent) -> tuple[str, dict[str, object]]:
    """Return the word for the kind and the fields; a field that is None is left out."""
    match message:
        case Greeting():
            return "hello", msgspec.structs.asdict(message)
        case Welcome():
            return "hello", {"version": message.version}
        case Ack():
            return "ack", {"number": message.number}
        case Verdict():
            return "verdict", {
                "number": message.number,
                "action": message.action,
                "reason": check_reason(message.reason) or None,
                "text": check_text(message.text) or None,
            }
        case _:
            return _WORDS[type(message)], _message_fields(message)


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
