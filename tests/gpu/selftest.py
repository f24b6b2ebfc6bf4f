#!/usr/bin/env python3
"""Checks the arithmetic of tests/gpu/run on made-up data: what must pass passes, what must fail fails. Needs no card."""
import math
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import figures, level, part_original, part_util, part_yield, processes  # noqa: E402
from harness.figures import Burst, Sample  # noqa: E402
from harness.report import FAILED, OK, Report  # noqa: E402

MS = 1_000_000
SUMMARY = {"settle_seconds": 0.4, "yields": 0, "seconds": 61.0, "payload": "vulkan"}


class FakeLab:
    quick = 1

    def __init__(self):
        self.report = Report(say=lambda line: None)

    def results(self):
        return [row["result"] for row in self.report.rows if row["result"] in (OK, FAILED)]


def spin(from_ms, until_ms, every_ms=2, length_ms=1):
    """Own kernels of a hold at 50 %."""
    return [(t * MS, (t + length_ms) * MS) for t in range(from_ms, until_ms, every_ms)]


def square(period_s, level_of, seconds):
    """Samples every 0.2 s, out of step with a square curve from 20 to 80 whose level follows by level_of(time, target)."""
    def area(until_s):
        whole, rest = divmod(until_s, period_s)
        return whole * 50 * period_s + 20 * min(rest, period_s / 2) + 80 * max(0, rest - period_s / 2)

    samples = []
    for i in range(1, int(seconds / 0.2)):
        end_s = 0.13 + 0.2 * i
        target = (area(end_s) - area(end_s - 0.2)) / 0.2
        samples.append(Sample(end_s, level_of(end_s, target), target, "holding"))
    return samples


class Numbers(unittest.TestCase):
    def test_a_percentile_is_a_value_that_occurred(self):
        values = list(range(1, 201))
        self.assertEqual(figures.percentile(values, 50), 100)
        self.assertEqual(figures.percentile(values, 99), 198)
        self.assertEqual(figures.percentile(values, 100), 200)
        self.assertEqual(figures.percentile([7], 1), 7)

    def test_spread_of_nothing_says_so(self):
        self.assertEqual(figures.spread([]), {"n": 0})
        self.assertEqual(figures.spread([1, 3])["mean"], 2)
        self.assertEqual(figures.spread([1, 3])["stdev"], 1)

    def test_cpu_of_this_process_grows_with_its_work(self):
        before = processes.cpu_seconds(os.getpid())
        while processes.cpu_seconds(os.getpid()) < before + 0.05:
            sum(range(10000))
        self.assertIn(os.getpid(), processes.family(os.getppid()))
        self.assertGreater(processes.rss_mib(os.getpid())[1], 1)
        self.assertAlmostEqual(figures.cpu_percent(1.0, 1.3, 10), 3)


class Levels(unittest.TestCase):
    def judge(self, levels, readings=None):
        lab = FakeLab()
        level.report_util(lab, "util 50 %", level.CardLevel(levels, readings or levels, SUMMARY), 50)
        return lab.results()

    def test_a_steady_level_passes(self):
        self.assertEqual(self.judge([50] * 200 + [49] * 50 + [51] * 50), [OK, OK])

    def test_one_sample_off_by_two_fails(self):
        self.assertEqual(self.judge([50] * 299 + [48]), [FAILED, OK])

    def test_a_mean_off_by_more_than_three_tenths_fails(self):
        self.assertEqual(self.judge([50] * 65 + [49] * 35), [OK, FAILED])

    def test_readings_of_the_harness_count_as_much_as_the_hold_s_own(self):
        self.assertEqual(self.judge([50] * 300, [50] * 299 + [53]), [FAILED, OK])

    def test_no_samples_fail(self):
        self.assertEqual(self.judge([], []), [FAILED])

    def test_samples_before_the_first_second_do_not_count(self):
        samples = [Sample(0.2 * i, 0 if i < 6 else 50, 50, "holding") for i in range(1, 20)]
        self.assertEqual({s.level for s in figures.between(samples, 0.2 + 1.0)}, {50})


class Steps(unittest.TestCase):
    def test_steps_are_found_from_the_targets(self):
        steps = figures.find_steps(square(10, lambda t, target: target, 31), 20, 80)
        self.assertEqual([rises for _, rises in steps], [True, False] * 3)
        for at, (time_s, _) in enumerate(steps):
            self.assertAlmostEqual(time_s, 5 * (at + 1), places=3)

    def test_a_level_that_follows_at_once_settles_within_two_windows(self):
        steps = figures.judge_steps(square(10, lambda t, target: target, 31), 20, 80)
        self.assertEqual(len(steps), 5)  # the last has too little after it
        self.assertTrue(all(step.settle_s <= 0.4 and step.late_error == 0 for step in steps))

    def report(self, samples):
        lab = FakeLab()
        for rises in (True, False):
            part_util.report_direction(lab, figures.judge_steps(samples, 20, 80), rises)
        return lab.results()

    def test_a_slow_rise_fails_and_the_fall_passes(self):
        def slow(t, target):
            return 70 if target == 80 and t % 10 < 5.9 else target

        self.assertEqual(self.report(square(10, slow, 31)), [FAILED, OK])

    def test_a_late_bump_fails(self):
        def bump(t, target):
            return 23 if 12 < t < 12.3 else target

        self.assertEqual(self.report(square(10, bump, 31)), [OK, FAILED])

    def test_a_constant_level_has_no_steps_and_fails(self):
        samples = [Sample(0.2 * i, 20, 20, "holding") for i in range(1, 100)]
        self.assertEqual(self.report(samples), [FAILED, FAILED])


