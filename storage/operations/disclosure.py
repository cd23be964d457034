"""A release's entry for the OpenDP registry of deployments, as far as its manifest can fill it.

Fields are those of ``schemas/deployments-schema.yaml`` in ``opendp/deployments-registry-data`` at commit
3e9c812a924cf01d228f26f6c462c59c391c3f2a (July 2026), for tier 3, the highest; what the tiers ask for is
described at https://registry.opendp.org/transparency-tiers. What only people know, a person adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypedDict

from suffice.pipeline.spec.person import of_release
from suffice.pipeline.terms.declaration.delta import shown_epsilons
from suffice.pipeline.terms.declaration.documents import each_of
from suffice.pipeline.terms.declaration.domains import Every
from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss
from suffice.pipeline.terms.declaration.row_rules import in_words
from suffice.pipeline.terms.declaration.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = "opendp/deployments-registry-data@3e9c812a924c"

TO_STATE = {
    "deployment.basic.data_curators": "who publishes it",
    "deployment.basic.intended_use": "what it is for",
    "deployment.basic.data_product_region": "the region of the data, or of the law that applies to them",
    "deployment.basic.data_product_sector": "Technology, Healthcare, Education, Government, ...",
    "deployment.dp_variant.data_domain": "which data sets are protected: actual, potential, counterfactual",
    "deployment.deployment_model.data_source_type": "Static or Dynamic",
    "deployment.deployment_model.release_type": "One release or Many releases, and how they add up",
    "deployment.implementation.justification": "how the loss, bounds and categories were chosen, and why",
    "deployment.administrative.registry_authors": "who fills this entry in",
}
"""What a manifest does not know, and a person states."""

_NEIGHBOURS = {
    "add_or_remove_one": "Two data sets are adjacent if one of them has one {unit} more than the other.",
    "replace_one": "Two data sets are adjacent if they differ in the content of one {unit}.",
}

_INPUT = {
    True: "Input files were checked against SHA-256 sums that the owner of the data named.",
    False: "Input files were not checked against sums of their owner's.",
}


_CONTRACT = {
    True: " They were read by a contract that the owner stated beforehand.",
    False: " No contract said beforehand what they are.",
}
_AUDIT = {
    True: " Before the grant, an audit of the plan on invented data found nothing.",
    False: " The grant names no audit of the plan.",
}
_LAPLACE, _ON_CONE = "discrete_laplace", "cone_noise"
_OF_NOISE = (
    "The Laplace mechanism on exact integer sums: discrete Laplace noise from OpenDP's exact sampler, in "
    "lattice units ({}). No floating-point number gets noise."
)
_OF_CONES = (
    "Laplace noise on a cone, on exact integer sums: the difference of two independent matrices whose "
    "density falls with their first entry on the cone of moments, drawn by this project's own exact sampler, "
    "in lattice units ({}). No floating-point number gets noise."
)
_OF_SAMPLES = (
    "The exponential mechanism on a public grid of a parameter, by OpenDP's noisy maximum, drawn by "
    "rejection without rounding; scores are log likelihoods as exact integers ({})."
)


Basic: TypeAlias = dict[Literal["name", "data_product_type", "description", "publication_date"], str]
Accounting: TypeAlias = dict[Literal["post_processing", "composition"], str]
Implementation: TypeAlias = dict[Literal["preprocessing_and_hyperparameter_tuning", "mechanisms"], str]


class PureParameters(TypedDict):
    """Of a release whose spec states epsilon."""

    epsilon: float


class ConcentratedParameters(TypedDict):
    """Of a release whose spec states rho."""

    rho: float


class StatedLoss(TypedDict):
    """What is protected, and how far."""

    privacy_unit: str
    privacy_unit_details: str
    privacy_parameters_details: str
    privacy_parameters: PureParameters | ConcentratedParameters


class Deployment(TypedDict):
    """What a release is, in the registry's words."""

    basic: Basic
    dp_variant: dict[Literal["variant_name", "unprotected_quantities"], str]
    privacy_loss: StatedLoss
    deployment_model: dict[Literal["model_name", "model_name_details", "actors", "access_type"], str]
    accounting: Accounting
    implementation: Implementation
    administrative: dict[Literal["notes"], str]


