#!/usr/bin/env python3
"""columns.py width: the widest line of standard input, in columns of a terminal. columns.py table: fails if a cell of the
table on standard input does not begin below its heading."""
import re
import sys
import unicodedata


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def starts(line):
    """Where the words begin that two blanks or the line's edge part."""
    return [columns(line[: match.start()]) for match in re.finditer(r"(?:(?<=  )|^)\S", line)]


lines = sys.stdin.read().splitlines()
if sys.argv[1] == "width":
    print(max(map(columns, lines), default=0))
else:
    heading = starts(lines[0])
    for line in lines[1:]:
        if starts(line) != heading:
            sys.exit(f"{starts(line)} below {heading}: {line}")
