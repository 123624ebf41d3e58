"""Synthetic records: made up from what is published already, so they cost no privacy and may have a seed.

They are drawn from the graphical model of the measurements where mbi is installed and the model is small enough, else
from the non-negative vector of counts where there is one. Their tables are near to the estimator's tables, and biased
as these are; what the plan did not measure, they do not know: an attribute that it does not touch is spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hdmm.errors import InputError, NotSupportedError, TooLargeError
from hdmm.matrix import Array
from hdmm.matrix.workspace import memory_limit
from hdmm.reconstruct.estimate import CELLS
from hdmm.reconstruct.graphical import GraphicalModel, available, check_tree, double, graphical_model
from hdmm.reconstruct.nonnegative import NonnegativeCounts, nonnegative_counts, vector_cells
from hdmm.schema import Schema
from hdmm.strategy import Noise, Strategy
from hdmm.texttable import bytes_text

if TYPE_CHECKING:
    import pyarrow as pa

NOTE = "synthetic: made up from noisy measurements; no row is a record of a person, and tables of the rows are biased"
_BYTES = 4 * 8
"""For each field: its code, those of its neighbours while it is drawn, and its label."""


def synthesize(
    schema: Schema,
    strategy: Strategy,
    answers: Sequence[Array],
    noise: Noise,
    *,
    rows: int | None = None,
    seed: int | None = None,
) -> pa.Table:
    """Synthetic records: a column for each attribute, with the labels of its cells; as many as estimated, or ``rows``.

    Bins and merged attributes have the text that tables have for them.
    """
    for name, value in (("rows", rows), ("seed", seed)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InputError(f"{name}={value!r}: expected an integer from 0")
    model = _model(strategy, answers, noise)
    count = round(model.total) if rows is None else rows
    if count * len(schema) * _BYTES > memory_limit():
        raise TooLargeError(
            f"rows={count}: {bytes_text(count * len(schema) * _BYTES)} are needed and the limit is "
            f"{bytes_text(memory_limit())}; ask for fewer rows, or allow more memory (--memory)"
        )
    return records(schema, model, count, np.random.default_rng(seed))


def records(
    schema: Schema, model: GraphicalModel | NonnegativeCounts, rows: int, random: np.random.Generator
) -> pa.Table:
    """So many records from an estimate, with their labels."""
    import pyarrow as pa

    if isinstance(model, GraphicalModel):
        codes = _from_graph(model, rows, random) if rows else {}
    else:
        codes = _from_counts(model, rows, random)
    columns = {}
    for axis, (name, domain) in enumerate(schema.items()):
        own = codes[axis] if axis in codes else random.integers(domain.size, size=rows)
        columns[name] = pa.array(domain.labels()).take(pa.array(own.astype(np.int64)))
    return pa.table(columns).replace_schema_metadata({"hdmm.estimator": model.estimator, "hdmm.note": NOTE})


def _model(strategy: Strategy, answers: Sequence[Array], noise: Noise) -> GraphicalModel | NonnegativeCounts:
    """The graphical model if it can be had, else the vector; the reason where neither can."""
    vector = vector_cells(strategy) <= CELLS
    try:
        check_tree(strategy)
        if available():
            return graphical_model(strategy, answers, noise)
    except TooLargeError:
        if not vector:
            raise TooLargeError(
                "synthetic records are drawn from a graphical model of the tables, or from counts of all cells; this "
                "release is too large for either: plan for fewer attributes, or for smaller tables"
            ) from None
    except NotSupportedError:
        if not vector:
            raise
    if not vector:
        raise NotSupportedError(
            "synthetic records of so many cells are drawn from a graphical model, which needs the package mbi: "
            "pip install 'hdmm[pgm]'"
        )
    return nonnegative_counts(strategy, answers, noise)


def _from_graph(model: GraphicalModel, rows: int, random: np.random.Generator) -> dict[int, Array]:
    """Records of the model, attribute by attribute along its tree; mbi takes numpy's global random numbers for it."""
    before = np.random.get_state()
    try:
        np.random.seed(int(random.integers(1 << 32)))
        with double():
            drawn = model.model.synthetic_data(rows)
    finally:
        np.random.set_state(before)
    return {axis: np.asarray(drawn.data[axis]) for axis in range(len(model.sizes))}


def _from_counts(model: NonnegativeCounts, rows: int, random: np.random.Generator) -> dict[int, Array]:
    """Systematic sampling: each cell has its share of the records, rounded up or down; then they are shuffled."""
    counts = model.vector.counts if model.total > 0 else np.ones_like(model.vector.counts)
    ends = np.cumsum(counts) * (rows / counts.sum())
    cells = np.searchsorted(ends[:-1], np.arange(rows) + random.uniform(), side="right")
    places = np.unravel_index(random.permutation(cells), model.vector.sizes)
    return dict(zip(model.vector.axes, places, strict=True))
