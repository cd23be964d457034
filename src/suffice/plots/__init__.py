"""Pictures by matplotlib, in one style.

In: posteriors, tables, comparisons, calibrations.
Out: PNG and SVG files.
May import: data_files and below.
"""