class Arrivals(unittest.TestCase):
    burst = Burst(1000 * MS, 1100 * MS)

    def judge(self, rows, burst=burst, following=math.inf):
        return figures.judge_arrival(figures.kernels(rows), burst, following)

    def test_latency_runs_to_the_end_of_our_last_kernel(self):
        self.assertEqual(self.judge(spin(0, 1002) + spin(1600, 2000)), (True, 1 * MS, False))

    def test_a_queued_kernel_that_gets_the_card_later_counts(self):
        rows = spin(0, 1000) + [(1004 * MS, 1004 * MS + 500)]
        self.assertEqual(self.judge(rows).latency_ns, 4 * MS + 500)

    def test_stopping_before_any_kernel_is_no_latency(self):
        self.assertEqual(self.judge(spin(0, 999) + spin(1600, 2000)), (True, 0, False))

    def test_a_kernel_cut_in_two_by_the_arrival_shows_we_were_holding(self):
        self.assertEqual(self.judge([(999 * MS, 1002 * MS)]), (True, 2 * MS, False))

    def test_an_arrival_while_yielded_does_not_count(self):
        self.assertFalse(self.judge(spin(0, 800) + spin(1600, 2000)).is_counted)

    def test_going_on_until_the_next_arrival_is_a_miss(self):
        self.assertTrue(self.judge(spin(0, 3000), following=2000 * MS).is_missed)

    def test_stopping_long_after_the_burst_is_a_miss(self):
        self.assertEqual(self.judge(spin(0, 1300)), (True, 299 * MS, True))

    def test_bursts_are_their_first_start_and_last_end(self):
        rows = [(1, 10, 20), (1, 20, 30), (2, 90, 95)]
        self.assertEqual(figures.bursts_of(rows), [(10, 30), (90, 95)])

    def report(self, latency_ms, count=200):
        """A run of arrivals 2 s apart, each answered after that time."""
        own, bursts = [], []
        for at in range(count):
            begin = 2000 * at
            own += spin(begin, begin + 1000) + [((begin + 1000 + latency_ms(at)) * MS, (begin + 1000 + latency_ms(at)) * MS)]
            bursts.append(Burst((begin + 1000) * MS, (begin + 1100) * MS))
        lab = FakeLab()

        class Hold:
            def kernels(self, card):
                return figures.kernels(own)

        class Foreign:
            def bursts(self):
                return bursts

        part_yield.report_arrivals(lab, "yield", Hold(), Foreign(), 200, (3, 10))
        return lab.results()

    def test_quick_answers_pass(self):
        self.assertEqual(self.report(lambda at: 2), [OK, OK, OK])

    def test_two_slow_answers_of_two_hundred_pass_and_three_fail(self):
        self.assertEqual(self.report(lambda at: 40 if at < 2 else 2), [OK, OK, OK])
        self.assertEqual(self.report(lambda at: 40 if at < 3 else 2), [OK, OK, FAILED])

    def test_too_few_arrivals_fail(self):
        self.assertEqual(self.report(lambda at: 2, 150), [FAILED, OK, OK])


class Results(unittest.TestCase):
    def test_one_failure_makes_the_run_fail(self):
        report = Report(say=lambda line: None)
        report.at_most("a", 1.0, 3, "%")
        self.assertEqual(report.exit_code(), 0)
        report.at_most("b", 3.01, 3, "%")
        self.assertEqual((report.exit_code(), report.totals()), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("FAIL", report.table())

    def test_a_figure_that_was_not_measured_fails(self):
        report = Report(say=lambda line: None)
        report.at_most("a", None, 3, "%")
        report.near("b", None, 50, 1, "%")
        self.assertEqual(report.count(FAILED), 2)

    def test_nothing_but_skips_is_77(self):
        report = Report(say=lambda line: None)
        report.skip("a", "no card")
        self.assertEqual(report.exit_code(), 77)

    def test_numbers_are_written_as_json(self):
        report = Report(say=lambda line: None)
        report.keep("a", figures.spread([1.5, 2.5]))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            report.write(path)
            with open(path, encoding="utf-8") as out:
                self.assertIn('"mean": 2.0', out.read())


class Pictures(unittest.TestCase):
    def test_settling_is_from_the_first_sample_after_which_all_stay(self):
        rows = [(0.2, 10), (0.4, 50), (0.6, 47), (0.8, 50), (1.0, 51)]
        self.assertEqual(part_original.settled_after(rows), 0.8)
        self.assertIsNone(part_original.settled_after(rows + [(1.2, 40)]))


if __name__ == "__main__":
    unittest.main()
