#!/usr/bin/env python3
"""Checks the arithmetic of bench/run on made-up data: what must pass passes, what must fail fails. Needs no card."""
import glob
import json
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness import (claims, figures, in_turn, level, paired, part_mps_answers, part_mps_space, part_original, part_picture,  # noqa: E402
                     part_questions, part_run_added, part_run_cap, part_run_class, part_run_cost, part_run_memory, part_run_programs,
                     part_run_shares, part_run_ways, part_trace, part_util, part_yield, processes, shares)
from harness.figures import Burst, Sample  # noqa: E402
from harness.frameworks import PROGRAMS  # noqa: E402
from harness.lab import Missing  # noqa: E402
from harness.report import FAILED, INFO, OK, Report  # noqa: E402
from harness.shares import Window  # noqa: E402
from selftest_store import Origins, Pages, Refusals, RepositoryPage, Runs, StoredRows  # noqa: E402, F401

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


class Questions(unittest.TestCase):
    def test_spans_answer_by_how_many_are_their_kernel_s_own_time(self):
        for times, answer in (((1, 1, 1.2), "yes"), ((1, 1, 9), "mostly"), ((1, 8, 9), "now and then"), ((7, 8, 9), "no")):
            said = part_questions.spans_say(200.0, {f"p{part}_us": 200.0 * time for part, time in zip((10, 50, 90), times)})
            self.assertEqual(said.split(" (")[0], answer)

    def test_a_bound_that_costs_something_is_told_with_the_neighbour_beside_whom_it_costs_most(self):
        free = (1.0, [(0.5, 0.5), (0.8, 0.6), (0.9, 0.1)])
        self.assertTrue(part_questions.depths_say((0.97, free[1]), free).startswith("costs nothing"))
        said = part_questions.depths_say((0.9, [(0.5, 0.5), (0.2, 0.9), (0.8, 0.1)]), free)
        self.assertTrue(said.startswith("costs 10 % alone, 75 % beside eager"), said)

    def test_the_service_s_best_is_the_low_one_s_most_within_the_target(self):
        told = {(10, 0): (2.0, 9, 0.9), (2, 25): (1.3, 2, 0.6), (2, 50): (1.2, 2, 0.4)}
        self.assertTrue(part_questions.services_say(told).startswith("depth 2, held 25 %"))
        self.assertTrue(part_questions.services_say({(10, 0): (2.0, 9, 0.9), (1, 0): (1.5, 2, 0.5)}).startswith("none"))


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

    def test_threads_are_told_apart(self):
        before = {(1, 1): ("main", 1.0, 5), (1, 2): ("idle", 2.0, 7)}
        after = {(1, 1): ("main", 1.5, 25), (1, 2): ("idle", 2.0, 7), (1, 3): ("new", 2.0, 1)}
        self.assertEqual([(row["name"], row["cpu_percent"], row["sleeps_per_second"])
                          for row in processes.thread_uses(before, after, 10)], [("new", 20, 0.1), ("main", 5, 2)])
        name, cpu_s, sleeps = processes.threads(os.getpid())[os.getpid(), os.getpid()]
        self.assertTrue(name and cpu_s > 0 and sleeps >= 0)
        self.assertAlmostEqual(figures.cpu_percent(1.0, 1.3, 10), 3)


