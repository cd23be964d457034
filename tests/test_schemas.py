"""The schemas of the format: they are those of the code, take what it writes, and refuse what is changed."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from scripts.schemas.__main__ import SCHEMAS, stale
from scripts.schemas.cli_documents import ERROR, PRINTED
from scripts.schemas.shapes import whole
from scripts.vectors.specs import VALID
from suffice.cli.app import command
from suffice.pipeline.families import FAMILIES
from support.entries import privacy_of
from support.manifest_mutants import DELETED, changed, paths
from support.page_blocks import read_page
from support.printed import check, leaves, named, validator_of

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = Path(__file__).parent / "vectors"
MANIFESTS = sorted((VECTORS / "valid").glob("*/release/manifest.json"))


def names(directory: str = "") -> list[str]:
    """Return the files of the schemas, which are those of the code; making them would take a second."""
    return sorted(path.relative_to(SCHEMAS).as_posix() for path in (SCHEMAS / directory).rglob("*.json"))


def validator(name: str) -> jsonschema.Draft202012Validator:
    return validator_of(json.loads((SCHEMAS / f"{name}.json").read_text()))


def test_schemas_are_written_anew_after_the_code_changed() -> None:
    assert stale() == []


@pytest.mark.parametrize("name", names())
def test_a_schema_is_one(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads((SCHEMAS / name).read_text()))


def test_every_command_that_prints_json_has_a_schema_and_no_other() -> None:
    printing = {
        name
        for name, subcommand in leaves(command())
        if any("--json" in each.opts for each in subcommand.params)
    }
    assert len(printing) > 40
    assert PRINTED.keys() == {*printing, ERROR}


def open_parts(schema: Any, place: str = "") -> Iterator[str]:
    """Name the objects of a schema that would take any field."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            states_fields = schema.get("additionalProperties", True) is not True
            if not states_fields or (schema.get("required", []) == [] and schema.get("properties")):
                yield place
        for key, entry in schema.items():
            yield from open_parts(entry, f"{place}/{key}")
    elif isinstance(schema, list):
        for number, entry in enumerate(schema):
            yield from open_parts(entry, f"{place}/{number}")


@pytest.mark.parametrize("name", names("cli"))
def test_no_part_of_a_printed_document_may_hold_anything(name: str) -> None:
    assert list(open_parts(json.loads((SCHEMAS / name).read_text()))) == []


def test_an_open_part_would_be_found() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "object"}}}}
    assert list(open_parts({**schema, "required": ["x"], "additionalProperties": False})) == [
        "/properties/x/items"
    ]


def test_what_is_printed_is_held_against_the_schema_of_its_command() -> None:
    assert named(command(), ["--config", "x", "ledger", "witness", "x", "--json"]) == "ledger witness"
    assert named(command(), ["ledger", "--json"]) == ""
    document = {"uri": "x", "sequence": 1, "hash": "0" * 64}
    check("ledger witness", json.dumps(document))
    check("ledger witness", '{"error": {"type": "UsageError", "message": "x", "exit_status": 2}}')
    for text in (
        json.dumps({**document, "note": "hello"}),
        json.dumps({**document, "sequence": "1"}),
        json.dumps({**document, "sequence": float("nan")}),
        '{"error": {"type": "UsageError"}}',
        json.dumps(document) * 2,
        "",
    ):
        with pytest.raises((ValueError, jsonschema.ValidationError)):
            check("ledger witness", text)


def test_what_a_network_says_of_tables_apart_is_in_the_schema() -> None:
    diagnostics = whole(PRINTED["posterior"]["anyOf"][0]["properties"]["diagnostics"])
    schema = jsonschema.Draft202012Validator(diagnostics)
    drawn = {
        "sampler": "MCMC",
        "chains": 4,
        "draws": 4000,
        "largest_r_hat": 1.0,
        "fewest_effective_draws": 900,
    }
    for told in (drawn, {**drawn, "not_reconciled": "a, b"}, {"not_reconciled": "a, b"}):
        schema.validate(told)
    for told in ({}, {"sampler": "MCMC"}, {**drawn, "note": "x"}):
        assert not schema.is_valid(told)


@pytest.mark.slow
def test_a_plan_that_is_changed_is_refused() -> None:
    schema, refused = validator("plan-1"), 0
    for name in ("window", "units"):
        plan = json.loads((VECTORS / "valid" / name / "release" / "manifest.json").read_text())["plan"]
        schema.validate(plan)
        for path in paths(plan):
            assert not schema.is_valid(changed(plan, path, 1)), path
            if len(path) == 1 or (path[0] == "privacy" and len(path) == 2):
                assert not schema.is_valid(changed(plan, path, DELETED)), path
            refused += 1
    assert refused > 60


def test_the_page_of_the_schemas_makes_a_validator(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = [block for block in read_page(SCHEMAS / "README.md").blocks if block.language == "python"]
    monkeypatch.chdir(repository)
    names: dict[str, Any] = {}
    exec(compile(block.text, "schemas/README.md", "exec"), names)  # noqa: S102 - our own text
    content = json.loads(MANIFESTS[0].read_text())
    names["validator"].validate(content)
    assert not names["validator"].is_valid({**content, "plan": {}})


def test_a_new_family_changes_no_schema_of_a_command() -> None:
    for path in (SCHEMAS / "cli").glob("*.json"):
        assert "bayesian_network" not in path.read_text(), path.name


@pytest.mark.slow
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.parent.name)
def test_a_manifest_and_its_plan_are_as_the_schemas_say(manifest: Path) -> None:
    content = json.loads(manifest.read_text())
    validator("release-manifest-1").validate(content)
    validator("plan-1").validate(content["plan"])


