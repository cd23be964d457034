"""Published likelihoods in JavaScript and R: Python's numbers, under priors of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special, stats

from suffice.errors import PriorError
from suffice.pipeline.ask.posterior.likelihood import Likelihood
from suffice.publishing.publish import publish
from support.in_r import run_in_r
from support.javascript import read_publications
from support.pooled_cells import make_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice import Publication
    from suffice.pipeline.ask.pooling.release import Release

# A town of the south is far from what these priors expect.
pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.ConflictWarning")
CLOSE = 1e-4
FAR_OFF = "Beta(1e9, 1)"
PRIORS = {
    "ill": ("Beta(1, 9)", "Mixture(0.3, Beta(2, 2), 0.7, Beta(1, 30))"),
    "visits": ("Gamma(2, 3)", "Mixture(0.5, Gamma(1, 1), 0.5, Gamma(9, 3))"),
}
DENSITIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Beta(1, 9)": stats.beta(1, 9).pdf,
    "Mixture(0.3, Beta(2, 2), 0.7, Beta(1, 30))": lambda p: (
        0.3 * stats.beta(2, 2).pdf(p) + 0.7 * stats.beta(1, 30).pdf(p)
    ),
    "Gamma(2, 3)": stats.gamma(2, scale=1 / 3).pdf,
    "Mixture(0.5, Gamma(1, 1), 0.5, Gamma(9, 3))": lambda rate: (
        0.5 * stats.gamma(1).pdf(rate) + 0.5 * stats.gamma(9, scale=1 / 3).pdf(rate)
    ),
}
AT = {"ill": [0.02, 0.1, 0.35, 0.9], "visits": [0.05, 0.7, 2.0, 40.0]}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return make_cells(tmp_path_factory.mktemp("cells"), 2)


@pytest.fixture(scope="module")
def likelihoods(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Publication:
    to = tmp_path_factory.mktemp("likelihoods")
    return publish(release, ["ill", "visits"], kind="likelihood", formats=["parquet", "csv"], to=to)


def likelihood_in(release: Release, statistic: str) -> Likelihood:
    likelihood = release.likelihood(statistic)
    assert isinstance(likelihood, Likelihood)
    return likelihood


def expected(release: Release, statistic: str, prior: str) -> np.ndarray:
    """Mean, sd and both ends of the central interval of 90 % of every cell: by sums along the line.

    Python's own means and deviations are these, and its ends to some thousandths of a standard deviation.
    """
    likelihood = likelihood_in(release, statistic)
    x = np.linspace(-16.0, 12.0, 56_001)
    theta = special.expit(x) if statistic == "ill" else np.exp(x)
    log_slope = np.log(theta) + (np.log1p(-theta) if statistic == "ill" else 0.0)
    with np.errstate(divide="ignore"):
        log_density = likelihood.log_prob(theta) + np.log(DENSITIES[prior](theta)) + log_slope
    share = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    mean = share @ theta
    sd = np.sqrt(np.sum(share * (theta - mean[:, None]) ** 2, axis=1))
    below = np.cumsum(share, axis=1) - share / 2.0
    ends = np.array([np.interp([0.05, 0.95], each, theta) for each in below])
    posterior = likelihood.posterior(prior)
    np.testing.assert_allclose(np.column_stack([posterior.mean(), posterior.sd()]).T, [mean, sd], rtol=CLOSE)
    python_ends = posterior.credible_interval(mass=0.9, interval="central")
    assert np.max(np.abs(python_ends - ends) / sd[:, None]) < 3e-3
    return np.column_stack([mean, sd, ends])


@pytest.mark.slow
@pytest.mark.parametrize("statistic", PRIORS)
def test_a_likelihood_in_javascript_is_pythons(
    release: Release, likelihoods: Publication, statistic: str, tmp_path: Path
) -> None:
    del tmp_path
    keys = release.statistic(statistic).groups
    cells = [dict(zip(keys, each, strict=True)) for each in zip(*keys.values(), strict=True)]
    asked = [
        {"where": where, "prior": prior, "values": AT[statistic], "mass": 0.9}
        for prior in PRIORS[statistic]
        for where in cells
    ]
    (read,) = read_publications(
        [(_folder(likelihoods), {"likelihood": {"name": statistic, "questions": asked}})]
    )
    likelihood = likelihood_in(release, statistic)
    assert [each["keys"] for each in read["cells"]] == cells
    assert [each["error"] for each in read["cells"]] == likelihood.error.tolist()
    logs = np.array([each["logs"] for each in read["answers"][: len(cells)]])
    np.testing.assert_allclose(logs, likelihood.log_prob(AT[statistic]), rtol=1e-9, atol=1e-9)
    for place, prior in enumerate(PRIORS[statistic]):
        part = read["answers"][place * len(cells) : (place + 1) * len(cells)]
        ours = np.array([[each["mean"], each["sd"], *each["interval"]] for each in part])
        np.testing.assert_allclose(ours, expected(release, statistic, prior), rtol=CLOSE)


def test_javascript_refuses_what_a_likelihood_does_not_take(
    release: Release, likelihoods: Publication
) -> None:
    where = {"region": "north", "town": 2}
    asked: list[dict[str, Any]] = [
        {"where": where, "prior": prior, "values": [], "mass": 0.9}
        for prior in ("Gamma(1, 1)", FAR_OFF, "Beta(1, 1)")
    ]
    options = {"likelihood": {"name": "ill", "questions": asked}}
    several = {"likelihood": {"name": "ill", "questions": [{**asked[2], "where": {}}]}}
    # As Python does.
    with pytest.raises(PriorError, match="not known"):
        likelihood_in(release, "ill").posterior(FAR_OFF)
    read, no_cell = read_publications([(_folder(likelihoods), options), (_folder(likelihoods), several)])
    assert [each.get("code") for each in read["answers"]] == ["prior", "resolution", None]
    assert no_cell["code"] == "cell"


@pytest.mark.slow
def test_a_likelihood_in_r_is_pythons(
    release: Release, likelihoods: Publication, repository: Path, tmp_path: Path
) -> None:
    script = tmp_path / "likelihood.R"
    script.write_text("""
        words <- commandArgs(TRUE)
        for (file in list.files(words[1], full.names = TRUE)) source(file)
        for (at in seq(3, length(words), by = 3)) {
          likelihood <- published_likelihood(words[2], words[at])
          values <- as.numeric(strsplit(words[at + 1], " ")[[1]])
          for (cell in seq_along(likelihood$panels)) {
            answer <- likelihood_posterior(likelihood, cell, words[at + 2], mass = 0.9)
            numbers <- c(unlist(answer), likelihood_log_prob(likelihood, cell, values))
            cat(likelihood$keys$region[cell], likelihood$keys$town[cell], sprintf("%.12g", numbers), "\\n")
          }
        }
    """)
    asked = [(name, prior) for name, priors in PRIORS.items() for prior in priors]
    words = [word for name, prior in asked for word in (name, " ".join(map(str, AT[name])), prior)]
    folder = str(_folder(likelihoods))
    printed = run_in_r(script, str(repository / "readers" / "r" / "R"), folder, *words)
    lines = [line.split() for line in printed.splitlines()]
    n_cells = len(release.statistic("ill").values)
    assert len(lines) == n_cells * len(asked)
    for place, (name, prior) in enumerate(asked):
        part = lines[place * n_cells : (place + 1) * n_cells]
        keys = [[region, town] for region in ("north", "south") for town in ("1", "2")]
        assert [line[:2] for line in part] == keys
        numbers = np.array([[float(number) for number in line[2:]] for line in part])
        np.testing.assert_allclose(numbers[:, :4], expected(release, name, prior), rtol=CLOSE)
        exact = likelihood_in(release, name).log_prob(AT[name])
        np.testing.assert_allclose(numbers[:, 4:], exact, rtol=1e-9, atol=1e-9)


def _folder(made: Publication) -> Path:
    return Path(made.uri)
