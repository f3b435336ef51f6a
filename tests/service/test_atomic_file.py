"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from threading import Thread

import pytest

from fairbank.service.ops.atomic_file import atomic_write, check_writable


def write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())


def test_only_the_written_file_exists_afterwards(tmp_path: Path) -> None:
    write(tmp_path / "new", "one")
    write(tmp_path / "new", "two")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"new": "two"}


@pytest.mark.parametrize("how", [OSError, KeyboardInterrupt])
def test_failure_keeps_the_old_file(tmp_path: Path, how: type[BaseException]) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(how), atomic_write(tmp_path / "old") as file:
        file.write(b"half")
        raise how
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "old"}


def test_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limit[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(tmp_path / "old", "n" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "old"}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_termination_leaves_no_partial_output(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(SystemExit) as ended, atomic_write(tmp_path / "old") as file:
        file.write(b"half")
        os.kill(os.getpid(), how)
    assert ended.value.code == 128 + how
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "old"}
    assert signal.getsignal(how) is signal.SIG_DFL


def test_signal_handlers_of_the_program_still_run(tmp_path: Path) -> None:
    signals: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    try:
        with atomic_write(tmp_path / "new") as file:
            os.kill(os.getpid(), signal.SIGTERM)
            file.write(b"whole")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signals == [signal.SIGTERM]
    assert (tmp_path / "new").read_text() == "whole"


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_open_file_descriptor_is_written_at_its_position(tmp_path: Path, folder: str) -> None:
    """With `--starts /dev/stdout > file` the command writes to stdout before and after; opening the
    file again would overwrite its beginning, and replacing it would write another file.
    """
    with (tmp_path / "out").open("wb", buffering=0) as out:
        out.write(b"before, ")
        check_writable(Path(folder, str(out.fileno())))
        write(Path(folder, str(out.fileno())), "there, ")
        out.write(b"after")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "out": "before, there, after"
    }


def test_unnamed_pipe_is_written_directly() -> None:
    reading, writing = os.pipe()
    write(Path(f"/dev/fd/{writing}"), "through")
    os.close(writing)
    with os.fdopen(reading) as read:
        assert read.read() == "through"


def test_new_file_has_the_default_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "new", "one")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_file_with_the_longest_name_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / ("n" * 255), "long")
    assert (tmp_path / ("n" * 255)).read_text() == "long"


def test_check_writable_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    check_writable(tmp_path / "old")
    check_writable(tmp_path / "new")
    check_writable(Path(os.devnull))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "old"}


@pytest.mark.parametrize("place", ["/proc/none", "/dev/fd/999999", "/dev/stdout/none"])
def test_check_writable_reports_unwritable_paths(place: str) -> None:
    with pytest.raises(OSError, match=r"No such file|Bad file descriptor|Not a directory"):
        check_writable(Path(place))


def test_check_writable_refuses_a_directory(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path)


def test_link_and_permissions_are_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_named_pipe_is_written_directly(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write(tmp_path / "pipe", "through")
    reader.join()
    assert read == ["through"]


def test_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "none" / "file", "text")
