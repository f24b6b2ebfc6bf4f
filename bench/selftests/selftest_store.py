"""Checks of the store of measured rows and of the page's tables, which selftest.py runs with its own."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
import types
import unittest
from unittest import mock

from harness import origin, page, part_metrics, store
from harness.report import FAILED, INFO, OK, Report

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)
FACTS = {"date": "2026-11-23", "commit": "abc1234", "quick": 1.0, "driver_is": store.REAL, "card": store.PAGE_CARD}
SIMULATED = {**FACTS, "driver_is": store.SIMULATED}
PAGE = """# Figures

<!-- figures: util step -->
<!-- end of figures -->

Words.

<!-- figures: run-cap-* -->
<!-- end of figures -->

<!-- figures: all other parts -->
<!-- end of figures -->
"""


def report_of(*rows, part="util"):
    """rows: (figure, must reach, measured, is it reached)"""
    report = Report(say=lambda line: None)
    report.part, report.facts = part, dict(FACTS)
    for row in rows:
        report.check(*row)
    return report


def rows_of(*rows, part="util", **facts):
    return store.rows_of({**FACTS, **facts}, report_of(*rows, part=part).rows, takes_any=True)


def measured(rows):
    return {(row.part, row.figure): row.measured for row in rows}


def load_run():
    loader = importlib.machinery.SourceFileLoader("gpu_run", os.path.join(BENCH, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
    loader.exec_module(module)
    return module


class Folder(unittest.TestCase):
    """A folder with a page and an empty store."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        os.mkdir(os.path.join(self.root, "doc"))
        self.write(store.PAGE, PAGE)
        self.write(store.STORE, store.text_of([]))
        store.update_page(self.root)

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as out:
            out.write(text)

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8") as text:
            return text.read()

    def both(self):
        return self.read(store.STORE), self.read(store.PAGE)


class StoredRows(unittest.TestCase):
    def test_a_new_measurement_takes_the_old_one_s_place_and_no_other_s(self):
        old = rows_of(("a", "1", "1.0", True), ("b", "2", "2.0", True)) + rows_of(("a", "1", "9.0", True), part="step")
        new = rows_of(("a", "1", "1.5", True), ("c", "3", "3.0", True), commit="fff9999")
        found = store.merge(old, new)
        self.assertEqual(measured(found), {("util", "a"): "1.5", ("util", "b"): "2.0", ("util", "c"): "3.0", ("step", "a"): "9.0"})
        self.assertEqual([row.commit for row in found if row.measured == "1.5"], ["fff9999"])

    def test_a_measurement_of_an_earlier_day_does_not_take_the_place_of_a_later_one(self):
        rows = {date: rows_of(("a", "1", date, True), date=date) for date in ("2026-11-22", "2026-11-23")}
        self.assertEqual(store.merge(rows["2026-11-23"], rows["2026-11-22"]), rows["2026-11-23"])
        self.assertEqual(store.merge(rows["2026-11-22"], rows["2026-11-23"]), rows["2026-11-23"])

    def test_skips_notes_and_faults_change_nothing(self):
        report = report_of()
        report.skip("a", "no card")
        report.note("b", "1")
        report.fault("c", "could not go on")
        report.check("d", "", "picture.svg", True, is_figure=False)
        self.assertEqual(report.count(FAILED), 1)
        old = rows_of(("a", "1", "1.0", True), ("c", "1", "1.0", True))
        self.assertEqual(store.merge(old, store.rows_of(FACTS, report.rows)), old)
        report.info("e", "2")
        self.assertEqual([row.result for row in store.rows_of(FACTS, report.rows)], [INFO])

    def grouped(self, *results):
        report = report_of()
        with report.group("all ways"):
            for at, is_ok in enumerate(results):
                if is_ok is None:
                    report.skip(f"way {at}", "not here")
                else:
                    report.check(f"way {at}", "", f"8.0{at} GiB", is_ok)
        report.check("after", "", "1", True)
        return [(row.figure, row.measured, row.result) for row in store.rows_of(FACTS, report.rows) if row.figure != "after"]

    def test_rows_of_a_group_are_one_row_that_names_what_misses(self):
        self.assertEqual(self.grouped(True, True, None), [("all ways", "2 of 2; 1 cannot be tried on this driver", OK)])
        self.assertEqual(self.grouped(True, False), [("all ways", "1 of 2; missed: way 1: 8.01 GiB", FAILED)])
        self.assertEqual(self.grouped(None, None), [])

    def test_a_figure_that_comes_twice_is_numbered(self):
        self.assertEqual(measured(rows_of(("a", "", "1", True), ("a", "", "2", True))), {("util", "a"): "1", ("util", "a (2)"): "2"})

    def test_numbers_are_in_order_by_their_value(self):
        rows = store.merge([], rows_of(*((f"util {at} %: mean", "", "", True) for at in (13, 5, 95, 50))))
        self.assertEqual([row.figure for row in rows], [f"util {at} %: mean" for at in (5, 13, 50, 95)])

    def test_what_ends_a_field_or_a_line_does_not_get_in(self):
        rows = rows_of(("a", "1", "one\ttwo\nthree", True))
        self.assertEqual(rows[0].measured, "one two three")

    def test_a_part_s_figures_have_the_same_names_whatever_is_measured(self):
        names = []
        for ceiling in (443.0, 391.0):
            lab = types.SimpleNamespace(report=report_of(), card=mock.Mock(), seconds=lambda value: value)
            hold = mock.Mock(summary=lambda: {})
            with mock.patch.object(part_metrics, "find_ceiling", lambda lab, ceiling=ceiling: (ceiling, ceiling)), \
                    mock.patch.object(part_metrics, "hold_metric", lambda *_, hold=hold: (hold, [150.0], [150.0])):
                part_metrics.run_power(lab)
            names.append([row["figure"] for row in lab.report.rows])
        self.assertEqual(names[0], names[1])
        self.assertEqual(len(names[0]), 5)


