"""The reference of the Python names: pages say what to document, and docstrings the rest."""

from __future__ import annotations

import inspect

import suffice
from suffice import errors
from suffice.pipeline.families import FAMILIES

FOLDER = "docs/reference/api"
FOREIGN = "BaseModel, Mapping"
"""A base of other people's making, whose methods our pages leave out."""
GROUPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "reading": (
        "Reading releases",
        "For consumers. Nothing here reads private data or costs privacy.",
        (
            *(
                "open_release",
                "open_series",
                "open_tree",
                "Release",
                "Series",
                "Statistic",
                "Posterior",
                "Pooling",
                "PooledPosterior",
                "Walk",
            ),
            *("Likelihood", "LikelihoodTables", "CountsLikelihood", "MomentsLikelihood", "read_likelihood"),
            *("calibrate", "Calibration", "PooledCalibration"),
        ),
    ),
    "comparing": (
        "Several releases, several priors",
        "Comparisons, pools and roll-ups.",
        ("compare", "compare_priors", "compare_pooled", "smoothness", "Smoothness", "pool", "roll_up"),
    ),
    "synthetic": (
        "Synthetic rows",
        "Estimates from the data sets that `synthesize` of a field or a network draws.",
        ("combine_imputations", "CombinedEstimate"),
    ),
    "quantiles": (
        "A quantile that was drawn alone",
        "What draws of `sample: {quantile: q}` say of the data. `docs/how-to/release-one-quantile.md`.",
        ("quantile_posterior", "QuantilePosterior"),
    ),
    "adopting": (
        "Other people's tables",
        "A published noisy table with its declared law. No ledger, no charge.",
        ("adopt", "open_adopted", "AdoptedRelease"),
    ),
    "priors": (
        "Priors",
        "Distributions to state as priors. `docs/reference/priors.md` says which family takes which.",
        (
            *("Beta", "Dirichlet", "Gamma", "InverseGamma", "Normal", "NormalInverseGamma"),
            *("NormalInverseGammaRegression", "NormalInverseWishart", "SpreadNormalInverseGammaRegression"),
            *(
                "SpreadNormalInverseWishart",
                "Mixture",
                "ScaleMixture",
                "SpreadGamma",
                "SpreadInverseGamma",
                "Density",
                "Point",
                "Points",
                "WeightedSum",
                "Truncated",
                "Independent",
                "JointDensity",
                "LogPrior",
                "Coefficients",
                "SpikeAndSlab",
                "Horseshoe",
            ),
            *("Reciprocal", "Uniform"),
        ),
    ),
    "publishing": (
        "Publishing posteriors and catalogues",
        "What somebody worked out once, others read.",
        ("publish", "open_publication", "Publication", "catalogue"),
    ),
    "releasing": (
        "Making releases",
        "For operators. `release` charges a budget and reads private data; nothing else here does.",
        (
            "spec",
            "load_spec",
            "Spec",
            "plan",
            "Plan",
            "smallest_loss",
            "divided_plan",
            "DividedPlan",
            "beside_sample",
            "rehearse",
            "audit",
            "Audit",
            "grant",
            "release",
            "describe",
            "data_digest",
            "backfill",
            "status",
        ),
    ),
    "statistics": (
        "Statistics of a spec",
        "Entries for `suffice.spec`, by family. `docs/reference/families.md` says what families are of.",
        tuple(FAMILIES),
    ),
}


def api_pages() -> dict[str, str]:
    """Return the pages, by their paths in the site."""
    pages = {
        f"{FOLDER}/{name}.rst": "\n".join([*title(heading), text.replace("`", "``"), "", *map(entry, names)])
        for name, (heading, text, names) in GROUPS.items()
    }
    pages[f"{FOLDER}/errors.rst"] = errors_page()
    tree = "\n".join(f"   {name}" for name in (*GROUPS, "errors"))
    words = "Every public name of ``suffice``, from its docstring. Names load when they are first used."
    pages[f"{FOLDER}/index.rst"] = "\n".join(
        [*title("Python"), words, "", ".. toctree::", "   :maxdepth: 2", "", tree, ""]
    )
    return pages


def title(text: str) -> list[str]:
    """Return a heading of the first level."""
    return [text, "=" * len(text), ""]


def entry(name: str) -> str:
    """Return the directive that documents a public name."""
    if inspect.isclass(getattr(suffice, name)):
        return f".. autoclass:: suffice.{name}\n   :members:\n   :inherited-members: {FOREIGN}\n"
    return f".. autofunction:: suffice.{name}\n"


def errors_page() -> str:
    """Return the page of errors: every class of ``suffice.errors`` in the order of its file."""
    names = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__ and not name.startswith("_")
    ]
    listed = "\n".join(f".. autoexception:: suffice.errors.{name}\n   :show-inheritance:\n" for name in names)
    words = "Every error is a ``SufficeError``. Its message states the rule, the place and the way out."
    return "\n".join([*title("Errors"), words, "", listed])
