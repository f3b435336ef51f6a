"""Requests of commands: each is read as a client writes it; bad ones are refused with a reason."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.wlm.protocol.commands import (
    REQUESTS,
    SubmitRequest,
    decode_request,
    encode_answer,
    encode_error,
)
from fairbank.wlm.protocol.frames import ANSWER, ERROR, REQUEST, Frame, FrameDecoder

SUBMIT = {
    "options": {"time": "10", "wrap": ""},
    "script": base64.b64encode(b"#!/bin/sh\n\xff").decode(),
    "arguments": ["a", "é"],
    "environment": base64.b64encode(b"A=1\0B=\xff").decode(),
    "directory": "/home/alice",
    "umask": 0o77,
    "limits": {"NOFILE": 1024, "CORE": -1},
    "host": "ws17",
    "command": "srun",
}
JOBS = {"jobs": ["7", "7_[1-3]"]}
BODIES: dict[str, dict[str, Any]] = {
    "submit": SUBMIT,
    "cancel": {**JOBS, "filter": {"users": ["alice"]}, "signal": 15, "batch": True},
    "hold": JOBS,
    "uhold": JOBS,
    "release": JOBS,
    "requeue": {**JOBS, "held": True, "special": False},
    "suspend": JOBS,
    "resume": JOBS,
    "top": JOBS,
    "notify": {**JOBS, "text": "ends soon"},
    "update-job": {**JOBS, "fields": {"TimeLimit": "+10"}},
    "update-node": {"nodes": "n[1-2]", "fields": {"State": "DRAIN", "Reason": "disk"}},
    "create": {"entity": "reservation", "fields": {"Nodes": "n1"}},
    "update": {"entity": "partition", "fields": {"PartitionName": "main", "State": "DOWN"}},
    "delete": {"entity": "reservation", "fields": {"ReservationName": "r"}},
    "rows": {"of": "jobs", "columns": ["job_id"], "filter": {"tasks": True}, "change": 3},
    "config": {},
    "script": {"job": "7"},
    "wait": {"job": 7},
    "statistics": {},
    "check": {},
    "ping": {},
    "create-step": {
        "job": 7,
        "options": {"ntasks": "2", "label": ""},
        "arguments": ["hostname"],
        "programs": {"1": ["true"]},
        "environment": base64.b64encode(b"A=\xff").decode(),
        "directory": "/",
        "terminal": [24, 80],
    },
    "step-state": {"job": 7, "step": 0},
    "end-step": {"job": 7, "step": 0, "signal": 2},
    "wait-start": {
        "job": 7,
        "within": 0.5,
        "step": {"request": "create-step", "version": 1, "job": 7, "directory": "/"},
    },
    "complete": {"job": 7, "status": 256},
    "own": {"job": 7},
    "processes": {"job": "7_1"},
    "job-of-process": {"pid": 4},
    "warn-process": {"pid": 4, "signal": 10, "before": 60},
    "reconfigure": {},
    "set-debug": {"level": "debug", "nodes": "n1"},
    "shutdown": {},
}


def request(tag: str, **fields: Any) -> Frame:
    body = {"request": tag, "version": 1, **fields}
    return Frame(REQUEST, 5, json.dumps(body).encode())


@pytest.mark.parametrize("tag", sorted(REQUESTS))
def test_request_is_read_as_a_client_writes_it(tag: str) -> None:
    body = decode_request(request(tag, **BODIES[tag]))
    assert type(body) is REQUESTS[tag]
    if isinstance(body, SubmitRequest):
        assert (body.script, body.environment) == (b"#!/bin/sh\n\xff", b"A=1\0B=\xff")
        assert body.limits == SUBMIT["limits"]


DEEP = b'{"request":"rows","version":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("frame", "part"),
    [
        (Frame(REQUEST, 1, b""), "cannot read"),
        (Frame(REQUEST, 1, b"\xff"), "cannot read"),
        (Frame(REQUEST, 1, b"[]"), "cannot read"),
        (Frame(REQUEST, 1, DEEP), "cannot read"),
        (Frame(4, 1, b"{}"), "kind 4"),
        (Frame(REQUEST, 1, b'{"request":"ping"}'), "`version`"),
        (request("bake"), "'bake'"),
        (request("ping", loud=True), "`loud`"),
        (request("ping", version=2, loud=True), "not version 2"),
        (request("wait", job="7"), "`$.job`"),
        (request("hold", jobs=[]), "`$.jobs`"),
        (request("submit", **{**SUBMIT, "script": "*"}), "`$.script`"),
        (request("job-of-process", pid=0), "`$.pid`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_request_is_refused_with_its_fault(frame: Frame, part: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode_request(frame)
    assert part in refused.value.message


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(
    st.binary(max_size=200)
    | st.builds(
        lambda tag, fields: json.dumps({"version": 1, **fields, "request": tag}).encode(),
        st.sampled_from(sorted(REQUESTS)),
        st.dictionaries(st.sampled_from(["jobs", "fields", "job", "of", "filter", "x"]), VALUES),
    )
)
def test_any_body_is_read_or_refused(body: bytes) -> None:
    with suppress(InvalidInput):
        decode_request(Frame(REQUEST, 1, body))


def test_answers_and_errors_are_json_with_the_number_of_the_request() -> None:
    data = encode_answer(7, {"job": 3}) + encode_error(8, NotFound("no", field="job", remedy="x"))
    answer, error = FrameDecoder().decode(data)
    assert (answer.kind, answer.number, json.loads(answer.body)) == (ANSWER, 7, {"job": 3})
    assert (error.kind, error.number) == (ERROR, 8)
    assert json.loads(error.body) == {
        "type": "ErrorMessage",
        "kind": "NotFound",
        "message": "no",
        "field": "job",
        "remedy": "x",
    }
