"""Which rows of a privacy unit enter. A trusted room.

In: rows of units that lie in many partitions.
Out: records of at most a public number of rows per unit, chosen by a keyed rank.
May import: chunk and below.
"""
