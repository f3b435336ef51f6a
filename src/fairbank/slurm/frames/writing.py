"""Values as frames."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from fairbank.core.errors import InvalidInput
from fairbank.slurm.frames.grammar import (
    ANSWER_MAX,
    BODY_MAX,
    HEAD,
    KINDS,
    REASON_MAX,
    TEXT_MAX,
    WORD,
    escaped,
    fitting,
)
from fairbank.slurm.records import (
    Answer,
    EpilogTold,
    Greeting,
    Noted,
    Question,
    Told,
    Verdict,
    Welcome,
)

_WORDS = {kind: word for word, kind in KINDS.items()}


def encode(said: Question | Answer) -> bytes:
    """A frame, head included. Raises InvalidInput for what does not fit into one."""
    word, fields = _fields(said)
    body = "".join([f"{word}\n", *(f"{key}={escaped(value)}\n" for key, value in fields)]).encode()
    most = ANSWER_MAX if isinstance(said, Answer) else BODY_MAX
    if len(body) > most:
        raise InvalidInput(
            f"a frame of {len(body)} bytes", field="frame", remedy=f"at most {most} bytes"
        )
    return len(body).to_bytes(HEAD, "big") + body


def _fields(said: Question | Answer) -> tuple[str, list[tuple[str, str]]]:
    match said:
        case Greeting():
            return "hello", [
                ("version", str(said.version)),
                ("slurm", said.slurm),
                ("cluster", said.cluster),
            ]
        case Welcome():
            return "hello", [("version", str(said.version))]
        case Noted():
            return "noted", [("number", str(said.number))]
        case Verdict():
            return "verdict", list(_verdict_fields(said))
        case _:
            return _WORDS[type(said)], list(_told_fields(said))


def _verdict_fields(said: Verdict) -> Iterator[tuple[str, str]]:
    yield "number", str(said.number)
    yield "say", said.say
    if said.reason:
        yield "reason", fitting(said.reason, "reason", REASON_MAX, WORD)
    if said.text:
        yield "text", fitting(said.text, "text", TEXT_MAX)


def _told_fields(said: Told) -> Iterator[tuple[str, str]]:
    run = said.run
    yield from (
        ("number", str(said.number)),
        ("cluster", run.cluster),
        ("job", str(run.job_id)),
        ("submitted", str(run.submitted)),
    )
    yield from (
        ("restart", str(run.restart)),
        ("uid", str(said.uid)),
        ("gid", str(said.gid)),
        ("account", said.account),
    )
    yield from (
        ("partition", said.partition),
        ("tres", said.tres),
        ("billing", _decimal(said.billing)),
    )
    yield from (("start", str(said.start)), ("batch", str(int(said.batch))))
    if said.qos is not None:
        yield "qos", said.qos
    if said.name:
        yield "name", said.name
    if said.limit_seconds is not None:
        yield "limit", str(said.limit_seconds)
    if said.array is not None:
        yield from zip(("array", "task"), map(str, said.array), strict=True)
    if said.het is not None:
        yield from zip(("het", "component"), map(str, said.het), strict=True)
    if isinstance(said, EpilogTold):
        yield from (
            ("end", str(said.end)),
            ("elapsed", str(said.elapsed_seconds)),
            ("suspended", str(said.suspended_seconds)),
        )
        yield from (
            ("state", said.state),
            ("exit", str(said.exit_status)),
            ("begun", str(int(said.begun))),
        )


def _decimal(billing: Fraction) -> str:
    """As the plug-in writes a double."""
    return f"{float(billing):.17g}"
