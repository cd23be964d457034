"""What a person may write: the strict document, its fields, public domains, exact numbers; canonical JSON.

In: text of YAML or JSON, read without floating point.
Out: models and domains; a refusal names the place, the rule and a way out.
May import: nothing of the pipeline.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "bigquery_spec": ("BigquerySpec",),
    "canonical_json": (),
    "complaints": ("MISSING_KEY", "UNKNOWN_KEY", "first_complaint", "rule_of"),
    "csv_spec": ("ColumnType", "CsvSpec"),
    "delta_spec": ("DeltaSpec",),
    "derived_column": ("DerivedColumn", "Input"),
    "derived_columns": ("MOST_DERIVED", "in_order", "needed", "physical", "read_derived"),
    "derived_conditions": ("Combination", "Comparison", "Membership"),
    "derived_values": ("Arithmetic", "Case", "DatePart", "MapTo", "Part", "PublicMap", "UniformText"),
    "document": ("Document", "read_file", "read_json", "read_mapping", "read_yaml"),
    "domain_entries": ("domain_size", "parse_domain"),
    "domain_lookup": ("Codes", "Dense", "Interval", "Listed", "Sparse", "UNSIGNED_SHIFT", "lookup", "nearest", "units_per_day"),
    "domains": ("Domain", "DomainKind", "Every", "MOST_CELLS", "boolean_domain", "next_period", "period_end", "period_label", "period_labels", "period_start", "too_many_cells"),
    "duckdb_spec": ("DuckdbSpec",),
    "durations": ("Duration", "DurationField", "read_duration"),
    "exact_numbers": ("LARGEST_SCALE", "MICRO", "format_epsilon", "format_number", "micro_epsilon", "parse_decimal", "parse_epsilon", "scale_rounded_up"),
    "fields": ("Boolean", "Bound", "Column", "ColumnSpec", "ColumnUnit", "Count", "DomainField", "Epsilon", "EveryField", "Integer", "LARGEST_SHARE", "LatticeBits", "MomentWeight", "Name", "Nulls", "NullsField", "Positive", "ReleaseName", "RowsOf", "SMALLEST_SHARE", "SpecModel", "StatisticSpec", "Text", "UnitNulls", "UnitType", "canonical", "label_name", "statistic_name"),
    "hive_columns": ("HiveColumn", "HiveType", "NULL_FOLDER"),
    "iceberg_spec": ("IcebergSpec",),
    "parquet_spec": ("ParquetSpec",),
    "postgresql_spec": ("PostgresqlSpec",),
    "safe_text": ("escaped", "shown"),
    "scalars": ("read_choice",),
    "small_files": ("read_small_file",),
    "snowflake_spec": ("SnowflakeSpec",),
    "source_spec": ("SourceSpec", "is_url", "source_path"),
    "source_specs": ("parse_source", "source_model"),
    "table_names": ("KeyRanges", "quoted", "quoted_name"),
    "time_zones": ("TimeZone", "UTC", "UTC_OFFSETS", "ZoneOffsets", "zone_offsets"),
    "type_family": ("ANY_FAMILY", "DATES", "NUMBERS", "TypeFamily"),
    "wording": ("counted",),
    "zone_days": ("day_start", "read_grid", "window_grid"),
}
"""What other rooms may import, by module; empty: the module as a whole."""
