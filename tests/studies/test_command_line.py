"""Studies by name on the command line: what is printed and refused, and a run that fails or is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from studies import adversary
from studies.__main__ import main
from studies.catalogue import STUDIES
from studies.page import main as write_page

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Result


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in (study.name for study in STUDIES))
    assert main(["nothing"]) == 2
    assert "no study 'nothing'" in capsys.readouterr().err
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["adversary", "--out", str(blocked)]) == 2
    assert "nothing can be written" in capsys.readouterr().err
    assert main(["adversary", "--size", "smallest", "--out", str(tmp_path / "out")]) == 0
    assert "limit 2 log 9: 4.39445" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["adversary", "--seed", "-1"], "at least 0"),
        (["adversary", "--seed", "one"], "at least 0"),
        (["adversary", "mistakes", "--processes", "0"], "at least 1"),
        (["adversary", "--full", "--size", "smallest"], "not allowed with"),
        (["--full"], "which studies"),
    ],
)
def test_bad_options_are_refused(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert says in capsys.readouterr().err


def test_a_name_that_is_nearly_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Sample-error"]) == 2
    assert "Did you mean sample_error?" in capsys.readouterr().err


@pytest.mark.slow
def test_data_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.parquet").write_text("no table")
    monkeypatch.setenv("SUFFICE_SHARED_DATA", str(tmp_path))
    assert main(["query_model", "--size", "smallest", "--out", str(tmp_path)]) != 0
    assert capsys.readouterr().err.startswith("query_model: adult.parquet: cannot be read")
    # In the middle of others it is named, and they go on.
    assert main(["query_model", "adversary", "--size", "smallest", "--out", str(tmp_path)]) != 0
    told = capsys.readouterr()
    assert told.err.startswith("query_model: adult.parquet: cannot be read")
    assert "limit 2 log 9: 4.39445" in told.out


def test_a_study_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> Result:
        raise ZeroDivisionError

    monkeypatch.setattr(adversary, "run", fail)
    assert (
        main(["adversary", "mistakes", "--size", "smallest", "--processes", "1", "--out", str(tmp_path)]) == 1
    )
    told = capsys.readouterr()
    assert "ZeroDivisionError" in told.err
    assert told.err.endswith("adversary: failed, as told above.\n")
    assert told.out.startswith("mistakes: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [([], "required"), (["nowhere", "page.md"], "nowhere: no run of all studies")],
)
def test_a_page_needs_a_run(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        write_page(arguments)
    assert caught.value.code == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.audit
def test_all_can_be_stopped(tmp_path: Path) -> None:
    """Ctrl-C ends all processes with a line, long before the studies would end."""
    command = [sys.executable, "-m", "studies", "all", "--full", "--out", str(tmp_path)]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not list(tmp_path.iterdir()):
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=20)
    assert running.returncode == 130
    assert told == f"Stopped. What was written stays in {tmp_path}.\n"
