"""Pictures of docs/pictures: kept small."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

COLOURS = 96
"""Enough for text and lines; a picture of all colours would be three times as large."""


def save(picture: bytes, path: Path, widest: int | None = None) -> None:
    """A PNG with few colours, made smaller if it is wider than it may be."""
    with Image.open(io.BytesIO(picture)) as image:
        shown = image.convert("RGB")
        if widest is not None and shown.width > widest:
            shown = shown.resize((widest, round(shown.height * widest / shown.width)), Image.Resampling.LANCZOS)
        few = shown.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    path.parent.mkdir(parents=True, exist_ok=True)
    few.save(path, optimize=True)
