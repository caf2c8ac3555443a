"""Motions as tables: files, and data frames of pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .states import Float64Array


class HasTable(Protocol):
    def table(self) -> tuple[list[str], Float64Array]: ...


class Tabular:
    """What has a ``table()``, names and values (m, columns), the first column what the others are over."""

    def to_csv(self: HasTable, path: str | Path) -> None:
        """Write the ``table`` with a row per sample."""
        names, columns = self.table()
        header = ",".join(f'"{name}"' if set(name) & set(',"') else name for name in names)
        np.savetxt(path, columns, delimiter=",", header=header, comments="", fmt="%.17g")

    def to_parquet(self: HasTable, path: str | Path) -> None:
        """The same table as a Parquet file; needs pyarrow."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise ImportError(
                "Parquet files need pyarrow: pip install 'linkwise[parquet]', or use to_csv or save"
            ) from None
        names, columns = self.table()
        table = pyarrow.table(dict(zip(names, columns.T, strict=True)))
        pyarrow.parquet.write_table(table, path)

    def to_pandas(self: HasTable) -> Any:
        """The table of ``to_csv`` as a ``pandas.DataFrame`` with its first column as index; needs pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'linkwise[labelled]'") from None
        names, columns = self.table()
        return pandas.DataFrame(columns[:, 1:], index=pandas.Index(columns[:, 0], name=names[0]), columns=names[1:])
