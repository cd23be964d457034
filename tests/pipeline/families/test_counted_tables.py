"""Families of count tables: names, refusals, forecasts, projections and plug-in posteriors."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from suffice.cli import output
from suffice.errors import PriorError, SpecError
from suffice.pipeline.ask.posterior.choice_of_engine import posterior_of
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.ask.publication.answer import draw_columns
from suffice.pipeline.families import FAMILIES, bayesian_network, naive_bayes
from suffice.pipeline.math.distributions.dirichlet import Dirichlet
from suffice.pipeline.math.engines.network import decomposition
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import load_spec
from suffice.pipeline.terms.statistics.count_table import CountTable, Variable, label_rows, released_tables
from support.noisy import discrete_laplace, noisy_statistic, statistic_plan

if TYPE_CHECKING:
    from suffice.pipeline.terms.released.noisy_statistic import NoisyStatistic
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan

Floats: TypeAlias = NDArray[np.float64]

TWO, THREE = ["0", "1"], ["0", "1", "2"]
OTHER = {"categories": ["0"], "other": "true"}
CONTINGENCY = {"family": "contingency", "columns": {"a": TWO, "b": THREE}}
NAIVE_BAYES = {"family": "naive_bayes", "outcome": {"y": TWO}, "features": {"a": THREE, "b": TWO}}
NETWORK = {
    "family": "bayesian_network",
    "nodes": {
        "c": {"categories": THREE, "parents": ["b", "a"]},
        "a": TWO,
        "b": {"categories": TWO, "parents": ["a"]},
        "d": {"categories": TWO, "parents": ["c"]},
    },
}
ENTRIES: dict[str, dict[str, Any]] = {
    "contingency": CONTINGENCY,
    "naive_bayes": NAIVE_BAYES,
    "bayesian_network": NETWORK,
}


def counted(plan: StatisticPlan, rows: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Count rows of codes in every table of a plan, one row at a time."""
    parts = []
    for table in released_tables(plan.parameters.tables):
        counts = np.zeros(table.shape, np.int64)
        for row in zip(*(rows[variable.name] for variable in table.variables), strict=True):
            counts[row] += 1
        parts.append(counts.ravel())
    return np.concatenate(parts)


