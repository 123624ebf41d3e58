"""Synthetic records: made up from what is published already, so they cost no privacy and may have a seed.

They are drawn from the graphical model of the measurements if mbi is installed and the model is small enough, otherwise
from the non-negative vector of counts if that is small enough. Their tables are close to the estimator's, and biased in
the same way. They reflect only what the plan measured: the values of any other attribute are equally likely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hdmm.errors import HdmmError, NotSupportedError, TooLargeError, check_integer
from hdmm.estimators.biased import MAX_CELLS
from hdmm.estimators.graphical import FittedModel, PrivatePGM, available, check_tree, double
from hdmm.estimators.nonnegative import NonnegativeCounts, nonnegative_counts, vector_cells
from hdmm.matrix import Array
from hdmm.memory import memory_limit, more_memory
from hdmm.releases.estimates import Estimates
from hdmm.schema import Schema
from hdmm.syntax import given
from hdmm.text import bytes_text

if TYPE_CHECKING:
    import pyarrow as pa

NOTE = "synthetic: made up from noisy measurements; no row is a record of a person, and tables of the rows are biased"
_FIELD_BYTES = 4 * 8
"""Memory for each field of a record: its code, the codes of its neighbours while it is drawn, and its label."""


def synthesize(estimates: Estimates, *, rows: int | None = None, seed: int | None = None) -> pa.Table:
    """Synthetic records, as many as estimated or ``rows``: a column for each attribute, with the values of records."""
    if rows is not None:
        check_integer("rows", rows, 0, example=1000)
    if seed is not None:
        check_integer("seed", seed, 0, example=5)
    schema = estimates.plan.workload.schema
    model = _model(estimates)
    count = round(model.total) if rows is None else rows
    needed = count * len(schema) * _FIELD_BYTES
    if needed > memory_limit():
        raise TooLargeError(
            f"{given('rows', str(count))}: {bytes_text(needed)} are needed and the limit is "
            f"{bytes_text(memory_limit())}; ask for fewer rows{more_memory()}"
        )
    return records(schema, model, count, np.random.default_rng(seed))


def records(schema: Schema, model: FittedModel | NonnegativeCounts, rows: int, random: np.random.Generator) -> pa.Table:
    """This many records from an estimate, with their values."""
    import pyarrow as pa

    if isinstance(model, FittedModel):
        codes = _from_graph(model, rows, random) if rows else {}
    else:
        codes = _from_counts(model, rows, random)
    columns = {}
    for axis, (name, domain) in enumerate(schema.items()):
        cells = codes[axis] if axis in codes else random.integers(domain.size, size=rows)
        columns[name] = pa.array(domain.records()).take(pa.array(cells.astype(np.int64)))
    return pa.table(columns).replace_schema_metadata({"hdmm.estimator": model.label, "hdmm.note": NOTE})


def _model(estimates: Estimates) -> FittedModel | NonnegativeCounts:
    """The graphical model if possible, else the vector of counts; refuse with the reason if neither is possible."""
    mechanism, measured, noise = estimates.plan.mechanism, estimates.measurements, estimates.noise.variances
    reason: HdmmError
    try:
        check_tree(mechanism.strategy)
        if available():
            return PrivatePGM(mechanism.estimator).reconstruct(measured, noise)
        reason = NotSupportedError(
            "synthetic records of this many cells are drawn from a graphical model, which needs the package mbi: "
            "pip install 'hdmm[pgm]'"
        )
    except TooLargeError:
        reason = TooLargeError(
            "synthetic records are drawn from a graphical model of the tables, or from counts of all cells; this "
            "release is too large for either: plan for fewer attributes, or for smaller tables"
        )
    except NotSupportedError as error:
        reason = error
    if vector_cells(mechanism.strategy) > MAX_CELLS:
        raise reason
    return nonnegative_counts(mechanism.strategy, measured, noise)


def _from_graph(model: FittedModel, rows: int, random: np.random.Generator) -> dict[int, Array]:
    """Records of the model, attribute by attribute along its tree; mbi draws them from numpy's global generator."""
    before = np.random.get_state()
    try:
        np.random.seed(int(random.integers(1 << 32)))
        with double():
            drawn = model.model.synthetic_data(rows)
    finally:
        np.random.set_state(before)
    return {axis: np.asarray(drawn.data[axis]) for axis in range(len(model.sizes))}


def _from_counts(model: NonnegativeCounts, rows: int, random: np.random.Generator) -> dict[int, Array]:
    """Systematic sampling: each cell gets its share of the records, rounded up or down; then they are shuffled."""
    counts = model.counts if model.total > 0 else np.ones_like(model.counts)
    ends = np.cumsum(counts) * (rows / counts.sum())
    cells = np.searchsorted(ends[:-1], np.arange(rows) + random.uniform(), side="right")
    places = np.unravel_index(random.permutation(cells), model.sizes)
    return dict(zip(model.axes, places, strict=True))
