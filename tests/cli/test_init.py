"""Tests of `fairbank init` with real files: directories with any name, and places where none can be
made.
"""

from __future__ import annotations

import gzip
import json
import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fairbank.store import schema_version
from fairbank.store.schema import REVISIONS
from tests.cli.conftest import Run
from tests.support.small_disk import small_disk


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "a b",
        "que?ry",
        "per%41cent",
        'quo"te',
        "back\\slash",
        "new\nline",
        "umläut",
        "#hash",
    ],
)
def test_init_accepts_a_directory_with_any_name(fairbank: Run, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    assert fairbank("init", folder).code == 0
    assert {path.name for path in folder.iterdir()} == {
        "fairbank.toml",
        "secret",
        "fairbank.sqlite",
    }
    assert fairbank("audit", "verify", "--config", folder / "fairbank.toml").out.startswith(
        "read 0 entries of "
    )
    again = fairbank("init", folder)
    assert (again.code, "field: DIRECTORY" in again.err) == (7, True)


def test_json_of_a_new_bank_and_of_its_backups_names_bank_settings_and_store(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FAIRBANK_CONFIG", str(tmp_path / "nosuch.toml"))
    own = tmp_path / "state/fairbank"
    user = pwd.getpwuid(os.getuid()).pw_name
    for directory, folder, bank in (((), own, user), ((tmp_path / "b",), tmp_path / "b", "b")):
        places = {
            "bank": bank,
            "settings": str(folder / "fairbank.toml"),
            "store": f"sqlite:///{folder}/fairbank.sqlite",
        }
        made = json.loads(fairbank("init", *directory, "--json").out)
        assert {name: made[name] for name in places} == places
        assert made["data"]["done"][-1] == f"made {places['store']}"
        file = str(tmp_path / f"{bank}.fbk")
        config = ("--config", folder / "fairbank.toml")
        for words in (
            ("backup", "create", file, *config),
            ("restore", file, *config, "--replace", "--yes"),
        ):
            backup = json.loads(fairbank(*words, "--json").out)
            assert {name: backup[name] for name in places} == places, words
            assert backup["data"] == {"file": file, "rows": 1}
        verified = json.loads(fairbank("backup", "verify", file, "--json").out)
        assert (verified["bank"], verified["data"]) == (bank, backup["data"])


def test_empty_directory_makes_no_bank_elsewhere(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = fairbank("init", "")
    assert (result.code, "field: DIRECTORY" in result.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["audit verify", "audit heads", "backup create FILE"])
def test_settings_may_come_from_a_pipe(fairbank: Run, tmp_path: Path, words: str) -> None:
    """Each command reads them once: the second reader of a pipe would find it empty."""
    fairbank("init", tmp_path / "bank")
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / "bank" / "fairbank.toml").read_bytes())
    os.close(writing)
    result = fairbank(
        *words.replace("FILE", str(tmp_path / "b.fbk")).split(), "--config", f"/dev/fd/{reading}"
    )
    os.close(reading)
    assert result.code == 0, result.err


def test_directory_of_the_public_socket_is_public_with_any_umask(
    fairbank: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "site" / "bank"
    before = os.umask(0o077)
    try:
        assert fairbank("init", folder).code == 0
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)] == [0o755] * 2


def test_existing_directory_keeps_its_mode(fairbank: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    folder.mkdir(mode=0o700)
    assert fairbank("init", folder).code == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("directory", [None, "site", "two words"])
def test_init_names_the_bank(fairbank: Run, tmp_path: Path, directory: str | None) -> None:
    folder = tmp_path / (directory or ".local/state/fairbank")
    assert fairbank("init", *([folder] if directory else [])).code == 0
    name = {None: pwd.getpwuid(os.getuid()).pw_name, "two words": "fairbank"}
    settings = tomllib.loads((folder / "fairbank.toml").read_text())
    assert settings["server"]["name"] == name.get(directory, directory)


def test_commands_first_name_the_settings_and_the_store(fairbank: Run, tmp_path: Path) -> None:
    folder, file = tmp_path / "bank", tmp_path / "monday.fbk"
    config = folder / "fairbank.toml"
    assert fairbank("init", folder).code == 0
    named = f"settings {config}\nstore    sqlite:///{folder}/fairbank.sqlite\n"
    for words in (
        ("audit", "verify"),
        ("backup", "create", file),
        ("restore", file, "--replace", "--yes"),
        ("doctor",),
    ):
        assert fairbank(*words, "--config", config).err.startswith(named), words
    assert fairbank("audit", "verify", "-q", "--config", config).err == ""
    for words in (("audit", "verify"), ("doctor",)):
        document = json.loads(fairbank(*words, "--json", "--config", config).out)
        places = ("bank", str(config), f"sqlite:///{folder}/fairbank.sqlite")
        assert tuple(document[name] for name in ("bank", "settings", "store")) == places


def test_restore_needs_yes_in_a_pipe_and_tells_of_a_running_server(
    fairbank: Run, tmp_path: Path
) -> None:
    config, file = tmp_path / "fairbank.toml", tmp_path / "monday.fbk"
    assert fairbank("init", tmp_path).code == 0
    assert fairbank("backup", "create", file, "--config", config).code == 0
    restore = ("restore", file, "--replace", "--config", config)
    store = tmp_path / "fairbank.sqlite"
    before = store.read_bytes()
    result = fairbank(*restore)
    assert (result.code, result.out, store.read_bytes()) == (2, "", before)
    assert (
        f"there is no terminal to ask on, so nothing was changed: Drop everything in {store}"
        in (" ".join(result.err.split()).replace("sqlite:///", ""))
    )
    running = f"! the bank's server is running at unix:{tmp_path}/fairbank.sock"
    assert running not in " ".join(result.err.split())
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "fairbank.sock"))
        server.listen()
        restored = fairbank(*restore, "--yes")
    assert (restored.code, running in " ".join(restored.err.split())) == (0, True)


