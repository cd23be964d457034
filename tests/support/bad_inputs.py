"""Bad inputs, made by mutating every field of specs, profiles and options; and who judges the answers.

`SOURCES` is where a new kind of input is registered: a function from a `Place` to its cases.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import re
import shutil
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typer.core import TyperGroup, TyperOption

from suffice.cli import app
from suffice.cli.monitor import UNWELL
from suffice.errors import LONGEST_MESSAGE
from suffice.pipeline.families import FAMILIES
from suffice.pipeline.terms.declaration.wording import escaped
from suffice.storage.ledger.opening import create_ledger, open_ledger
from support.catalogued import make_small
from support.hidden_states import publish_crashes
from support.making import ORIGINS, flights, make_workspace, mapping
from support.model_releases import CONJUGATE, publish_models
from support.profiles import pinning, profile_text
from support.table_releases import ROWS_CSV, publish_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.making import Workspace

CANARIES = ("canary-7f3a9c51", "918273645")
LONG = "a" * 100_000
TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    LONG,
    "b " * 50_000,
    "'" * 5_000,
    "\ud800",
    "\u202egnp.x\x1b[31m",
    "-1",
    "0",
    "nan",
    "1e400",
    "1" * 400,
    "../../x",
    "[]",
    "{}",
    "a=b=c",
    "=",
    "%s%n{0}",
    "sqlite:///",
    "s3://key:secret@bucket/x.csv",
)
PHRASES = (
    "source.parquet",
    "No such option",
    "unexpected extra argument",
    "URI",
    "is given twice",
    "public key",
    "the spec cannot be read",
)
"""What names a place that is no option: of the source, the words themselves, stores, releases, keys."""
FORMS = ("'{}'", "/{} ", "/{}/", "{}:4:", "{}: line ", "{}: row ", "{}: the law ", "{}: something stands ")
"""How a place of one or two letters is named."""
VALUES: tuple[object, ...] = (
    *TEXTS,
    True,
    -1,
    0.5,
    10**30,
    [],
    {},
    [[]],
    ["x", "x"],
    [LONG],
    {LONG: LONG},
    {"file": "../x"},
    {"range": [0, 10**18]},
    {"from": "2019-01", "to": "2018-01", "every": "month"},
    [[[[[[[[[[[[[[[[[[["x"]]]]]]]]]]]]]]]]]]],
)
"""What is put in the place of every value of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One command with one input; `places` are texts of which an answer must name one."""

    words: tuple[str, ...]
    places: tuple[str, ...]
    files: tuple[tuple[Path, bytes], ...] = ()
    ledger: str


@dataclass(slots=True, kw_only=True)
class Findings:
    """What was asked, and what was wrong with the answers, a line each."""

    n_asked: int = 0
    n_bad: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Data with canaries, a published release, a ledger with budget, and a ledger for grants."""

    workspace: Workspace
    grants: str
    directory: Path

    @property
    def release(self) -> tuple[str, ...]:
        """The words that name the published release."""
        return ("flights", "--store", self.workspace.store)


def make_place(directory: Path) -> Place:
    """Publish a release of data in which canaries are values, keys and categories."""
    table = flights(400)
    for column, every in (("origin", 11), ("carrier", 7)):
        texts = np.array(table[column].to_pylist(), dtype=object)
        texts[::every] = CANARIES[0]
        table = table.set_column(table.column_names.index(column), column, pa.array(texts, type=pa.string()))
    stops = np.asarray(table["stops"]).copy()
    stops[::5] = int(CANARIES[1])
    table = table.set_column(table.column_names.index("stops"), "stops", pa.array(stops))
    workspace = make_workspace(directory / "place", table=table)
    workspace.run()
    grants = f"sqlite:///{directory}/grants.db"
    with create_ledger(grants) as ledger:
        ledger.grant("passengers", epsilon=Fraction(1), reason="tests")
    scratch = directory / "scratch" / "deep" / "below"
    scratch.mkdir(parents=True)
    return Place(workspace=workspace, grants=grants, directory=scratch)


