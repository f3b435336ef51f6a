"""Codec of the plug-in protocol: round trips, bad input, and the same with the plug-in's C code."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.agent.protocol import (
    HEADER,
    TEXT_MAX,
    Ack,
    EpilogEvent,
    FromAgent,
    FromPlugin,
    Greeting,
    LimitEvent,
    PrologRequest,
    Verdict,
    Welcome,
    decode_plugin_message,
    encode,
    one_line,
    split_frames,
)
from fairbank.cluster.job import Run
from fairbank.core.errors import InvalidInput
from fairbank.wlm.controller.plugin_codec import (
    AGENT_BODY_MAX,
    decode_agent_message,
    encode_plugin_message,
)

counts = st.integers(0, 2**53 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
lines = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=100)
words = st.text("abcXYZ019_-:.", max_size=63)
run = st.builds(
    Run,
    st.sampled_from(["lab", "DARWIN"]),
    st.integers(1, 2**32 - 1),
    counts,
    st.integers(0, 65_535),
)
pairs = st.none() | st.tuples(counts, counts)
uids = st.integers(0, 2**32 - 2)
billing = st.floats(0, 1e12, allow_nan=False).map(lambda figure: Fraction(repr(figure)))
message_fields = {
    "number": counts,
    "run": run,
    "uid": uids,
    "gid": uids,
    "account": texts,
    "partition": texts,
    "qos": st.none() | texts,
    "tres": texts,
    "name": texts,
    "billing": billing,
    "limit_seconds": st.none() | counts,
    "start": counts,
    "batch": st.booleans(),
    "array": pairs,
    "het": pairs,
    "resized": st.none() | counts,
    "suspended_seconds": counts,
}
end_fields = {
    "end": counts,
    "elapsed_seconds": counts,
    "state": texts,
    "exit_status": counts,
    "begun": st.booleans(),
}
plugin_messages: st.SearchStrategy[FromPlugin] = st.one_of(
    st.builds(Greeting, version=st.integers(0, 65_535), slurm=texts, cluster=texts),
    st.builds(PrologRequest, **message_fields),
    st.builds(LimitEvent, **message_fields),
    st.builds(EpilogEvent, **message_fields, **end_fields),
)
agent_messages: st.SearchStrategy[FromAgent] = st.one_of(
    st.builds(Welcome, version=st.integers(0, 65_535)),
    st.builds(Ack, number=counts),
    st.builds(
        Verdict,
        number=counts,
        action=st.sampled_from(["run", "hold", "cancel"]),
        reason=words,
        text=lines,
    ),
)


def body(message: FromPlugin | FromAgent) -> bytes:
    encoded = encode(message) if isinstance(message, FromAgent) else encode_plugin_message(message)
    return encoded[HEADER:]


@given(plugin_messages)
def test_plugin_message_round_trip(message: FromPlugin) -> None:
    decoded = decode_plugin_message(body(message))
    if not isinstance(message, Greeting) and not isinstance(decoded, Greeting):
        assert float(decoded.billing) == float(message.billing)
        decoded = msgspec.structs.replace(decoded, billing=message.billing)
    assert decoded == message


@given(agent_messages)
def test_agent_message_round_trip(message: FromAgent) -> None:
    assert decode_agent_message(body(message)) == message


@given(st.lists(agent_messages, max_size=5), st.lists(st.integers(0, 300), max_size=5))
def test_stream_can_be_split_anywhere(messages: list[FromAgent], cuts: list[int]) -> None:
    stream = b"".join(map(encode, messages))
    received: list[FromAgent] = []
    rest = b""
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(stream)], strict=True):
        bodies, rest = split_frames(rest + stream[begin:end])
        received += map(decode_agent_message, bodies)
    assert received == messages
    assert rest == b""


REMEDIES = {
    "UTF-8",
    "end each line",
    "key=value, each key once",
    "send it once",
    "speak version 1 of the protocol",
}


@given(st.binary(max_size=200))
def test_noise_is_refused_with_a_remedy(noise: bytes) -> None:
    for decode in (decode_plugin_message, decode_agent_message):
        try:
            decode(noise)
        except InvalidInput as error:
            assert error.remedy in REMEDIES


@given(plugin_messages, st.data())
def test_changed_byte_is_refused_or_another_value(message: FromPlugin, data: st.DataObject) -> None:
    changed = bytearray(body(message))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_plugin_message(bytes(changed))
    except InvalidInput as error:
        assert re.fullmatch(r"[ -~\u00a0-\U0010ffff]{10,300}", error.message)


WRONG = {
    "not a kind": b"salute\n",
    "no end of line": b"ack\nnumber=1",
    "an unknown key": b"ack\nnumber=1\ncolour=red\n",
    "a key twice": b"ack\nnumber=1\nnumber=1\n",
    "a missing key": b"ack\n",
    "no value": b"ack\nnumber\n",
    "no number": b"ack\nnumber=one\n",
    "leading zeros": b"ack\nnumber=007\n",
    "negative": b"ack\nnumber=-1\n",
    "other digits": "ack\nnumber=\u0663\n".encode(),
    "too large": b"ack\nnumber=99999999999999999\n",
    "a half escape": b"verdict\nnumber=1\naction=run\ntext=100%\n",
    "a hidden line feed": b"verdict\nnumber=1\naction=run\ntext=a%0Ab\n",
    "a reason of two words": b"verdict\nnumber=1\naction=hold\nreason=too poor\n",
    "another verdict": b"verdict\nnumber=1\naction=maybe\n",
    "a long text": b"verdict\nnumber=1\naction=run\ntext=" + b"x" * 600 + b"\n",
    "no UTF-8": b"verdict\nnumber=1\naction=run\ntext=\xff\n",
    "nothing": b"",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_bad_answer_is_refused(wrong: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_agent_message(wrong)


def test_long_frame_is_refused_by_its_header() -> None:
    with pytest.raises(InvalidInput, match="4294967295 bytes"):
        split_frames(b"\xff\xff\xff\xff")


@given(st.text(max_size=1000))
def test_one_line_fits_any_text(text: str) -> None:
    verdict = Verdict(number=1, action="hold", text=one_line(text))
    assert decode_agent_message(body(verdict)) == verdict
    assert len(verdict.text.encode()) <= TEXT_MAX


# ---------------------------------------------------------------- the plug-in's C code


@pytest.fixture(scope="module")
def check(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the test program of the plug-in's frames, built with sanitizers."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    program = tmp_path_factory.mktemp("c") / "check"
    options = [
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    folder = checkout / "plugins" / "prep"
    subprocess.run(
        [
            compiler,
            "-std=gnu11",
            *options,
            "-o",
            program,
            folder / "check.c",
            folder / "frame.c",
            "-lm",
        ],
        check=True,
    )
    return program


def printed(check: Path, frames: Iterable[bytes]) -> list[str]:
    """Return a line for each frame, as the plug-in reads it."""
    process = subprocess.run([check], input=b"".join(frames), capture_output=True, check=True)
    return process.stdout.decode().split("\n")[:-1]


def expected_line(message: FromAgent) -> str:
    match message:
        case Welcome():
            return f"hello {message.version}"
        case Ack():
            return f"ack {message.number}"
        case Verdict():
            return f"verdict {message.number} {message.action} [{message.reason}] [{message.text}]"


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(messages=st.lists(agent_messages, min_size=1, max_size=40))
def test_c_reads_every_answer(check: Path, messages: list[FromAgent]) -> None:
    assert printed(check, map(encode, messages)) == [expected_line(message) for message in messages]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_c_survives_changed_answers(check: Path, data: st.DataObject) -> None:
    frames = []
    for message in data.draw(st.lists(agent_messages, min_size=20, max_size=40)):
        changed = bytearray(body(message))
        for _ in range(data.draw(st.integers(1, 3))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(
                st.sampled_from(b"\x00\n=%\xff9a")
            )
        frames.append(len(changed).to_bytes(HEADER, "big") + bytes(changed))
    assert len(printed(check, frames)) == len(frames)


@pytest.mark.slow
def test_c_refuses_bad_answers(check: Path) -> None:
    lenient = {"leading zeros", "too large"}  # harmless in C: no message has such a number
    wrong = [body for name, body in WRONG.items() if name not in lenient] + [
        b"x" * (AGENT_BODY_MAX + 1),
        b"\0" * 100,
    ]
    assert printed(check, [len(body).to_bytes(HEADER, "big") + body for body in wrong]) == [
        "refused"
    ] * len(wrong)


RUN_FIELDS = "prolog #number 1 cluster lab #job 7 #submitted 1 #restart 0 #uid 1 #gid 1".split()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(account=texts.filter(lambda text: "\0" not in text), figure=st.floats(0, 1e15), start=counts)
def test_frame_of_c_is_decoded(check: Path, account: str, figure: float, start: int) -> None:
    fields = ["account", account, "~billing", repr(figure), "#start", str(start), "#batch", "1"]
    process = subprocess.run([check, *RUN_FIELDS, *fields], capture_output=True, check=True)
    (frame,), rest = split_frames(process.stdout)
    read = decode_plugin_message(frame)
    assert rest == b""
    assert isinstance(read, PrologRequest)
    assert (read.account, read.start) == (account, start)
    assert math.isclose(float(read.billing), figure, rel_tol=0, abs_tol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "read"),
    [
        (b"relax_w64", "relax_w64"),
        (b"two\nlines%", "two\nlines%"),
        ("d\u00fcnn".encode(), "d\u00fcnn"),
        (b"\xff\xfe=\xc3", "??=?"),
        (b"x" * 600, "x" * 512),
        (b"x" + "\u00fc".encode() * 300, "x" + "\u00fc" * 255),
    ],
)
def test_c_makes_any_name_valid(check: Path, name: bytes, read: str) -> None:
    fields = [*RUN_FIELDS, "#start", "1", "#batch", "1", "@name"]
    process = subprocess.run([check, *fields, name], capture_output=True, check=True)
    message = decode_plugin_message(split_frames(process.stdout)[0][0])
    assert isinstance(message, PrologRequest)
    assert message.name == read


@pytest.mark.slow
def test_c_writes_no_frame_that_does_not_fit(check: Path) -> None:
    command = [str(check), "prolog", "tres", "x" * 20_000]
    process = subprocess.run(command, capture_output=True, check=True)
    assert process.stdout == b"full\n"
