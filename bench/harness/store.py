"""The measured rows that the repository keeps (doc/figures.tsv), and the tables that doc/benchmarks.md shows of them.

A row is found again by its part and its figure: a new measurement takes the place of the old one. Rows that were skipped,
and rows that are of interest in one run alone, change nothing. Nothing here starts a program, so that the tests can use it."""
import json
import os
import re
from collections import namedtuple

from .page import make_page
from .report import FAILED, INFO, OK, SKIPPED

FIELDS = ("part", "figure", "must_reach", "measured", "result", "date", "commit", "quick", "card")
Row = namedtuple("Row", FIELDS)  # all text; quick: by how much the run was shortened, 1: it was not

PAGE_CARD = "NVIDIA H200"  # whose figures the page shows
STORE, PAGE = os.path.join("doc", "figures.tsv"), os.path.join("doc", "benchmarks.md")
REAL, SIMULATED, UNKNOWN = "real", "simulated", "unknown"


class Refused(Exception):
    """These rows do not go into the store."""


# ---- from a run's report to rows ----


def in_one(name, rows):
    """The rows of a group as one; None where all were skipped."""
    judged = [row for row in rows if row["result"] in (OK, FAILED)]
    missed = [row for row in judged if row["result"] == FAILED]
    if not judged:
        return None
    text = f"{len(judged) - len(missed)} of {len(judged)}"
    if skipped := sum(row["result"] == SKIPPED for row in rows):
        text += f"; {skipped} cannot be tried on this driver"
    text += "".join(f"; missed: {row['figure']}: {row['measured']}" for row in missed)
    return {**judged[0], "figure": name, "must_reach": "all", "measured": text, "result": FAILED if missed else OK}


def figures_of(rows):
    """The rows that are kept. A figure that a part has more than once is numbered."""
    groups, kept, times = {}, [], {}
    for row in rows:
        if row["group"]:
            groups.setdefault((row["part"], row["group"]), []).append(row)
        elif row["is_figure"] and row["result"] in (OK, FAILED, INFO):
            kept.append(row)
    kept += [row for (_, name), members in groups.items() if (row := in_one(name, members))]
    found = []
    for row in kept:
        key = row["part"], row["figure"]
        times[key] = times.get(key, 0) + 1
        found.append(row if times[key] == 1 else {**row, "figure": f"{row['figure']} ({times[key]})"})
    return found


def plain(value):
    """Without what would end a field or a line."""
    return " ".join(str(value).split())


def check_facts(facts, takes_any):
    """Raises Refused for what must not be stored: what no real card made, and, unless takes_any, what is not like the rest
    of the page: a shortened run, or another card."""
    if facts.get("driver_is") != REAL:
        raise Refused(f"the driver is {facts.get('driver_is', UNKNOWN)}, and only a real card's figures are recorded")
    if not facts.get("date") or not facts.get("commit"):
        raise Refused("date and commit are not known")
    if facts.get("quick", 1) != 1 and not takes_any:
        raise Refused(f"the run was shortened {facts['quick']:g} times; --record records it all the same")
    if facts.get("card") != PAGE_CARD and not takes_any:
        raise Refused(f"the card is {facts.get('card')}, and the page is about {PAGE_CARD}; --record records it all the same")


def rows_of(facts, rows, takes_any=False):
    """[Row] of a report's facts and rows."""
    check_facts(facts, takes_any)
    told = {"date": facts["date"], "commit": facts["commit"], "quick": f"{facts.get('quick', 1):g}", "card": facts["card"]}
    return [Row(*(plain({**row, **told}[field]) for field in FIELDS)) for row in figures_of(rows)]


def rows_of_json(path, takes_any=False):
    """Of a file that `bench/run --json` wrote."""
    with open(path, encoding="utf-8") as text:
        told = json.load(text)
    return rows_of(told["facts"], told["rows"], takes_any)


# ---- the store ----


def natural(text):
    """Numbers in a text are in order by their value: 5 % comes before 13 %."""
    return [(1, float(word), "") if word.replace(".", "", 1).isdigit() else (0, 0.0, word)
            for word in re.split(r"(\d+(?:\.\d+)?)", text) if word]


def in_order(rows):
    return sorted(rows, key=lambda row: (row.part, natural(row.figure)))


def merge(stored, measured):
    """What is measured takes the place of what is stored of the same part and figure, unless that is of a later day."""
    found = {}
    for row in [*stored, *measured]:
        key = row.part, row.figure
        if key not in found or row.date >= found[key].date:
            found[key] = row
    return in_order(found.values())


def text_of(rows):
    return "".join("\t".join(row) + "\n" for row in [FIELDS, *rows])


def read(path):
    with open(path, encoding="utf-8") as text:
        lines = [line.rstrip("\n").split("\t") for line in text]
    if not lines or tuple(lines[0]) != FIELDS:
        raise ValueError(f"{path}: the first line does not name the fields {', '.join(FIELDS)}")
    for number, fields in enumerate(lines, 1):
        if len(fields) != len(FIELDS):
            raise ValueError(f"{path}:{number}: {len(fields)} fields instead of {len(FIELDS)}")
    return [Row(*fields) for fields in lines[1:]]


def replace_file(path, text):
    """Whoever reads it meanwhile sees the old one or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".new", path)


# ---- the page ----


def update_page(root):
    path = os.path.join(root, PAGE)
    with open(path, encoding="utf-8") as text:
        page = text.read()
    replace_file(path, make_page(page, read(os.path.join(root, STORE)), PAGE_CARD))


def record(root, measured):
    """Puts rows into the store and onto the page."""
    path = os.path.join(root, STORE)
    replace_file(path, text_of(merge(read(path), measured)))
    update_page(root)


def problems(root):
    """What is wrong with store and page, as lines."""
    with open(os.path.join(root, STORE), encoding="utf-8") as text:
        found = text.read()
    rows = read(os.path.join(root, STORE))
    if found != text_of(merge(rows, [])):
        yield f"{STORE}: not in order, or a figure twice; tools/make_benchmarks puts it in order"
    with open(os.path.join(root, PAGE), encoding="utf-8") as text:
        page = text.read()
    if page != make_page(page, rows, PAGE_CARD):
        yield f"{PAGE}: its tables are not what {STORE} says; tools/make_benchmarks makes them"
