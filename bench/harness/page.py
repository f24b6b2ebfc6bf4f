"""The tables of doc/benchmarks.md, made of the stored rows (store.py). Pure: text and rows in, text out.

A comment in the page is a table's place. It names parts of `bench/run`, or patterns such as run-cap-*, in the order of the table:

    <!-- figures: PART... -->                              a row for each figure
    <!-- figures: PART...; without PATTERN; ... -->        without the figures of these names, if they do not miss
    <!-- figures: PART...; beside native, mps -->          what was measured without loadline, and under plain MPS, has a column
    <!-- counts: PART... -->                               a row for each part: how many figures hold, and which miss

`figures: all other parts` are those that no other place names. Each place ends with <!-- end of figures -->."""
import fnmatch
import re

from .report import FAILED, INFO

OTHERS = "all other parts"
TABLE = re.compile(r"(<!-- (figures|counts): ([^\n]*?) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
NOTHING = "Not measured yet.\n"
STORE_LINK = "[figures.tsv](figures.tsv)"
BESIDE = {"native": "without loadline", "mps": "plain MPS"}
# What a comparison tells besides the figures themselves: it stays in the store.
ASIDES = re.compile(r"[;,] (?:scatter [\d.]+|other native processes [\d.]+|\d+ requests)(?=[;,)]|$)")
TOGETHER = re.compile(r"(\w+)(?= \+ )|(?<= \+ )(\w+)")


class Place:
    """What a comment asks for."""

    def __init__(self, kind, text):
        words, *options = [part.strip() for part in text.split(";")]
        self.is_count, self.is_others, self.parts = kind == "counts", words == OTHERS, words.split()
        self.without = [option.removeprefix("without ").strip() for option in options if option.startswith("without ")]
        self.beside = [name.strip() for option in options if option.startswith("beside ") for name in option.removeprefix("beside ").split(",")]
        unknown = [option for option in options if not option.startswith(("without ", "beside "))] + [one for one in self.beside if one not in BESIDE]
        if unknown:
            raise ValueError(f"a table's place says {unknown[0]}: {text}")

    def rows(self, rows, everywhere):
        if self.is_others:
            return [row for row in rows if not is_named(row.part, everywhere)]
        return [row for pattern in self.parts for row in rows if is_named(row.part, [pattern])]


def is_named(part, patterns):
    return any(fnmatch.fnmatchcase(part, pattern) for pattern in patterns)


def cell(text):
    return text.replace("|", "\\|")


def bold(text, row):
    return f"**{text.replace('**', '')}**" if row.result == FAILED else text


def origin_of(row, page_card):
    told = f"{row.date}, {row.commit}" + ("" if row.quick == "1" else f", shortened {row.quick} times")
    return told + ("" if row.card == page_card else f", {row.card}")


def letter(at):
    """a, b, … z, aa, …"""
    return chr(ord("a") + at) if at < 26 else letter(at // 26 - 1) + letter(at % 26)


class Origins:
    """Where rows are of. One origin of all needs no column."""

    def __init__(self, rows, page_card):
        self.page_card, self.known = page_card, list(dict.fromkeys(origin_of(row, page_card) for row in rows))

    def letters(self, rows):
        return ", ".join(dict.fromkeys(letter(self.known.index(origin_of(row, self.page_card))) for row in rows))

    def has_column(self):
        return len(self.known) > 1

    def told(self):
        if not self.has_column():
            return f"Measured: {self.known[0]}."
        return "Measured: " + "; ".join(f"{letter(at)}: {origin}" for at, origin in enumerate(self.known)) + "."


def line_of(words):
    return f"| {' | '.join(words)} |\n"


def table_of(head, lines):
    return line_of(head) + "|" + "---|" * len(head) + "\n" + "".join(map(line_of, lines))


def without_names(text, figure):
    """`sync + flood` in the figure's name: its numbers are in that order, and need not repeat the names."""
    names = {one or other for one, other in TOGETHER.findall(figure)}
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, names))}) (?=[\d.])", "", text) if names else text


def apart(row, names):
    """The measured text without what it says of each of the names, and that."""
    found, text = {}, ASIDES.sub("", row.measured)
    for name in names:
        match = re.search(rf"[;,] {name} ([^;)]*)", text)
        found[name] = without_names(match[1], row.figure) if match else ""
        if match:
            text = text[:match.start()] + text[match.end():]
    return without_names(text, row.figure) if any(found.values()) else text, found


def figures_table(place, rows, page_card):
    shown = [row for row in rows if row.result == FAILED or not is_named(row.figure, place.without)]
    left = [row for row in rows if row not in shown]
    origins = Origins(shown, page_card)
    texts = {row: apart(row, place.beside) for row in shown}
    beside = [name for name in place.beside if any(texts[row][1][name] for row in shown)]
    head = ["figure", "must reach", *(BESIDE[name] for name in beside), "loadline" if beside else "measured"] + ["on"] * origins.has_column()
    lines = [[cell(row.figure), cell(row.must_reach), *(cell(texts[row][1][name]) for name in beside), bold(cell(texts[row][0]), row)]
             + [origins.letters([row])] * origins.has_column() for row in shown]
    return table_of(head, lines) + "\n" + origins.told() + also(left) + "\n"


def also(left):
    """Of the rows that a table leaves out: none of them misses."""
    judged = sum(row.result != INFO for row in left)
    said = [f"{judged} that hold{'s' if judged == 1 else ''}"] * bool(judged) + [f"{len(left) - judged} without a bound"] * (judged < len(left))
    return f" {STORE_LINK} has more rows: {', '.join(said)}." if left else ""


def counts_table(rows, page_card):
    origins, lines = Origins(rows, page_card), []
    for part in dict.fromkeys(row.part for row in rows):
        own = [row for row in rows if row.part == part]
        missed = [row for row in own if row.result == FAILED]
        judged = sum(row.result != INFO for row in own)
        text = f"{judged - len(missed)} of {judged}"
        misses = "; ".join(f"**{cell(row.figure)}: {cell(row.measured.replace('**', ''))}** (must reach: {cell(row.must_reach)})" for row in missed)
        lines.append([f"`{part}`", text, misses] + [origins.letters(own)] * origins.has_column())
    head = ["part", "figures that hold", "misses"] + ["on"] * origins.has_column()
    return table_of(head, lines) + "\n" + origins.told() + f" The figures are in {STORE_LINK}.\n"


def make_page(page, rows, page_card):
    """The page with its tables made anew. page_card: whose rows need not name their card."""
    places = [Place(match[2], match[3]) for match in TABLE.finditer(page)]
    everywhere = [pattern for place in places if not place.is_others for pattern in place.parts]
    if not any(place.is_others for place in places):
        raise ValueError(f"the page has no table for {OTHERS}")

    def table(match):
        place = Place(match[2], match[3])
        chosen = place.rows(rows, everywhere)
        if not chosen:
            return match[1] + NOTHING + match[4]
        text = counts_table(chosen, page_card) if place.is_count else figures_table(place, chosen, page_card)
        return match[1] + text + match[4]

    return TABLE.sub(table, page)
