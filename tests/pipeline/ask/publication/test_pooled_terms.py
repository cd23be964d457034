"""What cells have in common, as a request states it: names, and files by their content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

import suffice
from suffice.errors import PriorError, UsageError
from suffice.pipeline.ask.publication import question
from suffice.pipeline.ask.publication.pooled_terms import read_pooling, require_unchanged
from suffice.pipeline.ask.publication.request import PooledTerms, Request, pooled_text
from suffice.publishing.asking import question_of, title_of
from support.pooled_cells import make_cells
from support.publications import request_of

if TYPE_CHECKING:
    from pathlib import Path

    from suffice.pipeline.ask.pooling.release import Release


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return make_cells(tmp_path_factory.mktemp("cells"), 3)


def test_a_request_without_pooled_cells_is_written_as_it_was() -> None:
    content = request_of()
    assert Request.read(content).content() == content
    with pytest.raises(UsageError, match="no request"):
        Request.read({**content, "pooled": None})


def test_the_same_in_other_words_is_the_same_request(release: Release) -> None:
    asked = [
        question_of(release, "ill", pooled=pooled, draws=0).request
        for pooled in (["region", "all"], suffice.Pooling(within=("region",)), ["contaminated", "region"])
    ]
    assert {each.publication_id for each in asked} == {asked[0].publication_id}
    assert asked[0].pooled == PooledTerms(population="contaminated", within=("region",))
    assert asked[0].statistics[0].priors == ()
    assert (asked[0].statistics[0].n_prior or "").startswith("Reciprocal")
    assert asked[0].statistics[0].interval == "central"
    assert question_of(release, "ill", draws=0).request.publication_id != asked[0].publication_id
    assert "pooled" in asked[0].content()
    assert Request.read(asked[0].content()) == asked[0]
    assert title_of(question_of(release, "ill", pooled="region", draws=0)).startswith(
        "ill, pooled contaminated; within region: "
    )


def test_tables_are_stated_by_their_bytes(release: Release, tmp_path: Path) -> None:
    table, same = tmp_path / "income.csv", tmp_path / "other-name.csv"
    for path in (table, same):
        path.write_text("region,town,income\nnorth,1,3\n", encoding="utf-8")
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    statistics = [release.statistic("ill")]
    (pooling, terms), (_, again) = (
        read_pooling(statistics, suffice.Pooling(covariates=path, formula="~ income", adjacency=str(path)))
        for path in (table, same)
    )
    assert (
        terms
        == again
        == PooledTerms(population="contaminated", covariates=digest, formula="~ income", adjacency=digest)
    )
    files = f"covariates sha256 {digest[:12]}; adjacency sha256 {digest[:12]}"
    assert pooled_text(terms) == f"pooled contaminated; formula ~ income; {files}"
    require_unchanged(pooling, terms)
    table.write_text("region,town,income\nnorth,1,4\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has changed"):
        require_unchanged(pooling, terms)
    with pytest.raises(UsageError, match="cannot be read"):
        read_pooling(statistics, suffice.Pooling(covariates=tmp_path / "none.csv"))
    with pytest.raises(UsageError, match="in memory"):
        read_pooling(statistics, suffice.Pooling(covariates={"region": ["north"]}))
    with pytest.raises(UsageError, match="pooled, formula: a publication states it in 1 to 1,000 characters"):
        read_pooling(statistics, suffice.Pooling(formula="~ " + "income + " * 200 + "income"))


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        ({"pooled": True, "prior": "Beta(1, 1)"}, PriorError, "prior of pooled cells"),
        ({"pooled": True, "priors": {"a": "Beta(1, 1)", "b": "Beta(1, 2)"}}, UsageError, "prior sensitivity"),
        ({"pooled": True, "roll_up": "town"}, UsageError, "roll up"),
        ({"pooled": "nothing"}, UsageError, "takes True"),
        ({"pooled": True, "kind": "likelihood"}, UsageError, "each cell alone"),
        ({"kind": "likelihood", "prior": "Beta(1, 1)"}, UsageError, "prior: a likelihood has none"),
        ({"kind": "likelihood", "mass": 0.9}, UsageError, "mass: a likelihood"),
        ({"kind": "likelihood", "draws": 5}, UsageError, "draws: a likelihood"),
        ({"kind": "likelihood", "seed": 0}, UsageError, "seed: a likelihood"),
        ({"kind": "likelihood", "formats": "card"}, UsageError, "formats of a likelihood"),
        ({"kind": "likelihood", "roll_up": "town"}, UsageError, "roll up"),
        ({"kind": "posteriors"}, UsageError, "kind"),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, dict) else None,
)
def test_what_does_not_go_together_is_refused(
    release: Release, asked: dict[str, object], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        question_of(release, "ill", **asked)  # type: ignore[arg-type]


def test_draws_of_pooled_cells_have_to_fit_one_file(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "MOST_POOLED_DRAWS", 60)
    with pytest.raises(UsageError, match="ask for 10 draws"):
        question_of(release, "ill", pooled=True, draws=11)
    assert question_of(release, "ill", pooled=True, draws=10).request.draws == 10