def test_the_manifest_of_a_publication_is_as_the_schema_says() -> None:
    content = json.loads((VECTORS / "publication" / "manifest.json").read_text())
    schema = validator("publication-manifest-1")
    schema.validate(content)
    for path in paths(content):
        if len(path) == 1 or (path[0] == "request" and len(path) == 2):
            assert not schema.is_valid(changed(content, path, DELETED)), path


def test_withdrawals_are_as_the_schema_says() -> None:
    for name in ("withdrawn", "withdrawn-signed", "withdrawal-of-another"):
        validator("withdrawal-1").validate(
            json.loads((VECTORS / "hostile" / name / "withdrawn.json").read_text())
        )


@pytest.mark.slow
def test_a_manifest_that_lacks_a_field_or_has_one_more_is_refused() -> None:
    schema = validator("release-manifest-1")
    content = json.loads((VECTORS / "valid" / "first-families" / "release" / "manifest.json").read_text())
    refused = 0
    for path in paths(content):
        if path[0] in {"plan", "versions", "declared_order"} or "coefficients" in path[:-1]:
            continue  # maps of names
        if isinstance(path[-1], str):
            assert not schema.is_valid(changed(content, path, DELETED)), path
            assert not schema.is_valid(changed(content, path, {"another": []})), path
            refused += 1
        more = copy.deepcopy(content)
        holder: Any = more
        for key in path:
            holder = holder[key]
        if isinstance(holder, dict) and path[-1] != "coefficients":
            holder["note"] = "hello"
            assert not schema.is_valid(more), path
            refused += 1
    assert refused > 150


def specs_in_docs(repository: Path) -> list[str]:
    specs = []
    for page in sorted((repository / "docs").glob("**/*.md")):
        specs += re.findall(
            r"^```yaml\n(name:.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    return specs


def test_specs_in_the_documentation_are_as_the_schema_says(repository: Path) -> None:
    schema, law, pages = validator("spec-1"), validator("declared-law-1"), specs_in_docs(repository)
    laws = [text for text in pages if "publisher:" in text]
    assert len(pages) - len(laws) > 8
    assert len(laws) == 3
    for text in laws:
        law.validate(json.loads(json.dumps(yaml.safe_load(text), default=str)))
    for text in set(pages) - set(laws):
        schema.validate(yaml.load(text, yaml.BaseLoader))  # noqa: S506 - no types
        schema.validate(json.loads(json.dumps(yaml.safe_load(text), default=str)))  # as editors read them


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_example_of_every_family_is_as_the_schema_says(name: str) -> None:
    entry = {"family": name, **FAMILIES[name].example.entry}
    validator("spec-1").validate(a_spec({"it": entry}, privacy=privacy_of(name, epsilon="1", public_n=False)))


@pytest.mark.parametrize("name", sorted(VALID))
def test_the_spec_of_every_vector_is_as_the_schema_says(name: str) -> None:
    validator("spec-1").validate(a_spec(**VALID[name].spec))


BAD: dict[str, dict[str, Any]] = {
    "no privacy": {"privacy": None},
    "unknown key": {"note": "hello"},
    "reserved name": {"name": "publications"},
    "name in capitals": {"name": "Flights"},
    "no statistics": {"statistics": {}},
    "unknown family": {"statistics": {"x": {"family": "uniform", "column": "x"}}},
    "no column": {"statistics": {"x": {"family": "bernoulli"}}},
    "key of another family": {"statistics": {"x": {"family": "bernoulli", "column": "x", "upper": 3}}},
    "statistic's name": {"statistics": {"a b": {"family": "bernoulli", "column": "x"}}},
    "bound that is no number": {"statistics": {"x": {"family": "poisson", "column": "x", "upper": "many"}}},
    "two forms of a domain": {"groups": {"g": {"range": [1, 2], "from": "2013-01"}}},
    "range of three": {"groups": {"g": {"range": [1, 2, 3]}}},
    "neighbours": {"privacy": {"epsilon": "1", "neighboring": "add_one"}},
    "unit without a bound": {
        "privacy": {"epsilon": "1", "neighboring": "replace_one", "unit": {"column": "person"}}
    },
    "two sources": {"source": {"parquet": "a", "csv": "b"}},
    "source of no kind": {"source": {"excel": "a"}},
    "period": {"window": {"column": "day", "every": "quarter"}},
    "list of statistics": {"statistics": []},
}


def a_spec(statistics: Any = None, **keys: Any) -> dict[str, Any]:
    content = {
        "name": "flights",
        "dataset": "people",
        "source": {"parquet": "rows/"},
        "privacy": {"epsilon": "1", "neighboring": "add_or_remove_one"},
        "statistics": {"x": {"family": "bernoulli", "column": "x"}} if statistics is None else statistics,
        **keys,
    }
    return {key: value for key, value in content.items() if value is not None}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_spec_is_refused(name: str) -> None:
    assert validator("spec-1").is_valid(a_spec())
    assert not validator("spec-1").is_valid(a_spec(**BAD[name]))
