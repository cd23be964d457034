"""Bins of a histogram: which there are, what they are called, and that each value lies in one."""

from __future__ import annotations

from fractions import Fraction

import pytest

from suffice.pipeline.terms.statistics.histogram_bins import MOST_BINS, HistogramBins


def bins(*edges: float | Fraction, atoms: tuple[float, ...] = ()) -> HistogramBins:
    return HistogramBins(edges=tuple(Fraction(edge) for edge in edges), atoms=tuple(map(Fraction, atoms)))


@pytest.mark.parametrize(
    ("atoms", "labels"),
    [
        ((), ("[0, 1)", "[1, 2]")),
        ((0,), ("{0}", "(0, 1)", "[1, 2]")),
        ((1,), ("[0, 1)", "{1}", "(1, 2]")),
        ((2,), ("[0, 1)", "[1, 2)", "{2}")),
        ((0.5, 2), ("[0, 0.5)", "{0.5}", "(0.5, 1)", "[1, 2)", "{2}")),
    ],
)
def test_an_atom_divides_the_bin_that_it_lies_in(atoms: tuple[float, ...], labels: tuple[str, ...]) -> None:
    of = bins(0, 1, 2, atoms=atoms)
    assert of.labels == labels
    assert len(of) == len(labels)
    assert of.is_atom == tuple(label.startswith("{") for label in labels)
    assert all(
        low < high or is_atom for low, high, is_atom in zip(of.lower, of.upper, of.is_atom, strict=True)
    )
    for eighth in range(-8, 25):
        value = min(max(Fraction(eighth, 8), Fraction(0)), Fraction(2))
        (holding,) = (
            position
            for position, each in enumerate(of)
            if each.begins < value < each.ends
            or (value == each.begins and each.holds_lower)
            or (value == each.ends and each.holds_upper)
        )
        assert of.position(Fraction(eighth, 8)) == holding


def test_what_is_written_reads_the_same() -> None:
    of = bins(-60, 0.25, 1500, atoms=(0, 7))
    assert of.written() == {"edges": ["-60", "0.25", "1500"], "atoms": ["0", "7"]}
    assert HistogramBins.parse(of.written()) == of
    assert HistogramBins.parse({"edges": ["0", "1/3", "1"]}) == bins(0, Fraction(1, 3), 1)


@pytest.mark.parametrize(
    ("edges", "atoms", "rule"),
    [
        ((0,), (), "two numbers or more"),
        ((0, 1, 1), (), "above the one before"),
        ((0, 2, 1), (), "above the one before"),
        ((0, 1), (), "2 to 4096 bins"),
        ((0, 1, 2), (1, 1), "each atom is above"),
        ((0, 1, 2), (3,), "from the first edge"),
        ((0, 1, 2), (-1,), "from the first edge"),
        (tuple(range(MOST_BINS + 2)), (), "not 4097"),
    ],
)
def test_what_are_no_bins_is_refused(edges: tuple[float, ...], atoms: tuple[float, ...], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        bins(*edges, atoms=atoms)


def test_coarse_bins_are_those_wider_than_a_hundredth_of_the_range() -> None:
    assert bins(*range(0, 1601, 25)).are_coarse  # 64 of 1,600
    assert not bins(*range(0, 1601, 16)).are_coarse  # 100
    assert not bins(*range(11), 1000).are_coarse
    # An atom beside an edge makes a bin narrower, and no quantile better known.
    assert bins(*range(0, 1601, 25), atoms=(26,)).are_coarse
