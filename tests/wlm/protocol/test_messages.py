"""Messages: each is read back as it was written; bad content is refused and never deep."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.inspect import type_info

from fairbank.cluster.job import Run
from fairbank.wlm.protocol.frames import MESSAGE, Frame, FrameDecoder, FrameError
from fairbank.wlm.protocol.messages import (
    AnyMessage,
    EndJob,
    EndStep,
    ErrorMessage,
    FindJob,
    ForgetRun,
    ForgetStep,
    Hello,
    JobOfProcess,
    ListedProcess,
    ListProcesses,
    Message,
    NotifyJob,
    ProcessList,
    Registration,
    RunOutcome,
    RunStatus,
    RunUsage,
    SetDebug,
    SignalJob,
    StartJob,
    StartStep,
    StepStatus,
    SuspendRun,
    TaskStart,
    UsageReport,
    WarnProcess,
    decode_message,
    encode_message,
)

DEPTH_MAX = 16
RUN = Run("test", 7, 1_795_000_000, 1)
USAGE = RunUsage(cpu_seconds=1.5, virtual_max_kib=2)
END = RunOutcome(cause="exit", status=256, ended=1.0, usage=USAGE)
STATUS = RunStatus(run=RUN, state="finished", end=END, epilog_status=0)
EXAMPLES = [
    Hello(versions=(1, 2), role="controller", name="c"),
    ErrorMessage(kind="NotFound", message="m", field=None, remedy="r"),
    SetDebug(level="debug"),
    StartJob(
        run=RUN,
        script=b"\x00\xff",
        arguments=("a",),
        environment=(b"A=\xff",),
        directory="/",
        output="/o",
        limits={"CORE": -1},
        cpus=(0, 1),
        seconds=1.5,
    ),
    StartStep(
        run=RUN,
        step=2,
        node_index=1,
        tasks=(TaskStart(3, ("true",), (0,), "", "/o", "/e"), TaskStart(4)),
        arguments=("sh", "-c", "exit"),
        environment=(b"A=\xff",),
        directory="/",
        input_rank=3,
        terminal=(24, 80),
    ),
    EndStep(run=RUN, step=2, number=9, reason="CANCELLED"),
    ForgetStep(run=RUN, step=2),
    StepStatus(run=RUN, step=2, end=END),
    SignalJob(run=RUN, number=15, target="script"),
    SuspendRun(run=RUN, suspended=True),
    EndJob(run=RUN, seconds=None, reason="time limit"),
    ForgetRun(run=RUN),
    NotifyJob(run=RUN, text="t"),
    ListProcesses(run=RUN),
    FindJob(pid=1),
    WarnProcess(run=RUN, pid=1, number=10, seconds=60.0),
    STATUS,
    Registration(
        node="n",
        release="1",
        started=1.5,
        cpus=1,
        memory=1,
        free_memory=1,
        tmp=1,
        load=0.5,
        boot_time=1.0,
        boot_id="b",
        system="Linux 6",
        machine="x86_64",
        runs=(STATUS,),
        steps=(StepStatus(run=RUN, step=0),),
        spool="/spool",
    ),
    UsageReport(runs=((RUN, USAGE),)),
    ProcessList(processes=(ListedProcess(1), ListedProcess(2, 0, 0, 3))),
    JobOfProcess(run=RUN, seconds=1.0),
]
KINDS = get_args(AnyMessage)
PLAIN = [kind() for kind in KINDS if not kind.__struct_fields__]


@pytest.mark.parametrize("message", EXAMPLES + PLAIN, ids=lambda message: type(message).__name__)
def test_message_is_read_back(message: Message) -> None:
    (frame,) = FrameDecoder().decode(encode_message(message, 7))
    assert frame.number == 7
    assert decode_message(frame) == message


def test_examples_have_every_message() -> None:
    assert {type(message) for message in EXAMPLES + PLAIN} == set(KINDS)


@pytest.mark.parametrize("content", ["list", "map", "field"])
def test_deeply_nested_content_is_refused(content: str) -> None:
    depth = 100_000
    body = {
        "list": b"\x91" * depth + b"\xc0",
        "map": b"\x81\xa1x" * depth + b"\xc0",
        "field": b"\x82\xa4type\xa9SignalJob\xa6number" + b"\x91" * depth + b"\xc0",
    }[content]
    with pytest.raises(FrameError):
        decode_message(Frame(MESSAGE, 0, body))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_types_allow_few_levels(kind: type[Message]) -> None:
    assert depth_of(type_info(kind)) <= DEPTH_MAX


def depth_of(info: Any) -> int:
    """Return how deeply a value of a type can be nested; a type of any content is an error."""
    assert not isinstance(info, msgspec.inspect.AnyType | msgspec.inspect.RawType)
    children = [field.type for field in getattr(info, "fields", ())]
    for name in ("item_type", "key_type", "value_type", "type"):
        children += [getattr(info, name)] if hasattr(info, name) else []
    children += getattr(info, "types", ()) or getattr(info, "item_types", ())
    return 1 + max(map(depth_of, children), default=0)


@given(st.sampled_from(KINDS), st.binary(max_size=100))
def test_any_body_is_a_message_or_an_error(kind: type[Message], body: bytes) -> None:
    fields = msgspec.msgpack.encode({"type": kind.__name__})[1:] + body
    try:
        message = decode_message(Frame(MESSAGE, 0, b"\x82" + fields))
    except FrameError:
        return
    assert isinstance(message, kind)


@given(st.sampled_from(EXAMPLES), st.data())
def test_changed_byte_is_a_message_or_an_error(message: Message, data: st.DataObject) -> None:
    (frame,) = FrameDecoder().decode(encode_message(message))
    body = bytearray(frame.body)
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_message(frame._replace(body=bytes(body)))
    except FrameError:
        return


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 1e10])
def test_impossible_times_are_refused(seconds: float) -> None:
    body = msgspec.msgpack.encode(
        {"type": "EndJob", "run": list(RUN), "reason": "x", "seconds": seconds}
    )
    with pytest.raises(FrameError, match="seconds"):
        decode_message(Frame(MESSAGE, 0, body))


@pytest.mark.parametrize("number", [0, -9, 65])
def test_numbers_of_no_signal_are_refused(number: int) -> None:
    body = msgspec.msgpack.encode({"type": "SignalJob", "run": list(RUN), "number": number})
    with pytest.raises(FrameError, match="number"):
        decode_message(Frame(MESSAGE, 0, body))


def test_unknown_kinds_and_fields_are_refused() -> None:
    with pytest.raises(FrameError, match="unknown kind 99"):
        decode_message(Frame(99, 0, b"\x80"))
    for kind in ("Unknown", None):
        with pytest.raises(FrameError):
            decode_message(Frame(MESSAGE, 0, msgspec.msgpack.encode({"type": kind})))
    body = msgspec.msgpack.encode({"type": "FindJob", "pid": 1, "other": 1})
    with pytest.raises(FrameError, match="other"):
        decode_message(Frame(MESSAGE, 0, body))
    with pytest.raises(FrameError):
        body = msgspec.msgpack.encode({"type": "EndJob", "run": list(RUN), "reason": ""})
        decode_message(Frame(MESSAGE, 0, body))
