"""Makes docs/note.pdf of docs/note.md, for print.

pip install ".[pdf]" && python docs/site/pdf.py

Pandoc reads the page and Typst sets it. The figures are drawn for print from their numbers. The PDF
holds the digest of the page that it was made of, so that a test sees when it is out of date.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from pathlib import Path

from fmab_jax.files import whole_file

ROOT = Path(__file__).parents[2]
NOTE, PDF = ROOT / "docs" / "note.md", ROOT / "docs" / "note.pdf"

# A link into the repository leads nowhere on paper.
_FILTER = """
function Link(link)
  if not link.target:match("^https?:") then return link.content end
end
"""
_LOOK = """
#set page(paper: "a4", margin: (x: 2.2cm, y: 2.4cm), numbering: "1")
#set par(justify: true, leading: 0.62em)
#set text(size: 10pt)
#set table(stroke: none, inset: (x: 4pt, y: 3pt))
#show table: set text(size: 7pt)
#show table: set par(justify: false)
#show figure: set block(breakable: true)
#show figure.caption: set text(size: 8.5pt)
"""


def digest(page: str) -> str:
    """Returns what tells one state of the page and of the numbers in its figures from another."""
    made = hashlib.sha256(page.encode())
    for name in re.findall(r"\(\.\./figures/(\w+)\.png\)", page):
        made.update((ROOT / "figures" / f"{name}.csv").read_bytes())
    return made.hexdigest()


def main() -> None:
    """Writes the PDF."""
    import pypandoc
    import typst

    sys.path.insert(0, str(ROOT))  # the experiments are not installed
    from experiments import pictures, redraw

    page = NOTE.read_text("utf-8")
    title, _, body = page.removeprefix("# ").partition("\n")
    body = re.sub(r"<!--.*?-->", "", body, flags=re.S)
    body = re.sub(r"\]\(\.\./figures/(\w+)\.png\)", r"](/figures/\1.pdf)", body)
    with tempfile.TemporaryDirectory() as folder:
        filter_, look = Path(folder, "links.lua"), Path(folder, "look.typ")
        filter_.write_text(_FILTER)
        look.write_text(_LOOK)
        given = ["--standalone", f"--lua-filter={filter_}", f"--include-in-header={look}"]
        given += [f"--metadata=title:{title}", "--variable=papersize:a4"]
        form = "markdown-raw_html+lists_without_preceding_blankline"
        text = pypandoc.convert_text(body, "typst", format=form, extra_args=given)
        text += f'\n#set document(keywords: "{digest(page)}")\n'
        for name in set(re.findall(r"/figures/(\w+)\.pdf", body)):
            draw = redraw.drawing_of(ROOT / "figures", name)
            pictures.draw_files(name, draw, Path(folder, "figures"), pdf=True)
        with whole_file(PDF) as temporary:
            temporary.write_bytes(typst.compile(text.encode(), root=folder))
    print(PDF.relative_to(ROOT))


if __name__ == "__main__":
    main()
