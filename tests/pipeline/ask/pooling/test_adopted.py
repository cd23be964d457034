"""Adopted releases: which tables fit their law, what published numbers say, and posteriors."""

from __future__ import annotations

import copy
import itertools
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import gammaln
from scipy.stats import gamma, nbinom, poisson

import suffice
from suffice.errors import (
    AdoptedReleaseError,
    AdoptedTableError,
    LawError,
    PriorError,
    UnknownNameError,
    UsageError,
)
from suffice.pipeline.ask.pooling.published_number import read_published
from suffice.pipeline.terms.declaration.declared_law import DeclaredLaw, load_law

LAW: dict[str, Any] = {
    "name": "views",
    "publisher": "A publisher",
    "source": "https://example.org/table",
    "licence": "CC0 1.0",
    "privacy": "rho = 0.1",
    "keys": {"page": "as_published", "day": {"range": [1, 4]}},
    "columns": {
        "views": {
            "noise": {"law": "geometric", "scale": 4},
            "suppressed": {"below": 20, "shown_as": "absent"},
        }
    },
    "statistics": {
        "rate": {"family": "poisson", "column": "views", "upper": 1000},
        "views": {"family": "count", "column": "views", "upper": 1000},
    },
}
TABLE = {"page": ["A", "A", "B", "B", "B"], "day": [1, 3, 1, 2, 4], "views": [25, 31, 400, 410, 395]}


def changed(**parts: Any) -> dict[str, Any]:
    law = copy.deepcopy(LAW)
    law.update(parts)
    return law


