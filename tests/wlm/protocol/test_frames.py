"""Frames: any cut of the data gives the same frames; what is no frame is refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.wlm.protocol.frames import (
    BODY_MAX,
    BODY_MAX_BEFORE_HELLO,
    NUMBER_MAX,
    Frame,
    FrameDecoder,
    FrameError,
    encode_frame,
)

FRAMES = st.lists(
    st.builds(Frame, st.integers(0, 255), st.integers(0, NUMBER_MAX), st.binary(max_size=300)),
    max_size=5,
)


@given(FRAMES, st.data())
def test_frames_are_the_same_however_the_data_is_cut(
    frames: list[Frame], data: st.DataObject
) -> None:
    stream = b"".join(map(encode_frame, frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    decoder = FrameDecoder()
    decoded: list[Frame] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoded += decoder.decode(stream[start:end])
    assert decoded == frames
    assert not decoder.is_within_frame


@given(FRAMES.filter(bool), st.data())
def test_cut_frame_is_not_decoded(frames: list[Frame], data: st.DataObject) -> None:
    stream = b"".join(map(encode_frame, frames))
    last = len(encode_frame(frames[-1]))
    missing = data.draw(st.integers(1, last - 1))
    decoder = FrameDecoder()
    assert list(decoder.decode(stream[:-missing])) == frames[:-1]
    assert decoder.is_within_frame


@given(st.binary(max_size=200))
def test_any_data_is_frames_or_an_error(data: bytes) -> None:
    try:
        for frame in FrameDecoder().decode(data):
            assert len(frame.body) <= BODY_MAX_BEFORE_HELLO
    except FrameError as error:
        assert "at most" in str(error)


@pytest.mark.parametrize("limit", [BODY_MAX_BEFORE_HELLO, BODY_MAX], ids=["stranger", "known"])
def test_frame_beyond_the_limit_is_refused_by_its_header(limit: int) -> None:
    decoder = FrameDecoder(limit)
    assert list(decoder.decode(struct.pack("!IBI", limit, 1, 1))) == []
    decoder = FrameDecoder(limit)
    with pytest.raises(FrameError, match=f"{limit + 1} bytes; at most {limit}"):
        list(decoder.decode(struct.pack("!IBI", limit + 1, 1, 1)))


def test_body_beyond_the_limit_is_not_sent() -> None:
    encode_frame(Frame(1, 1, bytes(BODY_MAX)))
    with pytest.raises(FrameError):
        encode_frame(Frame(1, 1, bytes(BODY_MAX + 1)))
