"""Pictures by matplotlib, in one style.

In: posteriors, tables, comparisons, calibrations.
Out: PNG and SVG files.
May import: data_files and below.
"""

PUBLIC: dict[str, tuple[str, ...]] = {}
"""What other rooms may import, by module; empty: the module as a whole."""
