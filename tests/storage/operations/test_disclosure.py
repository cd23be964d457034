"""The registry's entry: its fields, its enumerations, and nothing that a manifest cannot know."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from suffice.storage.operations.disclosure import TO_STATE, disclosure
from support.releases import make_plan, public_n_plan, publish

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description "
    "publication_date data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details "
    "data_source_type data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
"""All fields of the registry's schema, at the commit that the module names."""

MAY_BE_LEFT_OUT = {
    "deployment.deployment_model.release_type_details",
    "deployment.deployment_model.data_source_type_details",
    "deployment.deployment_model.access_type_details",
    "deployment.administrative.sources",
}


def entry_of(tmp_path: Path, plan: Any) -> dict[str, Any]:
    manifest = json.loads(publish(tmp_path, plan).joinpath("manifest.json").read_bytes())
    document: Any = disclosure(manifest)
    entry: dict[str, Any] = document["entry"]
    return entry


@pytest.mark.parametrize("plan", [make_plan(), public_n_plan()])
def test_every_field_of_the_highest_tier_is_filled_or_left_to_a_person(tmp_path: Path, plan: Any) -> None:
    entry = entry_of(tmp_path, plan)
    assert entry.keys() == {"url_slug", "status", "tier", "deployment"}
    filled = {
        f"deployment.{part}.{field}" for part, fields in entry["deployment"].items() for field in fields
    }
    known = {f"deployment.{part}.{field}" for part, fields in FIELDS.items() for field in fields.split()}
    assert filled | TO_STATE.keys() | MAY_BE_LEFT_OUT == known
    assert not filled & TO_STATE.keys()
    assert all(value for part in entry["deployment"].values() for value in part.values())


def test_enumerations_and_types_are_the_registrys(tmp_path: Path) -> None:
    entry = entry_of(tmp_path, make_plan())
    deployment = entry["deployment"]
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
    assert deployment["basic"]["data_product_type"] == "Summary statistics"
    assert dt.date.fromisoformat(deployment["basic"]["publication_date"]) == dt.date(2026, 1, 31)
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["deployment_model"]["model_name"] == "Central"
    assert deployment["deployment_model"]["access_type"] == "Non-interactive"
    assert isinstance(deployment["privacy_loss"]["privacy_parameters"]["epsilon"], float)


def test_what_is_said_follows_the_manifest(tmp_path: Path) -> None:
    private = entry_of(tmp_path / "a", make_plan())["deployment"]
    public = entry_of(tmp_path / "b", public_n_plan())["deployment"]
    assert private["dp_variant"]["unprotected_quantities"].startswith("None")
    assert "1000" in public["dp_variant"]["unprotected_quantities"]
    assert "one row more" in private["privacy_loss"]["privacy_unit_details"]
    assert "content of one row" in public["privacy_loss"]["privacy_unit_details"]
    assert "arr_delay: 0.25" in private["privacy_loss"]["privacy_parameters_details"]
    assert "in 3 cells" in private["basic"]["description"]
    assert "stops: L1 sensitivity 5, scale 20" in private["implementation"]["mechanisms"]


@pytest.mark.parametrize(("nulls", "without"), [("drop", "enter nothing"), ("own_unit", "one by one")])
def test_a_column_unit_is_told_with_its_bound(tmp_path: Path, nulls: str, without: str) -> None:
    unit = {"column": "customer_id", "max_rows": "20", "nulls": nulls}
    plan = make_plan(privacy={"epsilon": "1", "neighboring": "add_or_remove_one", "unit": unit})
    loss = entry_of(tmp_path, plan)["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "Value of customer_id"
    assert "one value of customer_id, with all its rows more" in loss["privacy_unit_details"]
    assert "at most 20 enter" in loss["privacy_unit_details"]
    assert without in loss["privacy_unit_details"]


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_parts_of_a_loss_need_not_be_decimals(tmp_path: Path, measure: str) -> None:
    statistics = {name: {"family": "bernoulli", "column": name} for name in ("a", "b", "c")}
    privacy = {measure: "1", "neighboring": "add_or_remove_one"}
    plan = make_plan(groups=None, privacy=privacy, statistics=statistics)
    loss = entry_of(tmp_path, plan)["deployment"]["privacy_loss"]
    assert "of it, a: 1/3; b: 1/3; c: 1/3." in loss["privacy_parameters_details"]
    assert f"One unit: {measure} 1; other charges" in loss["privacy_parameters_details"]