def of_column(**parts: Any) -> dict[str, Any]:
    """Return a law whose only key is a row number, so that nothing is absent."""
    return changed(
        keys={"row": "as_published"}, columns={"views": {"noise": {"law": "geometric", "scale": 4}, **parts}}
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


def applied(column: dict[str, Any], noisy: float) -> str | None:
    """Do to a noisy number what a law declares; None where it is suppressed. Not the product's code."""
    if "suppressed" in column and noisy < column["suppressed"]["below"]:
        return None
    value = max(noisy, 0.0) if column.get("clamped_at_zero") else noisy
    if "rounded" in column:
        step = column["rounded"]["to"]
        scaled = value / step
        direction, ties = column["rounded"].get("direction", "nearest"), column["rounded"].get("ties", "even")
        if direction == "down":
            scaled = math.floor(scaled)
        elif direction == "up":
            scaled = math.ceil(scaled)
        elif ties == "even":
            scaled = round(scaled)
        elif ties == "up":
            scaled = math.floor(scaled + 0.5)
        else:
            scaled = math.copysign(math.floor(abs(scaled) + 0.5), scaled)
        value = scaled * step
    return f"{value + 0.0:g}"


ROUNDED = [
    {"to": 5},
    {"to": 4},
    {"to": 4, "ties": "up"},
    {"to": 4, "ties": "away_from_zero"},
    {"to": 10, "direction": "down"},
    {"to": 10, "direction": "up"},
]


@pytest.mark.parametrize("rounded", [None, *ROUNDED], ids=str)
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("below", [None, -7, 12])
@pytest.mark.parametrize("law", [{"law": "geometric", "scale": 4}, {"law": "gaussian", "sd": 4}], ids=str)
def test_intervals_hold_exactly_the_noisy_numbers_that_are_published_so(
    rounded: Any, clamped: bool, below: int | None, law: Any
) -> None:
    column: dict[str, Any] = {"noise": law, "clamped_at_zero": clamped}
    if rounded is not None:
        column["rounded"] = rounded
    if below is not None:
        column["suppressed"] = {"below": below, "shown_as": "empty"}
    declared = load_law(changed(columns={"views": column})).columns["views"]
    # Whole numbers for whole noise; halves apart from ends of intervals otherwise.
    noisy = np.arange(-60.0, 61.0) if law["law"] == "geometric" else np.arange(-60.0, 60.0, 0.5) + 0.25
    shown = [applied(column, value) for value in noisy.tolist()]
    for text in sorted(set(shown), key=str):
        count = read_published({"views": [text]}, "views", declared, 0).count
        within = (noisy >= count.low) & (noisy <= count.high)
        assert [text == each for each in shown] == within.tolist(), (text, count)


@pytest.mark.parametrize("law", ["laplace", "geometric", "gaussian", "discrete_gaussian"])
def test_chances_of_all_that_can_be_published_add_up_to_one(law: str) -> None:
    spread = {"scale": 3} if law in {"laplace", "geometric"} else {"sd": 3}
    column = {
        "noise": {"law": law, **spread},
        "suppressed": {"below": 2, "shown_as": "empty"},
        "rounded": {"to": 4, "ties": "up"},
    }
    declared = load_law(changed(columns={"views": column})).columns["views"]
    texts = [None, *(str(4 * multiple) for multiple in range(1, 60))]
    # Noisy numbers from 2 on are rounded to 4 or more, with ties up.
    counts = [read_published({"views": [text]}, "views", declared, 0).count for text in texts]
    total = sum(np.exp(count.log_likelihood(np.array([0.0, 7.0, 30.0]))) for count in counts)

    assert total == pytest.approx(1.0, abs=1e-12)


def in_order(column: dict[str, Any], order: tuple[str, ...], count: int, noise: float) -> str | None:
    """Do to a count what a law declares, step by step; None where it is suppressed."""
    value = float(count)
    for step in order:
        if step == "noise":
            value += noise
        elif step == "threshold" and value < column["suppressed"]["below"]:
            return None
        elif step == "clamp":
            value = max(value, 0.0)
        elif step == "round":
            value = float(applied({"rounded": column["rounded"]}, value) or 0.0)
    return f"{value + 0.0:g}"


ORDERS = [
    order
    for size in (1, 2, 3)
    for steps in itertools.combinations(("threshold", "clamp", "round"), size)
    for order in itertools.permutations(("noise", *steps))
]


@pytest.mark.parametrize(
    "rounded",
    # The last two turn the threshold, and what is just above it, into different multiples.
    [
        {"to": 4},
        {"to": 3, "ties": "up"},
        {"to": 5, "direction": "up"},
        {"to": 3, "direction": "up"},
        {"to": 12},
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_likelihoods_are_right_for_every_order(order: tuple[str, ...], rounded: Any) -> None:
    """Against the noise one by one: of every count the chance of every text that can be published."""
    column: dict[str, Any] = {"noise": {"law": "geometric", "scale": 2}, "order": list(order)}
    if "threshold" in order:
        column["suppressed"] = {"below": 6, "shown_as": "empty"}
    if "clamp" in order:
        column["clamped_at_zero"] = True
    if "round" in order:
        column["rounded"] = rounded
    declared = load_law(changed(columns={"views": column})).columns["views"]
    noise = np.arange(-90, 91)
    chance = np.tanh(0.25) * np.exp(-np.abs(noise) / 2.0)
    counts = np.arange(30)
    exact: dict[str | None, Any] = {}
    for count in counts.tolist():
        for each, weight in zip(noise.tolist(), chance.tolist(), strict=True):
            text = in_order(column, order, count, each)
            exact.setdefault(text, np.zeros(len(counts)))[count] += weight
    for text in [each for each, chances in exact.items() if chances.max() > 1e-6]:
        published = read_published({"views": [text]}, "views", declared, 0).count
        likelihood = np.exp(published.log_likelihood(counts.astype(float)))
        assert likelihood == pytest.approx(exact[text], abs=1e-9), text
        first, last = published.window()
        assert np.all(exact[text][(counts < first) | (counts > last)] < 1e-14)
        assert likelihood[min(int(published.nearest), 29)] >= (1.0 - 1e-9) * likelihood.max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "draws"),
    [
        (("round", "noise", "threshold"), 200_000),
        (("noise", "round", "threshold", "clamp"), 200_000),
        (("threshold", "noise", "clamp", "round"), 200_000),
        (("noise", "clamp", "threshold", "round"), 200_000),
    ],
)
def test_rates_are_right_for_every_order(order: tuple[str, ...], draws: int) -> None:
    """Against rates drawn from the prior whose counts are published so; five standard errors of a mean."""
    column: dict[str, Any] = {
        "noise": {"law": "geometric", "scale": 2},
        "suppressed": {"below": 6, "shown_as": "empty"},
        "clamped_at_zero": "clamp" in order,
        "order": list(order),
    }
    if "round" in order:
        column["rounded"] = {"to": 4, "ties": "up"}
    rng = np.random.default_rng(8)
    rate = rng.gamma(2.0, 6.0, draws)
    counts = rng.poisson(rate)
    noise = rng.geometric(1 - math.exp(-0.5), draws) - rng.geometric(1 - math.exp(-0.5), draws)
    texts = [
        in_order(column, order, count, each)
        for count, each in zip(counts.tolist(), noise.tolist(), strict=True)
    ]
    for text in (None, "8", "12"):
        like = rate[[each == text for each in texts]]
        if not len(like):
            continue
        posterior = small({"c": [text]}, {**RATE, "upper": 1000}, column).posterior("Gamma(2, 0.16666666667)")
        assert abs(posterior.mean()[0] - like.mean()) < 5.0 * like.std() / math.sqrt(len(like))
        assert posterior.sd()[0] == pytest.approx(like.std(), rel=0.05)


def test_the_order_is_written_down_and_shown() -> None:
    column = {
        "noise": {"law": "geometric", "scale": 4},
        "suppressed": {"below": 20, "shown_as": "absent"},
        "rounded": {"to": 1},
    }
    stated = changed(columns={"views": column | {"order": ["noise", "round", "threshold"]}})
    assert load_law(changed(columns={"views": column})).content()["columns"]["views"]["order"] == [
        "noise",
        "threshold",
        "round",
    ]
    said = str(suffice.adopt(TABLE, stated))
    assert said.index("scale 4") < said.index("rounded to 1") < said.index("suppressed below 20")
    for order in (["noise"], ["noise", "round", "threshold", "clamp"], ["noise", "noise", "round"]):
        with pytest.raises(LawError, match="order must have each of noise, threshold, round once"):
            load_law(changed(columns={"views": column | {"order": order}}))


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


LAPLACE: dict[str, Any] = {"noise": {"law": "laplace", "scale": 5}}
SUPPRESSED = {**LAPLACE, "suppressed": {"below": 17.5, "shown_as": "*"}, "rounded": {"to": 5}}


def small(table: dict[str, list[Any]], statistic: dict[str, Any], column: dict[str, Any]) -> Any:
    """Adopt a table of one column ``c``, and of what else the statistic is of."""
    noisy = dict.fromkeys(statistic.get("columns", ["c"]), column)
    terms = {"keys": {"k": "as_published"} if "k" in table else {}, "statistics": {"s": statistic}}
    about = {"name": "x", "publisher": "p", "source": "https://e.org", "licence": "l", "privacy": "p"}
    return suffice.adopt(table, {**about, **terms, "columns": noisy})["s"]


COUNT = {"family": "count", "column": "c", "upper": 100}
SHARE = {"family": "bernoulli", "column": "c", "total": "n"}


@pytest.mark.parametrize(
    ("table", "statistic", "column", "rule"),
    [
        ({"c": ["400"]}, COUNT, LAPLACE, "400 at the only cell: s has upper: 100, and the declared noise"),
        ({"c": ["300"], "n": ["100"]}, SHARE, LAPLACE, "300 at the only cell: s has the total n"),
        ({"c": ["15"]}, COUNT, SUPPRESSED, "15 was published, and noisy numbers below 17.5 were"),
        (
            {"k": ["a", "b"], "c": ["7", "8"], "z": ["1", None]},
            COUNT,
            {"noise": {"law": "laplace", "scale": {"column": "z"}}},
            "k=b: c: the spread of the noise is in the column 'z', which has no number there",
        ),
    ],
)
def test_what_the_law_makes_impossible_is_refused(
    table: dict[str, list[Any]], statistic: dict[str, Any], column: dict[str, Any], rule: str
) -> None:
    with pytest.raises(AdoptedTableError, match=re.escape(rule)):
        small(table, statistic, column)


def test_what_noise_may_explain_is_answered_and_named() -> None:
    assert small({"c": ["120"]}, COUNT, LAPLACE).posterior().decided_by_default["count"].tolist() == [True]
    assert small({"c": ["103"]}, COUNT, LAPLACE).posterior().decided_by_default == {}
    beyond = small({"c": ["1000000"]}, {**COUNT, "family": "poisson"}, LAPLACE).posterior()
    assert beyond.decided_by_default["rate"].tolist() == [True]
    hidden = {"family": "categorical", "columns": ["a", "b"]}
    posterior = small({"a": ["*"], "b": ["*"]}, hidden, SUPPRESSED).posterior()
    assert posterior.decided_by_default["probability"].tolist() == [[True, True]]


RATE = {**COUNT, "family": "poisson"}


def test_cells_are_judged_together() -> None:
    """Each of three is 3e-5 by itself; noise of all three is impossible, of which upper of a rate says."""
    three = {"k": ["a", "b", "c"], "c": ["50", "50", "50"]}
    posterior = small(three, {**RATE, "upper": 1}, LAPLACE).posterior(pooled="k")
    (line,) = posterior.conflict.lines()
    assert "50 at k=a; 50 at k=b; 50 at k=c: s has upper: 1, and the declared noise reaches" in line
    assert "or state a larger upper, or a prior" in line
    assert small(three, {**RATE, "upper": 1}, LAPLACE).posterior("Gamma(5, 0.1)").conflict.lines() == []
    assert small({"c": ["150"]}, COUNT, LAPLACE).posterior().conflict.lines()  # by itself 2e-5: said
    with pytest.raises(AdoptedTableError, match="155 at k=a; 155 at k=b: s has upper: 100"):
        small({"k": ["a", "b"], "c": ["155", "155"]}, COUNT, LAPLACE)
    with pytest.raises(AdoptedTableError, match="-120 at the only cell: s counts, and no count is below 0"):
        small({"c": ["-120"]}, COUNT, LAPLACE)


@pytest.mark.slow
def test_what_is_far_out_in_many_cells_is_what_noise_does() -> None:
    rng = np.random.default_rng(3)
    noisy = (100 + np.rint(rng.laplace(0, 5, 300))).tolist()
    table = {"k": list(map(str, range(300))), "c": list(map(str, noisy)), "n": ["100"] * 300}
    assert small(table, SHARE, LAPLACE).posterior().conflict.lines() == []
    few = {"c": ["110"], "n": ["100"]}
    (line,) = small(few, SHARE, {"noise": {"law": "laplace", "scale": 2}}).posterior().conflict.lines()
    assert "110 at the only cell: s has the total n" in line
    assert "a chance of 0.0034 in all" in line


def exact_total(shown: list[str], below: int, scale: float, *, vary: bool) -> Any:
    """Return the distribution of a total of counts up to 100, under ``Gamma(2, 0.1)``: plain sums."""
    n = np.arange(100.0)
    q = math.exp(-1.0 / scale)
    likelihoods = [
        np.sum([q ** np.abs(k - n) for k in range(-150, below)], axis=0)
        if text == "*"
        else q ** np.abs(float(text) - n)
        for text in shown
    ]
    total = np.zeros(99 * len(shown) + 1)
    log_spread = np.linspace(math.log(1e-4), math.log(4.0), 60)
    spread = np.exp(log_spread)
    of_spread = spread * np.exp(-2.0 * spread**2) * (log_spread[1] - log_spread[0]) / math.sqrt(math.pi / 2.0)
    for rate in np.exp(np.linspace(-3.0, 5.0, 81)):
        laws = [(1.0, poisson.pmf(n, rate))]
        if vary:
            k = spread[:, None] ** -2.0
            laws = list(zip(of_spread.tolist(), np.atleast_2d(nbinom.pmf(n, k, k / (k + rate))), strict=True))
            for every in (2, 3, 4, 6, 8, 12):
                apart = range(1 - every, every)
                near = [(1 - abs(j) / every) * poisson.pmf(every * n + j, every * rate) for j in apart]
                laws.append((1.0 / 12.0, np.sum(near, axis=0)))
        for weight, law in laws:
            added = np.ones(1)
            for likelihood in likelihoods:
                added = np.convolve(added, law * likelihood)
            total += weight * gamma.pdf(rate, 2.0, scale=10.0) * rate * added
    return total / total.sum()


@pytest.mark.slow
@pytest.mark.parametrize("cells", ["alike", "vary"])
@pytest.mark.parametrize("shown", [["12", "*", "20"], ["*", "*", "9"], ["10", "14"]])
def test_totals_of_pooled_counts_are_those_of_plain_sums(shown: list[str], cells: Any) -> None:
    column = {"noise": {"law": "geometric", "scale": 3}, "suppressed": {"below": 8, "shown_as": "*"}}
    table = {"k": list(map(str, range(len(shown)))), "c": shown}
    posterior = small(table, COUNT, column).posterior("Gamma(2, 0.1)", pooled="k", cells=cells)
    exact = exact_total(shown, 8, 3.0, vary=cells == "vary")
    counts = np.arange(len(exact))
    mean = float(exact @ counts)
    sd = math.sqrt(exact @ (counts - mean) ** 2)

    assert posterior.parameters == ("total",)
    assert posterior.mean()[0] == pytest.approx(mean, abs=5e-3 * sd)
    assert posterior.sd()[0] == pytest.approx(sd, rel=5e-3)
    below = np.cumsum(exact)
    for level, quantile in zip(
        (0.05, 0.5, 0.95), posterior.quantile([0.05, 0.5, 0.95], rng=1)[0], strict=True
    ):
        # Of 4,000 draws: five standard errors of a share.
        slack = 5.0 * math.sqrt(level * (1.0 - level) / 4000)
        at = round(float(quantile))
        assert below[at] > level - slack
        assert below[at - 1] < level + slack


@pytest.mark.slow
def test_totals_say_what_they_rest_on() -> None:
    adopted = suffice.adopt(TABLE, LAW)
    said = str(adopted.posterior("views", pooled="day"))
    assert "the total of up to 4 cells, whose counts vary about a mean rate" in said
    hidden = small({"k": ["a", "b"], "c": ["*", "*"]}, COUNT, SUPPRESSED).posterior(pooled="k")
    assert hidden.decided_by_default["total"].tolist() == [True]


@pytest.mark.slow
def test_a_pool_that_ends_where_upper_does_says_so() -> None:
    wild = {"k": ["a", "b", "c"], "c": ["50", "3000", "55"]}
    column = {"noise": {"law": "geometric", "scale": 3}}
    for upper in (10**5, 10**6):
        posterior = small(wild, {**RATE, "upper": upper}, column).posterior(pooled="k")
        assert posterior.decided_by_default["rate"].tolist() == [True]
    even = {"k": ["a", "b", "c"], "c": ["50", "60", "55"]}
    assert small(even, {**RATE, "upper": 10**5}, column).posterior(pooled="k").decided_by_default == {}


def test_exposures_of_absent_rows_are_said() -> None:
    law = changed(
        statistics={"rate": {"family": "poisson", "column": "views", "upper": 1000, "exposure": "hours"}}
    )
    adopted = suffice.adopt(TABLE | {"hours": [2, 2, 4, 4, 4]}, law)
    said = "hours of 3 absent rows (page=A, day=2 first) is taken to be that of published rows"
    assert said in str(adopted)
    assert said in str(adopted.posterior("rate"))
    assert "absent row" not in str(suffice.adopt(TABLE, LAW))


SHARES = {"family": "categorical", "columns": ["a", "b", "d"]}


def test_priors_of_shares_are_judged() -> None:
    statistic = small({"a": ["40"], "b": ["10"], "d": ["5"]}, SHARES, LAPLACE)

    assert statistic.posterior("Dirichlet(1, 1, 200)").conflict.is_said.tolist() == [[True]]
    for prior in ("Dirichlet(30, 10, 5)", "Dirichlet(0.001)", "Dirichlet(1)"):
        assert statistic.posterior(prior).conflict.lines() == []
    assert statistic.posterior().conflict.not_judged == ()


def exact_shares(counts: list[float], scale: float, concentration: float) -> tuple[Any, Any]:
    """Return means and sds of three shares under (1 / (N + A)), by sums over all counts up to 300."""
    n = np.arange(300.0)
    total = 3.0 * concentration
    of_count = gammaln(n + concentration) - gammaln(concentration) - gammaln(n + 1.0)
    each = [np.exp(of_count - np.abs(value - n) / scale) for value in counts]
    means, sds = [], []
    for first, second, third in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        rest = np.convolve(each[second], each[third])
        in_all = n[:, None] + np.arange(len(rest))
        weight = each[first][:, None] * rest / (in_all + total)
        weight *= np.exp(gammaln(in_all + 1.0) + gammaln(total) - gammaln(in_all + total))
        mean = (n[:, None] + concentration) / (in_all + total)
        square = mean * (1.0 - mean) / (in_all + total + 1.0) + mean**2
        means.append(float((weight * mean).sum() / weight.sum()))
        sds.append(math.sqrt((weight * square).sum() / weight.sum() - means[-1] ** 2))
    return np.array(means), np.array(sds)


@pytest.mark.parametrize("concentration", [1e-5, 0.01, 1.0, 30.0])
def test_shares_under_priors_of_every_size_are_those_of_plain_sums(concentration: float) -> None:
    """Of 20,000 draws: five standard errors of a mean are 0.035 of an sd."""
    column = {"noise": {"law": "geometric", "scale": 5}}
    statistic = small({"a": ["40"], "b": ["10"], "d": ["5"]}, SHARES, column)
    posterior = statistic.posterior(f"Dirichlet({concentration})")
    mean, sd = exact_shares([40, 10, 5], 5.0, concentration)

    assert np.all(np.abs(posterior.mean()[0] - mean) < 0.035 * sd)
    assert posterior.sd()[0] == pytest.approx(sd, rel=0.05)


def test_shares_under_a_prior_of_a_hundred_million_are_the_priors() -> None:
    posterior = small({"a": ["40"], "b": ["10"], "d": ["5"]}, SHARES, LAPLACE).posterior("Dirichlet(1e8)")
    assert posterior.mean()[0] == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_noise_of_every_size_is_answered_or_refused_by_type() -> None:
    tiny = small({"c": ["5"]}, COUNT, {"noise": {"law": "geometric", "scale": 0.0005}})
    assert tiny.table()[0]["noise_sd"] == 0.0
    # Nothing is known but the prior, and it is answered within seconds.
    huge = {"noise": {"law": "laplace", "scale": 1e9}}
    posterior = small({"c": ["7"]}, {**COUNT, "family": "poisson", "upper": 1000}, huge).posterior()
    assert posterior.mean()[0] == pytest.approx(500.0, rel=1e-5)
    with pytest.raises(UsageError, match="leaves too many counts to sum"):
        small({"c": ["7"]}, {**COUNT, "family": "poisson", "upper": 1e12}, huge).posterior()


@pytest.mark.parametrize("concentration", [0.001, 1.0, 20.0])
def test_rates_under_gamma_priors_with_long_tails_are_those_of_plain_sums(concentration: float) -> None:
    column = {"noise": {"law": "geometric", "scale": 3}}
    statistic = small({"c": ["50"]}, {**COUNT, "family": "poisson"}, column)
    posterior = statistic.posterior(f"Gamma({concentration}, 0.000001)")
    n = np.arange(2000.0)
    log_weight = gammaln(n + concentration) - gammaln(n + 1.0) - n * math.log1p(1e-6) - np.abs(50.0 - n) / 3.0
    weight = np.exp(log_weight - log_weight.max())
    mean = float(np.average(n + concentration, weights=weight)) / (1.0 + 1e-6)

    assert posterior.mean()[0] == pytest.approx(mean, rel=1e-6)
    assert statistic.posterior("Gamma(0.001, 0.000001)", pooled=()).conflict.lines() == []


def test_what_is_of_own_releases_refuses_adopted_ones_by_type() -> None:
    statistic = small({"k": ["a", "b"], "c": ["50", "60"]}, COUNT, LAPLACE)
    release = statistic.release
    for ask in (
        lambda: suffice.publish(release),
        lambda: suffice.open_release(release),
        lambda: suffice.compare(release, release, "s"),
        lambda: suffice.compare_priors(release, "s", []),
        lambda: suffice.pool("s", disjoint=release),
        lambda: suffice.pool("s", disjoint=[release, release]),
        lambda: suffice.roll_up(statistic, "k"),
        lambda: suffice.calibrate(release, "s"),
    ):
        with pytest.raises(AdoptedReleaseError, match=r"x \(adopted\) was adopted"):
            ask()


@pytest.mark.parametrize(
    ("y", "spread"),
    [(1020, 0.5), (1000, 1.0), (1150, 1.0), pytest.param(980, 30.0, marks=pytest.mark.slow)],
)
def test_more_successes_than_a_noisy_total_are_summed_as_they_are(y: int, spread: float) -> None:
    """Against plain sums over both counts, which are exact in p under ``Beta(1, 1)``."""
    column = {"noise": {"law": "laplace", "scale": spread}}
    about = {"name": "x", "publisher": "p", "source": "https://e.org", "licence": "l", "privacy": "p"}
    columns = {"c": column, "n": {"noise": {"law": "laplace", "scale": 20}}}
    law = {**about, "keys": {}, "columns": columns, "statistics": {"s": SHARE}}
    posterior = suffice.adopt({"c": [str(y)], "n": ["1000"]}, law)["s"].posterior(
        "Beta(1, 1)", n_prior="Uniform(0, 5000)"
    )
    k = np.arange(max(0.0, y - 40 * spread), y + 40 * spread + 1)[None]
    total = np.arange(200.0, 1800.0)[:, None]
    weight = np.exp(-np.abs(k - y) / spread - np.abs(total - 1000) / 20) * (k <= total) / (total + 1)
    mean = (k + 1) / (total + 2)
    square = mean * (np.minimum(k, total) + 2) / (total + 3)
    exact = (weight * mean).sum() / weight.sum()
    sd = math.sqrt((weight * square).sum() / weight.sum() - exact**2)
    assert abs(posterior.mean()[0] - exact) < 1e-3 * sd
    assert posterior.sd()[0] == pytest.approx(sd, rel=1e-3)


def test_texts_of_a_law_are_one_line() -> None:
    with pytest.raises(LawError, match="publisher"):
        suffice.adopt({"c": ["1"]}, {"name": "x", "publisher": "Me\nrelease: a@all"})
