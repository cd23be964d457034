"""The posteriors that the JavaScript reader sums, beside Python's and beside sums of no cleverness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import suffice
from suffice.pipeline.families import FAMILIES
from support.dense_sums import bernoulli, dense_moments, exponential, poisson
from support.entries import counting_nulls, entry_of, privacy_of
from support.javascript import ONE_SUM, ask, ask_all
from support.releases import make_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from suffice.pipeline.spec.plan import Plan

PRIORS = {
    "Beta": "Beta(2, 7)",
    "Gamma": "Gamma(3, 4)",
    "InverseGamma": "InverseGamma(4, 6)",
    "Normal": "Normal(1, 2)",
}
LEVELS = 0.01
"""Python's quantiles of mixtures are right to about a thousandth of the level, 0.01 at worst."""
AS_PYTHON = 2e-4
"""Standard deviations: Python's sums are within some 1e-5 of dense ones, the reader's within 1e-9."""
AS_DENSE_SUMS = 1e-8


def simulated(family: str, *, n: int, epsilon: str, public_n: bool, seed: int) -> tuple[Plan, NDArray[Any]]:
    """Return a plan of one statistic, and released values of cells of some n records."""
    entry = entry_of(family, dict(FAMILIES[family].generative_case.entry))
    if public_n:
        entry = counting_nulls(entry, str(entry.get("minimum", "0")))
    plan = make_plan(
        groups=None,
        privacy=privacy_of(family, epsilon=epsilon, public_n=public_n),
        statistics={"s": entry},
    )
    (statistic,) = plan.statistics
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.01, 0.08, plan.n_cells)
    if statistic.partition_total is None:
        steps = 2.0 ** (statistic.parameters.lattice_bits or 0)
        if family in {"binomial", "poisson", "geometric", "negative_binomial"}:
            steps = float(statistic.parameters.upper or 1)
        totals = np.round(share * n * steps)[:, None]
    else:
        first = np.round(share * n * statistic.partition_total)
        totals = np.stack([first, n * statistic.partition_total - first], axis=1)
    noise = np.round(rng.laplace(size=totals.shape) * statistic.scale)
    values = np.empty(totals.shape, dtype=object)
    values[:] = [
        [int(total) + int(more) for total, more in zip(*pair, strict=True)]
        for pair in zip(totals, noise, strict=True)
    ]
    return plan, values[:, ::-1] if family == "bernoulli" and not public_n else values


