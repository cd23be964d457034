"""Every study, by the result of a paper that it reproduces."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from studies.result import Result, Size

FOULDS = "Foulds et al. 2016"
NOTES = "the Notes"
DIMITRAKAKIS = "Dimitrakakis et al. 2014"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study: the module ``studies.NAME``.

    Attributes
    ----------
    name : str
    paper : str
    result : str
        The paper's figure, table, theorem or section.
    data : str
    """

    name: str
    paper: str
    result: str
    data: str


class Module(Protocol):
    """What the module of a study holds."""

    CONCLUSION: str
    """What agrees, what does not, and why: a few sentences."""

    def run(self, out: Path, seed: int, size: Size) -> Result:
        """Write pictures and tables to a folder, and return what was found."""


STUDIES = (
    Study(
        name="posteriors_beta",
        paper=FOULDS,
        result="Figure 1: thirty private posteriors",
        data="simulated",
    ),
    Study(
        name="sample_error",
        paper=FOULDS,
        result="Figure 2: the error of one sample",
        data="simulated",
    ),
    Study(
        name="relative_efficiency",
        paper=FOULDS,
        result="Table 1, Theorems 4 and 5, Remark 1: asymptotic relative efficiency",
        data="simulated",
    ),
    Study(
        name="kl_of_laplace",
        paper=FOULDS,
        result="Lemma 1, Corollary 2: the Laplace posterior tends to the posterior",
        data="worked out",
    ),
    Study(
        name="adversary",
        paper=FOULDS,
        result="Figure 8: an adversary who chooses the data",
        data="none",
    ),
    Study(
        name="war_logs",
        paper=FOULDS,
        result="Figures 3 to 5, 7 and 10 to 13: states of event logs",
        data="fars, two files",
    ),
    Study(
        name="war_logs_held_out",
        paper=FOULDS,
        result="Figures 6 and 9: held-out events over epsilon",
        data="fars, two files",
    ),
    Study(
        name="mcmc_costs",
        paper=FOULDS,
        result="Sections 4.1, C.1 and C.2, Proposition 3: costs of Gibbs, Metropolis and annealing",
        data="a grid",
    ),
    Study(
        name="hellinger_local",
        paper=NOTES,
        result="Figure 1: local sensitivity is attained at r = BI(x)",
        data="enumeration",
    ),
    Study(
        name="hellinger_mechanisms",
        paper=NOTES,
        result="Figures 2, 3 and 4, Section 3.1: four mechanisms",
        data="enumeration",
    ),
    Study(
        name="robustness",
        paper=DIMITRAKAKIS,
        result="Theorems 1 and 2, Lemmas 1 and 3 to 7, Remark 1",
        data="quadrature",
    ),
    Study(
        name="distinguishing",
        paper=DIMITRAKAKIS,
        result="Theorem 3, Lemmas 2 and 8, Appendix A: telling data apart by draws",
        data="simulated",
    ),
    Study(
        name="mistakes",
        paper="all three",
        result="mistakes that no code may copy",
        data="enumeration, quadrature",
    ),
    Study(
        name="query_model",
        paper=DIMITRAKAKIS,
        result="Algorithm 1, Example 1: a conditional expectation by a draw",
        data="adult",
    ),
)


def study_named(name: str) -> Study:
    """Return a study by its name.

    Raises
    ------
    KeyError
        Where there is none.
    """
    return {study.name: study for study in STUDIES}[name]


def module_of(study: Study) -> Module:
    """Import a study's module."""
    module: Module = importlib.import_module(f"studies.{study.name}")
    return module
