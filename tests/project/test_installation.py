"""Installation as in the guide, and of the extras `server` and `client`, from a wheel made here."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.command_lines import commands_in, parse_command
from tests.support.server import run_bank
from tools.locks import CLIENT, pins_of

UV = str(Path(sys.executable).with_name("uv"))


@pytest.fixture(scope="module")
def installed(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package as the guide says, but offline: uv installs from its cache in place of
    pip.
    """
    folder = tmp_path_factory.mktemp("site")
    build = [
        "build",
        "--wheel",
        "--offline",
        "--no-build-isolation",
        "--quiet",
        "--out-dir",
        str(folder),
        str(checkout),
    ]
    subprocess.run([UV, *build], check=True, capture_output=True, text=True)
    guide = (checkout / "docs" / "howto" / "install-next-to-slurm.md").read_text()
    block = re.search(r"^# /usr/bin/python3 -m venv .*?(?=^```)", guide, re.MULTILINE | re.DOTALL)
    assert block is not None
    for line in block[0].splitlines():
        words = (
            line.removeprefix("# ")
            .replace("/opt/", f"{folder}/opt/")
            .replace("/usr/local/", f"{folder}/")
            .split()
        )
        (folder / "bin").mkdir(exist_ok=True)
        if words[0] == "/usr/bin/python3":
            words[0] = sys.executable
        elif words[0].endswith("/pip"):
            words = [
                UV,
                "pip",
                "install",
                "--offline",
                "--quiet",
                "--python",
                words[0].removesuffix("pip") + "python",
                *words[2:],
            ]
            words = [str(folder / word) if word.endswith(".whl") else word for word in words]
        process = subprocess.run(
            ["sh", "-c", " ".join(words)], cwd=checkout, capture_output=True, text=True, check=False
        )
        if "network was disabled" in process.stderr:
            pytest.skip("uv's cache does not have the libraries of requirements.lock any more")
        assert process.returncode == 0, process.stderr
    return folder


@pytest.mark.slow
def test_package_installed_as_in_the_guide(installed: Path) -> None:
    environment = {"PATH": f"{installed}/bin:{os.defpath}", "HOME": str(installed)}

    def output(*words: str) -> str:
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, check=True, cwd=installed
        ).stdout

    assert output("fairbank", "-V").startswith("fairbank ")
    assert "fairbank.toml" in output("fairbank", "init", str(installed / "etc"))
    checks = json.loads(
        subprocess.run(
            ["fairbank", "doctor", "--json", "--config", str(installed / "etc" / "fairbank.toml")],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    )["data"]
    assert any(check["ok"] and check["what"].startswith("the store opens") for check in checks)
    for role in (("agent", "run", "--help"), ("slurm", "sync", "--help"), ("reconcile", "--help")):
        assert "Examples:" in output("fairbank", *role)
    assert (installed / "share" / "man" / "man1" / "fairbank-balance.1").is_file()
    share = installed / "opt" / "fairbank" / "share" / "fairbank"
    assert (share / "plugins" / "fairbank" / "rules.lua").is_file()
    assert not (share / "plugins" / "job_submit.lua").is_symlink()
    assert (share / "systemd" / "fairbank-agent.service").is_file()


@pytest.mark.slow
def test_extra_server_adds_what_its_lock_file_has(installed: Path, checkout: Path) -> None:
    """After an installation from requirements.lock, fairbank[server] lacks no library."""
    (wheel,) = installed.glob("*.whl")
    install = (UV, "pip", "install", "--offline", "--dry-run", "-c", "requirements.lock")
    python = installed / "opt" / "fairbank" / "bin" / "python"
    planned = subprocess.run(
        [*install, "--python", str(python), f"{wheel}[server]"],
        cwd=checkout,
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    assert "Would make no changes" in planned


@pytest.fixture(scope="module")
def client(installed: Path, checkout: Path) -> Path:
    """Install fairbank[client] in an empty environment; return the environment's Python."""
    python = installed / "client" / "bin" / "python"
    (wheel,) = installed.glob("*.whl")
    install = ("pip", "install", "--offline", "--quiet", "--python", str(python))
    for words in (
        ("venv", "--offline", "--quiet", str(installed / "client")),
        (*install, "-c", "requirements-client.lock", f"{wheel}[client]"),
    ):
        subprocess.run([UV, *words], check=True, cwd=checkout, capture_output=True)
    return python


def client_command(
    client: Path, environment: Mapping[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(client), "-m", "fairbank.cli", *words],
        env={**environment, "PATH": os.defpath},
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_client_has_the_libraries_of_its_lock_file_and_no_other(
    client: Path, checkout: Path
) -> None:
    listed = subprocess.run(
        [UV, "pip", "list", "--offline", "--format", "json", "--python", str(client)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    locked = pins_of((checkout / CLIENT).read_text())
    assert {library["name"] for library in json.loads(listed)} == {"fairbank", *locked}


@pytest.mark.slow
def test_client_uses_a_bank_without_server_libraries(client: Path) -> None:
    with run_bank() as bank:
        for line in (
            "status --wait",
            "project create chem --gid 4242",
            "project add-user chem root",
            "alloc create -A chem -r cpu --end now+1year --amount 1000 --reason committee",
            "deposit 1 50 --reason committee",
            "quote -A chem -p cpu -c 8 -t 12:00:00",
            "hold 7 -A chem -p cpu -u root -t 1:00:00 --tres cpu=8",
            "charge 7",
            "why 7",
            "eff 7",
            "jobs -a",
            "balance --json",
            "statement 1",
            "usage --by project --json",
            "report centre",
            "token list",
            "whoami",
            "simulate --jobs 100",
        ):
            done = client_command(client, bank.environment, *line.split())
            assert done.returncode == 0, f"{line}: {done.stderr}"


@pytest.mark.slow
def test_client_starts_each_role_of_a_slurm_host(client: Path, installed: Path) -> None:
    """They end, because this machine has no bank at that address and perhaps no Slurm. One of the
    bank's host names what is missing.
    """
    environment = {"HOME": str(installed), "FAIRBANK_SERVER": "unix:/no/bank"}
    for line in (
        "balance",
        "quote -c1 -t10",
        "why 1",
        "share",
        "reconcile",
        "agent run --config /no/toml",
        "slurm sync",
    ):
        done = client_command(client, environment, *line.split())
        assert done.returncode in (3, 6), f"{line}: {done.stderr}"
        assert "not installed here" not in done.stderr
    done = client_command(client, environment, "init", str(installed / "bank"))
    assert done.returncode == 6
    assert "this command needs sqlalchemy, which is not installed here" in done.stderr
    assert "fairbank[server]" in done.stderr


def test_commands_of_the_guide_are_valid(checkout: Path) -> None:
    """Each command line is parsed with its options and not run."""
    guide = (checkout / "docs" / "howto" / "install-next-to-slurm.md").read_text()
    commands = commands_in(guide)
    assert len(commands) > 15
    for command in commands:
        parse_command(*shlex.split(command))
