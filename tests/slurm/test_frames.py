"""The frames of decision 0012: every value comes back, nothing else is taken for one, and the
plug-in's C reads and writes the same.
"""

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
    AGENT_BODY_MAX,
    HEADER,
    TEXT_MAX,
    decode_agent_message,
    decode_plugin_message,
    encode,
    one_line,
    split_frames,
)
from fairbank.agent.protocol.messages import (
    Ack,
    EpilogEvent,
    FromAgent,
    FromPlugin,
    Greeting,
    LimitEvent,
    PrologRequest,
    Verdict,
    Welcome,
)
from fairbank.cluster.job import Run
from fairbank.core.errors import InvalidInput

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
told = {
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
}
ended = {
    "end": counts,
    "elapsed_seconds": counts,
    "suspended_seconds": counts,
    "state": texts,
    "exit_status": counts,
    "begun": st.booleans(),
}
questions: st.SearchStrategy[FromPlugin] = st.one_of(
    st.builds(Greeting, version=st.integers(0, 65_535), slurm=texts, cluster=texts),
    st.builds(PrologRequest, **told),
    st.builds(LimitEvent, **told),
    st.builds(EpilogEvent, **told, **ended),
)
answers: st.SearchStrategy[FromAgent] = st.one_of(
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


def body(said: FromPlugin | FromAgent) -> bytes:
    return encode(said)[HEADER:]


@given(questions)
def test_every_question_comes_back(said: FromPlugin) -> None:
    back = decode_plugin_message(body(said))
    if not isinstance(said, Greeting) and not isinstance(back, Greeting):
        assert float(back.billing) == float(said.billing)
        back = msgspec.structs.replace(back, billing=said.billing)
    assert back == said


@given(answers)
def test_every_answer_comes_back(said: FromAgent) -> None:
    assert decode_agent_message(body(said)) == said


@given(st.lists(answers, max_size=5), st.lists(st.integers(0, 300), max_size=5))
def test_frames_may_arrive_in_any_pieces(said: list[FromAgent], cuts: list[int]) -> None:
    stream = b"".join(map(encode, said))
    heard: list[FromAgent] = []
    rest = b""
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(stream)], strict=True):
        whole, rest = split_frames(rest + stream[begin:end])
        heard += map(decode_agent_message, whole)
    assert heard == said
    assert rest == b""


@given(st.binary(max_size=200))
def test_noise_is_refused_in_words(noise: bytes) -> None:
    for read in (decode_plugin_message, decode_agent_message):
        try:
            read(noise)
        except InvalidInput as why:
            assert why.remedy in {
                "UTF-8",
                "end each line",
                "say it once",
                "speak version 1 of the wire",
            }


@given(questions, st.data())
def test_a_changed_byte_is_refused_or_reads_as_another_value(
    said: FromPlugin, data: st.DataObject
) -> None:
    changed = bytearray(body(said))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_plugin_message(bytes(changed))
    except InvalidInput as why:
        assert re.fullmatch(r"[ -~\u00a0-\U0010ffff]{10,300}", why.message)