Compared = dict[tuple[str, bool], list[tuple[dict[str, Any], float, float, str]]]
"""By family, and whether N is public: an answer, and Python's mean, standard deviation and prior."""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Ask both readers about every family, the other one in one process."""
    asked: list[dict[str, Any]] = []
    expected: dict[tuple[str, bool], list[tuple[float, float, str]]] = {}
    for family in ONE_SUM:
        for public_n in (False, True):
            plan, values = simulated(family, n=150, epsilon="1", public_n=public_n, seed=len(family))
            root = tmp_path_factory.mktemp(family)
            directory = publish(root, plan, {"s": values}, public_n=150 if public_n else None)
            release = suffice.open_release(str(directory))
            names = PRIORS[FAMILIES[family].prior.__name__]
            mixture = f"Mixture(0.3, {names}, 0.7, {names.replace('7', '3').replace('4', '5')})"
            cases: list[dict[str, Any]] = [{"prior": mixture}, {"prior": names, "method": "plug-in"}]
            if family in {"bernoulli", "poisson"} and not public_n:
                cases += [{}, {"n_prior": "Uniform(5, 3000)"}, {"n_prior": "140"}]
            questions = []
            of_python = expected.setdefault((family, public_n), [])
            for case in cases:
                posterior = release.posterior("s", clipping="ignored", **case)
                (name,) = posterior.parameters
                mean, sd = float(posterior.mean(name)[0]), float(posterior.sd(name)[0])
                of_python.append((mean, sd, str(posterior.prior)))
                options = {{"n_prior": "nPrior"}.get(key, key): value for key, value in case.items()}
                ends = posterior.credible_interval(name, 0.9, interval="central")[0].tolist()
                questions.append(
                    {
                        "statistic": "s",
                        "options": {"clipping": "ignored", **options},
                        "below": ends,
                        "shares": [0.4],
                    }
                )
            asked.append({"directory": str(directory), "questions": questions})
    answers = [reply["answers"] for reply in ask_all(asked)]
    return {
        key: [(answer, *of_python) for answer, of_python in zip(replies, of_pythons, strict=True)]
        for replies, (key, of_pythons) in zip(answers, expected.items(), strict=True)
    }


@pytest.mark.audit
@pytest.mark.parametrize("public_n", [False, True], ids=["private", "public"])
@pytest.mark.parametrize("family", ONE_SUM)
def test_posteriors_are_pythons(compared: Compared, family: str, public_n: bool) -> None:
    for answer, mean, sd, prior in compared[family, public_n]:
        (parameter,) = answer["found"]
        assert answer["prior"] == prior
        assert abs(parameter["mean"] - mean) < AS_PYTHON * sd
        assert parameter["sd"] == pytest.approx(sd, rel=AS_PYTHON)
        assert parameter["below"] == pytest.approx([0.05, 0.95], abs=LEVELS)
        assert abs(parameter["quantiles"][0] - mean) < sd


@pytest.mark.audit
@pytest.mark.parametrize("concentration", ["Dirichlet(1)", "Dirichlet(0.5, 2, 3)"])
@pytest.mark.parametrize("public_n", [False, True], ids=["private", "public"])
def test_posteriors_of_categories_are_pythons(tmp_path: Path, concentration: str, public_n: bool) -> None:
    plan = make_plan(
        groups=None,
        privacy=privacy_of("categorical", epsilon="0.5", public_n=public_n),
        statistics={"s": entry_of("categorical", {"categories": ["a", "b"], "other": True})},
    )
    values = np.array([[70, -3, 9]], dtype=object)
    directory = publish(tmp_path, plan, {"s": values}, public_n=80 if public_n else None)
    posterior = suffice.open_release(str(directory)).posterior("s", prior=concentration)
    (answer,) = ask(directory, [{"statistic": "s", "options": {"prior": concentration}}])["answers"]
    mean, sd = posterior.mean("probability")[0], posterior.sd("probability")[0]
    assert [parameter["parameter"] for parameter in answer["found"]] == [
        "probability[a]",
        "probability[b]",
        "probability[other]",
    ]
    assert np.allclose(
        [parameter["mean"] for parameter in answer["found"]], mean, atol=1e-7 * sd.min(), rtol=0
    )
    assert np.allclose([parameter["sd"] for parameter in answer["found"]], sd, rtol=1e-6)


@pytest.mark.audit
@pytest.mark.parametrize("released", [(30, 60), (-9, 45), (100, 20)])
def test_posteriors_are_dense_sums_to_eight_digits(tmp_path: Path, released: tuple[int, int]) -> None:
    """Other code, of no cleverness, says the same to eight digits; of other noise it does not."""
    statistics = {
        "bernoulli": entry_of("bernoulli", {}),
        "poisson": entry_of("poisson", {"upper": 7}),
        "exponential": entry_of("exponential", {"upper": 60, "lattice_bits": 8}),
    }
    plan = make_plan(
        groups=None, privacy={"epsilon": "3", "neighboring": "add_or_remove_one"}, statistics=statistics
    )
    first, second = released
    values = {
        "bernoulli": np.array([[second, first]], dtype=object),
        "poisson": np.array([[first * 7, second * 7]], dtype=object),
        "exponential": np.array([[first * 256, second * 256]], dtype=object),
    }
    directory = publish(tmp_path, plan, values)
    cases = {
        "bernoulli": (bernoulli(2, 7), "Beta(2, 7)", (2 / 9, 2 * 3 / (9 * 10)), None),
        "poisson": (poisson(3, 4), "Gamma(3, 4)", (3 / 4, 3 * 4 / 16), None),
        "exponential": (exponential(3, 40), "Gamma(3, 40)", (3 / 40, 12 / 1600), 60 / 256),
    }
    questions = [
        {"statistic": name, "options": {"prior": prior, "nPrior": "Uniform(0, 150)", "clipping": "ignored"}}
        for name, (_, prior, _, _) in cases.items()
    ]
    answers = ask(directory, questions)["answers"]
    for answer, plan_of, (name, (marginal, _, none, step)) in zip(
        answers, plan.statistics, cases.items(), strict=True
    ):
        assert plan_of.name == name
        (summary,) = answer["found"]
        noisy = [
            float(value) for value in (values[name][0] if name != "bernoulli" else values[name][0][::-1])
        ]
        for scale in (plan_of.scale, plan_of.scale * 1.02):
            mean, sd = dense_moments(
                marginal,
                noisy,
                scale=scale,
                reach=float(plan_of.partition_total or 1),
                step=step,
                most_n=150,
                of_none=none,
            )
            off = max(abs(summary["mean"] - mean) / sd, abs(summary["sd"] / sd - 1))
            assert (off < AS_DENSE_SUMS) == (scale == plan_of.scale), (name, off)


@pytest.mark.slow
def test_quantiles_are_those_of_dense_sums_where_python_merges(tmp_path: Path) -> None:
    """With an N near 1 the tail is long: a thousandth of the level is a hundredth of a standard deviation."""
    from scipy.special import gammainc

    statistics = {"s": entry_of("exponential", {"upper": 60, "lattice_bits": 8})}
    plan = make_plan(
        groups=None, privacy={"epsilon": "3", "neighboring": "add_or_remove_one"}, statistics=statistics
    )
    released = (40.0, 216.0)  # of one record, at a sixth of the bound
    directory = publish(tmp_path, plan, {"s": np.array([[int(value) for value in released]], dtype=object)})
    options = {"prior": "Gamma(1, 10)", "nPrior": "Uniform(0, 6)", "clipping": "ignored"}
    shares = [0.025, 0.5, 0.975]
    (answer,) = ask(directory, [{"statistic": "s", "options": options, "shares": shares}])["answers"]
    posterior = suffice.open_release(str(directory)).posterior(
        "s", prior="Gamma(1, 10)", n_prior="Uniform(0, 6)", clipping="ignored"
    )
    merged = [float(posterior.quantile(posterior.parameters[0], share)[0]) for share in shares]
    log_prob, _ = exponential(1, 10)

    def unrestricted(value: float) -> float:
        def share(total: Any, n: float) -> tuple[Any, Any]:
            tail = gammainc(1 + n, (10 + total) * value)
            return tail, tail

        of_none = float(gammainc(1, 10 * value))
        return dense_moments(
            (log_prob, share),
            released,
            scale=plan.statistics[0].scale,
            reach=float(plan.statistics[0].partition_total or 1),
            step=60 / 256,
            most_n=6,
            of_none=(of_none, of_none),
        )[0]

    def below(value: float) -> float:
        """Given that the mean of records, 1 / rate, is at most their bound."""
        outside = unrestricted(1 / 60)
        return (unrestricted(value) - outside) / (1 - outside)

    (summary,) = answer["found"]
    assert [below(value) for value in summary["quantiles"]] == pytest.approx(shares, abs=1e-7)
    assert [below(value) for value in merged] == pytest.approx(shares, abs=LEVELS / 5)
    assert below(summary["quantiles"][2] + 1e-3 * summary["sd"]) > 0.975 + 1e-6, (
        "the referee sees less than that"
    )


@pytest.mark.audit
def test_densities_are_normalised_and_have_the_quantiles(tmp_path: Path) -> None:
    plan, values = simulated("poisson", n=50, epsilon="0.4", public_n=False, seed=4)
    directory = publish(tmp_path, plan, {"s": values})
    grid = np.linspace(1e-6, 40, 20001)
    options = {"prior": "Gamma(2, 1)", "clipping": "ignored"}
    (answer,) = ask(
        directory, [{"statistic": "s", "options": options, "at": grid.tolist(), "shares": [0.1, 0.5]}]
    )["answers"]
    (summary,) = answer["found"]
    density = np.array(summary["densities"])
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-5)
    assert np.trapezoid(density * grid, grid) == pytest.approx(summary["mean"], rel=1e-5)
    for share, quantile in zip([0.1, 0.5], summary["quantiles"], strict=True):
        below = grid <= quantile
        assert np.trapezoid(density[below], grid[below]) == pytest.approx(share, abs=0.002 * density.max())
    assert np.allclose(summary["priorDensities"], grid * np.exp(-grid), rtol=1e-9)


CLIPPED: dict[str, tuple[dict[str, Any], tuple[int, int], str]] = {
    "poisson": ({"upper": 5}, (400, 100), "Gamma(3, 1)"),
    "geometric": ({"upper": 8}, (260, 540), "Beta(1, 3)"),
    "negative_binomial": ({"upper": 12, "successes": 3}, (4000, 2000), "Beta(2, 2)"),
}
AS_CLIPPED = 1e-6
"""Standard deviations: both sum exactly here. Leaving clipping out moves these by a tenth and more."""


@pytest.mark.slow
def test_clipped_counts_are_modelled_where_they_matter(tmp_path: Path) -> None:
    plan = make_plan(
        groups=None,
        privacy={"epsilon": "2", "neighboring": "add_or_remove_one"},
        statistics={family: entry_of(family, entry) for family, (entry, _, _) in CLIPPED.items()},
    )
    values = {family: np.array([released], dtype=object) for family, (_, released, _) in CLIPPED.items()}
    directory = publish(tmp_path, plan, values)
    release = suffice.open_release(str(directory))
    ways = ("modelled", "ignored")
    answers = ask(
        directory,
        [
            {"statistic": family, "options": {"prior": prior, "clipping": way}}
            for family, (_, _, prior) in CLIPPED.items()
            for way in ways
        ],
    )["answers"]
    for index, (family, (_, _, prior)) in enumerate(CLIPPED.items()):
        posterior = release.posterior(family, prior=prior, clipping="modelled")
        assert posterior.models_clipping is not None
        assert posterior.models_clipping.all()
        (name,) = posterior.parameters
        mean, sd = posterior.mean(name)[0], posterior.sd(name)[0]
        modelled, ignored = (answer["found"][0] for answer in answers[2 * index : 2 * index + 2])
        assert abs(modelled["mean"] - mean) < AS_CLIPPED * sd
        assert abs(modelled["sd"] - sd) < AS_CLIPPED * sd
        assert abs(ignored["mean"] - mean) > 0.1 * sd


@pytest.mark.slow
def test_clipped_counts_with_a_large_bound_are_refused_by_name(tmp_path: Path) -> None:
    plan = make_plan(
        groups=None,
        privacy={"epsilon": "2", "neighboring": "add_or_remove_one"},
        statistics={"s": entry_of("poisson", {"upper": 300})},
    )
    directory = publish(tmp_path, plan, {"s": np.array([[299 * 100, 100]], dtype=object)})
    refused, ignored = ask(
        directory, [{"statistic": "s", "options": {"clipping": way}} for way in ("modelled", "by-evidence")]
    )["answers"]
    assert refused["code"] == "clipping"
    assert "256" in refused["message"]
    assert "found" in ignored


@pytest.mark.slow
def test_clipped_sums_that_are_no_counts_are_refused_by_name(tmp_path: Path) -> None:
    statistics = {
        "e": entry_of("exponential", {"upper": "10"}),
        "l": entry_of("laplace", {"location": "0", "half_range": "10"}),
    }
    plan = make_plan(
        groups=None,
        privacy={"epsilon": "2", "neighboring": "add_or_remove_one"},
        statistics=statistics,
    )
    values = np.array([[60 << 16, 40 << 16]], dtype=object)
    directory = publish(tmp_path, plan, dict.fromkeys(statistics, values))
    answers = ask(
        directory,
        [
            {"statistic": name, "options": options}
            for name in statistics
            for options in ({"clipping": "modelled"}, {"clipping": "modelled", "method": "plug-in"}, {})
        ],
    )["answers"]
    for refused, *others in (answers[:3], answers[3:]):
        assert refused["code"] == "clipping"
        assert "compute it in Python" in refused["message"]
        assert all("found" in answer for answer in others)


BAD_QUESTIONS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"prior": "Gamma(1, 1)"}, "prior"),
    ({"prior": "Beta(1)"}, "prior"),
    ({"prior": "Beta(1, 1e999)"}, "prior"),
    ({"prior": "Beta(1, 1) + 1"}, "prior"),
    ({"prior": "__import__('os')"}, "prior"),
    ({"prior": "Mixture(0, Beta(1, 1))"}, "prior"),
    ({"nPrior": "Uniform(9, 3)"}, "prior"),
    ({"nPrior": "-1"}, "prior"),
    ({"method": "exact"}, "method"),
    ({"method": "plug-in", "nPrior": "3"}, "usage"),
    ({"clipping": "no"}, "usage"),
    ({"where": {"h": "1"}}, "cell"),
    ({"where": {"g": "nowhere"}}, "cell"),
    ({"where": {}}, "cell"),
)


def test_bad_questions_are_refused(tmp_path: Path) -> None:
    plan = make_plan()
    directory = publish(tmp_path, plan)
    one_cell = {"where": {"origin": "JFK"}}
    questions = [
        {"statistic": "cancelled", "options": {**one_cell, **options}} for options, _ in BAD_QUESTIONS
    ]
    answers = ask(directory, [*questions, {"statistic": "nothing", "options": {}}])["answers"]
    assert [answer["code"] for answer in answers] == [*(code for _, code in BAD_QUESTIONS), "statistic"]
    assert all(len(answer["message"]) <= 500 for answer in answers)
