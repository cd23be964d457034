"""The terms of a posterior: what is refused, and what signatures list."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import suffice
from suffice.errors import UsageError
from suffice.pipeline.ask.inference.posterior_terms import TERMS, PosteriorTerms, noise_aware_terms
from suffice.pipeline.ask.pooling.pool import pool
from suffice.pipeline.math.parameters.parameter_posterior import DRAWS, MASS


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"clipping": "never"}, "clipping is by-evidence, modelled or ignored"),
        ({"within_unit": "both"}, "within_unit is modelled or ignored"),
        ({"method": "best"}, "there is no method 'best'"),
        ({"method": "plug-in", "n_prior": 5}, "needs no prior of N"),
        ({"method": "plug-in", "predictor_prior": "x"}, "leave the prior of predictors out"),
    ],
)
def test_what_does_not_exist_or_has_no_use_is_refused(terms: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PosteriorTerms(**terms)


@pytest.mark.parametrize("term", ["method", "within_unit"])
def test_a_posterior_of_one_method_takes_no_other(term: str) -> None:
    given: Any = {term: TERMS[term].default}
    with pytest.raises(UsageError, match=f"{term}: releases that are pooled"):
        noise_aware_terms(None, given)
    with pytest.raises(UsageError, match=f"{term}: releases that are pooled"):
        pool("delay", disjoint=[], **given)


def test_terms_travel_to_workers() -> None:
    terms = PosteriorTerms(prior="Beta(1, 9)", clipping="ignored")
    assert pickle.loads(pickle.dumps(terms)) == terms  # noqa: S301 - our own bytes


def test_signatures_list_every_term_with_its_default() -> None:
    for function in (suffice.publish, suffice.Release.posterior):
        parameters = inspect.signature(function).parameters
        assert all(parameters[name].default == term.default for name, term in TERMS.items())
        assert all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    assert {"method", "within_unit"}.isdisjoint(inspect.signature(suffice.pool).parameters)
    assert (MASS, DRAWS) == (0.95, 4000)
