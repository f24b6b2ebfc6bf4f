#!/usr/bin/env python3
"""`make check` has a test for each option of `run` and `hold` and for each command of README.md: main_paths.py LOADLINE.
An option is tested if an end-to-end test of the check gives it; README's commands are run by readme.bats. The check has the
files of tests/e2e/meson.build without the suite 'more', and of the others the tests with the tag 'main'."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/e2e"
ROW = re.compile(r"^  '(\w+)': \[(.*)\],$", re.M)  # tests/e2e/meson.build
OPTION = re.compile(r"^ +(?:(-\w), )?(--[a-z][a-z-]*)", re.M)
TAGGED = re.compile(r"^# bats test_tags=main$.*?^}$", re.M | re.S)


def options_of(loadline, command):
    """[(short or empty, long)]"""
    text = subprocess.run([loadline, command, "--help"], capture_output=True, text=True, check=True).stdout
    return sorted(set(OPTION.findall(text)) - {("-h", "--help")})


def tested_text(name, suites):
    text = (FOLDER / f"{name}.bats").read_text()
    return "\n".join(TAGGED.findall(text)) if "'more'" in suites else text


def main():
    rows = ROW.findall((FOLDER / "meson.build").read_text())
    files = {name for name, suites in rows if "'more'" not in suites}
    problems = [f"{name}.bats has no row in tests/e2e/meson.build" for name in
                sorted({path.stem for path in FOLDER.glob("*.bats")} - {name for name, _ in rows})]
    given = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "".join(tested_text(*row) for row in rows)))
    for command in ("run", "hold"):
        options = options_of(sys.argv[1], command)
        if not options:
            problems.append(f"loadline {command} --help has no options")
        problems += [f"make check has no test that gives {command} {option}"
                     for short, option in options if not {short, option} & given]
    if "readme" not in files:
        problems.append("make check does not run the commands of README.md")
    print("\n".join(problems) or f"{len(files)} of {len(rows)} end-to-end files are in make check")
    return 1 if problems else 0


sys.exit(main())
