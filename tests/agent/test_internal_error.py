"""Internal error of the agent: it stops, so that systemd starts it again."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairbank.agent.daemon import Agent
from fairbank.agent.engine import Engine
from fairbank.slurm.agent_settings import agent_settings

LIFE_SECONDS = 30


def test_agent_stops_after_an_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Stop when the tick fails: without it requests would wait beyond their deadlines."""
    ticks: list[float] = []

    def tick(core: Engine, now: float) -> None:
        ticks.append(now)
        if len(ticks) > 1:
            raise RuntimeError("a bug")

    monkeypatch.setattr(Engine, "tick", tick)
    lines = (
        f'[plugin]\nslurm_user = 0\nsocket = "{tmp_path}/prep.sock"',
        f'[control]\nsocket = "{tmp_path}/agent.sock"',
        f'[outbox]\npath = "{tmp_path}/outbox.sqlite"',
        f'[bank]\nserver = "unix:{tmp_path}/bank.sock"\n',
    )
    agent = Agent(agent_settings("\n".join(lines).encode()))
    # In a thread it handles no signals, and does not bound the end of this process.
    with ThreadPoolExecutor(1) as thread:
        life = asyncio.wait_for(agent.run(lambda _: None), LIFE_SECONDS)
        thread.submit(asyncio.run, life).result()
    assert len(ticks) == 2
    assert "the agent has a bug and stops, to be started again" in caplog.text
