"""sbcast: copies of files for the nodes of a job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.wlm.commands.shell import Shell

IN_JOB = ("salloc", "-Q", "-N", "2")


@pytest.fixture
def folder(shell: Shell) -> Path:
    (shell.directory / "source").write_text("content\n")
    return shell.directory


def test_file_is_copied_within_a_job(shell: Shell, folder: Path) -> None:
    (folder / "source").chmod(0o750)
    os.utime(folder / "source", (1, 1))
    code, _, err = shell.run(*IN_JOB, "sbcast", "-p", "source", "copy")
    assert (code, err) == (0, [])
    assert (folder / "copy").read_text() == "content\n"
    assert (folder / "copy").stat().st_mtime == 1
    assert (folder / "copy").stat().st_mode & 0o777 == 0o750
    assert [path.name for path in folder.glob("copy*")] == ["copy"]


def test_file_that_exists_is_replaced_by_force_only(shell: Shell, folder: Path) -> None:
    (folder / "copy").write_text("old\n")
    code, _, err = shell.run(*IN_JOB, "sbcast", "source", "copy")
    assert (code, err) == (17, ["sbcast: error: copy: File exists"])
    assert (folder / "copy").read_text() == "old\n"
    assert shell.run(*IN_JOB, "sbcast", "--force", "source", "copy")[0] == 0
    assert (folder / "copy").read_text() == "content\n"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("missing", "copy"), 255, "Can't open `missing`: No such file or directory"),
        (("source", "missing/copy"), 2, "missing/copy: No such file or directory"),
        (("source",), 1, "Need two file names, have 1 names"),
    ],
)
def test_copy_that_fails_says_why(
    shell: Shell, folder: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    result, _, err = shell.run(*IN_JOB, "sbcast", *words)
    assert (result, sentence in "\n".join(err)) == (code, True)
    assert [path.name for path in folder.glob("copy*")] == []


def test_copy_outside_a_job_is_refused(shell: Shell, folder: Path) -> None:
    code, _, err = shell.run("sbcast", "source", "copy")
    assert (code, "Need a job id" in err[0]) == (1, True)
    code, _, err = shell.run("sbcast", "--jobid=999999", "source", "copy")
    assert (code, not (folder / "copy").exists()) == (1, True)
