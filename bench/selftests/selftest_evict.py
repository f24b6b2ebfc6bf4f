#!/usr/bin/env python3
"""Checks the parts evict-* of bench/run on made-up data: what must pass passes, what must fail fails. Needs no card."""
import ast
import glob
import os
import sys
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from harness import evicting, part_evict, part_evict_cost, part_evict_programs, part_evict_turns  # noqa: E402
from harness.evicting import GIB, Moved  # noqa: E402
from harness.lab import Trouble  # noqa: E402
from harness.report import FAILED, INFO, OK, Report  # noqa: E402
from harness.store import REAL, SIMULATED  # noqa: E402


class FakeLab:
    quick = 1

    def __init__(self, driver=REAL):
        self.report = Report(say=lambda line: None)
        self.report.facts["driver_is"] = driver
        self.shared = {}

    def times(self, value, least=3):
        return value

    def results(self):
        return [row["result"] for row in self.report.rows]


def moves(*seconds, gib=16):
    return [Moved(gib * GIB, each, 100 + at, 100 + at + each) for at, each in enumerate(seconds)]


class Sizes(unittest.TestCase):
    def test_a_size_on_the_simulator_is_a_part_of_the_wanted_one(self):
        self.assertEqual(evicting.sized(FakeLab(), 16), 16 * GIB)
        self.assertEqual(evicting.sized(FakeLab(SIMULATED), 16), GIB // 4)
        self.assertEqual(evicting.gib_of(FakeLab(SIMULATED), GIB // 4), 16)

    def test_what_is_away_leaves_the_host_what_it_needs(self):
        self.assertEqual(evicting.budget_bytes(124 * GIB, 12 * GIB, 128 * GIB), 104 * GIB)
        self.assertEqual(evicting.budget_bytes(60 * GIB, 12 * GIB, 128 * GIB), 40 * GIB)
        self.assertEqual(evicting.budget_bytes(1 * GIB, 12 * GIB, 128 * GIB), 0)

    def test_what_is_left_of_this_machine_is_found(self):
        self.assertGreater(evicting.available_bytes(), 0)

    def test_programs_are_so_small_that_the_host_has_room_for_them(self):
        with mock.patch.multiple(evicting, available_bytes=lambda: 83 * GIB, total_bytes=lambda: 128 * GIB):
            self.assertEqual(evicting.fitting_gib(FakeLab(), 40, 2), 31.5)
            self.assertEqual(evicting.fitting_gib(FakeLab(), 20, 2), 20)
        self.assertEqual(evicting.scaled_note(20, 20), "")
        self.assertIn("31.5 GiB instead of 40", evicting.scaled_note(31.5, 40))


class Limits(unittest.TestCase):
    def test_a_part_that_takes_too_long_fails(self):
        with self.assertRaises(Trouble):
            evicting.limited(0.05)(time.sleep)(5)

    def test_one_that_does_not_is_left_alone(self):
        self.assertEqual(evicting.limited(5)(lambda value: value + 1)(1), 2)


class Status(unittest.TestCase):
    def test_moves_and_memory_of_the_host_are_summed_over_a_tenant_s_claims(self):
        lines = ('{"claim":"0/0","tenant":"one","host_bytes":5,"moves":2}\n{"claim":"0/1","tenant":"one","host_bytes":null,"moves":null}\n'
                 '{"claim":"0/2","tenant":"two","host_bytes":7,"moves":1}\n')
        lab = mock.Mock(run=lambda *_: (0, lines, ""))
        self.assertEqual(evicting.ready_bytes(lab, "one"), 5)
        self.assertEqual(evicting.moves_of(lab, "one", "two"), 3)

    def test_two_moves_take_from_the_first_s_beginning_to_the_last_s_end(self):
        self.assertAlmostEqual(evicting.together_s([Moved(1, 0.5, 10.0, 10.5), Moved(1, 0.4, 10.3, 10.7)]), 0.7)


class Speeds(unittest.TestCase):
    def report(self, *seconds, gib=16):
        lab = FakeLab()
        part_evict.report_way(lab, "out", gib, moves(*seconds, gib=gib), 0.36)
        return lab.results()

    def test_the_median_is_judged_and_the_first_time_beside_it(self):
        self.assertEqual(self.report(0.36, 0.32, 0.31, 0.33), [OK, OK])
        self.assertEqual(self.report(0.36, 0.38, 0.37, 0.39), [FAILED, OK])
        self.assertEqual(self.report(0.50, 0.32, 0.31, 0.33), [OK, FAILED])

    def test_the_first_time_is_judged_for_one_size(self):
        self.assertEqual(self.report(5.0, 0.32, 0.31, gib=45), [OK])

    def test_a_move_that_is_refused_is_tried_again(self):
        answers = [evicting.Refused("full"), evicting.Refused("full"), "moved"]
        with mock.patch.object(part_evict, "move", mock.Mock(side_effect=answers)), mock.patch.object(part_evict.time, "sleep"):
            self.assertEqual(part_evict.move_at_last(FakeLab(), "evict", "a"), ("moved", ["full", "full"]))

    def test_a_wrong_word_fails(self):
        for wrong, result in ((0, OK), (1, FAILED)):
            lab = FakeLab()
            program = mock.Mock(finish=lambda wrong=wrong: {"wrong": wrong, "rounds": 7})
            part_evict.report_words(lab, "words", [program])
            self.assertEqual(lab.results(), [result])

    def test_an_exchange_is_judged_by_one_after_the_other(self):
        for seconds, result in ((1.0, OK), (1.5, FAILED)):
            lab = FakeLab()
            lab.random = mock.Mock(uniform=lambda low, high: 0)
            with mock.patch.multiple(part_evict, in_turn=lambda *_: 1.8, at_once=lambda *_, s=seconds: s):
                self.assertEqual(part_evict.measure_exchange(lab, "exchange", "a", "b", 3, ""), ("b", "a"))
            self.assertEqual(lab.results(), [result])


class Notebooks(unittest.TestCase):
    def ends(self, first, rate, seconds):
        return [first + at / rate for at in range(int(seconds * rate))]

    def test_full_speed_begins_where_a_window_is_full_of_work(self):
        self.assertAlmostEqual(part_evict_turns.full_speed_after(self.ends(1.2, 1000, 1.0), 1000), 1.2)
        self.assertAlmostEqual(part_evict_turns.full_speed_after([0.3, 0.5, *self.ends(1.2, 1000, 1.0)], 1000), 1.2)

    def test_half_speed_is_not_full_and_a_window_must_be_whole(self):
        self.assertIsNone(part_evict_turns.full_speed_after(self.ends(0.1, 500, 1.0), 1000))
        self.assertIsNone(part_evict_turns.full_speed_after(self.ends(1.2, 1000, 0.05), 1000))
        self.assertIsNone(part_evict_turns.full_speed_after([], 1000))

    def test_each_must_be_in_time(self):
        for found, result in (([("a", 0.2), ("b", 1.4)], OK), ([("a", 0.2), ("b", 1.6)], FAILED), ([("a", 0.2), ("b", None)], FAILED),
                              ([], FAILED)):
            lab = FakeLab()
            part_evict_turns.report_wakes(lab, found, "")
            self.assertEqual(lab.results(), [result])


class Sums(unittest.TestCase):
    def report(self, natives, evicted):
        lab = FakeLab()
        part_evict_programs.report_same(lab, "sum", natives, evicted)
        return lab.results()

    def test_another_sum_fails_unless_the_program_alone_has_several(self):
        self.assertEqual(self.report(["a", "a"], "a"), [OK])
        self.assertEqual(self.report(["a", "a"], "b"), [FAILED])
        self.assertEqual(self.report(["a", "b"], "b"), [INFO])

    def test_a_training_is_judged_for_the_size_that_is_wanted(self):
        for gib, result in ((20, OK), (16, FAILED)):
            lab = FakeLab()
            part_evict_programs.report_training_way(lab, "out", moves(0.40, 0.41, gib=gib), 0.36)
            self.assertEqual(lab.results(), [result])


class Soaks(unittest.TestCase):
    def run_soak(self, move):
        with mock.patch.object(part_evict_programs, "move", move), mock.patch.object(part_evict_programs.time, "sleep", lambda _: None):
            return part_evict_programs.Soak(FakeLab(), ["a", "b", "c"], 50, 60).run()

    def test_as_many_evictions_as_wanted(self):
        soak = self.run_soak(lambda lab, word, name: moves(0.1)[0])
        self.assertEqual((len(soak.moves), soak.refused), (50, []))

    def test_refusals_are_told_and_end_it(self):
        def refuse(lab, word, name):
            raise evicting.Refused("it is busy")
        soak = self.run_soak(refuse)
        self.assertEqual(soak.moves, [])
        self.assertIn("it is busy", soak.refused)


class Programs(unittest.TestCase):
    def test_all_programs_and_parts_can_be_read(self):
        for path in [*glob.glob(os.path.join(BENCH, "programs", "*.py")), *glob.glob(os.path.join(BENCH, "harness", "*.py"))]:
            with open(path, encoding="utf-8") as text:
                ast.parse(text.read(), path)

    def test_what_costs_is_run_by_programs_that_there_are(self):
        for script, *_ in part_evict_cost.workloads().values():
            self.assertTrue(os.path.isfile(os.path.join(BENCH, "programs", script)), script)


if __name__ == "__main__":
    unittest.main()