def test_password_of_the_store_is_not_shown(fairbank: Run, tmp_path: Path) -> None:
    config = tmp_path / "fairbank.toml"
    assert fairbank("init", tmp_path).code == 0
    url = f"sqlite:///{tmp_path}/fairbank.sqlite"
    secret = "postgresql://bank:topsecret@127.0.0.1:1/none"
    config.write_text(config.read_text().replace(url, secret))
    result = fairbank("audit", "verify", "--config", config)
    assert (result.code, "topsecret" in result.err) == (6, False)
    assert "store    postgresql://bank:***@127.0.0.1:1/none" in result.err


KILLED = """
import os, signal, sys
from fairbank.setup.init import init

left = int(sys.argv[1])

def watch(event, arguments):
    global left
    events = ("open", "os.link", "os.rename", "os.remove")
    if event in events and any("fairbank.toml" in str(argument) for argument in arguments[:2]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
init(sys.argv[2], None)
"""
"""Run `init`, killed just before its nth access to its settings."""


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_killed_init_can_be_repeated(fairbank: Run, tmp_path: Path, nth: int) -> None:
    folder = tmp_path / "bank"
    assert (
        subprocess.run(
            [sys.executable, "-c", KILLED, str(nth), str(folder)], check=False
        ).returncode
        == -signal.SIGKILL
    )
    complete = (folder / "fairbank.toml").exists()
    assert fairbank("init", folder).code == (7 if complete else 0)
    assert fairbank("audit", "verify", "--config", folder / "fairbank.toml").code == 0


