"""Columns of labels, written out as the plan has them."""

from __future__ import annotations

from itertools import product

from suffice.storage.releases.statistic_reading import repeated_texts


def test_any_rows_of_a_column_of_texts() -> None:
    for n_texts, n_alike, start, n_rows in product(range(1, 4), range(1, 4), range(11), range(21)):
        texts = ["", "ä", "long"][:n_texts]
        stated = [texts[row // n_alike % n_texts].encode() for row in range(start, start + n_rows)]
        expected = b"".join(len(text).to_bytes(4, "little") + text for text in stated)
        assert repeated_texts(texts, n_alike, start, n_rows) == expected
