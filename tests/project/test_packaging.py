"""Files for a site: the package with the plug-ins' Lua files and the units, the units themselves,
the image's recipe.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fairbank.agent.settings import AgentSettings
from fairbank.cli.framework.client_settings import SITE_SOCKET
from fairbank.slurm.health.plugin_files import TABLE
from fairbank.slurm.health.slurm_checks import SOCKET
from fairbank.slurm.policy import SiteRules
from tests.support.command_lines import parse_command

UNITS = (
    "fairbank.service",
    "fairbank-agent.service",
    "fairbank-audit.service",
    "fairbank-backup.service",
    "fairbank-doctor.service",
    "fairbank-reconcile.service",
    "fairbank-share.service",
    "fairbank-sync.service",
)
TIMERS = (
    "fairbank-audit.timer",
    "fairbank-backup.timer",
    "fairbank-doctor.timer",
    "fairbank-reconcile.timer",
    "fairbank-share.timer",
    "fairbank-sync.timer",
)
INSTALLED = "/opt/fairbank/bin/fairbank"
EXPOSURE_MAX = 1.6
FAIRBANK = str(Path(sys.executable).with_name("fairbank"))


def unit(checkout: Path, name: str) -> configparser.SectionProxy:
    read = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    read.optionxform = str  # type: ignore[method-assign,assignment]
    read.read_string((checkout / "packaging" / "systemd" / name).read_text())
    return read["Service" if name.endswith(".service") else "Timer"]


# --- contents of the package ---


def test_lua_files_and_units_are_in_the_package(checkout: Path) -> None:
    """They are symbolic links, because the package takes only files below its directory: a new file
    needs a new link.
    """
    share = checkout / "packaging" / "data" / "share" / "fairbank"
    expected = {
        f"plugins/{file.relative_to(checkout / 'plugins')}": file
        for file in (checkout / "plugins").rglob("*.lua")
    }
    for folder in ("slurm", "systemd"):
        expected |= {
            f"{folder}/{file.name}": file for file in (checkout / "packaging" / folder).iterdir()
        }
    assert {
        str(link.relative_to(share)): link.resolve()
        for link in share.rglob("*")
        if not link.is_dir()
    } == expected


def test_build_backend_bound_admits_released_and_locked_versions(checkout: Path) -> None:
    """`pip install .` takes any version in the bound. 0.7.14 fails on the links in
    packaging/data.
    """
    project = tomllib.loads((checkout / "pyproject.toml").read_text())
    (backend,) = map(Requirement, project["build-system"]["requires"])
    locked = re.search(
        r"^uv==(\S+)", (checkout / "requirements-setup.lock").read_text(), re.MULTILINE
    )
    assert locked is not None
    versions = ("0.7.14", "0.7.15", "0.8.24", "0.13.6", locked[1])
    assert list(backend.specifier.filter(versions)) == list(versions[1:])


# --- systemd ---


def programs(checkout: Path, name: str) -> list[list[str]]:
    """Return the words of each ExecStart= of a unit, as systemd passes them to execve."""
    text = (checkout / "packaging" / "systemd" / name).read_text().replace("\\\n", " ")
    lines = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    return [shlex.split(line.replace("%%", "%").replace("$$", "$")) for line in lines]


@pytest.mark.parametrize("name", UNITS)
def test_units_run_existing_commands(checkout: Path, name: str) -> None:
    commands = [
        shlex.split(command)
        for words in programs(checkout, name)
        for command in re.findall(rf"{INSTALLED}((?: [\w./-]+)+)", " ".join(words))
    ]
    assert commands
    for words in commands:
        parse_command(*words, *(["FILE"] if words[0] == "backup" else []))


def test_nightly_units_back_up_and_find_a_journal_cut_short(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, backups = tmp_path / "bank", tmp_path / "backups"
    backups.mkdir()
    old = backups / "2020-01-01.fbk"
    old.touch()
    os.utime(old, (0, 0))
    monkeypatch.setenv("FAIRBANK_CONFIG", str(bank / "fairbank.toml"))
    subprocess.run([FAIRBANK, "init", str(bank), "--quiet"], check=True)

    def run(name: str) -> list[int]:
        ran: list[int] = []
        for words in programs(checkout, name):
            line = [word.replace(INSTALLED, FAIRBANK) for word in words]
            ran.append(
                subprocess.run(line, cwd=backups, capture_output=True, check=False).returncode
            )
        return ran

    assert run("fairbank-audit.service") == [0]  # the first night has no heads yet
    assert run("fairbank-backup.service") == [0, 0, 0, 0]
    assert sorted(path.suffix for path in backups.iterdir()) == [".fbk", ".heads"]
    assert run("fairbank-audit.service") == [0]
    heads = next(backups.glob("*.heads"))
    heads.write_text(heads.read_text().replace("[0, 0,", "[0, 1,"))
    assert run("fairbank-audit.service") == [8]


@pytest.mark.parametrize("name", UNITS)
def test_units_keep_the_uid_of_clients(checkout: Path, name: str) -> None:
    """In a user namespace SO_PEERCRED and MUNGE would report the user `nobody`."""
    assert "PrivateUsers" not in unit(checkout, name)


def test_directories_of_the_units_match_the_settings(checkout: Path) -> None:
    agent, settings = unit(checkout, "fairbank-agent.service"), AgentSettings()
    for path in (settings.plugin.socket, settings.control.socket):
        assert Path(path).parent == Path("/run", agent["RuntimeDirectory"])
    assert Path(settings.outbox.path).parent == Path("/var/lib", agent["StateDirectory"])
    assert Path(SiteRules().policy).parent == Path(
        unit(checkout, "fairbank-sync.service")["ReadWritePaths"]
    )


def test_bank_and_agent_share_no_directory_and_connect_by_default(checkout: Path) -> None:
    """The unit that stops first deletes a shared directory, and each unit needs it for its own
    user.
    """
    bank, agent = unit(checkout, "fairbank.service"), unit(checkout, "fairbank-agent.service")
    for key in ("RuntimeDirectory", "StateDirectory"):
        assert bank[key] != agent[key]
    assert AgentSettings().plugin.socket == SOCKET
    assert AgentSettings().bank.server == f"unix:{SITE_SOCKET}"
    assert Path(SITE_SOCKET).parent == Path("/run", bank["RuntimeDirectory"])


@pytest.mark.parametrize(("plugin", "default"), [("prep", SOCKET), ("site_factor", TABLE)])
def test_plugins_use_the_default_paths_of_the_agent(
    checkout: Path, plugin: str, default: str
) -> None:
    assert f'"{default}"' in (checkout / "plugins" / plugin / f"{plugin}_fairbank.c").read_text()
    assert f"`{default}`" in (checkout / "plugins" / plugin / "README.md").read_text()
    assert Path(default).parent == Path(
        "/run", unit(checkout, "fairbank-agent.service")["RuntimeDirectory"]
    )


def test_each_timer_has_a_service(checkout: Path) -> None:
    assert all(name.replace(".timer", ".service") in UNITS for name in TIMERS)
    assert sorted([*UNITS, *TIMERS]) == sorted(
        file.name for file in (checkout / "packaging" / "systemd").iterdir()
    )
    assert unit(checkout, "fairbank-reconcile.timer")["Persistent"] == "yes"


@pytest.fixture(scope="session")
def analyze() -> Callable[..., subprocess.CompletedProcess[str]]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze here")
    return lambda *words: subprocess.run(
        [program, *words], capture_output=True, text=True, check=False
    )


def test_systemd_verifies_the_units(
    checkout: Path, tmp_path: Path, analyze: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """systemd-analyze looks for the installed program, so this program takes its place."""
    for file in (checkout / "packaging" / "systemd").iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace(INSTALLED, FAIRBANK))
    process = analyze("verify", "--man=no", *(str(tmp_path / name) for name in (*UNITS, *TIMERS)))
    ours = [line for line in process.stderr.splitlines() if "fairbank" in line]
    assert (process.returncode, ours) == (0, [])


@pytest.mark.parametrize("name", UNITS)
def test_units_are_sandboxed(
    checkout: Path, name: str, analyze: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    process = analyze(
        "security", "--offline=yes", "--no-pager", str(checkout / "packaging" / "systemd" / name)
    )
    result = re.search(r"Overall exposure level for \S+: ([\d.]+)", process.stdout)
    assert result is not None, process.stderr
    assert float(result[1]) <= EXPOSURE_MAX


# --- the image ---


def test_image_recipe_names_existing_files(checkout: Path) -> None:
    """The recipe is read and not built: there is no container engine where the tests run."""
    text = (checkout / "packaging" / "container" / "Containerfile").read_text().replace("\\\n", " ")
    steps = [
        line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")
    ]
    assert {word for word, _ in steps} <= {
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "EXPOSE",
        "STOPSIGNAL",
        "CMD",
    }
    copied = [
        source
        for word, rest in steps
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    ]
    assert [source for source in copied if not (checkout / source).exists()] == []
    links = (checkout / "packaging" / "data").rglob("*")
    outside = {str(link.resolve().relative_to(checkout)) for link in links if link.is_symlink()}
    assert [
        path
        for path in outside
        if not any(path == source or path.startswith(f"{source}/") for source in copied)
    ] == []
    for _, script in (step for step in steps if step[0] == "RUN"):
        assert subprocess.run(["sh", "-n", "-c", script], check=False).returncode == 0
    assert dict(steps)["USER"] == "fairbank"  # the last step of each kind
    assert json.loads(dict(steps)["CMD"]) == ["fairbank", "serve"]


def test_apptainer_image_has_the_content_of_the_other(checkout: Path) -> None:
    """It is read and not built, too."""
    folder = checkout / "packaging" / "container"
    container = (folder / "Containerfile").read_text().replace("\\\n", " ")
    sections: dict[str, str] = {}
    for stage in (folder / "fairbank.def").read_text().split("Bootstrap:")[1:]:
        head, *parts = re.split(r"(?m)^%", stage)
        for part in parts:
            title, _, text = part.partition("\n")
            sections[f"{head.split()[-1]} {title}"] = text
    copied = [tuple(line.split()) for line in sections["build files"].splitlines() if line]
    assert [source for source, _ in copied if not (checkout / source).exists()] == []
    assert all(target == f"/source/{source}" for source, target in copied)
    steps = [line.split() for line in container.splitlines() if line.startswith("COPY")]
    other = [word for _, *words, _ in steps if "--from=build" not in words for word in words]
    assert [source for source, _ in copied] == other
    (environment,) = re.findall(r"(?m)^ENV (.*)$", container)
    assert sections["final environment"].replace("export", "").split() == environment.split()
    for title in ("build post", "final post", "final runscript"):
        script = sections[title]
        assert subprocess.run(["sh", "-n", "-c", script], check=False).returncode == 0
        for line in script.replace("\\\n", " ").splitlines():
            if " install " in line or "venv" in line:
                assert " ".join(line.split()) in " ".join(container.split())


def test_compose_file_starts_the_bank_after_its_database(checkout: Path) -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((checkout / "packaging" / "container" / "compose.yaml").read_text())[
        "services"
    ]
    bank, database = services["bank"], services["db"]
    assert bank["depends_on"]["db"]["condition"] == "service_healthy"
    assert "healthcheck" in database
    assert (
        checkout
        / "packaging"
        / "container"
        / bank["build"]["context"]
        / bank["build"]["dockerfile"]
    ).is_file()
    assert re.fullmatch(r"docker\.io/library/postgres:\d+", database["image"])
    assert all(port.startswith("127.0.0.1:") for port in bank["ports"])
    assert bank["cap_drop"] == ["ALL"]
    assert not [
        name
        for service in (bank, database)
        for name, output in service["environment"].items()
        if "PASSWORD" in name and "${" not in output
    ]
