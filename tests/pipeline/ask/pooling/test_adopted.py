"""Adopted releases: which tables fit their law, and their posteriors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice
from suffice.errors import (
    AdoptedTableError,
    LawError,
    PriorError,
    UnknownNameError,
    UsageError,
)
from suffice.pipeline.terms.declaration.declared_law import DeclaredLaw, load_law
from support.adopted_tables import (
    LAW,
    TABLE,
    changed,
    of_column,
)


@pytest.mark.parametrize("kind", ["dict", "csv", "parquet", "pandas", "arrow"])
def test_every_kind_of_table_is_the_same_release(kind: str, tmp_path: Any) -> None:
    frame = pd.DataFrame(TABLE)
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        pq.write_table(pa.table(TABLE), path)
    kinds = {"dict": TABLE, "pandas": frame, "arrow": pa.table(TABLE)}

    adopted = suffice.adopt(kinds.get(kind, path), LAW)

    assert adopted.release_id == suffice.adopt(TABLE, LAW).release_id
    assert adopted.columns["day"] == ["1", "2", "3", "4"] * 2
    assert adopted.columns["views"] == ["25", None, "31", None, "400", "410", None, "395"]


def test_it_says_that_it_was_adopted_wherever_it_is_shown() -> None:
    adopted = suffice.adopt(TABLE, LAW)
    posterior = adopted["rate"].posterior(pooled="day")

    for shown in (repr(adopted), str(adopted), adopted._repr_html_(), str(adopted.table("rate").title)):
        assert "dopted" in shown
    for shown in (str(posterior), posterior._repr_html_()):
        assert (
            "adopted release, by its publisher&#x27;s" in shown
            or "adopted release, by its publisher's" in shown
        )
        assert "3 of 8 published numbers suppressed" in shown
        assert "pooled over day" in shown
    assert posterior.releases == (f"views (adopted) {adopted.release_id}",)
    assert "in no ledger" in str(adopted)
    assert "suppressed below 20 (absent)" in str(adopted)


TABLES = {
    "twice": (TABLE | {"day": [1, 1, 1, 2, 4]}, "row 2: the keys page=A, day=1 already stand in row 1"),
    "outside": (TABLE | {"day": [1, 9, 1, 2, 4]}, "row 2: '9' is no key that the law declares for 'day'"),
    "below": (
        TABLE | {"views": [25, 19, 400, 410, 395]},
        "19 was published, and noisy numbers below 20 were",
    ),
    "fraction": (
        TABLE | {"views": [25, 31.5, 400, 410, 395]},
        "31.5 was published, and geometric noise leaves",
    ),
    "text": (
        TABLE | {"views": ["25", "many", "400", "410", "395"]},
        "page=A, day=3: views: 'many' is no number",
    ),
    "rows": ({"page": [], "day": [], "views": []}, "it has no rows"),
    "column": ({"page": ["A"], "day": [1]}, "the law names the column 'views', and the table has page, day"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_does_not_fit_is_refused_and_quoted(name: str) -> None:
    table, words = TABLES[name]

    with pytest.raises(AdoptedTableError) as caught:
        suffice.adopt(table, LAW)

    assert words in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("parts", "value", "words"),
    [
        ({"rounded": {"to": 5}}, 7, "7 was published, which is no multiple of 5"),
        ({"clamped_at_zero": True}, -1, "-1 was published, and numbers below 0 were set to 0"),
        ({}, None, "there is no value: where that means suppressed, the law has to say so"),
        (
            {"noise": {"law": "geometric", "scale": {"column": "row"}}},
            3,
            "in the column 'row', which has no number",
        ),
        ({"noise": {"law": "geometric", "scale": {"by": "row", "values": {"b": 2}}}}, 3, "none for 'a'"),
    ],
)
def test_values_that_the_law_makes_impossible_are_refused(parts: Any, value: Any, words: str) -> None:
    with pytest.raises(AdoptedTableError, match=words):
        suffice.adopt({"row": ["a"], "views": [value]}, of_column(**parts))


def test_absent_cells_have_to_be_declared() -> None:
    column = {"noise": {"law": "geometric", "scale": 4}}

    with pytest.raises(AdoptedTableError, match="the cell page=A, day=2 is not there"):
        suffice.adopt(TABLE, changed(columns={"views": column}))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"colour": "red"}, "colour: unknown key"),
        ({"publisher": None}, "publisher"),
        ({"source": "none"}, "source: 'none' is no URL: state where the table"),
        (
            {"keys": {"page": {"from": "2024-01-01", "to": "2024-01-15", "every": "week"}}},
            "weeks that the table names by their first day, list these days, or as_published",
        ),
        ({"columns": {"views": {"noise": {"law": "cauchy", "scale": 1}}}}, "columns.views.noise.law"),
        ({"columns": {"views": {"noise": {"law": "laplace", "sd": 1}}}}, "laplace noise needs scale"),
        (
            {"columns": {"views": {"noise": {"law": "gaussian", "sd": 1, "variance": 1}}}},
            "needs sd or variance",
        ),
        ({"columns": {"views": {"noise": {"law": "laplace", "scale": -1}}}}, "scale must be above 0"),
        ({"columns": {"views": {"noise": {"law": "laplace", "scale": "nan"}}}}, "is no number up to 1e12"),
        (
            {"statistics": {"rate": {"family": "poisson", "column": "views"}}},
            "statistics.rate: the key 'upper'",
        ),
        (
            {"statistics": {"rate": {"family": "poisson", "column": "x", "upper": 9}}},
            "statistics.rate is of 'x'",
        ),
        ({"statistics": {"rate": {"family": "normal", "column": "views"}}}, "statistics.rate"),
    ],
)
def test_a_law_that_breaks_a_rule_is_refused_with_its_place(parts: Any, words: str) -> None:
    with pytest.raises(LawError) as caught:
        suffice.adopt(TABLE, changed(**parts))

    assert words in str(caught.value)


def test_a_law_in_yaml_says_the_line_of_what_is_wrong(tmp_path: Any) -> None:
    path = tmp_path / "law.yaml"
    path.write_text("name: views\npublisher: x\nsource: nowhere\n")

    with pytest.raises(LawError, match=r"law\.yaml"):
        load_law(path)
    with pytest.raises(LawError, match="there is no such file"):
        load_law(tmp_path / "none.yaml")


def test_what_a_law_leaves_out_is_the_same_when_it_is_read_again() -> None:
    law = load_law(LAW)

    assert load_law(law.content()) == law
    assert isinstance(law, DeclaredLaw)


def test_the_scale_may_go_by_level_or_by_column() -> None:
    by_level = of_column(noise={"law": "gaussian", "variance": {"by": "row", "values": {"a": 4, "b": 100}}})
    by_column = of_column(noise={"law": "gaussian", "sd": {"column": "sd"}})

    sds = [
        [row["noise_sd"] for row in suffice.adopt(table, law).table("rate")]
        for table, law in [
            ({"row": ["a", "b"], "views": [30, 30]}, by_level),
            ({"row": ["a", "b"], "views": [30, 30], "sd": [2, 10]}, by_column),
        ]
    ]

    assert sds == [[2.0, 10.0], [2.0, 10.0]]


def test_suppressed_cells_are_censored_and_pooled_rates_use_them() -> None:
    adopted = suffice.adopt(TABLE, LAW)
    cells = adopted.posterior("rate", where={"page": "A"})
    pooled = adopted.posterior("rate", pooled="day", where={"page": "A"}, cells="alike")
    dropped = suffice.adopt(
        {"page": ["A", "A"], "day": ["1", "3"], "views": [25, 31]},
        changed(keys={"page": "as_published", "day": "as_published"}),
    ).posterior("rate", pooled="day", cells="alike")

    assert cells.mean()[1] < 20.0 < cells.mean()[0]
    assert cells.decided_by_default["rate"].tolist() == [False, True, False, True]
    assert pooled.mean()[0] < dropped.mean()[0] - 3.0
    assert "default prior decides" in str(cells)
    assert "default prior decides" not in str(pooled)


@pytest.mark.slow
def test_whether_pooled_cells_vary_is_said_and_can_be_chosen() -> None:
    adopted = suffice.adopt(TABLE, LAW)
    vary, alike = (
        adopted.posterior("rate", "Gamma(1, 0.01)", pooled="day", cells=cells) for cells in (None, "alike")
    )

    assert "the mean rate of up to 4 cells, which may vary" in str(vary)
    assert "are taken to share a rate, and not to vary" in str(alike)
    assert "in 1 of 2 pools more than a quarter is suppressed" in str(vary)
    assert (vary.cells, alike.cells, adopted.posterior("rate").cells) == ("vary", "alike", None)
    assert np.all(vary.sd() > 1.2 * alike.sd())
    with pytest.raises(UsageError, match="cells is vary or alike"):
        adopted.posterior("rate", pooled="day", cells="same")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="of cells that are pooled"):
        adopted.posterior("rate", cells="alike")


def test_a_prior_that_the_table_contradicts_is_said() -> None:
    adopted = suffice.adopt(TABLE, LAW)

    with pytest.warns(suffice.errors.ConflictWarning, match="disagree in 1 of 2 cells"):
        adopted.posterior("rate", "Gamma(100, 4)", pooled="day", cells="alike").interval()
    assert (
        adopted.posterior(
            "rate", "Gamma(100, 4)", where={"page": "A"}, pooled="day", cells="alike"
        ).summary()[0]["conflict"]
        is False
    )


@pytest.mark.slow
def test_mixtures_densities_and_conjugate_priors_agree() -> None:
    adopted = suffice.adopt(TABLE, LAW)
    means = [
        adopted.posterior("rate", prior, pooled="day").mean()
        for prior in (
            "Gamma(2, 0.01)",
            "Mixture(0.5, Gamma(2, 0.01), 0.5, Gamma(2, 0.01))",
            suffice.Gamma(2, 0.01),
        )
    ]
    density = suffice.Density(lambda rate: np.log(rate) - 0.01 * rate, 0.0, math.inf)

    assert means[1] == pytest.approx(means[0], rel=1e-6)
    assert means[2] == pytest.approx(means[0], rel=1e-9)
    assert adopted.posterior("rate", density, pooled="day").mean() == pytest.approx(means[0], rel=1e-5)


def test_shares_of_rows_and_of_columns_are_the_same() -> None:
    noise = {"noise": {"law": "discrete_gaussian", "sd": 2}}
    by_columns = changed(
        keys={"place": "as_published"},
        columns={"car": noise, "bus": noise},
        statistics={"mode": {"family": "categorical", "columns": ["car", "bus"]}},
    )
    by_rows = changed(
        keys={"place": "as_published", "mode": ["car", "bus"]},
        columns={"trips": noise},
        statistics={"mode": {"family": "categorical", "column": "trips", "category": "mode"}},
    )
    wide = suffice.adopt({"place": ["X"], "car": [80], "bus": [20]}, by_columns).posterior("mode")
    long = suffice.adopt({"place": ["X", "X"], "mode": ["car", "bus"], "trips": [80, 20]}, by_rows).posterior(
        "mode"
    )

    assert wide.mean()[0] == pytest.approx([0.79, 0.21], abs=0.02)
    assert long.mean() == pytest.approx(wide.mean())
    assert [row["category"] for row in long.summary(rng=0)] == ["car", "bus"]
    with pytest.raises(PriorError, match="its prior is a Dirichlet of 1 or 2"):
        suffice.adopt({"place": ["X"], "car": [80], "bus": [20]}, by_columns).posterior("mode", "Beta(1, 1)")


def test_successes_of_a_public_or_a_noisy_total() -> None:
    noise = {"noise": {"law": "laplace", "scale": 2}}
    statistics = {"late": {"family": "bernoulli", "column": "late", "total": "flights"}}
    table = {"place": ["X"], "late": [30.5], "flights": [200]}
    public = changed(keys={"place": "as_published"}, columns={"late": noise}, statistics=statistics)
    noisy = changed(
        keys={"place": "as_published"}, columns={"late": noise, "flights": noise}, statistics=statistics
    )

    of_public = suffice.adopt(table, public).posterior("late")
    of_noisy = suffice.adopt(table, noisy).posterior("late", "Beta(1, 9)", n_prior="Uniform(0, 1000)")

    assert of_public.mean()[0] == pytest.approx(0.155, abs=0.01)
    assert of_noisy.mean()[0] == pytest.approx(0.15, abs=0.01)
    assert str(of_noisy.n_prior) == "Uniform(0, 1000)"
    with pytest.raises(UsageError, match="a prior of N is of a noisy total"):
        suffice.adopt(table, public).posterior("late", n_prior=5)
    with pytest.raises(AdoptedTableError, match="is no total of late"):
        suffice.adopt(table | {"flights": [0]}, public)


def test_exposure_of_absent_days_is_that_of_their_page() -> None:
    law = changed(
        statistics={"rate": {"family": "poisson", "column": "views", "upper": 1000, "exposure": "hours"}}
    )
    adopted = suffice.adopt(TABLE | {"hours": [2, 2, 4, 4, 4]}, law)

    assert adopted.columns["hours"] == ["2", "2", "2", "2", "4", "4", "4", "4"]
    by_hour, by_day = (
        release.posterior("rate", where={"page": "B", "day": 1})
        for release in (adopted, suffice.adopt(TABLE, LAW))
    )
    assert by_hour.mean() == pytest.approx(by_day.mean() / 4.0, rel=5e-3)


def test_what_is_not_there_is_named() -> None:
    adopted = suffice.adopt(TABLE, LAW)

    with pytest.raises(UnknownNameError, match="no statistic 'rates': it has rate, views"):
        adopted["rates"]
    with pytest.raises(UnknownNameError, match="'month' is no key: the keys are page, day"):
        adopted.posterior("rate", where={"month": 1})
    with pytest.raises(UsageError, match="'month' is no key to pool over"):
        adopted.posterior("rate", pooled="month")
    with pytest.raises(PriorError, match="is a count: its prior is Uniform"):
        adopted.posterior("views", suffice.Gamma(1, 1))
    with pytest.raises(PriorError, match="is poisson: its prior must be Gamma"):
        adopted.posterior("rate", suffice.Beta(1, 1))


@pytest.mark.slow
def test_posteriors_plot_and_are_frames() -> None:
    posterior = suffice.adopt(TABLE, LAW).posterior("rate", pooled="day")

    assert posterior.to_frame("pandas")["page"].tolist() == ["A", "B"]
    assert "views (adopted): rate" in posterior.plot().svg
    assert "<svg" in suffice.adopt(TABLE, LAW).posterior("views", where={"page": "B"}).plot().svg
    assert posterior.sample(10, 1)["rate"].shape == (10, 2)
    assert np.all(np.isfinite(posterior.log_evidence))


def test_texts_of_a_law_are_one_line() -> None:
    with pytest.raises(LawError, match="publisher"):
        suffice.adopt({"c": ["1"]}, {"name": "x", "publisher": "Me\nrelease: a@all"})