def test_impossible_directory_is_reported(fairbank: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = fairbank("init", tmp_path / "file" / "bank")
    assert (
        result.code,
        "field: DIRECTORY" in result.err,
        "a file of that name is in the way" in " ".join(result.err.split()),
    ) == (2, True, True)
    result = fairbank("init", tmp_path / "file")
    assert (result.code, "a file of that name is in the way" in " ".join(result.err.split())) == (
        2,
        True,
    )
    result = fairbank("init", "/proc/fairbank")
    assert (result.code, "no such file or directory" in " ".join(result.err.split())) == (3, True)


@pytest.mark.parametrize("kilobytes", [4, 64, 160, 200, 240, 300])
def test_init_on_a_full_disk_leaves_no_files(fairbank: Run, tmp_path: Path, kilobytes: int) -> None:
    """The disk fills up while any of the files is written: SQLite's journal, its tables, the
    secret, the settings.
    """
    with small_disk(tmp_path / "disk", f"{kilobytes}k") as disk:
        result = fairbank("init", disk / "bank")
        words = " ".join(result.err.split())
        assert (result.code, ": the disk is full" in words, "try: free disk space" in words) == (
            1,
            True,
            True,
        ), result.err
        assert list(disk.iterdir()) == []


def test_path_with_the_words_of_a_full_disk_is_no_full_disk(fairbank: Run, tmp_path: Path) -> None:
    missing = tmp_path / "disk is full" / "bank.sqlite"
    result = fairbank("init", tmp_path / "bank", "--store", f"sqlite:///{missing}")
    assert "the disk is full" not in result.err
    assert (tmp_path / "bank").is_dir()


def test_printed_serve_command_is_quoted(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "serve --config 'my bank/fairbank.toml'" in " ".join(
        fairbank("init", "my bank").err.split()
    )


def test_older_database_names_the_migrate_command(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "the bank"
    assert fairbank("init", folder).code == 0
    later = (*REVISIONS, "9999")  # as if this were a later Fairbank
    monkeypatch.setattr(schema_version, "REVISIONS", later)
    config = folder / "fairbank.toml"
    for words in (["audit", "verify"], ["audit", "heads"], ["backup", "create", tmp_path / "x"]):
        result = fairbank(*words, "--config", config)
        assert (result.code, "this Fairbank needs 9999" in result.err) == (7, True)
        assert (
            f"make a backup with the Fairbank that ran it, then: fairbank init '{folder}'"
            in " ".join(result.err.split())
        )
    report = fairbank("doctor", "--config", config).out
    assert "fairbank init DIRECTORY, that of fairbank.toml" in report


def test_help_names_the_migrate_command(fairbank: Run) -> None:
    page = " ".join(fairbank("init", "--help").out.split())
    assert "or migrate an older one" in page
    assert "stop the servers and make a backup first" in page


def test_lost_secret_is_created_again(fairbank: Run, tmp_path: Path) -> None:
    assert fairbank("init", tmp_path).code == 0
    secret = tmp_path / "secret"
    before = secret.read_text()
    secret.unlink()
    report = fairbank("doctor", "--config", tmp_path / "fairbank.toml").out
    assert "fairbank init DIRECTORY" in report
    again = fairbank("init", tmp_path)
    assert (again.code, f"made {secret}" in again.out) == (0, True)
    assert "Tokens created before are not valid any more" in again.out
    assert before != secret.read_text()
    assert fairbank("init", tmp_path).code == 7


def test_damaged_secret_is_not_said_to_be_in_a_backup(fairbank: Run, tmp_path: Path) -> None:
    assert fairbank("init", tmp_path).code == 0
    (tmp_path / "secret").write_text("x\n")
    checks = fairbank("doctor", "--config", tmp_path / "fairbank.toml")
    assert (checks.code, "a backup of the bank does not hold it" in checks.out) == (8, True)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("munge_plain = true", "x   server.munge_plain has no effect: server.munge is false"),
        (
            'munge = true\nmunge_plain = true\nmunge_socket = "/nowhere/munge"',
            "x   MUNGE, as server.munge wants it: munged does not answer",
        ),
    ],
    ids=["without-munge", "munged-absent"],
)
def test_munge_that_cannot_work_is_a_fault(
    fairbank: Run, tmp_path: Path, lines: str, fault: str
) -> None:
    assert fairbank("init", tmp_path).code == 0
    config = tmp_path / "fairbank.toml"
    config.write_text(config.read_text().replace("[server]\n", f"[server]\n{lines}\n"))
    checks = fairbank("doctor", "--config", config)
    assert (checks.code, fault in checks.out) == (8, True)


def test_invalid_database_address_names_the_option(fairbank: Run, tmp_path: Path) -> None:
    result = fairbank("init", tmp_path / "bank", "--store", "mysql://x")
    assert (result.code, "  field: --store\n" in result.err) == (2, True)


def test_unreadable_file_is_reported(fairbank: Run, tmp_path: Path) -> None:
    assert fairbank("init", tmp_path).code == 0
    config = ("--config", tmp_path / "fairbank.toml")
    for words in (
        ["backup", "verify", "nofile"],
        ["audit", "verify", *config, "--heads", "nofile"],
    ):
        result = fairbank(*words)
        assert (result.code, result.err.splitlines()[0]) == (
            3,
            "fairbank: cannot read nofile: No such file or directory",
        )
        assert "  try: name a file " in result.err


def test_damaged_backup_is_reported_with_exit_code_8(fairbank: Run, tmp_path: Path) -> None:
    config, complete, bad = tmp_path / "fairbank.toml", tmp_path / "a.fbk", tmp_path / "b.fbk"
    assert fairbank("init", tmp_path).code == 0
    assert fairbank("backup", "create", complete, "--config", config).code == 0
    packed, rows = (
        complete.read_bytes(),
        gzip.decompress(complete.read_bytes()).splitlines(keepends=True),
    )
    # A byte changed in the middle may unpack into other valid data with another message, which
    # depends on the time in the header.
    no_such_block, wrong_sum = packed[10] | 0b110, bytes(255 - byte for byte in packed[-8:-4])
    damages = {
        packed[:-20]: "is damaged",
        packed[:10] + bytes([no_such_block]) + packed[11:]: "is damaged: Error -3",
        packed[:-8] + wrong_sum + packed[-4:]: "is damaged: CRC check failed",
        gzip.compress(b"".join(rows[:-1])): "is not whole",
        gzip.compress(rows[0] + b'["nosuch", {}]\n'): "there is no table",
        gzip.compress(rows[0] + b"[\n"): "line 2",
    }
    for content, message in damages.items():
        bad.write_bytes(content)
        for words in (
            ["backup", "verify", bad],
            ["restore", "--check", bad],
            ["restore", bad, "--config", config],
        ):
            result = fairbank(*words)
            err = " ".join(result.err.split())  # the line breaks depend on the length of the path
            assert (result.code, message in err, "try: use another backup" in err) == (
                8,
                True,
                True,
            )
    bad.write_bytes(gzip.compress(b'{"format": "another"}\n'))
    assert fairbank("backup", "verify", bad).code == 2
