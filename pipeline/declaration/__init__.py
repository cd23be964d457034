"""What a person may write: the strict document, its fields, public domains and exact numbers.

In: text of YAML or JSON, read without floating point.
Out: models and domains; a refusal names the place, the rule and a way out.
May import: nothing of the pipeline.
"""

PUBLIC: dict[str, tuple[str, ...]] = {
    "complaints": ("MISSING_KEY", "UNKNOWN_KEY", "first_complaint", "rule_of"),
    "document": ("Document", "read_file", "read_mapping"),
    "domain_entries": ("domain_size", "parse_domain"),
    "domains": (
        "Domain",
        "DomainKind",
        "Every",
        "MOST_CELLS",
        "boolean_domain",
        "next_period",
        "period_start",
        "too_many_cells",
    ),
    "exact_numbers": (
        "LARGEST_SCALE",
        "MICRO",
        "format_epsilon",
        "format_number",
        "micro_epsilon",
        "parse_decimal",
        "parse_epsilon",
        "scale_rounded_up",
    ),
    "fields": (
        "Boolean",
        "Bound",
        "Column",
        "ColumnSpec",
        "ColumnUnit",
        "Count",
        "DomainField",
        "Epsilon",
        "EveryField",
        "Integer",
        "LARGEST_SHARE",
        "LatticeBits",
        "MomentWeight",
        "Name",
        "Nulls",
        "NullsField",
        "Positive",
        "RowsOf",
        "SMALLEST_SHARE",
        "SpecModel",
        "StatisticSpec",
        "UnitNulls",
        "UnitType",
        "canonical",
        "label_name",
        "statistic_name",
    ),
    "hive_columns": ("HiveColumn", "HiveType", "NULL_FOLDER"),
    "parquet_spec": ("ParquetSpec",),
    "safe_text": ("escaped", "shown"),
    "scalars": ("read_choice",),
    "small_files": ("read_small_file",),
    "source_spec": ("SourceSpec", "is_url", "source_path"),
    "source_specs": ("NOT_BUILT", "SOURCE_SPECS", "parse_source", "source_model"),
    "wording": ("counted",),
}
"""What other rooms may import, by module; empty: the module as a whole."""