class Lines(unittest.TestCase):
    def test_a_line_and_its_end_are_one_write(self):
        """A datagram is what one write wrote."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with ours, theirs:
            subprocess.run([sys.executable, "-B", "-u", "-c", "import line; line.say(event='count', iterations=3)"],
                           cwd=PROGRAMS, stdout=theirs, check=True)
            self.assertEqual(ours.recv(1000), b'{"event": "count", "iterations": 3}\n')

    def test_programs_say_their_lines_in_no_other_way(self):
        for path in glob.glob(os.path.join(PROGRAMS, "*.py")):
            with open(path, encoding="utf-8") as text:
                self.assertNotIn("print(json", text.read(), path)


class Traces(unittest.TestCase):
    HEADER = "start_ns,duration_ns,context,stream,name,correlation_id,kind\n"

    def table(self, *lines):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as out:
            out.write(self.HEADER + "".join(line + "\n" for line in lines))
            out.flush()
            return part_trace.read_table(out.name)

    def test_what_lies_between_marks_is_counted_with_them(self):
        rows = self.table("0,5,1,7,before,1,kernel", "10,5,1,7,spin_kernel(long),2,kernel", "20,5,1,7,inside,3,kernel",
                          "21,5,1,7,[CUDA memset],4,memset", '30,5,1,8,"f(int, int)",5,kernel',
                          "40,5,1,7,spin_kernel(long),6,kernel", "50,5,1,7,after,7,kernel")
        self.assertEqual([row["correlation"] for row in part_trace.between_marks(rows)], [2, 3, 5, 6])
        self.assertEqual(len(part_trace.marks(rows)), 2)
        self.assertEqual(part_trace.between_marks(rows[:1]), [])

    def test_a_kernel_before_its_stream_s_turn_is_out_of_order(self):
        rows = self.table("0,10,1,7,a,1,kernel", "5,10,1,8,b,2,kernel", "9,10,1,7,c,3,kernel", "20,1,1,7,d,4,kernel")
        self.assertEqual(part_trace.overlaps_ns(rows), [1])
        self.assertEqual(part_trace.overlaps_ns(self.table("5,1,1,7,a,2,kernel", "9,1,1,7,b,1,kernel")), [5])

    def test_a_stream_s_kernels_must_not_overlap(self):
        for way, overlap_ns, result in (("cupti", 0, OK), ("cupti", 1, FAILED), ("events", 0, OK), ("events", 1, FAILED)):
            lab, rows = FakeLab(), self.table("0,20000,1,7,a,1,kernel", f"{20000 - overlap_ns},5,1,7,b,2,kernel")
            part_trace.report_picture(lab, way, {1: rows}, [{"ph": "M"}, {"ph": "X"}, {"ph": "X"}])
            self.assertEqual(lab.results(), [OK, result])

    def test_what_processes_say_is_told_from_what_trace_says(self):
        text = '{"event": "rank", "rank": 1, "pid": 17, "marks": 4, "kernels": null}\n{"event":"card","busy_percent":1}\n'
        self.assertEqual(part_trace.ranks_of(text)[17]["marks"], 4)

    def test_every_process_must_have_its_own_marks(self):
        mark = "0,5,1,7,spin_kernel(long),1,kernel"
        said = {pid: {"rank": pid, "pid": pid, "marks": 1} for pid in range(4)}
        for tables, result in (({pid: self.table(mark) for pid in range(4)}, OK),
                               ({0: self.table(mark, mark), 1: [], 2: self.table(mark), 3: self.table(mark)}, FAILED)):
            lab = FakeLab()
            part_trace.report_kernels(lab, "cupti", said, tables, {})
            self.assertEqual(lab.results(), [result])


class TraceCosts(unittest.TestCase):
    """Pairs of processes whose rounds scatter by 4 % each way, made up."""

    def runs(self, counts, cost, seed, scatter=0.04):
        pairs, rounds = counts
        made = random.Random(seed)
        return [[(60000 * made.gauss(1, scatter), 60000 * (1 - cost) * made.gauss(1, scatter)) for _ in range(rounds)]
                for _ in range(pairs)]

    def report(self, cost, way="cupti", seed=1, scatter=0.04, floor=None, cupti_alone=None):
        lab, made = FakeLab(), self.runs(part_trace.COUNTS[way, "bfloat16"], cost, seed, scatter)
        lab.times = lambda value, least=3: value
        lab.program = mock.Mock(side_effect=Missing("not built") if cupti_alone is None else None, return_value="")
        if cupti_alone is not None:
            made += self.runs(part_trace.LEAST_COUNTS["bfloat16"], cupti_alone, seed + 1, scatter)
        made = iter(made)
        with mock.patch.object(part_trace, "cost_pairs", lambda *_: next(made)), \
                mock.patch.object(part_trace, "command", lambda *_: []):
            part_trace.report_cost(lab, way, "bfloat16", floor)
        return lab.report.rows[0]

    def test_the_counts_tell_the_cost_to_one_and_a_half_percent(self):
        for seed in range(5):
            value, low, high = paired.interval(self.runs(part_trace.COUNTS["cupti", "bfloat16"], 0.02, seed),
                                               part_trace.cost_percent)
            self.assertLess(high - low, 3)
            self.assertAlmostEqual(value, 2, delta=1.5)

    def test_what_costs_too_much_fails_and_what_drowns_in_the_noise_is_not_judged(self):
        self.assertEqual(self.report(0.02)["result"], OK)
        self.assertEqual(self.report(0.08)["result"], FAILED)
        self.assertEqual(self.report(0.05, scatter=0.2)["result"], INFO)

    def test_where_cupti_alone_costs_too_much_a_trace_may_cost_little_more(self):
        self.assertEqual(self.report(0.12, cupti_alone=0.115)["result"], OK)
        self.assertEqual(self.report(0.16, cupti_alone=0.115)["result"], FAILED)
        self.assertEqual(self.report(0.08, cupti_alone=0.01)["result"], FAILED)
        row = self.report(0.12, scatter=0, cupti_alone=0.11)
        self.assertEqual((row["must_reach"], row["measured"]), ("<= 13 %", "12.00 % (12.00 to 12.00) of 60000/s, 2.27 us; "
                                                               "CUPTI alone 11.00 % (11.00 to 11.00)"))

    def test_events_say_their_floor_and_are_not_judged(self):
        row = self.report(0.3, way="events", scatter=0, floor=2.5)
        self.assertEqual(row["result"], INFO)
        self.assertEqual(row["measured"], "30.00 % (30.00 to 30.00) of 60000/s, 7.14 us; floor 2.50 us, 13.0 %")


class MpsShares(unittest.TestCase):
    MEASURED = {99: 130, 75: 98, 50: 66, 33: 42, 25: 32, 10: 12, 5: 8, 3: 8, 1: 8}

    def judge(self, rule):
        lab = FakeLab()
        for percent in self.MEASURED:
            part_mps_answers.check_share(lab.report, percent, rule(132 * percent / 100), 132)
        return lab.results()

    def test_pairs_rounded_down_and_never_fewer_than_eight_pass(self):
        self.assertEqual({percent: part_mps_answers.sms_at(132, percent) for percent in self.MEASURED}, self.MEASURED)
        self.assertEqual(set(self.judge(lambda exact: max(8, int(exact) // 2 * 2))), {OK})

    def space(self, report, *args):
        lab = FakeLab()
        report(lab.report, *args)
        return lab.results()

    def test_a_share_by_space_is_within_an_sm_of_what_was_asked_for(self):
        told = {"shown": 32, "blocks": 32, "clusters": 30}
        self.assertEqual(self.space(part_mps_space.report_grid, told, 24.22, 132), [OK, OK])
        self.assertEqual(self.space(part_mps_space.report_grid, {**told, "blocks": 31}, 23.3, 132), [FAILED, FAILED])
        self.assertEqual(self.space(part_mps_space.report_grid, {**told, "blocks": 35}, 26.6, 132), [FAILED, FAILED])
        self.assertEqual(self.space(part_mps_space.report_grid, {**told, "blocks": None}, 24.22, 132), [FAILED, OK])

    def test_a_product_is_judged_by_what_it_keeps_busy_of_the_whole_card(self):
        self.assertEqual(self.space(part_mps_space.report_product, 22.56, 93.1, 132, 33.7), [OK])
        self.assertEqual(self.space(part_mps_space.report_product, 22.56, 99.5, 132, 33.7), [FAILED])

    def test_another_rule_fails(self):
        for rule in (math.floor, math.ceil, round, lambda exact: int(exact) // 2 * 2, lambda exact: max(8, int(exact)),
                     lambda exact: max(8, math.ceil(exact / 2) * 2), lambda exact: max(6, int(exact) // 2 * 2)):
            self.assertIn(FAILED, self.judge(rule))


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


def seconds_of(*percents):
    return [Window(at, at + 1, percent) for at, percent in enumerate(percents)]


class Shares(unittest.TestCase):
    def test_a_program_is_owed_its_cap_or_what_it_uses_alone(self):
        self.assertEqual(shares.owed(25, 100), 25)
        self.assertEqual(shares.owed(75, 49.5), 49.5)
        self.assertEqual(shares.owed(None, 49.5), 49.5)

    def test_the_first_end_only_begins_a_window(self):
        ends = [(10.0, 99), (11.0, 20), (13.0, 50)]
        windows = shares.windows_of_ends(ends)
        self.assertEqual(windows, [(10.0, 11.0, 20), (11.0, 13.0, 50)])
        self.assertEqual(shares.level(windows), 40)
        self.assertEqual(shares.within(windows, 10.5, 13), [(11.0, 13.0, 50)])
        self.assertIsNone(shares.level([]))

    def test_busy_seconds_become_percent(self):
        self.assertEqual(shares.windows_of_points([(5, 1.0), (7, 1.5), (7, 1.5)]), [(5, 7, 25)])

    def test_two_readings_are_compared_over_the_same_time(self):
        card = [Window(10, 11, 20), Window(11, 12, 40), Window(12, 13, 90)]
        account = [Window(10.5, 11.5, 30), Window(11.5, 12.5, 50), Window(13, 14, 70)]
        one, other = shares.common(card, account)
        self.assertEqual(one, [Window(10.5, 11, 20), Window(11, 12, 40), Window(12, 13, 90)])
        self.assertEqual(other, account[:2])
        self.assertEqual(shares.common(card[:1], account[2:]), ([], []))
        self.assertEqual(shares.common(card, []), (card, []))

    def test_the_worst_window_is_the_farthest_off_to_either_side(self):
        self.assertEqual(shares.worst(seconds_of(25, 26, 21, 28), 25), 21)
        self.assertIsNone(shares.worst([], 25))

    def test_a_short_last_window_is_not_the_worst(self):
        self.assertEqual(shares.worst(seconds_of(25, 26) + [Window(2, 2.1, 90)], 25), 26)

    def test_a_rate_is_read_between_the_counts(self):
        counts = [(0, 0), (1, 100), (2, 300)]
        self.assertEqual(shares.rate(counts, 0.5, 1.5), 150)
        self.assertEqual(shares.rate(counts, -3, 1), 100)
        self.assertIsNone(shares.rate(counts, 5, 6))
        self.assertIsNone(shares.rate(counts[:1], 0, 1))

    def test_percentages_are_of_the_sum(self):
        self.assertEqual(shares.percentages([1, 3]), [25, 75])
        self.assertEqual(shares.percentages([0, 0]), [0, 0])
        self.assertEqual(shares.largest_gap([28, 72], [30, 70]), 2)


STATUS = """{"card":0,"claims":3}
{"claim":"0/1","tenant":"a","gpu_seconds":2.5,"age_seconds":4.0,"memory_bytes":100}
{"claim":"0/2","tenant":"b","gpu_seconds":9.0,"age_seconds":4.0,"memory_bytes":200}
{"claim":"0/3","tenant":"a","gpu_seconds":0.5,"age_seconds":2.0,"memory_bytes":50}
not a line
"""


class Claims(unittest.TestCase):
    def test_a_tenant_has_its_own_claims_alone(self):
        lines = claims.parse(STATUS)
        self.assertEqual([line["claim"] for line in claims.claims_of(lines, "a")], ["0/1", "0/3"])
        self.assertEqual(claims.memory_of(lines, "a"), 150)
        self.assertEqual(claims.memory_of(lines, "c"), 0)

    def test_a_tenant_s_own_line_is_believed_before_its_claims(self):
        lines = claims.parse(STATUS + '{"tenant":"a","memory_bytes":140}')
        self.assertEqual(claims.memory_of(lines, "a"), 140)

    def test_the_account_runs_on_the_claim_s_own_clock(self):
        readings = [(1000 + late, [{"claim": "0/1", "tenant": "a", "gpu_seconds": 0.25 * age, "age_seconds": age}])
                    for late, age in ((4.0, 4.0), (5.9, 5.0), (6.1, 6.0))]
        points = claims.points_of(readings, "a")
        self.assertEqual([time_s for time_s, _ in points], [1004, 1005, 1006])
        self.assertEqual({w.percent for w in shares.windows_of_points(points)}, {25})

    def test_a_claim_without_an_account_gives_no_points(self):
        self.assertEqual(claims.points_of([(1, [{"claim": "0/1", "tenant": "a", "gpu_seconds": None}]), (2, [])], "a"), [])


class Caps(unittest.TestCase):
    def report(self, cap, card, account, alone=[100, 100], rate=250):
        return self.report_stretches(cap, [(alone if isinstance(alone, tuple) else (alone,), card, account)], rate)

    def report_stretches(self, cap, stretches, rate=250):
        lab = FakeLab()
        measured = [part_run_cap.stretch_of(cap, [part_run_cap.Measured(seconds_of(*one), [], 1000) for one in beside],
                                            part_run_cap.Measured(seconds_of(*card), seconds_of(*account), rate))
                    for beside, card, account in stretches]
        part_run_cap.report_cap(lab, "cap: x", cap, measured)
        return lab.results()

    def test_what_is_owed_passes(self):
        self.assertEqual(self.report(25, [24, 26, 29], [26, 26, 26]), [OK, OK, OK])

    def test_a_program_that_does_half_of_it_owes_no_more(self):
        self.assertEqual(self.report(75, [49, 50], [50, 50], alone=[50, 50]), [OK, OK, OK])

    def test_what_is_owed_lies_between_the_stretches_beside_it(self):
        self.assertEqual(self.report(75, [34, 34], [34, 34], alone=([33, 33], [38, 38])), [OK, OK, OK])
        self.assertEqual(self.report(75, [31.5, 31.5], [31, 32], alone=([33, 33], [38, 38])), [OK, OK, OK])
        self.assertEqual(self.report(75, [30, 30], [30, 30], alone=([33, 33], [38, 38])), [FAILED, OK, OK])
        self.assertEqual(self.report(75, [41, 41], [41, 41], alone=([33, 33], [38, 38])), [FAILED, OK, OK])
        self.assertEqual(self.report(75, [35, 27, 35, 43.5], [35, 35], alone=([33, 33], [38, 38])), [OK, FAILED, OK])
        self.assertEqual(self.report(35, [35, 35], [35, 35], alone=([33, 33], [38, 38])), [OK, OK, OK])

    def test_a_second_is_judged_by_the_seconds_beside_it(self):
        beside = ([26, 40, 33], [33, 33, 33])
        self.assertEqual(self.report(75, [22, 44], [33, 33], alone=beside), [OK, OK, OK])
        self.assertEqual(self.report(75, [20.5, 45.5], [33, 33], alone=beside), [OK, FAILED, OK])
        self.assertEqual(self.report(25, [31, 19], [25, 25], alone=beside), [OK, FAILED, OK])

    def test_a_stretch_is_judged_by_its_own_neighbours(self):
        slow, fast = ([29, 29], [29, 29]), ([40, 40], [40, 40])
        self.assertEqual(self.report_stretches(75, [(slow, [29, 29], [29]), (fast, [40, 40], [40])]), [OK, OK, OK])
        self.assertEqual(self.report_stretches(75, [(slow, [40, 40], [40]), (fast, [29, 29], [29])]), [OK, FAILED, OK])
        self.assertEqual(self.report_stretches(75, [(slow, [26, 26], [26]), (fast, [37, 37], [37])]), [FAILED, OK, OK])

    def report_turns(self, cap, alone, card, account):
        lab = FakeLab()
        turns, beside = [[part_run_cap.Measured(seconds_of(one), [], 1000) for one in each] for each in (card, alone)]
        told = part_run_cap.Measured(seconds_of(36, 36), seconds_of(account, account), 1000)
        part_run_cap.report_cap(lab, "cap: x", cap, [part_run_cap.stretch_of_turns(cap, beside, turns, told)])
        return lab.results()

    def test_of_turns_the_mean_is_owed_and_a_second_is_judged_by_all_seconds(self):
        alone = [30, 42, 36]
        self.assertEqual(self.report_turns(75, alone, [28, 44, 33], 36), [OK, OK, OK])
        self.assertEqual(self.report_turns(75, alone, [33, 33, 33], 36), [FAILED, OK, OK])
        self.assertEqual(self.report_turns(75, alone, [24, 48, 36], 36), [OK, FAILED, OK])

    def test_the_account_beside_turns_is_judged_by_a_stretch_of_its_own(self):
        alone = [30, 42, 36]
        self.assertEqual(self.report_turns(75, alone, [35, 35, 35], 35), [OK, OK, OK])
        self.assertEqual(self.report_turns(75, alone, [35, 35, 35], 34), [OK, OK, FAILED])

    def test_four_turns_are_a_second(self):
        turns = [(Window(10 + i, 10.25 + i, percent), 100 * percent) for i, percent in enumerate((20, 40, 30, 30, 50, 50, 50, 50))]
        seconds = part_run_cap.seconds_of_turns(turns)
        self.assertEqual([one.card for one in seconds], [[Window(10, 11, 30)], [Window(14, 15, 50)]])
        self.assertEqual([one.rate for one in seconds], [3000, 5000])

    def test_only_a_cap_near_what_the_program_uses_wants_it_measured_again(self):
        native = part_run_cap.Native(None, None)
        native.stretches = [part_run_cap.Measured(seconds_of(36, 36), [], 1000)]
        self.assertEqual([native.may_be_below(cap) for cap in part_run_cap.CAPS], [False, True, True, True])
        self.assertEqual([native.is_below(cap) for cap in part_run_cap.CAPS], [False, False, True, True])
        native.stretches = [part_run_cap.Measured(seconds_of(100, 100), [], 1000)]
        self.assertEqual([native.may_be_below(cap) for cap in part_run_cap.CAPS], [False, False, False, True])

    def test_gpu_time_for_an_iteration_is_said(self):
        lab = FakeLab()
        native = part_run_cap.Measured(seconds_of(36.8), [], 80000)
        told = part_run_cap.Measured(seconds_of(25), [], 54000)
        part_run_cap.report_each(lab, "cap: x, 25 %", [native], [told], 25)
        self.assertEqual(lab.report.rows[0]["measured"], "4.63 us; native 4.6, by its account 4.63")

    def test_too_much_a_bad_second_and_a_wrong_account_fail(self):
        self.assertEqual(self.report(25, [28, 28], [28, 28]), [FAILED, OK, OK])
        self.assertEqual(self.report(25, [25, 31, 25, 20], [25, 25]), [OK, FAILED, OK])
        self.assertEqual(self.report(25, [25, 25], [23, 23]), [OK, OK, FAILED])

    def test_no_windows_fail(self):
        self.assertEqual(self.report(25, [], [], rate=None), [FAILED, FAILED, FAILED])


class Pairs(unittest.TestCase):
    def test_a_drift_falls_on_both(self):
        clock = iter(range(100))
        pairs = paired.measure(4, lambda: next(clock), lambda: next(clock))
        self.assertEqual(pairs, [(0, 1), (3, 2), (4, 5), (7, 6)])
        self.assertEqual(sum(second - first for first, second in pairs), 0)

    def test_medians_of_differences_and_ratios(self):
        pairs = [(100, 110), (200, 214), (100, 90)]
        self.assertEqual(paired.added(pairs), 10)
        self.assertEqual(paired.ratio_percent(pairs), 107)
        self.assertEqual(paired.middle(pairs, 0), 100)

    def test_a_limit_below_the_scatter_is_not_judged(self):
        lab = FakeLab()
        steady, wild = [(7000, 7500)] * 8, [(7000, 9000), (9000, 7000)] * 4
        for pairs in (steady, wild):
            part_run_cost.report_pair(lab, "alloc", pairs, 1.0, True)
        self.assertEqual([row["result"] for row in lab.report.rows], [OK, INFO])

    def test_an_interval_holds_the_median_and_tells_what_can_be_judged(self):
        near, far = [[(100, 110 + at % 5) for at in range(40)]] * 4, [[(100, 60), (100, 160)] * 20] * 4
        value, low, high = paired.interval(near, paired.difference)
        self.assertTrue(10 <= low <= value <= high <= 14)
        self.assertTrue(paired.can_judge(low, high, 12, 30))
        _, low, high = paired.interval(far, paired.difference)
        self.assertFalse(paired.can_judge(low, high, 30, 30))
        self.assertTrue(paired.can_judge(50, 200, 30, 30))

    def test_processes_that_differ_make_the_interval_wide(self):
        runs = [[(100, 100 + 40 * at)] * 50 for at in range(3)]
        _, low, high = paired.interval(runs, paired.difference)
        self.assertGreater(high - low, 30)

    def test_what_scatters_around_the_bar_is_not_judged_and_what_misses_it_fails(self):
        lab = FakeLab()
        for percents in ((99.8, 99.9), (70, 130), (70, 80)):
            runs = [[(1000, 10 * percent) for percent in percents] * 20] * 3
            in_turn.report_between(lab, "speed", runs, paired.percent, 99.5, 0.5, "%", False)
        self.assertEqual([row["result"] for row in lab.report.rows], [OK, INFO, FAILED])

    def test_the_port_s_bench_is_read(self):
        text = "16 processors\n1 thread, a pair:         median     90 ns, 99 %\n64 threads, a pair:       median   1200 ns,\n"
        self.assertEqual(part_run_cost.BENCH_LINE.findall(text), [("1", "90"), ("64", "1200")])


class Weights(unittest.TestCase):
    def report(self, percents, rates):
        lab = FakeLab()
        parties = [part_run_shares.Party(name, weight, percent, rate)
                   for name, weight, percent, rate in zip("ab", (30, 70), percents, rates)]
        part_run_shares.report_shares(lab, "shares", parties, [1000, 10], 99.0)
        return lab.results()

    def test_shares_are_of_what_all_got_and_speeds_of_each_alone(self):
        self.assertEqual(self.report([29, 69], [290, 6.8]), [OK, OK])

    def test_shares_off_by_three_points_and_lost_speed_fail(self):
        self.assertEqual(self.report([33, 65], [330, 6.5]), [FAILED, OK])
        self.assertEqual(self.report([30, 70], [250, 6.5]), [OK, FAILED])

    def test_no_account_fails(self):
        self.assertEqual(self.report([None, 70], [None, 7]), [FAILED, FAILED])


class Classes(unittest.TestCase):
    def test_a_loop_is_measured_by_what_the_ticks_leave(self):
        self.assertAlmostEqual(part_run_class.loop_keeps(4750, 5000, 0.75, 15), 1)

    def test_ticks_of_the_first_moments_can_be_left_out(self):
        self.assertEqual(part_run_class.after(list(range(150)), 3.0, 0.5)[0], 25)


class Limits(unittest.TestCase):
    def report(self, readings, refusals=5):
        lab = FakeLab()
        told = {"ended": 43, "killed": 21, "failed": 0}
        part_run_memory.report(lab, "memory", "no", readings, 12000, told, [{"refusals": refusals, "allocations": 9}])
        return lab.results()

    def test_up_to_the_last_byte_passes_and_one_more_fails(self):
        limit = part_run_memory.LIMITS_GIB["no"] << 30
        self.assertEqual(self.report([0, limit]), [OK, OK])
        self.assertEqual(self.report([0, limit + 1]), [FAILED, OK])

    def test_a_limit_that_nobody_reached_proves_nothing(self):
        self.assertEqual(self.report([1 << 30]), [OK, FAILED])
        self.assertEqual(self.report([9 << 30, 10 << 30], refusals=0), [OK, FAILED])
        self.assertEqual(self.report([]), [FAILED, FAILED])


class Ways(unittest.TestCase):
    def test_a_way_holds_when_the_limit_is_seen_and_kept(self):
        limit = part_run_ways.LIMIT_BYTES
        told = {"total_bytes": limit, "beyond": 2, "within": 0}
        self.assertTrue(part_run_ways.holds(told))
        self.assertTrue(part_run_ways.holds({"total_bytes": limit, "beyond": None, "within": None}))
        for wrong in ({"total_bytes": 2 * limit}, {"beyond": 0}, {"within": 2}):
            self.assertFalse(part_run_ways.holds({**told, **wrong}))
        self.assertFalse(part_run_ways.holds("ways: no context"))


class Added(unittest.TestCase):
    def test_each_green_context_is_told_from_those_before(self):
        mib = 1 << 20
        self.assertEqual(part_run_added.green_mib([8 * mib, 16 * mib, 16 * mib]), [8, 8, 0])


class Trials(unittest.TestCase):
    good = '{"event":"check","what":"total","ok":true,"text":"8.00 GiB"}\n'
    bad = '{"event":"check","what":"went on","ok":false,"text":"wrong result"}\n'
    end = '{"event":"end"}\n'

    def test_a_trial_passes_by_its_checks_its_end_and_its_status(self):
        self.assertEqual(part_run_programs.judge(0, self.good + self.end, ""), (True, "total: 8.00 GiB"))
        self.assertEqual(part_run_programs.judge(0, self.good + self.bad + self.end, ""), (False, "went on: wrong result"))
        self.assertFalse(part_run_programs.judge(0, self.end, "").is_ok)
        self.assertFalse(part_run_programs.judge(0, self.good, "").is_ok)
        self.assertFalse(part_run_programs.judge(-9, self.good + self.end, "Killed").is_ok)


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


class Minute(unittest.TestCase):
    def rows(self, heavy=0.75, latency_ms=1.2, names=("yield", "resume") * 2, late_s=0):
        def spent(part):
            done = [[at, part * min(20, max(0, at - 31))] for at in range(30, 53)]
            return {"steps": done, "gpu_seconds": [*done, [58, done[-1][1] + late_s]]}

        return {"arrival": {"latency_ms": latency_ms}, "both": [31, 51], "events": [[at, name] for at, name in enumerate(names)],
                "programs": [spent(1 - heavy), spent(heavy)]}

    def results(self, **more):
        lab = FakeLab()
        part_picture.report(lab, self.rows(**more))
        return lab.results()

    def test_a_good_minute_passes_and_each_fault_is_found(self):
        self.assertEqual(self.results(), [OK, OK, OK, OK])
        self.assertEqual(self.results(heavy=0.5), [OK, OK, OK, FAILED])
        self.assertEqual(self.results(latency_ms=40), [FAILED, OK, OK, OK])
        self.assertEqual(self.results(names=("yield", "resume", "yield")), [OK, FAILED, OK, OK])
        self.assertEqual(self.results(late_s=1), [OK, OK, FAILED, OK])

    def test_its_text_is_json_with_a_line_for_each_key(self):
        text = part_picture.text_of(self.rows())
        self.assertEqual(json.loads(text)["both"], [31, 51])
        self.assertEqual(len(text.splitlines()), 2 + len(self.rows()))


class Pictures(unittest.TestCase):
    def test_settling_is_from_the_first_sample_after_which_all_stay(self):
        rows = [(0.2, 10), (0.4, 50), (0.6, 47), (0.8, 50), (1.0, 51)]
        self.assertEqual(part_original.settled_after(rows), 0.8)
        self.assertIsNone(part_original.settled_after(rows + [(1.2, 40)]))


if __name__ == "__main__":
    unittest.main()
