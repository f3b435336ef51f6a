"""Sessions in README, tutorial and how-to guides: they can be pasted into a terminal, page by
page.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.sessions import Command, blocks, paste, scripts, without_times, write_files

ROOT = Path(__file__).parents[2]
HOWTOS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/howto").glob("*.md"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("curl") is None, reason="the sessions type curl, which this machine has not"
    ),
]


def _is_session(page: str) -> bool:
    return "```console" in (ROOT / page).read_text()


@pytest.mark.parametrize("page", ["docs/tutorial.md", *filter(_is_session, HOWTOS)])
def test_session_can_be_pasted(page: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The whole page is pasted into bash on a terminal, in a home directory with only the files it
    shows. `make` is left out: other tests run the demonstration. A block without any output is only
    run.
    """
    tmp_path = tmp_path_factory.mktemp("s")  # short, for the paths of sockets
    sessions = [
        block
        for block in blocks((ROOT / page).read_text())
        if not any(command.words.startswith(("make ", "export PATH=")) for command in block)
    ]
    commands = [command for block in sessions for command in block]
    write_files((ROOT / page).read_text(), tmp_path)
    results = paste(commands, tmp_path)
    assert len(results) == len(commands), results[-1]
    expected = [
        (command, any(other.output for other in block)) for block in sessions for command in block
    ]
    for (command, compares), result in zip(expected, results, strict=True):
        fails = command.output.startswith("fairbank: ")
        assert (result.status != 0) == fails, (command.words, result)
        if compares:
            documented = command.output.replace("$PWD", str(tmp_path))
            assert without_times(result.output) == without_times(documented), command.words


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", *filter(_is_session, HOWTOS)])
def test_allocation_has_the_same_dates_all_over_a_page(page: str) -> None:
    """The other tests compare no dates."""
    text = (ROOT / page).read_text()
    periods: dict[str, set[tuple[str, str]]] = {}
    for number, *period in re.findall(
        r"\b[Aa]llocation (\d+):? .*?([\d-]{10}) \.\. ([\d-]{10})", text
    ):
        periods.setdefault(number, set()).add((period[0], period[1]))
    assert {number for number, shown in periods.items() if len(shown) > 1} == set()
    lasts = {last for shown in periods.values() for _, last in shown}
    expiries = re.findall(r"\d+% ([\d-]{10}) ", text)
    assert not lasts or set(expiries) <= lasts


def test_session_of_readme_can_be_pasted(tmp_path: Path) -> None:
    """README shows a script, which GitHub copies unchanged, and below it the output of all
    lines.
    """
    _demo, _path, session = scripts((ROOT / "README.md").read_text())
    commands = [Command(line, "") for line in session.words.splitlines(keepends=True)]
    results = paste(commands, tmp_path)
    assert [result.status for result in results] == [0] * len(commands), results
    output = "\n".join(result.output for result in results if result.output)
    documented = session.output.replace("$PWD", str(tmp_path))
    assert without_times(output) == without_times(documented)
