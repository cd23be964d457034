"""Which profile holds: the administrator's over everything, then the option, then the variable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from suffice.errors import PinnedError, ProfileError
from suffice.profile.finding import CHOSEN, FIXED_PLACE, find_profile
from support.profiles import at_fixed_place, write_profile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def chosen() -> Iterator[None]:
    """Undo what a test chose as ``--config`` does."""
    token = CHOSEN.set(None)
    yield
    CHOSEN.reset(token)


def test_the_order_of_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed, option, variable = (
        write_profile(tmp_path / name / "suffice.toml", spool=f"/{name}")
        for name in ("fixed", "option", "env")
    )
    monkeypatch.delenv("SUFFICE_CONFIG", raising=False)
    assert find_profile() is None
    monkeypatch.setenv("SUFFICE_CONFIG", "")
    assert find_profile() is None
    monkeypatch.setenv("SUFFICE_CONFIG", str(variable))
    profile = find_profile()
    assert profile is not None
    assert (profile.profile.spool, profile.origin) == ("/env", "environment")
    CHOSEN.set(str(option))
    profile = find_profile()
    assert profile is not None
    assert (profile.profile.spool, profile.origin) == ("/option", "option")
    at_fixed_place(monkeypatch, fixed)
    with pytest.raises(PinnedError, match="--config: this machine's administrator"):
        find_profile()
    CHOSEN.set(str(fixed))
    assert find_profile() is not None
    CHOSEN.set(None)
    profile = find_profile()
    assert profile is not None
    assert (profile.profile.spool, profile.origin) == ("/fixed", "fixed place")


@pytest.mark.parametrize("loose", ["file", "folder", "owner"])
def test_what_others_may_write_pins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loose: str
) -> None:
    place = write_profile(tmp_path / "etc" / "suffice.toml", spool="/s")
    at_fixed_place(monkeypatch, place)
    assert find_profile() is not None
    if loose == "owner":
        monkeypatch.setattr("suffice.profile.finding._ADMINISTRATORS", frozenset({987654}))
    elif loose == "file":
        place.chmod(0o664)
    else:
        place.parent.chmod(0o777)
    with pytest.raises(ProfileError, match="may write"):
        find_profile()


def test_a_profile_that_cannot_be_used_is_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, said in (
        (tmp_path / "absent.toml", "there is no profile here"),
        (tmp_path, "this is no file"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ):
        CHOSEN.set(str(path))
        with pytest.raises(ProfileError, match=said):
            find_profile()
    CHOSEN.set("a\0b")
    with pytest.raises(ProfileError, match="cannot be read"):
        find_profile()
    CHOSEN.set(None)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (2**20 + 1))
    monkeypatch.setenv("SUFFICE_CONFIG", str(large))
    with pytest.raises(ProfileError, match="larger than 1 MiB"):
        find_profile()
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("SUFFICE_CONFIG", str(tmp_path / "pipe"))
    with pytest.raises(ProfileError, match="no file"):
        find_profile()


@pytest.mark.slow
def test_the_fixed_place_is_real(tmp_path: Path) -> None:
    """In a mount namespace of its own, a file really stands at the fixed place; no variable moves it."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("only Linux has mount namespaces")
    write_profile(tmp_path / "suffice" / "suffice.toml", ledger="sqlite:////srv/pinned.db")
    script = f'mount --bind {tmp_path} /etc && exec {sys.executable} -m suffice ledger show --json "$@"'
    words = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh"]
    tried = subprocess.run(
        [*words[:3], "mount", "--bind", str(tmp_path), "/etc"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("this machine lets no one make a mount namespace")
    assert str(FIXED_PLACE) == "/etc/suffice/suffice.toml"
    outcomes = {}
    for name, words_after, variables in (
        ("option", ["--ledger", f"sqlite:///{tmp_path}/other.db"], {}),
        ("variable", [], {"SUFFICE_LEDGER": f"sqlite:///{tmp_path}/other.db"}),
        ("config", [], {"SUFFICE_CONFIG": "/dev/null"}),
    ):
        finished = subprocess.run(
            [*words, *words_after],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        outcomes[name] = (finished.returncode, finished.stdout)
    assert [status for status, _ in outcomes.values()] == [2, 2, 5], outcomes
    assert "PinnedError" in outcomes["option"][1]
    assert "SUFFICE_LEDGER: this lies outside" in outcomes["variable"][1]
    assert "LedgerMissingError" in outcomes["config"][1]  # the pinned ledger was asked
