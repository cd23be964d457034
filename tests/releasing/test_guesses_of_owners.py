"""What people who know pandas, ArviZ and scikit-learn type to release a data frame.

Each guess was written down before it was tried, and stands here with what it has to give. Those that are not
taken say what to type (docs/decisions/0106).
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import suffice
from suffice.errors import SufficeWarning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

YAML = """
name: flights
dataset: flights
privacy: {epsilon: 1, neighboring: add_or_remove_one}
groups: {origin: [EWR, JFK, LGA]}
statistics:
  cancelled: {family: bernoulli, column: cancelled}
"""
DICT = {
    "name": "flights",
    "dataset": "flights",
    "privacy": {"epsilon": 1, "neighboring": "add_or_remove_one"},
    "groups": {"origin": ["EWR", "JFK", "LGA"]},
    "statistics": {"cancelled": {"family": "bernoulli", "column": "cancelled"}},
}
ORIGINS = ["EWR", "JFK", "LGA"]


@dataclass(frozen=True)
class Notebook:
    """Where guesses are typed: a frame, and places of their own."""

    df: pd.DataFrame
    spec: suffice.Spec
    places: dict[str, Any]
    directory: Path

    def release(self, spec: Any = None, data: Any = None, **terms: Any) -> suffice.Release:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SufficeWarning)
            rows = self.df if data is None else data
            return suffice.release(self.spec if spec is None else spec, data=rows, **self.places, **terms)


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "origin": rng.choice(ORIGINS, 900),
            "cancelled": rng.random(900) < 0.1,
            "delay": rng.normal(10, 30, 900),
            "when": pd.Timestamp("2013-01-01") + pd.to_timedelta(rng.integers(0, 50, 900), unit="D"),
        }
    )
    places = {"store": str(tmp_path / "releases"), "ledger": f"sqlite:///{tmp_path / 'ledger.db'}"}
    suffice.grant(
        "flights", epsilon=100, reason="tests", ledger=places["ledger"], create=True, unwitnessed=True
    )
    return Notebook(frame, suffice.load_spec(YAML), places, tmp_path)


def is_release(given: Any) -> bool:
    return isinstance(given, suffice.Release) and list(given["cancelled"].groups["origin"]) == ORIGINS


def is_spec(given: Any) -> bool:
    return isinstance(given, suffice.Spec) and given.n_cells == 3


def stated(**changes: Any) -> suffice.Spec:
    terms: dict[str, Any] = {
        "dataset": "flights",
        "groups": {"origin": ORIGINS},
        "statistics": {"cancelled": suffice.bernoulli()},
        "epsilon": 1,
    }
    return suffice.spec(**{**terms, **changes})


TAKEN: dict[str, tuple[Callable[[Notebook], Any], Callable[[Any], Any]]] = {
    # Rows.
    "suffice.release(spec, data=df)": (lambda b: b.release(), is_release),
    'suffice.release("flights.yaml", data=df)': (
        lambda b: ((b.directory / "flights.yaml").write_text(YAML), b.release("flights.yaml"))[1],
        is_release,
    ),
    "suffice.release(yaml_text, data=df)": (lambda b: b.release(YAML), is_release),
    "suffice.release(dict, data=df)": (lambda b: b.release(DICT), is_release),
    "suffice.release(spec, data=pa.table(...))": (lambda b: b.release(data=pa.table(b.df)), is_release),
    "suffice.release(spec, data=record_batch_reader)": (
        lambda b: b.release(data=pa.table(b.df).to_reader()),
        is_release,
    ),
    "suffice.release(spec, data=record_batch)": (
        lambda b: b.release(data=pa.RecordBatch.from_pandas(b.df)),
        is_release,
    ),
    'suffice.release(spec, data={"origin": array, ...})': (
        lambda b: b.release(data={name: b.df[name].to_numpy() for name in b.df}),
        is_release,
    ),
    'suffice.release(spec, data=df.to_dict("list"))': (
        lambda b: b.release(data=b.df.to_dict("list")),
        is_release,
    ),
    "suffice.release(spec, data=df.convert_dtypes())": (
        lambda b: b.release(data=b.df.convert_dtypes()),
        is_release,
    ),
    'suffice.release(spec, data=df.astype({"origin": "category"}))': (
        lambda b: b.release(data=b.df.astype({"origin": "category"})),
        is_release,
    ),
    'suffice.release(spec, data=df[df["delay"] > 0])': (
        lambda b: b.release(data=b.df[b.df["delay"] > 0]),
        is_release,
    ),
    "suffice.release(spec, data=df.sample(frac=1))": (
        lambda b: b.release(data=b.df.sample(frac=1, random_state=1)),
        is_release,
    ),
    'suffice.release(spec, data=df.assign(cancelled=df["cancelled"].astype(int)))': (
        lambda b: b.release(data=b.df.assign(cancelled=b.df["cancelled"].astype(int))),
        is_release,
    ),
    'suffice.release(spec, data=df, window="2013-01")': (
        lambda b: b.release(stated(window={"column": "when", "every": "month"}), window="2013-01"),
        is_release,
    ),
    "suffice.release twice": (
        lambda b: (b.release().release_id, b.release().release_id),
        lambda ids: ids[0] == ids[1],
    ),
    'release["cancelled"].posterior().interval()': (
        lambda b: b.release()["cancelled"].posterior().interval(),
        lambda ends: np.all(ends.lower < ends.upper),
    ),
    # Specs.
    "suffice.spec(dataset=..., statistics=..., epsilon=1)": (lambda _: stated(), is_spec),
    'suffice.spec(..., epsilon="0.5")': (lambda _: stated(epsilon="0.5"), is_spec),
    "suffice.spec(..., epsilon=0.5)": (lambda _: stated(epsilon=0.5), is_spec),
    'suffice.spec(..., groups={"month": range(1, 13)})': (
        lambda _: stated(groups={"month": range(1, 13)}),
        lambda spec: spec.n_cells == 12,
    ),
    'suffice.spec(..., groups={"origin": ("EWR", "JFK", "LGA")})': (
        lambda _: stated(groups={"origin": tuple(ORIGINS)}),
        is_spec,
    ),
    'suffice.spec(..., groups={"cancelled": [True, False]})': (
        lambda _: stated(groups={"cancelled": [True, False]}),
        lambda spec: spec.n_cells == 2,
    ),
    'suffice.spec(..., name="flights-2013")': (
        lambda _: stated(name="flights-2013"),
        lambda spec: spec.name == "flights-2013",
    ),
    'suffice.spec(..., unit={"column": "tail", "max_rows": 20})': (
        lambda _: stated(unit={"column": "tail", "max_rows": 20}),
        lambda spec: spec.unit_name == "column:tail",
    ),
    'suffice.spec(..., source={"parquet": "flights/"})': (
        lambda _: stated(source={"parquet": "flights/"}),
        lambda spec: spec.has_source,
    ),
    "suffice.spec(**dict)": (
        lambda _: stated(statistics=DICT["statistics"]),
        is_spec,
    ),
    "suffice.bernoulli()": (lambda _: stated(), is_spec),
    'suffice.bernoulli("cancelled")': (
        lambda _: stated(statistics={"share": suffice.bernoulli("cancelled")}),
        is_spec,
    ),
    'suffice.bernoulli(column="cancelled")': (
        lambda _: stated(statistics={"share": suffice.bernoulli(column="cancelled")}),
        is_spec,
    ),
    "suffice.normal(lower=-60, upper=180)": (
        lambda _: stated(statistics={"delay": suffice.normal(lower=-60, upper=180)}),
        is_spec,
    ),
    'suffice.normal("delay", lower=-60.5, upper=180, share=2)': (
        lambda _: stated(statistics={"it": suffice.normal("delay", lower=-60.5, upper=180, share=2)}),
        is_spec,
    ),
    "suffice.poisson(upper=10)": (
        lambda _: stated(statistics={"stops": suffice.poisson(upper=10)}),
        is_spec,
    ),
    'suffice.categorical(categories=["UA", "DL"], other=True)': (
        lambda _: stated(statistics={"carrier": suffice.categorical(categories=["UA", "DL"], other=True)}),
        is_spec,
    ),
    "suffice.load_spec(yaml_text)": (lambda _: suffice.load_spec(YAML), is_spec),
    "suffice.load_spec(dict)": (lambda _: suffice.load_spec(DICT), is_spec),
    "suffice.load_spec(spec)": (lambda b: suffice.load_spec(b.spec), is_spec),
    "spec == other": (lambda b: b.spec == stated(), lambda same: same is True),
    "print(spec.to_yaml())": (lambda _: stated().to_yaml(), lambda text: "epsilon: 1" in text),
    "print(spec)": (lambda _: str(stated()), lambda text: "epsilon: 1" in text and "bernoulli" in text),
    "spec": (lambda _: repr(stated()), lambda text: text.startswith("Spec(") and len(text) < 200),
    "help(suffice.normal)": (
        lambda _: str(inspect.signature(suffice.normal)),
        lambda text: "lower" in text and "upper" in text,
    ),
    # Plans.
    "spec.plan()": (lambda _: stated().plan(), lambda plan: isinstance(plan, suffice.Plan)),
    "print(spec.plan())": (lambda _: str(stated().plan()), lambda text: "noise sd" in text),
    "spec.plan()._repr_html_()": (lambda _: stated().plan()._repr_html_(), lambda text: "<table" in text),
    "suffice.plan(spec)": (lambda _: suffice.plan(stated()), lambda plan: plan.loss.epsilon == 1),
    'suffice.plan("flights.yaml")': (
        lambda b: ((b.directory / "flights.yaml").write_text(YAML), suffice.plan("flights.yaml"))[1],
        lambda plan: plan.n_cells == 3,
    ),
    "suffice.plan(dict).loss.epsilon": (
        lambda _: suffice.plan(DICT).loss.epsilon,
        lambda epsilon: epsilon == 1,
    ),
    # Grants.
    'suffice.grant("visits", epsilon=2, reason="first", create=True)': (
        lambda b: suffice.grant(
            "visits", epsilon=2, reason="first", ledger=b.places["ledger"], create=True, unwitnessed=True
        ),
        lambda account: account.remaining == 2,
    ),
    "print(suffice.grant(...))": (
        lambda b: str(suffice.grant("v", epsilon=2, reason="x", ledger=b.places["ledger"], unwitnessed=True)),
        lambda text: "granted 2" in text,
    ),
}

MISSED = ("suffice.Spec(dataset=...)",)
"""What raises the error of another library."""

NOT_TAKEN: dict[str, tuple[Callable[[Notebook], Any], str]] = {
    'suffice.release(spec, data="flights.csv")': (lambda b: b.release(data="flights.csv"), "source="),
    'suffice.release(spec, data=df["cancelled"])': (lambda b: b.release(data=b.df["cancelled"]), "DataFrame"),
    "suffice.release(spec, data=df.to_numpy())": (lambda b: b.release(data=b.df.to_numpy()), "DataFrame"),
    'suffice.release(spec, data=df.to_dict("records"))': (
        lambda b: b.release(data=b.df.to_dict("records")),
        "DataFrame",
    ),
    'suffice.release(spec, data=df.set_index("origin"))': (
        lambda b: b.release(data=b.df.set_index("origin")),
        "reset_index()",
    ),
    'suffice.spec(..., groups={"origin": df["origin"].unique()})': (
        lambda b: stated(groups={"origin": b.df["origin"].unique()}),
        "write keys out",
    ),
    'suffice.spec(..., groups=["origin"])': (
        lambda _: stated(groups=["origin"]),
        "groups maps columns to their public keys",
    ),
    'suffice.spec(..., statistics=["cancelled"])': (
        lambda _: stated(statistics=["cancelled"]),
        "maps names to entries",
    ),
    "suffice.release(spec, df)": (
        lambda b: suffice.release(b.spec, b.df, ledger=b.places["ledger"]),
        "data=frame",
    ),
    "suffice.grant(df, epsilon=1, reason=...)": (
        lambda b: suffice.grant(b.df, epsilon=1, reason="x", ledger=b.places["ledger"]),
        "dataset",
    ),
}


@pytest.mark.parametrize("guess", TAKEN)
def test_a_guess_is_right(book: Notebook, guess: str) -> None:
    typed, is_right = TAKEN[guess]
    warnings.simplefilter("ignore", SufficeWarning)  # of accounts that may overlap
    assert is_right(typed(book))


@pytest.mark.parametrize("guess", NOT_TAKEN)
def test_a_guess_that_is_not_taken_says_what_to_type(book: Notebook, guess: str) -> None:
    typed, here = NOT_TAKEN[guess]
    with pytest.raises((suffice.SufficeError, TypeError)) as caught:
        typed(book)
    assert here in str(caught.value)


def test_most_guesses_are_taken() -> None:
    assert len(TAKEN) >= 50
    assert len(TAKEN) >= 4 * (len(NOT_TAKEN) + len(MISSED))


@pytest.mark.parametrize(
    ("guess", "meant"), [("gaussian", "normal"), ("mean", "normal"), ("multinomial", "categorical")]
)
def test_a_guessed_family_names_the_one_that_is_meant(guess: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=rf"suffice\.{meant} is meant"):
        getattr(suffice, guess)


@pytest.mark.slow
def test_a_picture_is_saved_by_the_name_that_matplotlib_has(book: Notebook) -> None:
    picture = book.release()["cancelled"].posterior().plot()
    picture.savefig(book.directory / "posterior.png")
    assert (book.directory / "posterior.png").read_bytes().startswith(b"\x89PNG")
