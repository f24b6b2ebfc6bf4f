"""What the checks of Markdown pages share: code blocks, code spans, headings, and links that lead nowhere."""
import re

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) +(.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")
ELSEWHERE = re.compile(r"[a-z]+:")


def prose_of(text):
    """The page without its code blocks."""
    return FENCE.sub("", text)


def anchors(text):
    """What GitHub makes of the headings."""
    for _, title in HEADING.findall(prose_of(text)):
        yield re.sub(r"[^\w\- ]", "", LINK.sub("]", title).lower()).replace(" ", "-")


def broken_links(path, prose):
    """A line for each relative link of the page at path that leads to no file or to no heading."""
    for link in LINK.findall(prose):
        if ELSEWHERE.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            yield f"{path.name}: {link}: there is no {name}"
        elif anchor and anchor not in anchors(target.read_text()):
            yield f"{path.name}: {link}: {target.name} has no such heading"