class Refusals(unittest.TestCase):
    def refused(self, takes_any=False, **facts):
        try:
            store.rows_of({**FACTS, **facts}, report_of(("a", "1", "1", True)).rows, takes_any)
        except store.Refused:
            return True
        return False

    def test_a_whole_run_on_the_page_s_card_is_taken(self):
        self.assertFalse(self.refused())

    def test_a_shortened_run_and_another_card_are_taken_only_when_asked_for(self):
        for facts in ({"quick": 6.0}, {"card": "NVIDIA A100"}):
            self.assertTrue(self.refused(**facts))
            self.assertFalse(self.refused(takes_any=True, **facts))

    def test_what_no_real_card_made_is_never_taken(self):
        for driver_is in (store.SIMULATED, store.UNKNOWN, None):
            self.assertTrue(self.refused(driver_is=driver_is))
            self.assertTrue(self.refused(takes_any=True, driver_is=driver_is))

    def test_without_date_or_commit_nothing_is_taken(self):
        self.assertTrue(self.refused(takes_any=True, commit=""))
        self.assertTrue(self.refused(takes_any=True, date=None))


class Origins(unittest.TestCase):
    REAL, SIMULATED = '{"card":0,"simulated":false}', '{"card":0,"simulated":true}'

    def test_a_card_is_real_only_where_harness_and_program_say_so(self):
        real, simulated = types.SimpleNamespace(), types.SimpleNamespace(loadline_sim_world=None)
        self.assertEqual(origin.driver_is(real, self.REAL), store.REAL)
        for library, status in ((simulated, self.REAL), (real, self.SIMULATED), (simulated, self.SIMULATED), (simulated, ""),
                                (real, self.REAL + "\n" + self.SIMULATED)):
            self.assertEqual(origin.driver_is(library, status), store.SIMULATED)
        for status in ("", "no such command", '{"card":0}'):
            self.assertEqual(origin.driver_is(real, status), store.UNKNOWN)

    def test_the_simulator_still_has_the_function_by_which_it_is_known(self):
        path = os.path.join(ROOT, "src", "driver", "cards.c")
        if not os.path.isfile(path):
            self.skipTest("no sources here")
        with open(path, encoding="utf-8") as text:
            self.assertIn(f'dlsym(library, "{origin.SIMULATOR_HAS}")', text.read())

    def test_carried_programs_have_their_commit_from_the_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.dict(os.environ, {"LOADLINE_COMMIT": "abc1234"}):
                self.assertEqual(origin.commit(folder), "abc1234")
            with mock.patch.dict(os.environ, {"LOADLINE_COMMIT": ""}):
                self.assertEqual(origin.commit(folder), store.UNKNOWN)

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_a_changed_source_is_told_and_a_changed_page_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            def git(*words):
                return subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@a", *words], check=True,
                                      stdout=subprocess.PIPE).stdout.decode().strip()

            def write(name, text):
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                    out.write(text)

            git("init", "-q")
            for name in ("bench/run", store.PAGE, store.STORE, "src/a.c"):
                write(name, "1")
            git("add", ".")
            git("commit", "-q", "-m", "all")
            head = git("rev-parse", "--short", "HEAD")
            write(store.PAGE, "2")
            write(store.STORE, "2")
            self.assertEqual(origin.commit(folder), head)
            write("src/a.c", "2")
            self.assertEqual(origin.commit(folder), head + "+")


