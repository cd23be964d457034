"""The shipped rules: promtool tries them on their own tests, and on what `suffice metrics` says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from suffice.monitoring import records
from suffice.monitoring.textfile import METRICS
from support.making import mapping

if TYPE_CHECKING:
    from pathlib import Path

    from support.making import Workspace
    from support.running import Runner

LABELS = {metric.name: set(metric.labels) for metric in METRICS}
STATES = {"state": {"published", "missing", "overdue", "stopped", "withdrawn", "not_in_store", "due"}}
AS_OF = ("--as-of", "2013-04-05T00:00Z")


def promtool(*words: str, folder: Path) -> str:
    """Run promtool in a folder, and return what it says; where it is not here, the test is skipped."""
    program = shutil.which("promtool")
    if program is None:
        assert os.environ.get("PROMTOOL") != "required", "promtool is not here"
        pytest.skip("promtool is not here: Debian's package prometheus has it")
    finished = subprocess.run([program, *words], cwd=folder, text=True, capture_output=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def rules(repository: Path) -> list[dict[str, Any]]:
    text = (repository / "deploy" / "monitoring" / "alerts.yaml").read_text(encoding="utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def unknown_in(expression: str) -> set[str]:
    """Return the metrics, labels and states of an expression that `suffice metrics` does not write."""
    unknown = set()
    for name, selector in re.findall(r"\b(suffice_[a-z_]+)(?:\{([^}]*)\})?", expression):
        if name not in LABELS:
            unknown.add(name)
            continue
        for label, value in re.findall(r'([a-z]+)=~?"([^"]*)"', selector):
            if label not in LABELS[name] or value not in STATES.get(label, {value}):
                unknown.add(f"{name}: {label}={value}")
    return unknown


def test_an_unknown_metric_would_be_found() -> None:
    assert unknown_in("suffice_rows > 0") == {"suffice_rows"}
    assert unknown_in('suffice_windows{state="late"}') == {"suffice_windows: state=late"}
    assert unknown_in('sum(suffice_spool_charges{dataset="x"})') == {"suffice_spool_charges: dataset=x"}


def test_every_rule_names_metrics_that_exist_and_is_tested(repository: Path) -> None:
    folder = repository / "deploy" / "monitoring"
    tested = yaml.safe_load((folder / "alerts-tests.yaml").read_text(encoding="utf-8"))["tests"]
    fired = json.dumps(tested)
    alerts = rules(repository)
    assert len({rule["alert"] for rule in alerts}) == len(alerts) == 12
    for rule in alerts:
        assert unknown_in(rule["expr"]) == set(), rule["alert"]
        assert rule["labels"].keys() == {"severity"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert f'alertname=\\"{rule["alert"]}\\"' in fired, rule["alert"]
    inputs = {each["series"] for test in tested for each in test["input_series"]}
    assert {unknown for series in inputs for unknown in unknown_in(series)} == set()


def test_every_panel_of_the_board_names_metrics_that_exist(repository: Path) -> None:
    text = (repository / "deploy" / "monitoring" / "grafana-board.json").read_text(encoding="utf-8")
    board = json.loads(text)
    assert {variable["name"] for variable in board["templating"]["list"]} == {"datasource", "dataset", "name"}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    used = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        for target in panel["targets"]:
            assert unknown_in(target["expr"]) == set(), panel["title"]
            used |= set(re.findall(r"\bsuffice_[a-z_]+", target["expr"]))
    assert LABELS.keys() - used == {"suffice_audit_hour_seconds"}  # an alert has it


@pytest.mark.slow
def test_the_rules_pass_their_tests(repository: Path) -> None:
    folder = repository / "deploy" / "monitoring"
    assert "12 rules found" in promtool("check", "rules", "alerts.yaml", folder=folder)
    assert "SUCCESS" in promtool("test", "rules", "alerts-tests.yaml", folder=folder)


def check_fires(text: str, alerts: set[str], *, folder: Path, repository: Path) -> None:
    """Demand that these alerts fire, and no other, where metrics stand for three hours as `text` says."""
    shutil.copy(repository / "deploy" / "monitoring" / "alerts.yaml", folder)
    series = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    test = {
        "interval": "15m",
        "input_series": [
            {"series": name, "values": " ".join(["7200" if "hour_seconds" in name else value] * 13)}
            for name, _, value in series
        ],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "3h",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts],
            }
        ],
    }
    content = {"rule_files": ["alerts.yaml"], "evaluation_interval": "15m", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    promtool("test", "rules", "test.yaml", folder=folder)


def spec_of(workspace: Workspace, epsilon: str) -> str:
    """Write a spec of three months that have ended and were never released."""
    path = workspace.directory / "monthly.json"
    window = {"column": "day", "every": "month", "first": "2013-01", "lag": "3 days"}
    privacy = {"epsilon": epsilon, "neighboring": "add_or_remove_one", "unit": "row"}
    content = mapping(workspace.data, name="monthly", window=window, privacy=privacy)
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("epsilon", "alerts"),
    [
        ("0.5", {"SufficeWindowOverdue"}),
        ("2", {"SufficeWindowOverdue", "SufficeBudgetEnding"}),
        ("4", {"SufficeWindowOverdue", "SufficeBudgetExhausted"}),
    ],
)
def test_overdue_windows_and_exhausted_budgets_fire(
    workspace: Workspace,
    suffice: Runner,
    tmp_path: Path,
    repository: Path,
    epsilon: str,
    alerts: set[str],
) -> None:
    text = suffice.text("metrics", spec_of(workspace, epsilon), *AS_OF)  # 10 are granted
    check_fires(text, alerts, folder=tmp_path, repository=repository)
    with pytest.raises(AssertionError):
        check_fires(text, alerts - {"SufficeWindowOverdue"}, folder=tmp_path, repository=repository)


def test_nothing_fires_before_a_window_has_ended(
    workspace: Workspace, suffice: Runner, tmp_path: Path, repository: Path
) -> None:
    text = suffice.text("metrics", spec_of(workspace, "0.5"), "--as-of", "2013-01-30T00:00Z")
    check_fires(text, set(), folder=tmp_path, repository=repository)


def test_a_failed_audit_refusals_and_a_spec_without_account_fire(
    workspace: Workspace,
    suffice: Runner,
    tmp_path: Path,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SUFFICE_METRICS", str(tmp_path / "counts"))
    spec = spec_of(workspace, "0.5")
    other = tmp_path / "other.json"
    other.write_text(json.dumps(mapping(workspace.data, dataset="unknown")), encoding="utf-8")
    before = suffice.text("metrics", spec, str(other), "--as-of", "2013-01-30T00:00Z", status=3)
    assert 'suffice_refusals_total{kind="budget"} 0' in before
    suffice.text("release", str(other), status=3)
    records.note_audit(ok=False)
    after = suffice.text("metrics", spec, str(other), "--as-of", "2013-01-30T00:00Z", status=3)
    assert 'suffice_refusals_total{kind="budget"} 1' in after
    both = {"SufficeAuditFailed", "SufficeSpecsUnreadable"}
    check_fires(after, both, folder=tmp_path, repository=repository)
