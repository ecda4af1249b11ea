"""A reader of the HTML of a report."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Elements, texts, tables by caption, and the names and values of a list."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.words = [], [], []
        self.tables, self.listed = [], {"dt": [], "dd": []}
        self.feed(text.replace("\xa0", " "))
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append(["", []])
        if tag == "tr":
            self.tables[-1][1].append([])
        if tag in ("th", "td"):
            self.tables[-1][1][-1].append("")
        if tag in self.listed:
            self.listed[tag].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        tag = self.open[-1] if self.open else ""
        if "caption" in self.open:
            self.tables[-1][0] += data
        elif {"th", "td"} & set(self.open):
            self.tables[-1][1][-1][-1] += data
        if tag in self.listed:
            self.listed[tag][-1] += data
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        """The words of the page on one line."""
        return " ".join("".join(self.words).split())

    def every(self, tag):
        """Returns the attributes of all elements of a tag."""
        return [attrs for name, attrs in self.elements if name == tag]

    def table(self, caption):
        """Returns heads and rows of the table whose caption has these words."""
        (rows,) = [rows for title, rows in self.tables if caption in " ".join(title.split())]
        heads, *rows = [[" ".join(cell.split()) for cell in row] for row in rows]
        return heads, rows
