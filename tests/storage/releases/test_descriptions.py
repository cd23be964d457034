"""Descriptions of releases: they say what the files hold, by the rules of their formats, and nothing more."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from suffice.storage.objects.address import read_address
from suffice.storage.releases.descriptions import DESCRIPTIONS, describe
from suffice.storage.releases.location import Location
from suffice.storage.releases.manifest_reader import parse_manifest
from support.releases import make_plan, public_n_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"[-a-z0-9._/]+")
_TYPES = {"string": "string", "int64": "integer", "decimal128(38, 0)": "integer", "double": "number"}


@pytest.fixture(params=["grouped", "public n"])
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    plan = public_n_plan() if request.param == "public n" else make_plan()
    return publish(tmp_path / "store", plan)


def _described(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    data = (folder / "manifest.json").read_bytes()
    made = describe(data, parse_manifest(data))
    assert set(made) == set(DESCRIPTIONS)
    return json.loads(made["datapackage.json"]), json.loads(made["croissant.json"])


def test_a_data_package_says_what_the_files_hold(release: Path) -> None:
    package, _ = _described(release)
    assert _NAME.fullmatch(package["name"])
    names = [resource["name"] for resource in package["resources"]]
    assert len(set(names)) == len(names)
    assert all(map(_NAME.fullmatch, names))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:00:00Z", package["created"])
    assert "licenses" not in package
    for resource in package["resources"]:
        assert not resource["path"].startswith(("/", "."))
        data = (release / resource["path"]).read_bytes()
        assert "bytes" not in resource  # Frictionless's own tool counts none of Parquet, and calls it a fault
        assert resource["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        table = pq.read_table(release / resource["path"])
        fields = resource["schema"]["fields"]
        assert [(field["name"], field["type"]) for field in fields] == [
            (field.name, _TYPES[str(field.type)]) for field in table.schema
        ]
        for field in fields:
            if "enum" in field["constraints"]:
                assert set(table[field["name"]].to_pylist()) == set(field["constraints"]["enum"])
        key = resource["schema"]["primaryKey"]
        assert len(table.select(key).group_by(key).aggregate([])) == len(table)
        assert resource["suffice"]["mechanism"] == "discrete_laplace"


def test_croissant_says_what_the_files_hold(release: Path) -> None:
    _, document = _described(release)
    assert document["@type"] == "sc:Dataset"
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert document["@context"]["cr"] == "http://mlcommons.org/croissant/"
    assert "license" not in document
    manifest = (release / "manifest.json").read_bytes()
    for part in (json.loads(manifest)["release_id"], hashlib.sha256(manifest).hexdigest()):
        assert part in document["citeAs"]
    objects = {entry["@id"]: entry for entry in document["distribution"]}
    for entry in objects.values():
        data = (release / entry["contentUrl"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert entry["contentSize"] == f"{len(data)} B"
        assert entry["encodingFormat"] in {"application/json", "application/x-parquet"}
    ids = [field["@id"] for record in document["recordSet"] for field in record["field"]]
    assert len(set(ids)) == len(ids)
    for record in document["recordSet"]:
        in_record = {field["@id"] for field in record["field"]}
        assert {key["@id"] for key in record["key"]} <= in_record
        (path,) = {field["source"]["fileObject"]["@id"] for field in record["field"]}
        assert path in objects
        columns = pq.read_schema(release / path).names
        assert [field["source"]["extract"]["column"] for field in record["field"]] == columns


def test_descriptions_follow_from_the_manifest_alone(release: Path, tmp_path: Path) -> None:
    data = (release / "manifest.json").read_bytes()
    first = describe(data, parse_manifest(data))
    assert first == describe(data, parse_manifest(data))
    text = b"".join(first.values()).decode()
    assert str(tmp_path) not in text
    stated = json.loads(data)
    for secret in ("ledger_id", "drawing_hash", "checksum"):
        assert stated[secret] not in text, "nobody needs it there"
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "manifest.json").write_bytes(data)
    address = read_address(str(copy))
    location = Location(objects=address.objects(), uri=address.uri, key=None, store=None)
    assert describe(*location.manifest()) == first


def test_columns_with_strange_names_are_referred_to(tmp_path: Path) -> None:
    group = 'a "b" </script> ü'
    plan = make_plan(groups={group: ["x", "y"]})
    package, document = _described(publish(tmp_path / "store", plan))
    assert package["resources"][0]["schema"]["fields"][0]["name"] == group
    field = document["recordSet"][0]["field"][0]
    assert field["name"] == group
    assert re.fullmatch(r"[A-Za-z0-9_.%/-]+", field["@id"])
