"""The measurements of a run as files beside its page."""

from __future__ import annotations

import io
import lzma

import numpy as np
import polars as pl

from assay.lab.study import Study

from .folder import Folder
from .numbers import slug

_DIGITS = 5  # of a number in the text file
_BITS = 24  # of a number in the Parquet file, which are seven digits: the rest is noise that nothing compresses


def measurements(study: Study, frame: pl.DataFrame, folder: Folder) -> dict[str, str]:
    """The tidy table as compressed CSV and as Parquet: format -> address."""
    columns = [name for name in frame.columns if not frame[name].is_null().all()]
    tidy = frame.select(columns)
    packed = io.BytesIO()
    short = tidy.with_columns(rounded(tidy["value"]))
    short.write_parquet(packed, compression="zstd", compression_level=19)
    text = tidy.write_csv(float_scientific=True, float_precision=_DIGITS - 1).encode()
    base = f"{slug(study.name)}/measurements"
    return {
        "CSV": folder.save(f"{base}.csv.xz", lzma.compress(text)),
        "Parquet": folder.save(f"{base}.parquet", packed.getvalue()),
    }


def rounded(values: pl.Series, bits: int = _BITS) -> pl.Series:
    """Numbers of double precision to so many significant bits, of whatever size they are."""
    if values.dtype != pl.Float64 or values.null_count():
        return values
    whole = values.to_numpy()
    dropped = 53 - bits
    near = ((whole.view(np.int64) + (1 << (dropped - 1))) >> dropped << dropped).view(np.float64)
    return pl.Series(values.name, np.where(np.isfinite(whole) & np.isfinite(near), near, whole))
