"""A request has one form and one id: of the question, whatever the way it was written."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import UsageError
from suffice.pipeline.ask.inference.chosen_priors import default_prior, read_prior
from suffice.pipeline.ask.publication.manifest_digest import manifest_sha256
from suffice.pipeline.ask.publication.question import ask, prior_text
from suffice.pipeline.ask.publication.request import (
    NamedPrior,
    ReleaseReference,
    Request,
    StatisticRequest,
    derived_seed,
)
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.declaration import canonical_json
from support.generative_models import generative_model_for
from support.noisy import noisy_statistic
from support.published import make_release

if TYPE_CHECKING:
    from suffice.pipeline.ask.pooling.release import Release


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return make_release(tmp_path_factory.mktemp("releases"))


def request_of(**changes: Any) -> Request:
    fields: dict[str, Any] = {
        "kind": "posterior",
        "releases": (ReleaseReference(release_id="ab" * 8, manifest_sha256="cd" * 32, label="flights@all"),),
        "statistics": (
            StatisticRequest(
                statistic="flag",
                priors=(NamedPrior(name=None, prior="Beta(1, 1)"),),
                n_prior="Reciprocal(1000)",
                predictor_prior=None,
                interval="central",
            ),
        ),
        "mass": "0.95",
        "draws": 10,
        "seed": 3,
        "formats": ("parquet",),
    }
    return Request(**{**fields, **changes})


TEXTS = st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_categories=["Cs"]))


@pytest.mark.slow
@given(
    where=st.dictionaries(TEXTS, st.text(max_size=20, alphabet=st.characters(exclude_categories=["Cs"]))),
    draws=st.integers(0, 10_000_000),
    seed=st.integers(0, 2**53 - 1),
    label=TEXTS,
)
def test_a_request_is_read_back_whole(where: dict[str, str], draws: int, seed: int, label: str) -> None:
    reference = ReleaseReference(release_id="ab" * 8, manifest_sha256="cd" * 32, label=label)
    request = request_of(where=where, draws=draws, seed=seed, releases=(reference,))
    read = Request.read(json.loads(request.canonical()))
    assert read == request
    assert read.publication_id == request.publication_id
    assert re.fullmatch("[0-9a-f]{32}", read.publication_id)
    assert canonical_json.decode(request.canonical()) == request.content()


def test_every_choice_has_an_id_of_its_own() -> None:
    base = request_of()
    others = [
        request_of(draws=11),
        request_of(seed=4),
        request_of(mass="0.9"),
        request_of(formats=("csv",)),
        request_of(where={"place": "x"}),
        request_of(method="plug-in"),
        request_of(clipping="ignored"),
        request_of(within_unit="ignored"),
        request_of(kind="roll_up", over=("place",)),
        request_of(cells_per_part=10),
    ]
    ids = {request.publication_id for request in (base, *others)}
    assert len(ids) == 1 + len(others)


def test_nothing_of_this_machine_is_in_a_request(release: Release) -> None:
    text = ask([release], ["flag"], formats=["parquet"]).request.canonical().decode()
    assert release.uri not in text
    assert "/" not in text
    # What is not pooled does not say so: its id is as old as it is.
    assert set(json.loads(text)) == set(Request.model_fields) - {"pooled"}


def test_one_question_has_one_id_however_it_is_put(release: Release) -> None:
    def asked(**terms: Any) -> Request:
        return ask([release], ["flag"], **{"formats": ["json", "csv"], **terms}).request

    first = asked(prior="Beta(1, 9)", where={"place": "=1+1", "month": 2}, n_prior="Uniform(0, 500)")
    again = asked(
        prior=read_prior("Beta(concentration1=1, concentration0=9)"),
        where={"month": "2", "place": "=1+1"},
        n_prior="Uniform(lower=0,upper=500)",
        formats=["csv", "json", "csv"],
        seed=first.seed,
    )
    assert again.canonical() == first.canonical()
    assert (
        asked().publication_id
        == asked(prior="Beta(1, 1)", n_prior="Reciprocal(1000000000000)").publication_id
    )
    assert asked(seed=1).publication_id != asked(seed=2).publication_id


def test_columns_are_rolled_up_in_whatever_order(release: Release) -> None:
    def asked(*over: str) -> Request:
        return ask([release], ["flag"], kind="roll_up", over=over, formats=["csv"]).request

    assert asked("month", "place").canonical() == asked("place", "month").canonical()
    with pytest.raises(UsageError, match="once each"):
        asked("month", "month")


def test_vouching_for_one_release_is_refused(release: Release) -> None:
    with pytest.raises(UsageError, match="vouching for releases"):
        ask([release], ["flag"], vouched=True, formats=["csv"])


@pytest.mark.parametrize("name", ["", "x" * 1001, "\ud800", 7])
def test_names_of_priors_are_short_texts(release: Release, name: Any) -> None:
    priors = {name: "Beta(1, 1)", "other": "Beta(1, 9)"}
    with pytest.raises(UsageError, match=r"priors\.name"):
        ask([release], ["flag"], kind="prior_sensitivity", priors=priors, formats=["csv"])


def test_a_derived_seed_follows_from_the_rest() -> None:
    seeds = {derived_seed(request_of(draws=draws)).seed for draws in range(50)}
    assert len(seeds) == 50
    assert all(0 <= seed < 2**52 for seed in seeds)
    assert derived_seed(request_of(seed=1)) == derived_seed(request_of(seed=2))


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_text_of_a_default_prior_is_that_prior(family: str) -> None:
    plan = generative_model_for(family, n=20, method="plug-in").plan
    statistic = noisy_statistic(plan, np.full((1, len(plan.components)), 9, dtype=object))
    text = prior_text(statistic, None)
    assert read_prior(text) == default_prior(statistic)
    assert prior_text(statistic, text) == text


def test_a_manifests_hash_is_that_of_its_bytes(release: Release) -> None:
    import hashlib
    from pathlib import Path

    data = (Path(release.uri) / "manifest.json").read_bytes()
    assert manifest_sha256(release) == hashlib.sha256(data).hexdigest()


def _changed(**changes: Any) -> dict[str, Any]:
    return {**request_of().content(), **changes}


@pytest.mark.parametrize(
    "content",
    [
        {},
        _changed(algorithm=2),
        _changed(kind="oracle"),
        _changed(extra=1),
        _changed(draws="10"),
        _changed(draws=-1),
        _changed(draws=1.5),
        _changed(seed=2**53),
        _changed(mass=0.95),
        _changed(mass="nan"),
        _changed(formats=[]),
        _changed(formats=["parquet", "csv"]),
        _changed(formats=["csv", "csv"]),
        _changed(releases=[]),
        _changed(releases=request_of().content()["releases"] * 2),
        _changed(statistics=request_of().content()["statistics"] * 2),
        _changed(kind="comparison"),
        _changed(kind="pool"),
        _changed(relation="disjoint"),
        _changed(kind="roll_up"),
        _changed(over=["place"]),
        _changed(kind="roll_up", over=["place", "place"]),
        _changed(vouched=True),
        _changed(kind="model"),
        _changed(kind="prior_sensitivity"),
        _changed(where={"place": 1}),
        _changed(where={"\ud800": "x"}),
        {key: value for key, value in _changed().items() if key != "vouched"},
    ],
)
def test_what_is_no_request_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no request"):
        Request.read(content)
