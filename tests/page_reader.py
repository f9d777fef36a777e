"""Reads a page for tests: its tags, places, addresses and words."""

from html.parser import HTMLParser

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav", "aside"),
    *("section", "h1", "h2", "h3", "h4", "p", "a", "ul", "ol", "li", "dl", "dt", "dd", "div"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img"),
    *("span", "small", "b", "svg", "g", "defs", "path", "use", "text", "clippath", "rect"),
}
VOID = {"meta", "img", "br", "link", "hr", "input"}


class Reader(HTMLParser):
    """Collects what a page holds, and refuses tags that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.tags, self.addresses, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "srcset", "data", "action"):
                self.addresses.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())
