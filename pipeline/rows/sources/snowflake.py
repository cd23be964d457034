"""Tables in Snowflake over its ADBC driver, read at one time of the account's own clock.

Tested against a stand-in for the driver, not against the service.
"""

from __future__ import annotations

from typing import Any

from suffice.pipeline.rows.sources.databases import TimedTables, credentials
from suffice.pipeline.rows.sources.window_condition import DATE, INSTANT, NAIVE
from suffice.pipeline.terms.declaration.source_specs import SnowflakeSpec

VARIABLE = "SUFFICE_SNOWFLAKE"

_OPTIONS = {
    "adbc.snowflake.sql.client_option.use_high_precision": "true",  # decimals stay decimals
    "adbc.snowflake.sql.client_option.max_timestamp_precision": "microseconds",  # no year overflows
}


def _connect(api: Any, table: str) -> Any:  # noqa: ARG001 - the URI names the account
    return api.connect(credentials(VARIABLE, SnowflakeSpec.kind), db_kwargs=dict(_OPTIONS), autocommit=True)


SOURCE = TimedTables(
    KIND=SnowflakeSpec.kind,
    module="adbc_driver_snowflake.dbapi",
    connect=_connect,
    clock="SELECT TO_VARCHAR(CURRENT_TIMESTAMP(), 'YYYY-MM-DD\"T\"HH24:MI:SS.FF9TZHTZM')",
    at="AT(TIMESTAMP => '{time}'::TIMESTAMP_TZ)",
    quote='"',
    literals={
        DATE: "'{}'::DATE",
        NAIVE: "'{}'::TIMESTAMP_NTZ",
        INSTANT: "'{} +0000'::TIMESTAMP_TZ",
    },
)
"""The kind of source."""