class Pages(Folder):
    def test_a_missed_figure_is_bold_and_a_reached_one_is_not(self):
        store.record(self.root, rows_of(("a", "<= 1", "2 of **3**", False), ("b|c", "<= 1", "0.5", True)))
        text = self.read(store.PAGE)
        self.assertIn("| a | <= 1 | **2 of 3** |\n", text)
        self.assertIn("| b\\|c | <= 1 | 0.5 |\n", text)
        self.assertIn("Measured: 2026-11-23, abc1234.\n", text)

    def test_a_row_says_that_it_was_shortened_and_of_which_other_card_it_is(self):
        store.record(self.root, rows_of(("a", "", "1", True), quick=2.5, card="NVIDIA A100"))
        self.assertIn("Measured: 2026-11-23, abc1234, shortened 2.5 times, NVIDIA A100.\n", self.read(store.PAGE))

    def test_rows_of_several_runs_have_a_letter_each(self):
        store.record(self.root, rows_of(("a", "", "1", True)) + rows_of(("b", "", "2", True), commit="fff9999"))
        text = self.read(store.PAGE)
        self.assertIn("| a |  | 1 | a |\n| b |  | 2 | b |\n", text)
        self.assertIn("Measured: a: 2026-11-23, abc1234; b: 2026-11-23, fff9999.\n", text)

    def page_of(self, place, *rows, part="util"):
        """The page that has this place, and that for all others."""
        text = f"<!-- {place} -->\n<!-- end of figures -->\n\n<!-- figures: all other parts -->\n<!-- end of figures -->\n"
        return page.make_page(text, rows_of(*rows, part=part), store.PAGE_CARD)

    def test_a_place_leaves_out_what_holds_and_never_what_misses(self):
        text = self.page_of("figures: util; without *mean", ("5 %: mean", "1", "1", True), ("9 %: mean", "1", "2", False), ("5 %: all", "1", "1", True))
        self.assertNotIn("| 5 %: mean", text)
        self.assertIn("| 9 %: mean | 1 | **2** |", text)
        self.assertIn("has more rows: 1 that holds.", text)

    def test_what_was_measured_beside_has_a_column(self):
        rows = [("share: sync + flood: sum", ">= 1", "0.9 (sync 0.4 + flood 0.5; native sync 0.1 + flood 0.8; scatter 0.01)", False),
                ("classes: p50", "", "0.9 times alone (2.3 ms; alone 2.6, native 3.5; 204 requests)", True)]
        text = self.page_of("figures: util; beside native, mps", *rows)
        self.assertIn("| figure | must reach | without loadline | loadline |\n", text)
        self.assertIn("| share: sync + flood: sum | >= 1 | 0.1 + 0.8 | **0.9 (0.4 + 0.5)** |\n", text)
        self.assertIn("| classes: p50 |  | 3.5 | 0.9 times alone (2.3 ms; alone 2.6) |\n", text)

    def test_counts_say_how_many_hold_and_which_miss(self):
        text = self.page_of("counts: util", ("a", "1", "1", True), ("b", "<= 1", "2", False), ("c", "", "3", True))
        self.assertIn("| `util` | 2 of 3 | **b: 2** (must reach: <= 1) |\n", text)

    def test_a_place_that_asks_for_something_unknown_is_refused(self):
        for place in ("figures: util; with *mean", "figures: util; beside HAMi"):
            with self.assertRaises(ValueError):
                self.page_of(place)

    def test_a_table_has_its_parts_in_order_and_every_part_has_a_table(self):
        for part in ("other", "run-cap-b", "step", "util"):
            store.record(self.root, rows_of((f"of {part}", "", "1", True), part=part))
        lines = [line.split(" | ")[0] for line in self.read(store.PAGE).splitlines()]
        found = [line for line in lines if line.startswith(("| of", "Words", "<!-- fig"))]
        self.assertEqual(found, ["<!-- figures: util step -->", "| of util", "| of step", "Words.", "<!-- figures: run-cap-* -->",
                                 "| of run-cap-b", "<!-- figures: all other parts -->", "| of other"])

    def test_a_page_without_a_place_for_all_is_refused(self):
        with self.assertRaises(ValueError):
            page.make_page(PAGE.replace(page.OTHERS, "step"), [], store.PAGE_CARD)

    def test_words_between_the_tables_stay(self):
        store.record(self.root, rows_of(("a", "", "1", True)))
        self.assertEqual(page.TABLE.sub("", self.read(store.PAGE)), page.TABLE.sub("", PAGE))

    def test_what_was_edited_by_hand_is_found(self):
        store.record(self.root, rows_of(("a", "<= 1", "0.5", True), ("b", "", "7", True)))
        self.assertEqual(list(store.problems(self.root)), [])
        kept, before = self.both()
        for name, text in ((store.PAGE, before.replace("0.5", "0.4")), (store.PAGE, before.replace("abc1234", "abc1235")),
                           (store.STORE, kept.replace("0.5", "0.4"))):
            self.write(store.STORE, kept)
            self.write(store.PAGE, before)
            self.write(name, text)
            self.assertEqual(len(list(store.problems(self.root))), 1, name)

    def test_a_store_that_is_not_in_order_is_found(self):
        store.record(self.root, rows_of(("a", "", "1", True), ("b", "", "2", True)))
        head, *rows = self.read(store.STORE).splitlines(keepends=True)
        self.write(store.STORE, head + "".join(reversed(rows)))
        self.assertIn("not in order", "".join(store.problems(self.root)))

    def test_a_line_that_lacks_a_field_is_refused(self):
        self.write(store.STORE, store.text_of([]) + "util\ta\n")
        with self.assertRaises(ValueError):
            store.read(os.path.join(self.root, store.STORE))

    def test_a_file_of_another_machine_is_read(self):
        path = os.path.join(self.root, "measured.json")
        report = report_of(("a", "<= 1", "0.5", True))
        report.write(path)
        store.record(self.root, store.rows_of_json(path))
        self.assertEqual(store.read(os.path.join(self.root, store.STORE)), rows_of(("a", "<= 1", "0.5", True)))
        with open(path, encoding="utf-8") as text:
            told = json.load(text)
        told["facts"]["driver_is"] = store.SIMULATED
        self.write("measured.json", json.dumps(told))
        with self.assertRaises(store.Refused):
            store.rows_of_json(path, takes_any=True)


