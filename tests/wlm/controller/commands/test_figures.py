"""Settings as scontrol show config shows them: Fairbank's own parsers read the same again."""

from __future__ import annotations

from typing import Any

from fairbank.priority.settings import PrioritySettings
from fairbank.scheduling.slurm.parameters import SchedulerParameters, parse_parameters
from fairbank.slurm.parsers import config
from fairbank.wlm.controller.commands.figures import setting_lines
from fairbank.wlm.core.settings import WlmSettings
from tests.wlm.config.files import MACHINE_TOML, toml

PRIORITY = """
[priority]
priority_type = "priority/multifactor"
priority_weight_age = 1000
priority_weight_fairshare = 100000
priority_weight_tres = "CPU=1000,Mem=2000"
priority_max_age = "14-0"
priority_decay_half_life = "1-0"
priority_favor_small = true
priority_flags = "ACCRUE_ALWAYS,NO_FAIR_TREE"
"""
SCHEDULING = """
[scheduling]
scheduler_parameters = "bf_interval=10,bf_continue,bf_window=2880"
"""


def shown(settings: WlmSettings) -> dict[str, Any]:
    return dict(setting_lines(settings, "ws17", "root(0)"))


def test_priority_settings_are_read_back() -> None:
    settings = toml(MACHINE_TOML + PRIORITY)
    read = config.read_settings(shown(settings))
    assert read == settings.priority
    assert read != PrioritySettings()


def test_scheduler_parameters_are_read_back() -> None:
    settings = toml(MACHINE_TOML + SCHEDULING)
    text = shown(settings)["SchedulerParameters"]
    assert parse_parameters(text) == settings.scheduling.parameters
    assert shown(WlmSettings())["SchedulerParameters"] == "(null)"
    assert settings.scheduling.parameters != SchedulerParameters()


def test_names_are_sorted_and_unique() -> None:
    names = [name for name, _ in setting_lines(WlmSettings(), "ws17", "root(0)")]
    assert names == sorted(names, key=str.lower)
    assert len({*names}) == len(names)


def test_settings_have_slurms_forms() -> None:
    settings = shown(WlmSettings())
    assert settings["SlurmctldHost[0]"] == "ws17"
    assert settings["KillWait"] == "30 sec"
    assert settings["SlurmctldTimeout"] == "120 sec"
    assert settings["SelectTypeParameters"] == "CR_CORE_MEMORY"
    assert settings["MaxMemPerNode"] == "UNLIMITED"
    assert config.slurm_uid(settings) == 0
    assert str(config.read_version(f"slurm {settings['SLURM_VERSION']}")).startswith("24.11")
