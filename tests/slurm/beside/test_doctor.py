"""`fairbank doctor --slurm`, against a bank that runs and a Slurm that says what was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairbank.values.time import iso
from tests.slurm.beside.centre import Centre

pytestmark = pytest.mark.slow


def test_the_doctor_tells_what_is_missing_and_how_to_mend_it(opened: Centre, tmp_path: Path) -> None:
    policy, site = tmp_path / "policy", tmp_path / "slurm.toml"
    site.write_text(f'policy = "{policy}"\n')
    here = (
        f"Configuration data as of {iso(opened.now).removesuffix('Z')}\nClusterName = lab\nPriorityFlags = MAX_TRES\nAuthType = auth/none\n"
    )
    opened.slurm.say("scontrol-show-config", here)
    words = ("doctor", "--slurm", "--site", str(site), "--agent-config", str(tmp_path / "agent.toml"), "--json")
    (tmp_path / "agent.toml").write_text(f'[plugin]\nslurm_user = 0\n[control]\nsocket = "{tmp_path}/agent.sock"\n')
    checks = {each["what"]: each["remedy"] for each in json.loads(opened.tell(*words, code=8))["data"]}
    assert checks["Slurm 22.05.8 of cluster lab: its answers are known"] is None
    assert checks["the bank prices 3 partitions as Slurm bills them (max_tres)"] is None
    assert [remedy for what, remedy in checks.items() if what.startswith("the clock of")] == [None, None]
    assert "AuthType=auth/munge" in checks["Slurm signs by auth/none"]
    assert "start it with: fairbank agent" in checks[f"the agent answers: no agent answers at {tmp_path}/agent.sock"]
    assert checks[f"the submission policy {policy}: it is not there"].startswith("fairbank slurm sync writes it")
    opened.tell("slurm", "sync", "--site", str(site))
    told = [each for each in json.loads(opened.tell(*words, code=8))["data"] if str(policy) in each["what"]]
    assert [each["what"] for each in told if not each["ok"]] == []
    assert len(told) == 2


def test_the_doctor_without_a_slurm_or_a_bank(opened: Centre, tmp_path: Path) -> None:
    opened.bank.kill()
    assert "x   the bank answers: " in opened.tell("doctor", "--slurm", code=8)
    opened.slurm.forget("sinfo")
    assert opened.tell("doctor", "--slurm", code=8).startswith("x   Slurm's commands answer: sinfo ended with 1")