class RepositoryPage(unittest.TestCase):
    def test_each_miss_of_the_store_is_on_the_page(self):
        paths = [os.path.join(ROOT, name) for name in (store.STORE, store.PAGE)]
        if not all(map(os.path.isfile, paths)):
            self.skipTest("no store here")
        with open(paths[1], encoding="utf-8") as text:
            bold = [line for line in text if "**" in line]
        missed = [row for row in store.read(paths[0]) if row.result == FAILED]
        self.assertTrue(missed)
        for row in missed:
            self.assertTrue(any(page.cell(row.figure) in line for line in bold), row.figure)


class Runs(Folder):
    """What bench/run does with the rows of a part."""

    def record(self, facts, takes_any=False):
        run, report = load_run(), report_of(("a", "<= 1", "0.5", True))
        report.facts = facts
        report.part = "step"
        report.check("of another part", "", "1", True)
        with mock.patch.object(run, "ROOT", self.root):
            return run.record(types.SimpleNamespace(record=takes_any), report, "util")

    def test_a_real_card_s_rows_of_that_part_are_recorded(self):
        self.assertIsNone(self.record(FACTS))
        self.assertEqual(measured(store.read(os.path.join(self.root, store.STORE))), {("util", "a"): "0.5"})
        self.assertIn("| a | <= 1 | 0.5 |", self.read(store.PAGE))

    def test_the_simulated_driver_s_rows_never_are(self):
        before = self.both()
        for takes_any in (False, True):
            self.assertIn("simulated", self.record(SIMULATED, takes_any))
            self.assertEqual(self.both(), before)

    def test_a_shortened_run_is_recorded_with_record_alone(self):
        before = self.both()
        self.assertIn("--record", self.record({**FACTS, "quick": 6.0}))
        self.assertEqual(self.both(), before)
        self.assertIsNone(self.record({**FACTS, "quick": 6.0}, takes_any=True))
        self.assertIn("shortened 6 times", self.read(store.PAGE))

    def test_without_a_repository_nothing_is_written(self):
        shutil.rmtree(os.path.join(self.root, "doc"))
        self.assertIn("--merge", self.record(FACTS))
        self.assertEqual(os.listdir(self.root), [])

    def test_every_stored_part_is_one_that_can_be_measured(self):
        path = os.path.join(ROOT, store.STORE)
        if not os.path.isfile(path):
            self.skipTest("no store here")
        self.assertEqual({row.part for row in store.read(path)} - set(load_run().PARTS), set())
