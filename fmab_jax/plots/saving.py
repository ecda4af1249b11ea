"""Writes figures, and their captions as text beside them."""

from __future__ import annotations

import io
import os
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure as Figure

from fmab_jax.errors import refuse
from fmab_jax.files import check_path, refuse_taken, whole_file


def save_figure(figure: Figure, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Writes a figure at 300 dpi, and its whole caption as text beside it: NAME.txt.

    Each file is written whole or not at all: an old one is replaced only by a new one. The bytes
    depend on the figure and the matplotlib version only, not on the time of writing.

    Args:
        figure: The figure.
        path: Where to write; the ending, .png or .pdf, chooses the format.
        overwrite: Replace existing files.

    Returns:
        The path of the picture.

    Raises:
        ValueError: For another ending, or an existing file without ``overwrite``; a NAME.txt that
            already holds the caption is no such file.
        OSError: If the folder cannot be written; nothing is left behind.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> fmab.save_figure(fmab.plot_runs(data), tempfile.mkdtemp() + "/run.pdf").name
        'run.pdf'
    """
    path = check_path("path", path)
    if not isinstance(figure, Figure):
        refuse("figure", figure, "a figure", "pass what a plot function returned")
    ending = path.suffix.lower()
    if ending not in (".png", ".pdf"):
        refuse("path", str(path), "a file name ending in .png or .pdf", "change the ending")
    words = f"{figure.get_label()}\n".encode(errors="replace")
    texts = list_figure_files(figure, path)[1:]
    refuse_taken(path, overwrite)
    for text in texts:
        if not (text.is_file() and text.read_bytes() == words):
            refuse_taken(text, overwrite)
    metadata = {"CreationDate": None} if ending == ".pdf" else {"Software": None}
    # Type 42 keeps letters as letters: journals refuse type 3 fonts.
    with whole_file(path) as temporary, matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(temporary, format=ending[1:], dpi=300, metadata=metadata)
        for text in texts:
            with whole_file(text) as caption_file:
                caption_file.write_bytes(words)
    return path


def list_figure_files(figure: Figure, path: Path) -> list[Path]:
    """Returns which files `save_figure` writes: the picture, and the caption if there is one."""
    return [path, path.with_suffix(".txt")] if figure.get_label() else [path]


def write_svg(figure: Figure) -> bytes:
    """Returns a figure as SVG; the same bytes for the same figure."""
    file = io.BytesIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with matplotlib.rc_context({"svg.hashsalt": "fmab_jax", "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata=metadata)
    return file.getvalue()