class RegistryEntry(TypedDict):
    """An entry of the registry, without what only a person can state."""

    url_slug: str
    status: str
    tier: Literal[3]
    deployment: Deployment


class Disclosure(TypedDict):
    """A draft, and what is left to state: the fields, and what they ask."""

    registry: str
    entry: RegistryEntry
    to_state: Annotated[dict[str, str], each_of(TO_STATE, {"type": "string"})]


def disclosure(manifest: Mapping[str, Any]) -> Disclosure:
    """Return a draft of a registry entry.

    Parameters
    ----------
    manifest : mapping
        ``Release.manifest``.

    Returns
    -------
    Disclosure
        ``registry``: the schema that the entry follows; ``entry``: the entry, without the fields that only
        a person can state; ``to_state``: those fields, and what they ask.
    """
    name, window = manifest["name"], manifest["window"]
    release = name if window == "all" else f"{name}, window {window}"
    if manifest["amends"] is not None:
        release += f", amendment {manifest['amends']['number']}"
    entry: RegistryEntry = {
        "url_slug": f"{name}-{manifest['release_id']}".replace("_", "-").replace(".", "-"),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(manifest, release),
            "dp_variant": {
                "variant_name": "Pure DP" if "epsilon" in manifest else "Zero-concentrated DP",
                "unprotected_quantities": _unprotected(manifest),
            },
            "privacy_loss": _privacy_loss(manifest),
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "Exact totals exist in the memory of the curator's cluster only; noise "
                "is added once, before anything is written.",
                "actors": "Inside: the owner of the data, the operator, their cluster, the privacy ledger. "
                "Outside, and not trusted: everyone who reads the release.",
                "access_type": "Non-interactive",
            },
            "accounting": _accounting(manifest),
            "implementation": _implementation(manifest),
            "administrative": {"notes": _notes(manifest)},
        },
    }
    return {"registry": SOURCE, "entry": entry, "to_state": dict(TO_STATE)}


def to_yaml(document: Disclosure) -> str:
    """Write a draft as the registry's YAML; what is left to state follows as comments."""
    import yaml  # only this needs it

    text = yaml.safe_dump(document["entry"], sort_keys=False, allow_unicode=True, width=100)
    left = [f"#   {field}: {question}\n" for field, question in document["to_state"].items()]
    return "".join(
        [f"# Draft for the registry of deployments ({document['registry']}).\n", text, "# To state:\n", *left]
    )


def _basic(manifest: Mapping[str, Any], release: str) -> Basic:
    statistics = ", ".join(f"{entry['name']} ({entry['family']})" for entry in manifest["statistics"])
    by = _columns(manifest["groups"])
    differing = "; ".join(
        f"{entry['name']} by {_columns(entry['groups']) or 'nothing'}, in {entry['cells']} cells"
        for entry in manifest["statistics"]
        if "groups" in entry
    )
    return {
        "name": release,
        "data_product_type": "Summary statistics",
        "description": f"{_what(manifest)} of the data set {manifest['dataset']}: {statistics}"
        + (f", by {by}, in {manifest['cells']} cells" if by else "")
        + (f"; {differing}." if differing else "."),
        "publication_date": manifest["created"][:10],
    }


