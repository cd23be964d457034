"""The manifest's model: what follows from its plan, and what it states beyond that, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from suffice.pipeline.spec.windows_and_amendments import MOST_AMENDMENTS, amended_of, edition
from suffice.pipeline.terms.declaration.domains import Domain, DomainKind
from suffice.pipeline.terms.declaration.exact_numbers import format_number
from suffice.pipeline.terms.statistics.drawn_quantile import QuantilePlan
from suffice.storage.signatures.signing import is_signature_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from suffice.pipeline.spec.plan import Plan
    from suffice.pipeline.spec.windows_and_amendments import AmendedRelease
    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
    from suffice.pipeline.terms.statistics.cone_noise import ConeNoise
    from suffice.pipeline.terms.statistics.sample_plan import SamplePlan
    from suffice.pipeline.terms.statistics.sensitivity import Constants, Quantity
    from suffice.pipeline.terms.statistics.statistic_plan import StatisticPlan
    from suffice.storage.releases.manifest_entries import (
        AnyEntry,
        ConeEntry,
        Declared,
        DrawnEntry,
        GroupOfKeys,
        GroupOfRange,
        NoisyEntry,
        ParametersEntry,
        QuantileEntry,
        QuantityEntry,
        SampledEntry,
        StatisticEntry,
    )


def declared_fields(plan: Plan) -> Declared:
    """Return the fields that follow from a plan without its statistics."""
    declared: Declared = {
        "name": plan.name,
        "dataset": plan.dataset,
        "neighboring": str(plan.neighboring),
        "unit": plan.unit,
        "max_total_rows": plan.max_total_rows,
        "cells": plan.n_cells,
        "groups": _groups(plan.groups),
    }
    _state_loss(declared, plan.loss)
    if plan.column_unit is not None:
        declared["max_rows"] = plan.column_unit.max_rows
        if plan.column_unit.max_rows_per_cell is not None:
            declared["max_rows_per_cell"] = plan.column_unit.max_rows_per_cell
        declared["unit_nulls"] = str(plan.column_unit.nulls)
    return declared


def _state_loss(entry: Declared | StatisticEntry, loss: PrivacyLoss) -> None:
    """State a loss by its measure."""
    if loss.rho is None:
        entry["epsilon"] = loss.text
    else:
        entry["rho"] = loss.text


def statistic_fields(statistic: StatisticPlan) -> AnyEntry:
    """Return a statistic's entry; its quantities are made one after another, as there may be many."""
    entry: AnyEntry
    if statistic.sample is not None:
        entry = _drawn_fields(statistic, statistic.sample)
    elif statistic.cone is not None:
        entry = _cone_fields(statistic, statistic.cone)
    else:
        entry = _noisy_fields(statistic)
    if statistic.states_groups:
        entry["cells"] = statistic.n_cells
        entry["groups"] = _groups(statistic.groups)
    return entry


def _noisy_fields(statistic: StatisticPlan) -> NoisyEntry:
    entry: NoisyEntry = {
        "name": statistic.name,
        "family": statistic.family,
        "columns": list(statistic.columns),
        "rows_of": statistic.rows_of,
        "design": str(statistic.design),
        "parameters": _parameters(statistic.parameters),
        "components": list(statistic.components),
        "l1_sensitivity": str(statistic.l1_sensitivity),
        "mechanism": "discrete_laplace",
        "scale": format_number(Fraction(statistic.scale)),
        "partition_total": _optional(statistic.partition_total),
        "value_type": statistic.value_type,
        "quantities": (_quantity(quantity, statistic.components) for quantity in statistic.quantities),
    }
    _state_loss(entry, statistic.loss)
    if statistic.l2_squared is not None:
        entry["l2_squared"] = str(statistic.l2_squared)
    if statistic.moment_weight is not None:
        entry["moment_weight"] = format_number(statistic.moment_weight)
    if (shared := statistic.within_unit) is not None:
        entry["within_unit"] = {
            "max_rows": str(shared.max_rows),
            "row_weight": str(shared.row_weight),
            "row_components": list(statistic.components[: shared.rows]),
            "unit_total": str(shared.unit_total),
        }
    if (counted := statistic.counted) is not None:
        entry["count_clipped"] = {
            "weight": str(counted.weight),
            "sum_components": list(statistic.components[: counted.sums]),
            "sum_partition_total": _optional(counted.partition_total),
        }
    return entry


