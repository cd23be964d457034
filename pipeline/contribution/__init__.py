"""Which rows of a privacy unit enter. A trusted room.

In: rows of units that lie in many partitions.
Out: records of at most a public number of rows per unit, chosen by a keyed rank.
May import: chunk and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "bounding": ("UnitSums",),
    "clustered_units": ("Seen", "bit_count", "combine_seen", "units_seen"),
    "records": ("RecordLayout", "RecordReader", "Records", "Rows", "divide", "slices"),
    "unit_key": ("UnitKey",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