def _columns(groups: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(group["column"] for group in groups)


def _what(manifest: Mapping[str, Any]) -> str:
    """Say what the statistics are, by the mechanisms that made them."""
    made = {entry["mechanism"] for entry in manifest["statistics"]}
    if made == {_LAPLACE}:
        return "Noisy sufficient statistics"
    return "Noisy sufficient statistics and posterior samples" if _LAPLACE in made else "Posterior samples"


def _unprotected(manifest: Mapping[str, Any]) -> str:
    if manifest["n"] is None:
        return "None: the number of records is protected too."
    return f"The number of records, {manifest['n']}, which adjacent data sets share."


def _privacy_loss(manifest: Mapping[str, Any]) -> StatedLoss:
    unit = in_words(manifest["unit"])
    bound = ""
    if unit != "row":
        without = "enter nothing" if manifest["unit_nulls"] == "drop" else "are protected one by one"
        most = manifest.get("max_rows_per_cell")
        in_cell = "" if most is None else f", at most {most} a cell of a statistic"
        bound = (
            f" Of all its rows at most {manifest['max_rows']} enter the release{in_cell}, chosen by a keyed "
            f"hash of what they hold. Rows without a value {without}. Texts are told apart by keyed 128-bit "
            "hashes."
        )
    loss = PrivacyLoss.read(manifest)
    parts = "; ".join(f"{entry['name']}: {entry[loss.measure]}" for entry in manifest["statistics"])
    stated = f"Exactly {loss.text}, in nats; of it, {parts}. "
    parameters: PureParameters | ConcentratedParameters = {"epsilon": float(loss.amount)}
    if loss.rho is not None:
        stated = (
            f"Exactly {loss.text}; of it, {parts}. It is (epsilon, delta) = {shown_epsilons(loss.rho)}, "
            "epsilons rounded up. "
        )
        parameters = {"rho": float(loss.rho)}
    return {
        "privacy_unit": "Row" if unit == "row" else f"Value of {unit.removeprefix('column:')}",
        "privacy_unit_details": _NEIGHBOURS[manifest["neighboring"]].format(
            unit="row" if unit == "row" else f"value of {unit.removeprefix('column:')}, with all its rows"
        )
        + bound,
        "privacy_parameters": parameters,
        "privacy_parameters_details": stated + _one_unit(manifest),
    }


def _one_unit(manifest: Mapping[str, Any]) -> str:
    """Say what one unit loses over the windows of the series."""
    window = manifest["plan"]["window"]
    text = of_release(
        PrivacyLoss.read(manifest),
        None if window is None else Every(window["every"]),
        manifest["unit"],
        0 if manifest["amends"] is None else manifest["amends"]["number"],
    )
    return f"{text[0].upper()}{text[1:]}."


def _accounting(manifest: Mapping[str, Any]) -> Accounting:
    charged = f"entry {manifest['drawing_sequence']} of ledger {manifest['ledger_id']}"
    measure = PrivacyLoss.read(manifest).measure
    return {
        "post_processing": "None: what is released is as it was drawn, also negative numbers.",
        "composition": f"Statistics compose by addition to the release's {measure}, and releases of one "
        f"data set to what its account has spent. The {measure} was charged durably before noise was drawn "
        f"({charged}).",
    }


def _implementation(manifest: Mapping[str, Any]) -> Implementation:
    noisy = [entry for entry in manifest["statistics"] if entry["mechanism"] == _LAPLACE]
    scales = "; ".join(f"{entry['name']}: {_sensitivity(entry)}, scale {entry['scale']}" for entry in noisy)
    draws = "; ".join(
        f"{entry['name']}: {counted(entry['draws'], 'draw')} of {entry['grid']} points, range of the scores "
        f"{entry['range_sensitivity']}, scale {entry['scale']}, in 2^-20 nats"
        for entry in manifest["statistics"]
        if entry["mechanism"] not in {_LAPLACE, _ON_CONE}
    )
    cones = "; ".join(
        f"{entry['name']}: rate {entry['cone_noise']['rate']}, {entry['cone_noise']['columns']} columns"
        for entry in manifest["statistics"]
        if entry["mechanism"] == _ON_CONE
    )
    mechanisms = [_OF_NOISE.format(scales)] if noisy else []
    mechanisms += [_OF_CONES.format(cones)] if cones else []
    mechanisms += [_OF_SAMPLES.format(draws)] if draws else []
    versions = ", ".join(f"{package} {version}" for package, version in manifest["versions"].items())
    return {
        "preprocessing_and_hyperparameter_tuning": "Values are clipped to public bounds and rounded to a "
        "public lattice. Keys, categories and bounds are stated in the spec, and may not come from the data. "
        + _INPUT[manifest["input_verified"]]
        + _CONTRACT["contract" in manifest]
        + _AUDIT["audit" in manifest],
        "mechanisms": f"{' '.join(mechanisms)} Not hardened against observers of time. Versions: {versions}.",
    }


def _sensitivity(entry: Mapping[str, Any]) -> str:
    """Name the sensitivity that the scale follows from."""
    if "rho" in entry:
        return f"squared L2 sensitivity {entry['l2_squared']}"
    return f"L1 sensitivity {entry['l1_sensitivity']}"


def _notes(manifest: Mapping[str, Any]) -> str:
    signed = manifest["signature"]
    by = f", signed with the key {signed['key_id']}" if signed else ""
    return f"Release {manifest['release_id']}, plan {manifest['plan_hash']}{by}."