def _cone_fields(statistic: StatisticPlan, noise: ConeNoise) -> ConeEntry:
    return {
        **_shared_fields(statistic),
        "components": list(statistic.components),
        "mechanism": "cone_noise",
        "cone_noise": {
            "rate": format_number(noise.rate),
            "columns": noise.columns,
            "linear": noise.linear,
            "steps": str(noise.steps),
        },
        "partition_total": None,
        "value_type": statistic.value_type,
        "quantities": (_quantity(quantity, statistic.components) for quantity in statistic.quantities),
    }


def _drawn_fields(
    statistic: StatisticPlan, sample: SamplePlan | QuantilePlan
) -> SampledEntry | QuantileEntry:
    drawn: DrawnEntry = {
        **_shared_fields(statistic),
        "mechanism": "exponential",
        "draws": sample.draws,
        "range_sensitivity": str(sample.range_sensitivity),
        "scale": str(sample.scale),
    }
    if isinstance(sample, QuantilePlan):
        quantile, scale = format_number(sample.quantile), format_number(sample.rank_scale)
        return {**drawn, "quantile": quantile, "rank_scale": scale}
    return {
        **drawn,
        "parameter": sample.parameter,
        "grid": sample.grid,
        "within": [format_number(end) for end in sample.within],
        "prior": sample.prior,
        "temperature": format_number(sample.temperature),
    }


def _shared_fields(statistic: StatisticPlan) -> StatisticEntry:
    entry: StatisticEntry = {
        "name": statistic.name,
        "family": statistic.family,
        "columns": list(statistic.columns),
        "rows_of": statistic.rows_of,
        "design": str(statistic.design),
        "parameters": _parameters(statistic.parameters),
    }
    _state_loss(entry, statistic.loss)
    return entry


def _parameters(parameters: Constants) -> ParametersEntry:
    """Return the constants' entry; what there is none of is left out, as ever."""
    entry: ParametersEntry = {
        "categories": list(parameters.categories),
        "lower": _optional(parameters.lower),
        "upper": _optional(parameters.upper),
        "lattice_bits": parameters.lattice_bits,
    }
    if parameters.constants:
        entry["constants"] = {name: format_number(number) for name, number in parameters.constants.items()}
    if parameters.columns:
        entry["columns"] = [
            {"name": of.name, "lower": format_number(of.lower), "upper": format_number(of.upper)}
            for of in parameters.columns
        ]
    if parameters.tables:
        entry["tables"] = [
            {
                "name": table.name,
                "variables": [
                    {"name": variable.name, "categories": list(variable.categories)}
                    for variable in table.variables
                ],
            }
            for table in parameters.tables
        ]
    if parameters.bins is not None:
        entry["bins"] = parameters.bins.written()
    return entry


def _groups(groups: Mapping[str, Domain]) -> list[GroupOfRange | GroupOfKeys]:
    return [_group(column, domain) for column, domain in groups.items()]


def _group(column: str, domain: Domain) -> GroupOfRange | GroupOfKeys:
    if domain.kind is DomainKind.RANGE:
        return {"column": column, "kind": "range", "first": str(domain[0]), "last": str(domain[-1])}
    return {
        "column": column,
        "kind": "period" if domain.every else "list",
        "every": domain.every.value if domain.every else None,
        "keys": [str(key) for key in domain],
    }


def _quantity(quantity: Quantity, components: Sequence[str]) -> QuantityEntry:
    entry: QuantityEntry = {
        "name": quantity.name,
        "category": quantity.category,
        "coefficients": {
            components[component]: format_number(weight)
            for component, weight in quantity.coefficients.items()
        },
        "public_n_coefficient": format_number(quantity.public_n_coefficient),
    }
    if quantity.component is not None:
        entry["component"] = quantity.component
    if quantity.labels:
        entry["labels"] = [list(label) for label in quantity.labels]
    return entry


def _optional(number: Fraction | int | None) -> str | None:
    return None if number is None else format_number(number)


FORMAT_VERSION = 1

