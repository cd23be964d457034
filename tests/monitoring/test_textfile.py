"""Metrics as Prometheus reads them: escaped, whole, of one hour; and the same whatever the rows are."""

from __future__ import annotations

import re
import shutil
import stat
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from suffice.errors import UsageError
from suffice.monitoring import textfile
from suffice.monitoring.standing import AccountStanding, SeriesStanding, Standing
from suffice.monitoring.textfile import METRICS, hour, hour_of, rendered, write_textfile
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyMeasure

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2013, 2, 4, 2, 59, 59, tzinfo=UTC)
HOSTILE = 'a"b\\c\nd{}='


def stands(
    dataset: str = "people", *, covered: int | None = 3, measure: PrivacyMeasure = PrivacyMeasure.EPSILON
) -> Standing:
    series = SeriesStanding(
        spec="s.yaml", dataset=dataset, name="n", releases=1, windows={"published": 1},
        amendments={"due": 2}, due=4, covered=covered, ok=True,
    )  # fmt: skip
    account = AccountStanding(
        dataset=dataset, measure=measure, per_window=False, granted=Fraction(1), spent=Fraction(1, 8),
        remaining=Fraction(7, 8),
    )  # fmt: skip
    return Standing(
        as_of=NOW, accounts=(account,), series=(series,), unreadable=(), in_spool=0, counted=None
    )  # fmt: skip


def samples(text: str) -> dict[str, str]:
    """Read Prometheus' text format, as far as it is used."""
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = re.fullmatch(r'([a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)*\})?) (\S+)', line)
            assert match, line
            assert match[1] not in values
            values[match[1]] = match[2]
    return values


def test_samples_have_their_labels_and_numbers() -> None:
    values = samples(rendered(stands(), now=NOW))
    assert values['suffice_windows{dataset="people",name="n",state="published"}'] == "1"
    assert values['suffice_releases_covered{dataset="people",name="n"}'] == "3"
    assert values['suffice_epsilon_spent{dataset="people",scope="account"}'] == "0.125"
    assert values["suffice_metrics_hour_seconds"] == str(int(NOW.timestamp()) // 3600 * 3600)
    every = samples(rendered(stands(covered=None), now=NOW))
    assert every['suffice_releases_covered{dataset="people",name="n"}'] == "+Inf"


def test_an_account_in_rho_has_metrics_of_its_own() -> None:
    values = samples(rendered(stands(measure=PrivacyMeasure.RHO), now=NOW))
    assert values['suffice_rho_remaining{dataset="people",scope="account"}'] == "0.875"
    assert not any(name.startswith("suffice_epsilon") for name in values)


def test_labels_are_escaped() -> None:
    text = rendered(stands(HOSTILE), now=NOW)
    assert r'dataset="a\"b\\c\nd{}="' in text
    assert len(samples(text)) == len(samples(rendered(stands(), now=NOW)))


def test_every_sample_is_of_a_metric_that_is_declared() -> None:
    text = rendered(stands(), now=NOW)
    named = {re.split(r"[ {]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    assert named <= {metric.name for metric in METRICS}
    for name in named:
        assert f"# TYPE {name} " in text
        assert f"# HELP {name} " in text


def test_a_file_is_put_in_its_place_whole_for_everyone(tmp_path: Path) -> None:
    path = tmp_path / "suffice.prom"
    assert hour_of(path) is None
    write_textfile(path, rendered(stands(), now=NOW))
    assert hour_of(path) == hour(NOW) == datetime(2013, 2, 4, 2, tzinfo=UTC)
    assert hour(NOW + timedelta(seconds=1)) != hour(NOW)
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert [file.name for file in tmp_path.iterdir()] == ["suffice.prom"]


@pytest.mark.parametrize("content", ["", "x 1\n", "# Written by suffice metrics, once in an hour at most.\n"])
def test_what_others_wrote_is_never_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "node.prom"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match="never replaces"):
        hour_of(path)
    link = tmp_path / "link.prom"
    link.symlink_to(tmp_path / "absent.prom")
    with pytest.raises(UsageError, match="never replaces"):
        hour_of(link)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_textfile(tmp_path / "absent" / "suffice.prom", "")


def test_metrics_are_as_promtool_demands() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here: Debian's package prometheus has it")
    from subprocess import run

    text = rendered(stands(), now=NOW)
    finished = run([promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False)
    assert (finished.returncode, finished.stdout + finished.stderr) == (0, "")
    assert textfile.SUFFIX == ".prom"
