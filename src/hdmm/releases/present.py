"""Tables for people to read, in CSV files and on the terminal: digits that mean something, and totals with a label.

A number is written to the place of the second digit of its standard error, and never beyond the point: 1234.567 ± 45.67
is 1235 ± 46, and 12.346 ± 0.678 is 12.35 ± 0.68. Bounds of intervals are rounded outwards, so that an interval holds
whatever it held before. Exact answers, whose standard error is 0, are not rounded. Estimates without a standard error
are written to hundredths, and to two digits if they are smaller.

Parquet files and Arrow tables are never rounded, and have null as the label of a total.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from hdmm.errors import InputError
from hdmm.matrix import Array
from hdmm.syntax import given

if TYPE_CHECKING:
    import pyarrow as pa

Digits = Literal["meaningful", "full"]

_NUMBERS = ("answer", "stderr", "low", "high")
_MARGIN_ERRORS = 2.0
"""Standard errors in a margin, about: tables without the column stderr are rounded by their intervals."""
_MAX_DECIMALS = 15
"""Numbers with smaller errors are not rounded."""
_EXACT = 2.0**53
"""Integers below this are exact in floating point."""


def check_digits(digits: Digits) -> None:
    """Refuse any other word."""
    if digits not in get_args(Digits):
        raise InputError(f"{given('digits', repr(digits))}: expected 'meaningful' or 'full'")


def total_labels(labels: Mapping[str, Any]) -> dict[str, str]:
    """The text that stands for a total in each column that has one: ``total``, in parentheses if that is a label."""
    found = {}
    for name, values in labels.items():
        if values.null_count:
            label, taken = "total", {str(value) for value in values.to_pylist()}
            while label in taken:
                label = f"({label})"
            found[name] = label
    return found


def present(table: pa.RecordBatch | pa.Table, totals: Mapping[str, str], digits: Digits) -> Any:
    """A table, or some rows of one, as people read it."""
    for place, name in enumerate(table.column_names):
        if name in totals:
            labelled = table.column(name).cast("string").fill_null(totals[name])
            table = table.set_column(place, name, labelled)
    if digits == "full":
        return table
    numbers = {
        name: table.column(name).to_numpy(zero_copy_only=False) for name in _NUMBERS if name in table.column_names
    }
    import pyarrow as pa

    for name, values in meaningful(numbers).items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def presented(table: pa.Table, digits: Digits) -> pa.Table:
    """A whole table as people read it."""
    return present(table, total_labels({name: table.column(name) for name in table.column_names}), digits)


def meaningful(numbers: Mapping[str, Array]) -> dict[str, Array]:
    """The numbers of a table without the digits that mean nothing; bounds are rounded outwards."""
    decimals = _decimals(numbers)
    rounding = {"low": _down, "high": lambda values, power: -_down(-values, power)}
    return {name: _rounded(values, decimals, rounding.get(name, _nearest)) for name, values in numbers.items()}


def terminal_rows(table: pa.Table, digits: Digits) -> list[list[Any]]:
    """The rows of a table for :func:`hdmm.text.text_table`; the numbers of a column have as many decimals."""
    shown = presented(table, digits)
    columns = [
        _aligned(column.to_pylist(), digits) if name in _NUMBERS else column.to_pylist()
        for name, column in zip(shown.column_names, shown.columns, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _aligned(values: list[float], digits: Digits) -> list[Decimal | float]:
    exact = [Decimal(repr(float(value))).normalize() for value in values]
    places = max((-int(value.as_tuple().exponent) for value in exact), default=0)
    if digits == "full" or places > _MAX_DECIMALS:
        return list(exact) if digits == "full" else list(values)
    return [Decimal(f"{value:.{max(places, 0)}f}") for value in exact]


def _decimals(numbers: Mapping[str, Array]) -> Array:
    """How many digits of each row after the point mean something; -1 in rows that are exact."""
    if "stderr" in numbers:
        errors = numbers["stderr"]
    elif "low" in numbers:
        errors = (numbers["high"] - numbers["low"]) / 2 / _MARGIN_ERRORS
    else:
        return _second_digit(np.abs(numbers["answer"]), least=2)
    return _second_digit(errors, least=0)


def _second_digit(sizes: Array, least: int) -> Array:
    with np.errstate(divide="ignore"):
        places = np.maximum(1 - np.floor(np.log10(sizes)), least)
    return np.where(sizes > 0, places, -1)


def _rounded(values: Array, decimals: Array, rounding: Any) -> Array:
    """Round each number to its decimals, if these are few enough for that to be exact."""
    power = 10.0 ** np.clip(decimals, 0, _MAX_DECIMALS)
    possible = (decimals >= 0) & (decimals <= _MAX_DECIMALS) & (np.abs(values) * power < _EXACT)
    return np.where(possible, rounding(values, power) + 0.0, values)  # + 0.0 turns -0.0 into 0.0


def _nearest(values: Array, power: Array) -> Array:
    return np.rint(values * power) / power


def _down(values: Array, power: Array) -> Array:
    """The largest decimal that is not above a number: the product is rounded, so its neighbours are tried too."""
    scaled = np.floor(values * power)
    scaled = np.where((scaled + 1) / power <= values, scaled + 1, scaled)
    return np.where(scaled / power > values, scaled - 1, scaled) / power