Window = Annotated[str, Field(pattern=r"^(all|[0-9]{4}(-W[0-9]{2}|-[0-9]{2}(-[0-9]{2})?)?)$")]
Hex16 = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Hour = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9.+!_-]{1,64}$")]


class StrictModel(BaseModel):
    """Base: nothing unknown, nothing converted, nothing changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class FileEntry(StrictModel):
    """One data file beside the manifest; all but size and SHA-256 follows from the plan."""

    statistic: str
    path: str
    size: Annotated[int, Field(gt=0)]
    sha256: Hex64
    rows: Annotated[int, Field(gt=0)]


class SignatureEntry(StrictModel):
    """Who signed the manifest with this entry null, and how; checked against keys that a reader pins."""

    algorithm: Literal["ed25519"]
    key_id: Hex16
    value: str

    @model_validator(mode="after")
    def _is_canonical(self) -> Self:
        if not is_signature_value(self.value):
            message = "a signature is 64 bytes in canonical base64"
            raise ValueError(message)
        return self


class AmendmentEntry(StrictModel):
    """Which amendment of its window a release is, and the release that it replaces."""

    number: Annotated[int, Field(ge=1, le=MOST_AMENDMENTS)]
    release_id: Hex16
    manifest_sha256: Hex64


class Stated(StrictModel):
    """What a manifest states that does not follow from its plan."""

    format_version: Literal[1]
    window: Window
    amends: AmendmentEntry | None
    release_id: Hex16
    created: Hour
    n: Annotated[int, Field(ge=0)] | None
    input_verified: bool
    contract: Hex64 | None = None
    audit: Hex64 | None = None
    declared_order: dict[str, Any]
    files: list[FileEntry]
    ledger_id: Hex32
    drawing_sequence: Annotated[int, Field(gt=0)]
    drawing_hash: Hex64
    versions: dict[Version, Version]
    checksum: Hex64
    signature: SignatureEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest of format 1 that was read, and compared with its plan.

    Attributes
    ----------
    plan : Plan
        Compiled by the reader from the canonical plan that the manifest holds.
    stated : Stated
        What it states beyond.
    """

    plan: Plan
    stated: Stated

    @property
    def name(self) -> str:
        """The release series."""
        return self.plan.name

    @property
    def dataset(self) -> str:
        """The account that paid."""
        return self.plan.dataset

    @property
    def window(self) -> str:
        """The period released, or ``all``."""
        return self.stated.window

    @property
    def amendment(self) -> int:
        """The number of the amendment; 0 for a window's first release."""
        return self.stated.amends.number if self.stated.amends else 0

    @property
    def amends(self) -> AmendedRelease | None:
        """The release that it replaces, where it is an amendment."""
        amends = self.stated.amends
        return None if amends is None else amended_of(amends.release_id, amends.manifest_sha256)

    @property
    def edition(self) -> str:
        """The window, with the number of an amendment."""
        return edition(self.window, self.amendment)

    @property
    def release_id(self) -> str:
        """16 hex digits."""
        return self.stated.release_id

    @property
    def loss(self) -> PrivacyLoss:
        """Of the whole release."""
        return self.plan.loss

    @property
    def plan_hash(self) -> str:
        """The SHA-256 of the canonical plan, in hex."""
        return self.plan.plan_hash

    @property
    def n(self) -> int | None:
        """The public number of records, where there is one."""
        return self.stated.n

    @property
    def contract(self) -> str | None:
        """The SHA-256 of the contract by which the data were read; None where their account had none."""
        return self.stated.contract

    @property
    def audit(self) -> str | None:
        """The SHA-256 of the audit of its plan that its account's grant named; None where there was none."""
        return self.stated.audit

    @property
    def files(self) -> list[FileEntry]:
        """The data files, in the plan's order of statistics."""
        return self.stated.files

    @property
    def ledger_id(self) -> str:
        """32 hex digits."""
        return self.stated.ledger_id

    @property
    def drawing_sequence(self) -> int:
        """Of the ledger's entry that paid for the draw."""
        return self.stated.drawing_sequence

    @property
    def drawing_hash(self) -> str:
        """The hash of that entry."""
        return self.stated.drawing_hash

    @property
    def signature(self) -> SignatureEntry | None:
        """Who signed it, and how."""
        return self.stated.signature
