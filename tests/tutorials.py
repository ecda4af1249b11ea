"""Executes the notebooks of docs/tutorials, in a folder that is laid out like the repository.

``python tests/tutorials.py [NAME...]`` executes them as they stand and writes their outputs.
"""

import argparse
import base64
import hashlib
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/tutorials"
NAMES = ("what_should_i_run", "first_comparison", "own_algorithm", "from_ratings_to_epsilon")
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook(name):
    """Returns a tutorial as it is in the repository."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def executed(name, folder, *, seeds=None, last=None):
    """Returns a tutorial after it ran in a folder, with other seeds or one more cell if asked for.

    A CellExecutionError if a cell fails; nothing is written outside the folder.
    """
    book = notebook(name)
    if seeds is not None:
        (chosen,) = (cell for cell in book.cells if "parameters" in cell.metadata.get("tags", ()))
        chosen.source = f"seeds = {seeds}"
    if last is not None:
        book.cells.append(nbformat.v4.new_code_cell(last))
    here = folder / "docs/tutorials"
    here.mkdir(parents=True)
    shutil.copytree(ROOT / "docs/examples/ratings", folder / "docs/examples/ratings")
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    # The notebook's own backend draws; what a test or a shell has chosen is not a reader's.
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    # A cell that starts with ! finds the command fmab beside this Python.
    commands = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment["PATH"] = os.pathsep.join(filter(None, commands))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    client = NotebookClient(
        book,
        timeout=1800,  # of a cell; races of plans take minutes on a busy machine
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(here)}},
    )
    client.execute(env=environment)
    for cell in code_cells(book):
        cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
    return book


def code_cells(book):
    """Returns the cells that run."""
    return [cell for cell in book.cells if cell.cell_type == "code"]


def digest(book):
    """Returns a digest of all that runs; with another one, outputs are those of other code."""
    code = "\n\n".join(cell.source for cell in code_cells(book))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def write(name):
    """Executes a tutorial, and writes it with its outputs: nothing of the machine, no times."""
    with tempfile.TemporaryDirectory(prefix="fmab-tutorial-") as folder:
        book = executed(name, Path(folder))
    book.metadata = {**KERNEL, "code": digest(book)}
    for place, cell in enumerate(book.cells, 1):
        cell.id = f"cell-{place}"
        tags = cell.metadata.get("tags")
        cell.metadata = {"tags": tags} if tags else {}
        for output in cell.get("outputs", ()):
            if picture := output.get("data", {}).get("image/png"):
                output.data["image/png"] = _smaller(picture)
    nbformat.validate(book)
    nbformat.write(book, FOLDER / f"{name}.ipynb")


def _is_progress(output):
    """Tells whether an output is the line with a bar, which ends with the time it took."""
    return output.get("data", {}).get("text/html", "").startswith("<progress")


def _smaller(picture):
    """Returns a picture with at most 256 colours, which is what its lines need."""
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode() + "\n"


def main(arguments):
    """Writes the outputs of the tutorials that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME")
    for name in parser.parse_args(arguments).names or NAMES:
        write(name)
        size = (FOLDER / f"{name}.ipynb").stat().st_size
        print(f"{name}: {size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
