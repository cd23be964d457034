"""How many stored values read by the rules of a window and a unit: exact, for the owner's eyes."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from suffice.pipeline.rows import sources
from suffice.pipeline.rows.chunk.derived_columns import has_value, with_derived
from suffice.pipeline.rows.chunk.partition import BLOCK_ROWS, chunk_job
from suffice.pipeline.rows.sources.inspecting import ColumnFit
from suffice.pipeline.terms.declaration.row_rules import stored_column

if TYPE_CHECKING:
    from suffice.pipeline.spec.spec import Spec
    from suffice.pipeline.terms.declaration.data_contract import DataContract


def rule_fits(spec: Spec, contract: DataContract) -> dict[str, ColumnFit]:
    """Count the stored values, and those that read, of each derived column of the window and the unit.

    Rows whose value does not read are in no window, or have no unit.

    Parameters
    ----------
    spec : Spec
        It fits the contract.
    contract : DataContract

    Returns
    -------
    dict of str to ColumnFit
        By derived column. Empty where both are stored: then nothing is read.
    """
    window, unit = spec.window, spec.privacy.column_unit
    named = (None if window is None else window.column, None if unit is None else unit.column)
    fits = {name: ColumnFit() for name in named if name in spec.derived}
    if not fits:
        return {}
    stored = {name: stored_column(name, spec.derived) for name in fits}
    job = chunk_job(spec.model_copy(update={"window": None}))
    columns = tuple(dict.fromkeys(stored.values()))
    with closing(sources.pin(spec, contract=contract)) as pin:
        for split in sources.splits(pin):
            batches = sources.read(split, columns, BLOCK_ROWS)
            for batch in with_derived(batches, job, tuple(fits)):
                for name, fit in fits.items():
                    fit.values += batch.num_rows - batch.column(stored[name]).null_count
                    fit.fit += pc.sum(has_value(batch.column(name))).as_py() or 0
    return fits
