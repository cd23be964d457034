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
        name="adversary",
        paper=FOULDS,
        result="Figure 8: an adversary who chooses the data",
        data="none",
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
