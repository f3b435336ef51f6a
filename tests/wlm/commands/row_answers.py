"""Answers of the controller with given rows, and the output of a command for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from fairbank.wlm.commands import program
from fairbank.wlm.protocol.commands import (
    AnyRequest,
    ConfigRequest,
    PingRequest,
    ProcessesRequest,
    RowsRequest,
    ScriptRequest,
    StatisticsRequest,
)
from tests.wlm.client.recording_controller import Answer, RecordingController

NOW = 1_795_246_297  # 2026-11-21T07:31:37Z
SETTINGS = {"ClusterName": "lab", "AccountingStorageTRES": "cpu,mem,energy,node,billing,gres/gpu"}


def rows_answer(request: RowsRequest, lines: Sequence[Any]) -> Answer:
    """Return the answer with the columns that are asked for, and no others."""
    return {
        "change": 1,
        "columns": request.columns,
        "rows": [[getattr(line, name) for name in request.columns] for line in lines],
        "after": None,
        "now": NOW,
        "cluster": "lab",
    }


def answer_with(
    controller: RecordingController,
    settings: Mapping[str, str] = SETTINGS,
    figures: Mapping[str, Any] = {},
    **tables: Sequence[Any],
) -> None:
    """Let the controller answer with these rows, by kind."""

    def answer(request: AnyRequest) -> Answer:
        if isinstance(request, RowsRequest):
            return rows_answer(request, tables[request.of])
        if isinstance(request, ConfigRequest):
            return {"settings": list(settings.items())}
        if isinstance(request, PingRequest):
            return {"release": "24.11.0", "host": "ws17", "pid": 1, "up": 5}
        if isinstance(request, StatisticsRequest):
            return dict(figures)
        if isinstance(request, ProcessesRequest):
            batch = {"job": 9, "step": "batch", "local": None, "rank": None}
            task = batch | {"pid": 41, "local": 0, "rank": 0}
            return {"processes": [task, batch | {"pid": 42}]}
        assert isinstance(request, ScriptRequest)
        return {"script": "IyEvYmluL3NoCg=="}

    controller.answer = answer


Run = Callable[..., str]


@pytest.fixture
def run(
    controller: RecordingController,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Return a function that runs a command and returns its output; with `fails`, its errors."""
    monkeypatch.setenv("FAIRBANK_CLUSTER", str(controller.directory))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    def run_command(*words: str, fails: bool = False) -> str:
        code = program.run(words[0], words[1:])
        output, errors = capsys.readouterr()
        assert code == fails, errors
        return errors if fails else output

    return run_command


def last_rows(controller: RecordingController) -> RowsRequest:
    """Return the last request for rows."""
    return [request for request in controller.requests if isinstance(request, RowsRequest)][-1]
