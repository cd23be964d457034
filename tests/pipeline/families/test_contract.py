"""Every family in the registry says all that other rooms, suites and documents ask of it."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import PLUG_IN
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.families.shared.contract import Absent, Family
from suffice.pipeline.math.priors.record_count import Uniform
from suffice.pipeline.terms.declaration.fields import ColumnSpec
from support.family_contract import REQUIRED, TABLES, documented, missing_from, tables_of_families
from support.generative_models import generative_model_for
from support.noisy import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suffice.typing import Floats


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_says_everything(name: str, repository: Path) -> None:
    assert "\n".join(missing_from(FAMILIES[name], repository)) == ""
    assert FAMILIES[name].name == name


@pytest.mark.parametrize("document", TABLES)
def test_tables_have_the_families_of_the_registry(document: str, repository: Path) -> None:
    assert sorted(documented(repository, document)) == sorted(FAMILIES)


def test_documents_name_no_other_families(repository: Path) -> None:
    documents = [repository / "README.md", *sorted((repository / "docs").rglob("*.md"))]
    named = {
        (str(document.relative_to(repository)), name)
        for document in documents
        if document.parent.name != "contributing"
        for names in tables_of_families(document)
        for name in names
    }
    assert {document for document, _ in named} > set(TABLES)
    assert not [(document, name) for document, name in sorted(named) if name not in FAMILIES]


class Undocumented(ColumnSpec):
    """An entry in a file whose docstring names no section."""


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"example": None}, "bernoulli has no example: state example"),
        ({"generative_case": None}, "bernoulli has no generative case for its calibration: state"),
        ({"jax_likelihood": None}, "bernoulli has no likelihood in JAX: state jax_likelihood, or why"),
        ({"jax_likelihood": Absent(" ")}, "no likelihood in JAX and gives no reason"),
        ({"parameter_spaces": None}, "bernoulli has no parameters: state parameter_spaces"),
        ({"parameter_spaces": lambda _: ()}, "bernoulli has no parameters: name them"),
        ({"noise_aware": None}, "bernoulli has no posterior that takes the noise into account"),
        ({"simulate": None}, "bernoulli has no way to simulate data"),
        ({"example": replace(FAMILIES["poisson"].example)}, "bernoulli has no valid example: .*upper"),
        ({"spec": Undocumented}, "bernoulli has no sensitivity: let the docstring of its file say"),
    ],
)
def test_what_a_family_lacks_is_said_in_a_sentence(
    changes: dict[str, Any], sentence: str, repository: Path
) -> None:
    (said,) = missing_from(replace(FAMILIES["bernoulli"], **changes), repository)
    assert re.search(sentence, said), said


def test_a_family_without_a_row_is_told_where_it_goes(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = replace(FAMILIES["bernoulli"], name="unheard_of")
    monkeypatch.setitem(FAMILIES, "unheard_of", unheard)
    said = list(missing_from(unheard, repository))
    sentence = "unheard_of is in no row of the table of families in {}: add one."
    assert said == [sentence.format(document) for document in TABLES]


def test_nothing_that_a_family_states_has_a_default() -> None:
    by_name = {field.name: field for field in fields(Family)}
    assert all(by_name[name].default is MISSING for name in REQUIRED)
    assert all(by_name[name].default_factory is MISSING for name in REQUIRED)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_called_as_in_the_posterior(name: str) -> None:
    generative_model = generative_model_for(name, n=20, method=PLUG_IN)
    nothing = np.zeros((1, len(generative_model.plan.components)), dtype=object)
    posterior = posterior_of(
        generative_model.noisy(nothing, nothing), prior=generative_model.prior, method="plug-in"
    )
    names = FAMILIES[name].parameter_names(generative_model.plan.parameters)
    # Variances are the diagonal of a covariance: shown, but no parameter of their own.
    shown = (
        parameter
        for parameter in posterior.parameters
        if (parameter, "covariance" in names) != ("variance", True)
    )
    assert names == tuple(shown)


RECORDS = 20_000
OUTSIDE = [name for name, family in FAMILIES.items() if family.outside]


@pytest.mark.parametrize("name", OUTSIDE)
def test_the_share_beyond_the_bounds_is_that_of_simulated_records(name: str) -> None:
    """Of the example, one record for each draw of its default prior; within 6 standard errors.

    Of 900 expected outside and more: 4e-9 at most each of twelve.
    """
    family, rng = FAMILIES[name], np.random.default_rng()
    generative_model = generative_model_for(
        name, n=1, method=PLUG_IN, conditions=(dict(family.example.entry), None)
    )
    assert family.outside is not None
    truth = generative_model.truth(RECORDS, rng)
    shares = family.outside(*truth.reshape(RECORDS, -1).T, generative_model.plan.parameters)
    drawn = generative_model.sums(truth, np.ones(RECORDS, dtype=np.int64), rng)
    error = np.sqrt(np.sum(shares.share * (1.0 - shares.share)))
    assert abs(drawn.n_clipped - np.sum(shares.share)) < 6.0 * error
    assert drawn.n_clipped > 0


PRIORS: dict[str, Callable[[Any], Any]] = {
    "Beta": lambda prior: stats.beta(prior.concentration1, prior.concentration0),
    "Gamma": lambda prior: stats.gamma(prior.concentration, scale=1 / prior.rate),
    "InverseGamma": lambda prior: stats.invgamma(prior.concentration, scale=prior.scale),
    "Normal": lambda prior: stats.norm(prior.loc, prior.scale),
}
"""Priors of one number, by scipy."""
POINTS = 200
ONE_NUMBER = [name for name, family in FAMILIES.items() if family.latent]


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_NUMBER)
def test_the_likelihood_in_jax_times_the_prior_is_the_posterior(name: str) -> None:
    """Two quadratures of a family by itself: at five quantiles, whose levels are right to 0.01 at worst."""
    numpyro = pytest.importorskip("numpyro")
    numpyro.enable_x64()
    import jax

    from suffice import numpyro as likelihood

    family, rng, n_prior = FAMILIES[name], np.random.default_rng(7), Uniform(0, 20)
    if isinstance(family.jax_likelihood, Absent):
        pytest.skip(family.jax_likelihood.reason)
    generative_model = generative_model_for(name, n=10, epsilon="3", n_prior=n_prior)
    plan = generative_model.plan
    sums = generative_model.sums(generative_model.truth(1, rng), np.array([10]), rng).clipped
    noise = discrete_laplace(plan.scale, (1, len(plan.components)), rng)
    statistic = generative_model.noisy(sums, noise)
    posterior = posterior_of(statistic, prior=generative_model.prior, n_prior=n_prior, clipping="ignored")
    (parameter,) = family.parameter_names(plan.parameters)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    prior = PRIORS[type(generative_model.prior).__name__](generative_model.prior)
    first, last = (float(posterior.quantile(parameter, level)[0]) for level in (1e-4, 1.0 - 1e-4))
    edges = np.linspace(first, last, POINTS + 1)
    middle: Floats = (edges[1:] + edges[:-1]) / 2

    def at(value: Any) -> Any:
        return likelihood.log_likelihood(statistic, n_prior=n_prior, **{parameter: value})[0]

    log_weight = np.asarray(jax.jit(jax.vmap(at))(middle)) + prior.logpdf(middle)
    weight = np.exp(log_weight - log_weight.max())
    below = np.concatenate([[0.0], np.cumsum(weight) / np.sum(weight)])
    for level in levels:
        quantile = posterior.quantile(parameter, level)[0]
        assert np.interp(quantile, edges, below) == pytest.approx(level, abs=0.01)


def test_a_family_may_have_no_likelihood_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpyro").enable_x64()
    from suffice import numpyro as likelihood

    without = replace(FAMILIES["bernoulli"], jax_likelihood=Absent("nobody has written it down"))
    monkeypatch.setitem(FAMILIES, "bernoulli", without)
    generative_model = generative_model_for("bernoulli", n=20)
    nothing = np.zeros((1, 2), dtype=object)
    with pytest.raises(UsageError, match=r"no likelihood in NumPyro: nobody has written it down"):
        likelihood.log_likelihood(generative_model.noisy(nothing, nothing), probability=0.5)