def some_rows(plan: StatisticPlan, n_rows: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """Draw rows of codes that depend on each other."""
    variables = {v.name: len(v.categories) for table in plan.parameters.tables for v in table.variables}
    common = rng.integers(0, 6, n_rows)
    return {
        name: np.where(rng.random(n_rows) < 0.4, common % size, rng.integers(0, size, n_rows))
        for name, size in variables.items()
    }


def exact_statistic(family: str, n_rows: int = 500) -> tuple[NoisyStatistic, dict[str, NDArray[np.int64]]]:
    """A statistic without noise, and its rows."""
    plan = statistic_plan(ENTRIES[family], epsilon="1", public_n=False)
    rows = some_rows(plan, n_rows, np.random.default_rng(7))
    return noisy_statistic(plan, counted(plan, rows)[None]), rows


def test_components_name_variables_and_categories_and_can_be_told_apart() -> None:
    texts = ("", "a", "a,b=c", "\\", "\\,", "=")
    table = CountTable(
        name="t", variables=(Variable(name="x", categories=texts), Variable(name="x,y", categories=texts))
    )
    names = table.components()
    assert len(set(names)) == table.size == 36
    assert names[1] == r"x=,x\,y=a"
    assert table.labels()[1] == (("table", "t"), ("x", ""), ("x,y", "a"))
    assert [dict(label)["x"] for label in table.labels()] == [text for text in texts for _ in texts]


@pytest.mark.parametrize("family", ENTRIES)
def test_plans_name_every_component_and_forecast_its_noise(family: str) -> None:
    plan = statistic_plan(ENTRIES[family], epsilon="0.5", public_n=False)
    tables = released_tables(plan.parameters.tables)
    assert plan.l1_sensitivity == plan.partition_total == len(tables)
    assert plan.components == tuple(itertools.chain.from_iterable(table.components() for table in tables))
    assert len(set(plan.components)) == len(plan.components)
    noisy = plan.component_noise_sd
    sds = [plan.quantity_noise_sd(quantity) for quantity in plan.quantities[-len(plan.components) :]]
    assert sds == pytest.approx([noisy] * len(plan.components))


def test_class_counts_are_forecast_as_means_of_margins() -> None:
    plan = statistic_plan(NAIVE_BAYES, epsilon="0.5", public_n=False)
    classes = [quantity for quantity in plan.quantities if dict(quantity.labels)["table"] == "y"]
    assert [dict(quantity.labels)["y"] for quantity in classes] == TWO
    # Margins over 3 and over 2 noisy counts: the best mean has variance 1 / (1/3 + 1/2) of one count's.
    expected = plan.component_noise_sd * np.sqrt(6 / 5)
    assert [plan.quantity_noise_sd(quantity) for quantity in classes] == pytest.approx([expected] * 2)
    statistic, rows = exact_statistic("naive_bayes")
    estimates = [statistic.estimates(quantity)[0] for quantity in classes]
    assert estimates == pytest.approx(np.bincount(rows["y"], minlength=2))


def test_a_root_that_is_an_only_parent_costs_nothing() -> None:
    """Two nodes cost what one table does; a root of a collider is no margin of a table of one parent."""
    pair = {"family": "bayesian_network", "nodes": {"a": TWO, "b": {"categories": THREE, "parents": ["a"]}}}
    assert statistic_plan(pair, epsilon="1", public_n=False).l1_sensitivity == 1
    other = {"a": OTHER, "b": {**OTHER, "parents": ["a"]}}
    plan = statistic_plan({"family": "bayesian_network", "nodes": other}, epsilon="1", public_n=True)
    assert plan.l1_sensitivity == 2
    collider = {"a": TWO, "b": TWO, "c": {"categories": TWO, "parents": ["a", "b"]}}
    plan = statistic_plan({"family": "bayesian_network", "nodes": collider}, epsilon="1", public_n=False)
    assert plan.l1_sensitivity == 3


def test_counts_of_a_root_are_forecast_as_means_of_margins() -> None:
    nodes = {
        "a": TWO,
        "b": {"categories": THREE, "parents": ["a"]},
        "c": {"categories": TWO, "parents": ["a"]},
    }
    plan = statistic_plan({"family": "bayesian_network", "nodes": nodes}, epsilon="1", public_n=False)
    roots = [quantity for quantity in plan.quantities if dict(quantity.labels)["table"] == "a"]
    expected = plan.component_noise_sd * np.sqrt(6 / 5)
    assert [plan.quantity_noise_sd(quantity) for quantity in roots] == pytest.approx([expected] * 2)
    rows = some_rows(plan, 300, np.random.default_rng(7))
    statistic = noisy_statistic(plan, counted(plan, rows)[None])
    estimates = [statistic.estimates(quantity)[0] for quantity in roots]
    assert estimates == pytest.approx(np.bincount(rows["a"], minlength=2))


@pytest.mark.parametrize("family", ENTRIES)
def test_rows_of_a_table_have_one_key_per_variable(family: str) -> None:
    statistic, rows = exact_statistic(family)
    table = statistic.table()
    assert len({tuple(row) for row in table}) == 1, "the same keys in every row"
    variables = set(rows)
    for row in table:
        given = {name: row[name] for name in variables if row[name] is not None}
        assert row["quantity"] == "count"
        matching = np.all([rows[name] == int(code) for name, code in given.items()], axis=0)
        assert row["estimate"] == pytest.approx(matching.sum())
        assert row["table"] in variables | {"joint"}
    assert "count" in output.rows_text(table)
    with pytest.raises(Exception, match="has no quantity"):
        statistic.quantity("count")


def probabilities(family: str, rows: dict[str, NDArray[np.int64]], prior: float) -> list[Any]:
    """Return scipy's distribution of every probability, in order, by counting rows."""
    tables: list[tuple[tuple[str, ...], str]] = {
        "contingency": [],
        "naive_bayes": [((), "y"), (("y",), "a"), (("y",), "b")],
        "bayesian_network": [(("b", "a"), "c"), ((), "a"), (("a",), "b"), (("c",), "d")],
    }[family]
    sizes = {"a": 2, "b": 2, "c": 3, "d": 2, "y": 2}
    if family == "contingency":
        rows = {"ab": rows["a"] * 3 + rows["b"]}
        sizes, tables = {"ab": 6}, [((), "ab")]
    if family == "naive_bayes":
        sizes["a"] = 3
    distributions = []
    for given, name in tables:
        for codes in itertools.product(*(range(sizes[parent]) for parent in given)):
            chosen = np.ones(len(rows[name]), dtype=bool)
            for parent, code in zip(given, codes, strict=True):
                chosen &= rows[parent] == code
            counts = np.bincount(rows[name][chosen], minlength=sizes[name]) + prior
            distributions += [stats.beta(count, counts.sum() - count) for count in counts]
    return distributions


@pytest.mark.parametrize("family", ENTRIES)
def test_the_plug_in_posterior_of_exact_counts_is_the_closed_form(family: str) -> None:
    """Means of 4,000 draws within six errors of the widest: 2e-9 each of some 40 probabilities at most."""
    statistic, rows = exact_statistic(family)
    posterior = posterior_of(statistic, prior="Dirichlet(0.5)", method="plug-in")
    distributions = probabilities(family, rows, 0.5)
    mean, sd = posterior.mean("probability")[0], posterior.sd("probability")[0]
    assert mean == pytest.approx([distribution.mean() for distribution in distributions])
    assert sd == pytest.approx([distribution.std() for distribution in distributions])
    assert posterior.quantile("probability", 0.1)[0] == pytest.approx(
        [distribution.ppf(0.1) for distribution in distributions]
    )
    draws = posterior.sample(4000)["probability"][:, 0]
    assert draws.mean(axis=0) == pytest.approx(mean, abs=6 * sd.max() / np.sqrt(4000))
    assert draws.std(axis=0) == pytest.approx(sd, rel=0.15)
    summary = summarise(posterior, rng=1)
    assert len({tuple(row) for row in summary}) == 1
    assert [row["mean"] for row in summary] == pytest.approx(mean)
    for row in summary:
        assert row["parameter"] == "probability"
        assert row["table"] in {*rows, "joint"}


@pytest.mark.parametrize("family", ["naive_bayes", "bayesian_network"])
def test_probabilities_of_a_distribution_sum_to_one_in_every_draw(family: str) -> None:
    statistic, _ = exact_statistic(family, 20)
    posterior = posterior_of(statistic, prior="Dirichlet(0.001)", method="plug-in")
    draws = posterior.sample(50)["probability"]
    assert np.isfinite(draws).all()
    lengths = {"naive_bayes": [2, 3, 3, 2, 2], "bayesian_network": [3] * 4 + [2] * 6}[family]
    ends = np.cumsum(lengths)[:-1]
    assert all(np.allclose(part.sum(axis=2), 1.0) for part in np.split(draws, ends, axis=2))


def test_labels_reach_arviz_and_files_of_draws() -> None:
    statistic, _ = exact_statistic("bayesian_network")
    posterior = posterior_of(statistic, method="plug-in")
    columns = draw_columns(posterior, 3, np.random.default_rng(7))
    assert list(columns) == ["cell", "table", "b", "a", "c", "d", "draw", "parameter", "value"]
    assert len(columns["value"]) == 3 * 24
    chosen = (columns["table"] == "d") & (columns["c"] == "2") & (columns["d"] == "0")
    assert chosen.sum() == 3
    assert all(value is None for value in columns["a"][chosen])
    data = posterior.to_arviz(draws=3)["posterior"]
    assert data["probability"].dims == ("chain", "draw", "cell", "entry")
    assert data["table"].dims == ("entry",)
    assert list(data["d"].to_numpy()[-2:]) == TWO


def entry_tables(statistic: NoisyStatistic, counts: Floats) -> dict[str, Floats]:
    """Split counts aligned with the tables of probabilities."""
    tables = statistic.plan.parameters.tables
    ends = np.cumsum([table.size for table in tables])[:-1]
    return {
        table.name: part.reshape(-1, *table.shape)
        for table, part in zip(tables, np.split(counts, ends, axis=1), strict=True)
    }


def noisy(family: str, *, public_n: bool, cells: int = 40) -> NoisyStatistic:
    entry = ENTRIES[family]
    if public_n:
        key = {"naive_bayes": "features", "bayesian_network": "nodes"}[family]
        nodes = {
            name: node if isinstance(node, dict) else {"categories": node}
            for name, node in entry[key].items()
        }
        entry = {**entry, key: {name: {**node, "other": "true"} for name, node in nodes.items()}}
        if family == "naive_bayes":
            entry["outcome"] = {"y": {"categories": TWO, "other": "true"}}
    plan = statistic_plan(entry, epsilon="0.2", public_n=public_n)
    rng = np.random.default_rng(7)
    exact = np.array([counted(plan, some_rows(plan, 60, rng)) for _ in range(cells)])
    return noisy_statistic(
        plan, exact + discrete_laplace(plan.scale, exact.shape, rng), public_n=60 if public_n else None
    )


@pytest.mark.parametrize("public_n", [False, True])
def test_projected_naive_bayes_tables_have_the_class_counts_as_margins(public_n: bool) -> None:
    statistic = noisy("naive_bayes", public_n=public_n)
    assert (statistic.values < 0).any()
    classes = len(statistic.plan.parameters.tables[0].variables[0].categories)
    counts = naive_bayes.project(statistic)
    assert (counts >= 0).all()
    for table in entry_tables(statistic, counts[:, classes:]).values():
        assert table.sum(axis=2) == pytest.approx(counts[:, :classes], abs=1e-9)
    if public_n:
        assert counts[:, :classes].sum(axis=1) == pytest.approx(60.0)


@pytest.mark.parametrize("public_n", [False, True])
def test_projected_networks_agree_on_shared_margins(public_n: bool) -> None:
    statistic = noisy("bayesian_network", public_n=public_n)
    assert (statistic.values < 0).any()
    counts = bayesian_network.project(statistic)
    assert (counts >= 0).all()
    tables = entry_tables(statistic, counts)
    close = 1e-3 * statistic.plan.scale
    assert tables["c"].sum(axis=3).swapaxes(1, 2) == pytest.approx(tables["b"], abs=close)
    assert tables["b"].sum(axis=2) == pytest.approx(tables["a"], abs=close)
    assert tables["c"].sum(axis=(1, 2)) == pytest.approx(tables["d"].sum(axis=2), abs=close)
    start, b = tables["c"][0].size, tables["b"]
    as_released = statistic.values[:, start : start + b[0].size].astype(float).reshape(b.shape)
    assert not np.allclose(as_released.sum(axis=2), tables["a"])
    if public_n:
        assert tables["a"].sum(axis=1) == pytest.approx(60.0, abs=close)


def test_shared_margins_are_means_by_inverse_variance() -> None:
    plan = statistic_plan(NETWORK, epsilon="1", public_n=False)
    tables = plan.parameters.tables
    values = np.full((1, sum(table.size for table in tables)), 1000.0)
    parts = np.split(values, np.cumsum([table.size for table in tables])[:-1], axis=1)
    counts = [part.reshape(-1, *table.shape) for part, table in zip(parts, tables, strict=True)]
    shared = decomposition.shared_variables(tables)
    assert [sorted(names) for names in shared] == [[], ["a"], ["c"], ["a", "b"]]
    totals = [table.sum() for table in decomposition.agreeing(counts, tables, shared, None)]
    # Totals of 12, 2, 4 and 6 thousand over as many entries, each with as many variances.
    assert totals == pytest.approx([4000 / (1 / 12 + 1 / 2 + 1 / 4 + 1 / 6)] * 4)


@pytest.mark.parametrize("family", ENTRIES)
def test_exact_counts_are_projected_to_themselves(family: str) -> None:
    statistic, _ = exact_statistic(family)
    values = statistic.values.astype(float)
    if family == "naive_bayes":
        assert naive_bayes.project(statistic)[:, 2:] == pytest.approx(values, abs=1e-9)
    elif family == "bayesian_network":
        tables = entry_tables(statistic, bayesian_network.project(statistic))
        assert tables["a"] == pytest.approx(tables["b"].sum(axis=2), abs=1e-9)
        released = [tables[name].reshape(1, -1) for name in ("c", "b", "d")]
        assert np.concatenate(released, axis=1) == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize("family", ["naive_bayes", "bayesian_network"])
def test_the_log_likelihood_is_that_of_the_rows(family: str) -> None:
    statistic, rows = exact_statistic(family)
    module = {"naive_bayes": naive_bayes, "bayesian_network": bayesian_network}[family]
    counts = module.project(statistic)
    distribution = posterior_of(statistic, prior="Dirichlet(20)", method="plug-in")
    theta = distribution.sample(1, rng=3)["probability"][0, 0]
    by_label = {
        tuple(sorted((k, v) for k, v in label.items() if v is not None)): p
        for label, p in zip(label_rows(distribution.label_columns), theta, strict=True)
    }
    tables = {
        "naive_bayes": {"y": (), "a": ("y",), "b": ("y",)},
        "bayesian_network": {"c": ("b", "a"), "a": (), "b": ("a",), "d": ("c",)},
    }[family]
    expected = 0.0
    for row in zip(*rows.values(), strict=True):
        codes = dict(zip(rows, map(str, row), strict=True))
        for name, given in tables.items():
            label = {"table": name, name: codes[name], **{parent: codes[parent] for parent in given}}
            expected += np.log(by_label[tuple(sorted(label.items()))])
    likelihood = FAMILIES[family].log_likelihood(theta, counts, statistic.plan.parameters)
    assert likelihood[0] == pytest.approx(expected)


def test_a_prior_has_one_number_or_one_for_each_probability() -> None:
    statistic, rows = exact_statistic("contingency")
    numbers = [0.5, 1.0, 2.0, 3.0, 4.0, 5.0]
    posterior = posterior_of(statistic, prior=Dirichlet(*numbers), method="plug-in")
    counts = np.bincount(rows["a"] * 3 + rows["b"], minlength=6)
    assert posterior.mean("probability")[0] == pytest.approx((counts + numbers) / (515.5))
    with pytest.raises(PriorError, match="1 or 12 numbers, not 3"):
        posterior_of(exact_statistic("naive_bayes")[0], prior="Dirichlet(1, 2, 3)", method="plug-in")


def test_a_public_n_stands_beside_tables_that_every_row_enters() -> None:
    entry = {**NAIVE_BAYES, "outcome": {"y": OTHER}, "features": {"a": OTHER, "b": OTHER}}
    plan = statistic_plan(entry, epsilon="1", public_n=True)
    assert (str(plan.design), plan.l1_sensitivity, plan.partition_total) == ("minimal", 4, None)
    plan = statistic_plan({**entry, "outcome": {"y": TWO}}, epsilon="1", public_n=True)
    assert (str(plan.design), plan.l1_sensitivity, plan.partition_total) == ("partition_of_unity", 4, 2)


def spec_of(entry: dict[str, Any], **others: Any) -> Any:
    return load_spec(
        {
            "name": "n",
            "dataset": "d",
            "source": {"parquet": "x"},
            "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
            "statistics": {"s": entry},
            **others,
        }
    )


def test_short_and_long_forms_are_one_plan() -> None:
    long = {"a": {"column": "a", "categories": TWO, "other": "false"}, "b": {"categories": THREE}}
    assert spec_of(CONTINGENCY).plan_hash() == spec_of({**CONTINGENCY, "columns": long}).plan_hash()
    moved = spec_of({**CONTINGENCY, "columns": {**long, "a": {"column": "A", "categories": TWO}}})
    assert moved.plan_hash() != spec_of(CONTINGENCY).plan_hash()
    (plan,) = compile_plan(moved).statistics
    assert plan.columns == ("A", "b")
    assert plan.components[0] == "a=0,b=0"
    assert "count table=joint a=0 b=0" in str(compile_plan(moved))


CYCLE = {"a": {"categories": TWO, "parents": ["b"]}, "b": {"categories": TWO, "parents": ["a"]}}
MANY = {"range": ["1", "4000"]}


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ({**NETWORK, "nodes": CYCLE}, "parents run in a circle: .*a -> b"),
        ({**NETWORK, "nodes": {"a": {"categories": TWO, "parents": ["a"]}}}, "circle"),
        ({**NETWORK, "nodes": {"a": {"categories": TWO, "parents": ["b"]}}}, "parent 'b' of 'a' is no node"),
        ({**NETWORK, "nodes": {"a": TWO, "b": {"categories": TWO, "parents": ["a", "a"]}}}, "twice"),
        ({**NETWORK, "nodes": {"a": {"categories": TWO, "parents": "b"}}}, "list of nodes"),
        ({**NETWORK, "nodes": {}}, "variables are written as"),
        ({**CONTINGENCY, "columns": TWO}, "variables are written as"),
        ({**CONTINGENCY, "columns": {"category": TWO}}, "'category' is reserved"),
        ({**CONTINGENCY, "columns": {"table": TWO}}, "'table' is reserved"),
        ({**CONTINGENCY, "columns": {"a=b": TWO}}, "no '='"),
        (
            {**CONTINGENCY, "columns": {"a": {"categories": TWO, "bogus": "1"}}},
            r"columns\.a\.bogus: unknown key",
        ),
        (
            {**CONTINGENCY, "columns": {"a": {"other": "true"}}},
            r"columns\.a: the key 'categories' is missing",
        ),
        (
            {**CONTINGENCY, "columns": {"a": {"categories": ["other"], "other": "true"}}},
            "where other: true is stated",
        ),
        ({**CONTINGENCY, "columns": {"a": ["1", "1.0"]}}, "duplicates"),
        ({**CONTINGENCY, "columns": {"a": MANY, "b": MANY}}, "16000000 cells are declared"),
        ({**CONTINGENCY, "column": "a"}, "unknown key"),
        ({**NAIVE_BAYES, "features": {"y": TWO}}, "'y' cannot be a feature too"),
        ({**NAIVE_BAYES, "outcome": {"y": TWO, "z": TWO}}, "the outcome is one variable"),
        ({**NAIVE_BAYES, "outcome": {"y": MANY}, "features": {"a": MANY, "b": TWO}}, "16008000 cells"),
    ],
)
def test_what_makes_no_sense_is_refused(entry: dict[str, Any], rule: str) -> None:
    with pytest.raises(SpecError, match=rule) as caught:
        spec_of(entry)
    assert "statistics.s" in str(caught.value)


def test_counts_are_limited_over_all_cells() -> None:
    entry = {**CONTINGENCY, "columns": {"a": MANY, "b": THREE}}
    assert compile_plan(spec_of(entry)).n_cells == 1
    with pytest.raises(SpecError, match="12000000 cells are declared"):
        spec_of(entry, groups={"g": {"range": ["1", "1000"]}})


def test_a_group_is_no_variable() -> None:
    with pytest.raises(SpecError, match="variable 'a' is a group too"):
        spec_of(CONTINGENCY, groups={"a": TWO})
    renamed = {**CONTINGENCY, "columns": {"a_again": {"column": "a", "categories": TWO}}}
    assert compile_plan(spec_of(renamed, groups={"a": TWO})).statistics[0].columns == ("a",)
