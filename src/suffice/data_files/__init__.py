"""Tables, draws and summaries as Parquet, netCDF, CSV and JSON that say where they come from.

In: rows or draws, and what they were computed from.
Out: files.
May import: profile, storage and below.
"""