def paths_of(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the place of every value in a nested document."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in entries:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from paths_of(value, (*path, key))


def mutants(document: dict[str, Any], paths: list[tuple[Any, ...]] | None = None) -> Iterator[Any]:
    """Give the document with each value replaced by each of `VALUES`, left out, and under other keys."""
    for path in list(paths_of(document)) if paths is None else paths:
        for value in VALUES:
            mutant = copy.deepcopy(document)
            _holder(mutant, path)[path[-1]] = value
            yield mutant
        mutant = copy.deepcopy(document)
        value = _holder(mutant, path).pop(path[-1])
        yield mutant
        holder = _holder(mutant, path)
        if isinstance(holder, dict):
            for key in (f"{path[-1]}x", LONG, "\0", "\ud800", ""):
                renamed = copy.deepcopy(mutant)
                _holder(renamed, path)[key] = value
                yield renamed


def _holder(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def spec_cases(place: Place) -> Iterator[Case]:
    """Mutate a whole spec, and the entry of each family, as ``plan`` and ``release`` read them."""
    workspace = place.workspace
    whole = mapping(
        workspace.data,
        name="mutant",
        window={"column": "day", "every": "month"},
        groups={"origin": ORIGINS, "day": {"from": "2013-01", "to": "2013-03", "every": "month"}},
        derived={"late": {"column": "arr_delay", "above": 15}},
        privacy={
            "epsilon": "1",
            "neighboring": "add_or_remove_one",
            "unit": {"column": "carrier", "max_rows": 2},
        },
        max_total_rows=10**6,
    )
    del whole["derived"]
    whole["statistics"] = {"flag": whole["statistics"]["cancelled"]}
    documents = list(mutants(whole))
    for name, family in FAMILIES.items():
        entry = {"family": name, **family.example.entry}
        unit = {"column": "carrier", "max_rows": 2} if family.needs_unit else "row"
        privacy = {"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit}
        spec = mapping(workspace.data, name="mutant", statistics={"s": entry}, privacy=privacy)
        documents += mutants(spec, [("statistics", "s", *path) for path in paths_of(entry)])
    drawn = {"within": ["0.1", "0.9"], "grid": "9", "draws": "2", "prior": "Beta(2, 2)"}
    entry = {"family": "bernoulli", "column": "cancelled", "sample": drawn}
    spec = mapping(workspace.data, name="mutant", statistics={"s": entry})
    documents += mutants(spec, [("statistics", "s", "sample", *path) for path in paths_of(drawn)])
    stated = {"n": "50", "typical": {"probability": "0.1"}, "counts": "probability", "weight": "2"}
    assumed = {"rows": "900", "units": "9", "statistics": {"s": stated}}
    entry = {"family": "bernoulli", "column": "cancelled"}
    spec = mapping(workspace.data, name="mutant", statistics={"s": entry}, assume=assumed)
    documents += mutants(spec, [("assume", *path) for path in paths_of(assumed)])
    windowed = ("--window", "2013-01")
    for number, document in enumerate(documents):
        path = place.directory / f"mutant-{number % 2}.json"
        words = ("plan", str(path), *(["--divide"] if "assume" in document else []))
        if number % 4 == 0:
            shop = ("--store", workspace.store, "--ledger", workspace.ledger)
            words = ("release", str(path), *(windowed if "window" in document else ()), *shop)
        content = json.dumps(document).encode()
        named = tuple(str(document.get(key))[:20] for key in ("dataset", "name"))
        yield Case(
            words=words,
            places=(path.name, "--window", "source.parquet", "statistics.", "assume.", "account", *named),
            files=((path, content),),
            ledger=workspace.ledger,
        )


def text_cases(place: Place) -> Iterator[Case]:
    """Break the text of YAML, JSON and TOML: cut off, with bytes put in, with its lines in another order."""
    spec = json.dumps(mapping(place.workspace.data), indent=1)
    yaml = re.sub(r'(?m)^(\s*)"([a-z_]+)":', r"\1\2:", spec)
    profile = profile_text(**pinning(place.workspace))
    draw = random.Random(12)  # noqa: S311 - the same inputs each time
    for suffix, text in (("json", spec), ("yaml", yaml), ("toml", profile)):
        path = place.directory / f"broken.{suffix}"
        words = ("--config", str(path), "ledger", "show") if suffix == "toml" else ("plan", str(path))
        for _ in range(60):
            content = text.encode()
            at = draw.randrange(len(content))
            noise = draw.choice(
                [b"\0", b"\xff\xfe", b"&a *a", b"!!x ", b"{", b"]", b"\t", b"'" * 3000, b"- " * 40]
            )
            content = draw.choice([content[:at], content[:at] + noise + content[at:], content[at:]])
            yield Case(
                words=words,
                places=(path.name, "--ledger", "ledger"),
                files=((path, content),),
                ledger=place.workspace.ledger,
            )


def profile_cases(place: Place) -> Iterator[Case]:
    """Mutate every key of a profile, as every command reads it."""
    keys = pinning(
        place.workspace,
        spool="/srv/spool",
        cluster_certificates="/srv/cluster",
        witness="/srv/witness",
        public_keys=["ab" * 32],
        log_format="text",
    )
    path = place.directory / "suffice.toml"
    for name in keys:
        for value in VALUES:
            others = {key: kept for key, kept in keys.items() if key != name}
            try:
                text = profile_text(**others) + f"{name} = {_toml(value)}\n"
            except UnicodeEncodeError:
                continue
            yield Case(
                words=("--config", str(path), "ledger", "show", "--ledger", place.workspace.ledger),
                places=(path.name, "--ledger", "ledger"),
                files=((path, text.encode("utf-8", "surrogatepass")),),
                ledger=place.workspace.ledger,
            )


def _toml(value: object) -> str:
    """Write a value as TOML; nested mappings as inline tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


_LAW = {
    "name": "views",
    "publisher": "p",
    "source": "https://example.org/table",
    "licence": "l",
    "privacy": "p",
    "keys": {"page": "as_published"},
    "columns": {"views": {"noise": {"law": "laplace", "scale": 3}}},
    "statistics": {"views": {"family": "count", "column": "views", "upper": 1000}},
}


def published_table(directory: Path) -> tuple[str, str]:
    """Write a published table and its law, and return where they are."""
    table, law = directory / "published.csv", directory / "law.json"
    table.write_text("page,views\nA,120.5\n", encoding="utf-8")
    law.write_text(json.dumps(_LAW), encoding="utf-8")
    return str(table), str(law)


def _publish_counts(directory: Path) -> None:
    """Publish releases of tables, of a field, of a tree and of a histogram."""
    publish_tables(directory / "tables")
    pair = {"family": "contingency", "columns": {"a": ["no", "yes"], "b": ["no", "yes"]}}
    publish_tables(directory / "fields", name="fields", groups=None, statistics={"pair": pair})
    levels = {"hierarchy": ["all", "site"], "groups": {"site": ["p", "q"]}}
    late = {"family": "bernoulli", "column": "late", **levels}
    publish_tables(directory / "trees", name="trees", groups=None, statistics={"late": late})
    wait = {"family": "histogram", "column": "wait", "lower": "0", "upper": "8", "bins": "4"}
    publish_tables(directory / "bins", name="bins", groups=None, statistics={"wait": wait})


def option_cases(place: Place) -> Iterator[Case]:  # noqa: C901 - one loop for each way of going wrong
    """Give each option and argument of each command every text, twice, without a value, and unknown ones."""
    ledger = ("--ledger", place.workspace.ledger)
    monthly = place.directory / "monthly.json"
    window = {"column": "day", "every": "month"}
    monthly.write_text(
        json.dumps(mapping(place.workspace.data, name="monthly", window=window)), encoding="utf-8"
    )
    sampled = place.directory / "sampled.json"
    cancelled = {"within": ["0.1", "0.9"], "grid": "3", "draws": "1"}
    entries = {"cancelled": {"family": "bernoulli", "column": "cancelled", "sample": cancelled}}
    sampled.write_text(json.dumps(mapping(place.workspace.data, statistics=entries)), encoding="utf-8")
    models = ("--store", publish_models(place.directory / "models"), "--draws", "10", "--method", "plug-in")
    (place.directory / "rows.csv").write_text("origin,departure,distance\nJFK,10,900\n", encoding="utf-8")
    _publish_counts(place.directory)
    tables = ("--store", str(place.directory / "tables"), "--draws", "10", "--method", "plug-in")
    classified = place.directory / "classified.csv"
    classified.write_text(ROWS_CSV, encoding="utf-8")
    copy_of_store = place.directory / "copy"  # what is withdrawn there can be read in the other
    shutil.copytree(place.workspace.store, copy_of_store, dirs_exist_ok=True)
    misfit = place.directory / "misfit.json"
    source = {"kind": "parquet", "compression": "as_stored"}
    stated = {"format_version": 1, "columns": {"nothing": "text"}, "unit": "row", "window": None}
    misfit.write_text(json.dumps({**stated, "source": source}), encoding="utf-8")
    bases: dict[tuple[str, ...], tuple[str, ...]] = {
        ("demo",): (),
        ("init",): (str(place.workspace.data),),
        ("plan",): (str(sampled), "--beside", "sample", "--n", "5", "--truth", "0.1", "--simulations", "2"),
        ("release",): (str(place.workspace.write_spec()), "--store", place.workspace.store, *ledger),
        ("inspect",): (str(place.workspace.write_spec()), "--out", str(place.directory / "contract.json")),
        # What is right in it is refused by a contract: an audit takes seconds.
        ("audit",): (str(place.workspace.write_spec()), "--contract", str(misfit)),
        ("rehearse",): (str(place.workspace.write_spec()), "--store", place.workspace.store, *ledger),
        ("backfill",): (str(monthly), "--from", "2013-01", "--to", "2013-01", *ledger),
        ("status",): (str(monthly), "--from", "2013-01", "--as-of", "2013-01-02T00:00Z", *ledger),
        ("metrics",): (str(monthly), "--as-of", "2013-01-02T00:00Z", *ledger),
        ("doctor",): ("--store", place.workspace.store, *ledger),
        ("list",): (place.workspace.store,),
        ("show",): place.release,
        ("compare",): ("flights", *place.release, "cancelled"),
        ("pool",): (
            "cancelled",
            "--disjoint",
            "flights",
            "--disjoint",
            "flights",
            "--store",
            place.workspace.store,
        ),
        ("compare-priors",): (*place.release, "cancelled", "--prior", "Beta(1, 1)", "--prior", "Beta(1, 9)"),
        ("verify",): (*place.release, *ledger),
        ("disclose",): place.release,
        ("withdraw",): ("flights", "--store", str(copy_of_store), "--reason", "r"),
        ("describe",): place.release,
        ("catalogue",): (
            str(make_small(place.directory / "catalogued", "2013-01")),
            *("--out", str(place.directory / "site")),
        ),
        ("adopt",): published_table(place.directory),
        ("table",): (*place.release, "cancelled"),
        ("posterior",): (*place.release, "cancelled", "--method", "plug-in", "--where", "origin=JFK"),
        ("quantiles",): ("bins", "wait", "--store", str(place.directory / "bins"), "--draws", "10"),
        ("tree",): ("trees", "late", "--store", str(place.directory / "trees"), "--draws", "10"),
        ("publish",): (
            *(*place.release, "cancelled", "--method", "plug-in", "--where", "origin=JFK"),
            *("--draws", "0", "--formats", "json", "--to", str(place.directory / "published")),
        ),
        ("publications", "list"): ("--store", str(place.directory / "published")),
        ("publications", "show"): ("0" * 32, "--store", str(place.directory / "published")),
        ("publications", "verify"): ("0" * 32, "--store", str(place.directory / "published")),
        ("publications", "fetch"): (
            *("0" * 32, "--store", str(place.directory / "published")),
            *("--out", str(place.directory / "fetched")),
        ),
        ("calibrate",): (*place.release, "cancelled", "--method", "plug-in", "--simulations", "0"),
        ("model", "hidden-markov"): (
            "crashes",
            "--store",
            publish_crashes(place.directory / "crashes")[0],
            "--chain",
            "STATE",
            "--time",
            "YEAR",
            "--time",
            "MONTH",
            "--states",
            "1",
            "--sweeps",
            "8",
            "--draws",
            "4",
        ),
        ("model", "field"): (
            *("fields", "--store", str(place.directory / "fields"), "--draws", "10"),
            *("--statistic", "pair", "--target", "b", "--given", "a=yes"),
        ),
        ("model", "synthesize"): (
            *("fields", "--store", str(place.directory / "fields"), "--draws", "40", "--statistic", "pair"),
            *("--rows", "5", "--imputations", "2", "--overwrite"),
            *("--out", str(place.directory / "synthetic.parquet")),
        ),
        ("model", "small-areas"): (
            *(*place.release, "cancelled", "--pooled", "logit-normal"),
            *("--least", "2", "--out", str(place.directory / "areas.csv"), "--overwrite"),
        ),
        ("model", "transitions"): ("models", "steps", *models, "--where", "origin=JFK", "--steps", "2"),
        ("model", "classify"): ("tables", "late", *tables, "--data", str(classified), "--where", "site=p"),
        ("model", "query"): (
            *("tables", "causes", *tables, "--target", "well", "--where", "site=p"),
            *("--given", "severe=no", "--do", "treated=yes"),
        ),
        ("model", "predict"): (
            "models",
            "arrival",
            *models,
            "--data",
            str(place.directory / "rows.csv"),
            "--prior",
            CONJUGATE,
        ),
        ("ledger", "grant"): ("passengers", "--epsilon", "1", "--reason", "r", "--ledger", place.grants),
        ("ledger", "show"): ledger,
        ("ledger", "person"): ("passengers", *ledger),
        ("ledger", "verify"): ledger,
        ("ledger", "export"): ledger,
        ("ledger", "recover"): ledger,
        ("ledger", "abandon"): ("passengers/absent", "--spool-lost", *ledger),
        ("ledger", "reconcile"): ("--reason", "r", *ledger),
        ("ledger", "migrate"): ledger,
        ("ledger", "witness"): (str(place.workspace.directory / "witness"), *ledger),
        ("store", "list"): ledger,
        ("store", "verify"): (place.workspace.store,),
        ("store", "adopt"): (place.workspace.store, *ledger),
        ("store", "retire"): ("absent", "--reason", "r", *ledger),
        ("keys", "new"): (),
        ("keys", "show"): (),
        ("config", "show"): (),
        ("cluster", "certificates"): (str(place.directory / "certificates"),),
    }
    commands = dict(walk(app.command()))
    assert commands.keys() == bases.keys(), "a command has no base: give it one here"
    for name, base in bases.items():
        params = [param for param in commands[name].params if param.name != "help"]
        options = [param.opts[0] for param in params if isinstance(param, TyperOption)]
        metavars = [
            str(param.metavar or param.name) for param in params if not isinstance(param, TyperOption)
        ]
        named = (*options, *(option.strip("-").replace("-", " ") for option in options), *metavars)

        def case(*words: str, named: tuple[str, ...] = named) -> Case:
            """Expect an answer to name an option, with or without dashes, an argument, or what was given."""
            grants = words[:2] == ("ledger", "grant")
            given = [Path(word).name[:20] for word in words if len(word) > 2]
            given += [text for word in words if len(word) > 2 for text in (word[:20], repr(word)[1:20])]
            given += [form.format(word) for word in words for form in FORMS]
            given += [repr(word.partition("=")[0]) for word in words]  # of COLUMN=KEY
            given += [escaped(text[:20])[:20] for text in given if len(text) > 2]
            return Case(
                words=words,
                places=(*named, *PHRASES, *given),
                ledger=place.grants if grants else place.workspace.ledger,
            )

        for param in params:
            if not isinstance(param, TyperOption) or param.is_flag:
                continue
            option, rest = param.opts[0], without(base, param.opts[0])
            for text in TEXTS:
                if not (name[0] == "demo" and text.strip("\0\ud800 ")):  # it would run
                    yield case(*name, *rest, option, text)
            yield case(*name, *rest, option)
            if name[0] != "demo":
                yield case(*name, *rest, option, "1", option, "1")
        for position in range(len(base)):
            if name[0] not in {"release", "backfill"} or position == 0:
                for text in TEXTS:
                    yield case(*name, *base[:position], text, *base[position + 1 :])
        for words in (("--unknown",), ("--unknown=" + LONG,), ("extra",) * 9, (LONG,), ("--json", "--json")):
            if name[0] != "demo":
                yield case(*name, *base, *words)


def walk(command: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give every command of the command line by its words."""
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            yield from walk(below, (*names, name))
    else:
        yield names, command


def without(words: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Leave an option and its value out."""
    kept, skip = [], False
    for word in words:
        if not skip and word != option:
            kept.append(word)
        skip = word == option and not skip
    return tuple(kept)


SOURCES: list[Callable[[Place], Iterator[Case]]] = [spec_cases, text_cases, profile_cases, option_cases]
"""Every kind of bad input; whoever adds a format that people write adds its mutants here."""


def ask(case: Case, findings: Findings) -> None:  # noqa: C901 - one question after the other
    """Run one command in this process, and note what is wrong with its answer."""
    for path, content in case.files:
        path.write_bytes(content)
    before = spent(case.ledger)
    out, err = io.StringIO(), io.StringIO()
    status: object = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            app.main(case.words)
    except SystemExit as end:
        status = end.code
    except BaseException as error:  # noqa: BLE001 - what leaves main is a finding
        status = repr(error)[:100]
    findings.n_asked += 1
    if status == 0:
        return
    findings.n_bad += 1
    message = err.getvalue().removeprefix("suffice: ").rstrip("\n")
    said = f"{' '.join(case.words)[-160:]!r} -> {status}: {message[:300]!r} {out.getvalue()[:100]!r}"
    if not isinstance(status, int) or status not in {1, 2, 3, 4, 5, UNWELL} or "internal error" in message:
        findings.wrong.append(f"internal error: {said}")
    if len(message) > LONGEST_MESSAGE:
        findings.wrong.append(f"over {LONGEST_MESSAGE} characters: {said}")
    is_report = not message and bool(out.getvalue())  # as `verify`, whose findings are its answer
    if not is_report and not any(place and place[:40] in message for place in case.places):
        findings.wrong.append(f"without a place: {said}")
    if any(canary in out.getvalue() + err.getvalue() for canary in CANARIES):
        findings.wrong.append(f"a data value: {said}")
    if re.search(r"Input should|Field required|pydantic|validation error", message):
        findings.wrong.append(f"another library's words: {said}")
    if case.words[:2] != ("ledger", "grant") and spent(case.ledger) != before:
        findings.wrong.append(f"charged: {said}")


def spent(ledger: str) -> tuple[Fraction, Fraction]:
    """Return what an account's charges took; asked again only where the ledger's files have changed."""
    files = (Path(ledger.removeprefix("sqlite:///") + suffix) for suffix in ("", "-wal", "-journal"))
    state = tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists())
    return _spent(ledger, state)


@cache
def _spent(ledger: str, _state: object) -> tuple[Fraction, Fraction]:
    with open_ledger(ledger) as opened:
        account = opened.account("passengers")
        return account.spent, account.reserved
