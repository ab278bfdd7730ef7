"""The measurements of a run as files beside its page."""

from __future__ import annotations

import io
import lzma

import polars as pl

from assay.lab.study import Study

from .folder import Folder
from .numbers import slug

_DIGITS = 5  # of a number in the text file; the Parquet file has them all


def measurements(study: Study, frame: pl.DataFrame, folder: Folder) -> dict[str, str]:
    """The tidy table as compressed CSV and as Parquet: format -> address."""
    columns = [name for name in frame.columns if not frame[name].is_null().all()]
    tidy = frame.select(columns)
    packed = io.BytesIO()
    tidy.write_parquet(packed, compression="zstd", compression_level=15)
    text = tidy.write_csv(float_scientific=True, float_precision=_DIGITS - 1).encode()
    base = f"{slug(study.name)}/measurements"
    return {
        "CSV": folder.save(f"{base}.csv.xz", lzma.compress(text)),
        "Parquet": folder.save(f"{base}.parquet", packed.getvalue()),
    }