WRONG = {
    "not a kind": b"salute\n",
    "no end of line": b"ack\nnumber=1",
    "an unknown key": b"ack\nnumber=1\ncolour=red\n",
    "a key twice": b"ack\nnumber=1\nnumber=1\n",
    "a missing key": b"ack\n",
    "no value": b"ack\nnumber\n",
    "no number": b"ack\nnumber=one\n",
    "leading noughts": b"ack\nnumber=007\n",
    "negative": b"ack\nnumber=-1\n",
    "other digits": "ack\nnumber=\u0663\n".encode(),
    "too great": b"ack\nnumber=99999999999999999\n",
    "a half escape": b"verdict\nnumber=1\naction=run\ntext=100%\n",
    "a hidden line feed": b"verdict\nnumber=1\naction=run\ntext=a%0Ab\n",
    "a reason of two words": b"verdict\nnumber=1\naction=hold\nreason=too poor\n",
    "another verdict": b"verdict\nnumber=1\naction=maybe\n",
    "a long text": b"verdict\nnumber=1\naction=run\ntext=" + b"x" * 600 + b"\n",
    "no UTF-8": b"verdict\nnumber=1\naction=run\ntext=\xff\n",
    "nothing": b"",
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_no_answer_is_refused(wrong: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode_agent_message(wrong)


def test_a_frame_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidInput, match="4294967295 bytes"):
        split_frames(b"\xff\xff\xff\xff")


@given(st.text(max_size=1000))
def test_any_text_can_be_shortened_to_fit(text: str) -> None:
    said = Verdict(number=1, action="hold", text=one_line(text))
    assert decode_agent_message(body(said)) == said
    assert len(said.text.encode()) <= TEXT_MAX


# ---------------------------------------------------------------- the C of the plug-in


@pytest.fixture(scope="module")
def check(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plug-in's own reader and writer, with the compiler's guards against wrong memory."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    program = tmp_path_factory.mktemp("c") / "check"
    guards = [
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
            *guards,
            "-o",
            program,
            folder / "check.c",
            folder / "frame.c",
            "-lm",
        ],
        check=True,
    )
    return program


def understood(check: Path, frames: Iterable[bytes]) -> list[str]:
    done = subprocess.run([check], input=b"".join(frames), capture_output=True, check=True)
    return done.stdout.decode().split("\n")[:-1]


def in_words(said: FromAgent) -> str:
    match said:
        case Welcome():
            return f"hello {said.version}"
        case Ack():
            return f"ack {said.number}"
        case Verdict():
            return f"verdict {said.number} {said.action} [{said.reason}] [{said.text}]"


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(said=st.lists(answers, min_size=1, max_size=40))
def test_the_plug_in_understands_every_answer(check: Path, said: list[FromAgent]) -> None:
    assert understood(check, map(encode, said)) == [in_words(each) for each in said]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_plug_in_survives_every_changed_answer(check: Path, data: st.DataObject) -> None:
    frames = []
    for said in data.draw(st.lists(answers, min_size=20, max_size=40)):
        changed = bytearray(body(said))
        for _ in range(data.draw(st.integers(1, 3))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(
                st.sampled_from(b"\x00\n=%\xff9a")
            )
        frames.append(len(changed).to_bytes(HEADER, "big") + bytes(changed))
    assert len(understood(check, frames)) == len(frames)


@pytest.mark.slow
def test_the_plug_in_refuses_what_is_no_answer(check: Path) -> None:
    lenient = {"leading noughts", "too great"}  # harmless to it: nobody has such a number
    wrong = [each for name, each in WRONG.items() if name not in lenient] + [
        b"x" * (AGENT_BODY_MAX + 1),
        b"\0" * 100,
    ]
    assert understood(check, [len(each).to_bytes(HEADER, "big") + each for each in wrong]) == [
        "refused"
    ] * len(wrong)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(account=texts.filter(lambda text: "\0" not in text), figure=st.floats(0, 1e15), start=counts)
def test_what_the_plug_in_writes_is_read(
    check: Path, account: str, figure: float, start: int
) -> None:
    said = [
        "prolog",
        "#number",
        "1",
        "cluster",
        "lab",
        "#job",
        "7",
        "#submitted",
        "1",
        "#restart",
        "0",
        "#uid",
        "1",
        "#gid",
        "1",
    ]
    said += ["account", account, "~billing", repr(figure), "#start", str(start), "#batch", "1"]
    done = subprocess.run([check, *said], capture_output=True, check=True)
    (whole,), rest = split_frames(done.stdout)
    read = decode_plugin_message(whole)
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
def test_a_name_that_users_chose_makes_no_frame_garbage(
    check: Path, name: bytes, read: str
) -> None:
    said = [
        "prolog",
        "#number",
        "1",
        "cluster",
        "lab",
        "#job",
        "7",
        "#submitted",
        "1",
        "#restart",
        "0",
        "#uid",
        "1",
        "#gid",
        "1",
    ]
    done = subprocess.run(
        [check, *said, "#start", "1", "#batch", "1", "@name", name], capture_output=True, check=True
    )
    heard = decode_plugin_message(split_frames(done.stdout)[0][0])
    assert isinstance(heard, PrologRequest)
    assert heard.name == read


@pytest.mark.slow
def test_the_plug_in_sends_no_half_frame(check: Path) -> None:
    done = subprocess.run([check, "prolog", "tres", "x" * 20_000], capture_output=True, check=True)
    assert done.stdout == b"full\n"
