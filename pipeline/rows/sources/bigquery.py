"""Tables in BigQuery over its ADBC driver, read at one time of the service's own clock.

The driver finds Google's default credentials by itself. Tested against a stand-in for the driver, not
against the service.
"""

from __future__ import annotations

from typing import Any

from suffice.pipeline.rows.sources.databases import TimedTables
from suffice.pipeline.rows.sources.window_condition import DATE, INSTANT, NAIVE
from suffice.pipeline.terms.declaration.source_specs import BigquerySpec


def _connect(api: Any, table: str) -> Any:
    project, dataset, _ = table.split(".")
    options = {"adbc.bigquery.sql.project_id": project, "adbc.bigquery.sql.dataset_id": dataset}
    return api.connect(db_kwargs=options, autocommit=True)


SOURCE = TimedTables(
    KIND=BigquerySpec.kind,
    module="adbc_driver_bigquery.dbapi",
    connect=_connect,
    clock="SELECT FORMAT_TIMESTAMP('%FT%H:%M:%E6SZ', CURRENT_TIMESTAMP(), 'UTC')",
    at="FOR SYSTEM_TIME AS OF TIMESTAMP '{time}'",
    quote="`",
    literals={DATE: "DATE '{}'", NAIVE: "DATETIME '{}'", INSTANT: "TIMESTAMP '{}+00'"},
)
"""The kind of source."""
