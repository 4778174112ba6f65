"""Rows as data frames of pandas, which is imported where one is asked for."""

from __future__ import annotations

from typing import Any

from mingle.errors import MingleError


def data_frame(rows: list[dict[str, Any]], *, index: str) -> Any:
    """The rows as a data frame of pandas, with the column `index` as its index."""
    try:
        import pandas
    except ImportError:
        raise MingleError("a data frame needs pandas: pip install pandas") from None
    return pandas.DataFrame(rows).set_index(index)
