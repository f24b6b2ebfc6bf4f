#!/usr/bin/env python3
"""tools/make_run_picture draws what a recording says, and takes none that no real card made. tools/make_status_picture compares shapes.
tools/make_mix_picture draws the table of mixes. tools/make_lend_picture sums its record."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


run_picture, status_picture, mix_picture = load("make_run_picture"), load("make_status_picture"), load("make_mix_picture")
lend_picture = load("make_lend_picture")


def growth(stretches):
    """Readings each 0.5 s of what grows by a part of the time in each (from, until, part)."""
    return [[at / 2, sum(part * max(0, min(at / 2, until) - from_s) for from_s, until, part in stretches)] for at in range(121)]


def recording(**more):
    """A hold of 50 % that stops 1.25 ms after the first step, and trainings that have 25 and 75 % while both work."""
    hold = growth([(0, 8, 0.5), (24, 31, 0.5), (56, 60, 0.5)])
    programs = [{"gpu_seconds": growth([(8, 19, 1), (31, 51, 0.25)]), "steps": [[8, 0], [19, 1100], [31, 1100], [51, 1600]]},
                {"gpu_seconds": growth([(31, 51, 0.75)]), "steps": [[31, 0], [51, 1500]]}]
    made = {"card": "NVIDIA X", "driver": "580.1", "date": "2026-11-27", "commit": "1234567", "driver_is": "real", "quick": 1}
    return {"made": {**made, **more}, "work": "training", "seconds": 60, "target_percent": 50, "weights": [1, 3], "first": [8, 19],
            "both": [31, 51], "arrival": {"latency_ms": 1.25, "hold_ms": [[-2, -1], [0.25, 1.25]], "steps_ms": [[0, 10], [10, 20]]},
            "events": [[8.0, "yield"], [24.0, "resume"], [31.0, "yield"], [56.0, "resume"]], "hold": hold, "util": [[1, 50], [10, 100]],
            "programs": programs}


class RunPicture(unittest.TestCase):
    def drawn(self, words):
        drawn = run_picture.draw(recording(), words)
        xml.etree.ElementTree.fromstring(drawn)
        return drawn

    def test_it_says_what_the_recording_has_in_both_languages(self):
        english, chinese = self.drawn(run_picture.ENGLISH), self.drawn(run_picture.CHINESE)
        self.assertIn("two trainings: 25 and 75 %", english)
        self.assertIn("25 % 和 75 %", chinese)
        for drawn in (english, chinese):
            self.assertIn("1.2 ms", drawn)
            self.assertIn("NVIDIA X", drawn)
            self.assertIn("prefers-color-scheme: dark", drawn)

    def test_the_languages_have_the_same_words(self):
        self.assertEqual(run_picture.ENGLISH.keys(), run_picture.CHINESE.keys())
        for key, words in run_picture.ENGLISH.items():
            self.assertEqual(sorted(re.findall(r"\{\w*", words)), sorted(re.findall(r"\{\w*", run_picture.CHINESE[key])), key)

    def test_a_training_is_drawn_by_its_steps_and_not_by_an_account(self):
        made = recording()
        for program in made["programs"]:
            program["gpu_seconds"] = []
        self.assertEqual(run_picture.parts_of_both(made, run_picture.progress(made)), [25, 75])
        self.assertEqual(run_picture.bins(run_picture.progress(made)[0], 60)[15:17], [0, 100])

    def test_a_hold_that_had_ended_before(self):
        made = recording()
        made["arrival"].update(latency_ms=0.0, hold_ms=[[-3, -2], [-1.5, -0.5]])
        self.assertIn("ended 0.5 ms before", run_picture.draw(made, run_picture.ENGLISH))

    def test_a_recording_of_no_real_card_is_refused(self):
        for more in ({"driver_is": "simulated"}, {"quick": 3.0}):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "picture.json"
                path.write_text(json.dumps(recording(**more)))
                ended = subprocess.run([TOOLS / "make_run_picture", "--take", path], capture_output=True, text=True, check=False)
                self.assertEqual(ended.returncode, 1)
                self.assertIn("a real card's whole run is wanted", ended.stderr)

    def test_any_recording_can_be_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "picture.json"
            path.write_text(json.dumps(recording(driver_is="simulated")))
            subprocess.run([TOOLS / "make_run_picture", "--draw", path, folder], check=True)
            self.assertEqual(sorted(one.name for one in pathlib.Path(folder).glob("*.svg")), ["run-picture.svg", "run-picture.zh.svg"])


class LendPicture(unittest.TestCase):
    def test_figures_count_each_row_until_the_next(self):
        def points(*rows):
            return [(second, {"guaranteed": 40, "wanted": wanted, "own": own, "borrowed": borrowed, "asleep": asleep})
                    for second, wanted, own, borrowed, asleep in rows]
        found = lend_picture.figures([points((0, 80, 0, 0, 0), (3, 80, 40, 0, 0), (1800, 0, 0, 0, 0)),
                                      points((0, 0, 0, 0, 0), (3, 80, 40, 0, 24), (1800, 80, 40, 40, 0))])
        self.assertEqual(found, {"used": 80 * 3597 / (80 * 3600), "wait": 3, "asleep": 24})


class StatusPicture(unittest.TestCase):
    def test_numbers_and_their_widths_change_no_shape_and_words_do(self):
        shape = status_picture.shape
        self.assertEqual(shape("a  12 %  3.5/20.0 GiB\n"), shape("a  9 %   13.5/20.0 GiB\n"))
        self.assertNotEqual(shape("a  12 %\n"), shape("b  12 %\n"))

    def test_a_terminal_keeps_its_spaces(self):
        drawn = status_picture.draw("card  name\n0     x\n", "title", ["caption"])
        xml.etree.ElementTree.fromstring(drawn)
        self.assertIn('xml:space="preserve"', drawn)
        self.assertIn(">0     x</text>", drawn)


MIXES = """| mix | native | slices | visits | `run` | MPS | by space | loss of `run` |
|---|---|---|---|---|---|---|---|
| one:size=2 (3) +<br>two (1) | 0.50 + 0.10 | 1 + 1 | 1 + 1 | 0.25 + 0.25 | 0.00 + 1.20 | | 1 % |

| mix | native | held 0 | `run` | MPS |
|---|---|---|---|---|
| one (high) +<br>two | 0.1 + 0.1 | 0.1 + 0.1 | 0.1 + 0.1 | 0.1 + 0.1 |
"""


class Mixes(unittest.TestCase):
    def test_means_are_geometric_by_weight_and_mixes_with_classes_are_left_out(self):
        rows = mix_picture.read_table(MIXES)
        self.assertEqual([kinds for kinds, _ in rows], [["one (3)", "two (1)"]])
        self.assertAlmostEqual(rows[0][1]["native"], (0.5**3 * 0.1)**0.25)
        self.assertAlmostEqual(rows[0][1]["`run`"], 0.25)
        self.assertAlmostEqual(rows[0][1]["MPS"], (0.005**3 * 1.2)**0.25)  # 0.00 is at most half of what the table can say

    def test_a_row_whose_numbers_do_not_fit_is_refused(self):
        with self.assertRaises(SystemExit):
            mix_picture.read_table(MIXES.replace("0.50 + 0.10", "0.50"))

    def test_the_axis_goes_from_its_least_to_one(self):
        least, most = mix_picture.LEFT, mix_picture.LEFT + mix_picture.LENGTH
        self.assertEqual([mix_picture.place_of(mean) for mean in (0.01, 0.1, 1, 2)], [least, least, most, most])


unittest.main()
