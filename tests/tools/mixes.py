#!/usr/bin/env python3
"""bench/mixes draws what it says, its kinds have the options that are drawn, and its statistics find what is true of made-up rounds, whose truth is known."""
import ast
import pathlib
import random
import re
import sys
import unittest

MIXES = pathlib.Path(__file__).resolve().parents[2] / "bench/mixes"
sys.dont_write_bytecode = True
sys.path.insert(0, str(MIXES))

import draw  # noqa: E402
import judge  # noqa: E402
import play  # noqa: E402
import programs  # noqa: E402
import regret  # noqa: E402
import table  # noqa: E402
from draw import Member  # noqa: E402

ALIKE = (1, 1)


def made_up(dice, truth, scatter=0.04, rounds=5):
    """Rounds of programs whose rate alone is 100, and whose speeds by way are the truth's; each rate scatters."""
    def rate(speed):
        return 100 * speed * dice.lognormvariate(0, scatter)
    alone = [1] * len(next(iter(truth.values())))
    return [{way: [rate(speed) for speed in speeds] for way, speeds in {"alone": alone, **truth}.items()} for _ in range(rounds)]


def call_of(members, rounds, fault=None):
    figures = [{way: [{"rate": rate} for rate in rates] for way, rates in each.items()} for each in rounds]
    mix = {"members": [member._asdict() for member in members], "rounds": figures, "fault": fault}
    return {"machine": "one", "card": "H100", "driver": "580", "version": "loadline 1", "not_started": [], "mixes": [mix]}


class Draws(unittest.TestCase):
    def test_the_halves_are_all_kinds_and_each_is_in_one(self):
        text = (MIXES / "kinds/with_torch.py").read_text()
        kinds = re.findall(r"^@kind\ndef (\w+)", text, re.M) + [path.stem[5:] for path in MIXES.glob("kinds/with_*.py")]
        kinds.remove("torch")
        self.assertEqual(sorted(kinds), sorted(draw.TUNING + draw.HELD_OUT))
        self.assertLessEqual(abs(len(draw.TUNING) - len(draw.HELD_OUT)), 1)

    def test_a_seed_draws_the_same_again_and_another_draws_others(self):
        def drawn(seed):
            kinds, dice = draw.pool(seed, draw.TUNING, 10), random.Random(seed)
            return kinds, [draw.mix(dice, kinds) for _ in range(20)]
        self.assertEqual(drawn("7"), drawn("7"))
        self.assertNotEqual(drawn("7"), drawn("8"))

    def test_mixes_are_of_all_sizes_with_weights_and_classes_in_their_parts(self):
        dice, kinds = random.Random(3), draw.pool(3, draw.HELD_OUT, 10)
        mixes = [draw.mix(dice, kinds) for _ in range(2000)]
        self.assertEqual({len(mix) for mix in mixes}, set(draw.SIZES))
        for is_asked, part in ((draw.has_weights, draw.WEIGHTED), (draw.has_classes, draw.CLASSED)):
            self.assertAlmostEqual(sum(map(is_asked, mixes)) / len(mixes), part, delta=0.03)
        for mix in mixes:
            self.assertEqual(len({member.kind for member in mix}), len(mix))
            self.assertFalse(draw.has_weights(mix) and draw.has_classes(mix))

    def test_a_pool_of_few_kinds_is_all_of_them(self):
        self.assertEqual(sorted(draw.pool(1, ["a", "b"], 10)), ["a", "b"])
        self.assertEqual(len(draw.mix(random.Random(1), ["a", "b"])), 2)


    def test_a_seed_draws_the_options_of_a_kind_whatever_kinds_are_beside_it(self):
        choices = {"batch": (1, 2, 4), "width": (64, 128)}
        drawn = [draw.options(seed, "a", choices) for seed in range(200)]
        self.assertEqual(drawn, [draw.options(seed, "a", choices) for seed in range(200)])
        self.assertNotEqual(drawn, [draw.options(seed, "b", choices) for seed in range(200)])
        self.assertEqual({(each["batch"], each["width"]) for each in drawn}, {(b, w) for b in (1, 2, 4) for w in (64, 128)})
        members = draw.mix(random.Random(1), ["a", "b"], {"a": drawn[0], "b": {}})
        self.assertEqual({member.kind: member.options for member in members}, {"a": drawn[0], "b": {}})


def options_of_kinds():
    """{kind: {option: default}}, as the files of the kinds have them."""
    found = {}
    for node in ast.parse((MIXES / "kinds/with_torch.py").read_text()).body:
        if isinstance(node, ast.FunctionDef) and [getattr(each, "id", None) for each in node.decorator_list] == ["kind"]:
            assert len(node.args.args) == len(node.args.defaults), node.name
            found[node.name] = dict(zip([each.arg for each in node.args.args], node.args.defaults))
    for kind in programs.OTHERS:
        calls = [node for node in ast.walk(ast.parse((MIXES / f"kinds/with_{kind}.py").read_text()))
                 if isinstance(node, ast.Call) and ast.unparse(node.func) == "pulse.arguments"]
        found[kind] = {each.arg: each.value for call in calls for each in call.keywords}
    return {kind: {name: eval(ast.unparse(value)) for name, value in options.items()} for kind, options in found.items()}


class Options(unittest.TestCase):
    def test_each_kind_has_the_options_that_are_drawn_for_it_and_its_own_values_are_among_them(self):
        kinds = options_of_kinds()
        self.assertEqual(sorted(kinds), sorted(programs.CHOICES))
        for kind, options in kinds.items():
            choices = programs.CHOICES[kind]
            self.assertTrue(choices, kind)
            for name, values in choices.items():
                self.assertIn(options[name], values, f"{kind} {name}")
                self.assertGreater(len(set(values)), 1, f"{kind} {name}")

    def test_a_program_as_the_table_writes_it_is_the_command_that_was_measured(self):
        for kind in draw.TUNING + draw.HELD_OUT:
            known = programs.kind_of(kind)
            member = Member(kind, options=draw.options("1", kind, known.choices))
            self.assertEqual(programs.parse(draw.program_of(member)), programs.words_of(known, member.options))
        self.assertEqual(programs.parse("requests_short:batch=4,every_ms=25")[2:], ["requests_short", "--batch", "4", "--every-ms", "25"])
        self.assertEqual(programs.parse("matmul")[2:], ["matmul"])
        self.assertTrue(programs.parse("jax:batch=128")[1].endswith("kinds/with_jax.py"))

    def test_a_tenant_has_a_name_that_loadline_takes(self):
        for kind, choices in programs.CHOICES.items():
            member = Member(kind, options={name: values[-1] for name, values in choices.items()})
            for way in regret.WAYS:
                self.assertRegex(play.tenant_of(way, draw.program_of(member)), r"^[a-zA-Z0-9._@:+-]{1,63}$")


class Figures(unittest.TestCase):
    def test_a_rate_is_of_steps_or_what_the_median_latency_allows_and_never_none(self):
        self.assertEqual(judge.figure_of({"rate_per_s": 40.5}, 2.8), {"rate": 40.5})
        self.assertEqual(judge.figure_of({"rate_per_s": 9, "latencies_ms": [2, 4, 100]}, 2.8)["rate"], 250)
        for nothing in ({"rate_per_s": 0}, {"rate_per_s": 0, "latencies_ms": []}):
            self.assertEqual(judge.figure_of(nothing, 2.5), {"rate": 0.2})

    def test_each_mix_has_the_ways_that_can_serve_it(self):
        plain, weighted = [Member("a"), Member("b")], [Member("a", 2), Member("b")]
        self.assertIn("space", regret.ways_of(plain, regret.DEFAULT_WAYS))
        self.assertNotIn("space", regret.ways_of(weighted, regret.DEFAULT_WAYS))
        self.assertNotIn("held-1", regret.ways_of(weighted, regret.DEFAULT_WAYS))
        classed = regret.ways_of([Member("a", level="high"), Member("b")], regret.DEFAULT_WAYS)
        self.assertEqual(classed, ["native", "run", "mps", "held-0", "held-0.5", "held-1"])


class Regrets(unittest.TestCase):
    def over(self, truth, weights=ALIKE, mixes=100, **more):
        """[Found] of many made-up mixes of that truth."""
        dice = random.Random(5)
        return [judge.found(*judge.regrets(made_up(dice, truth, **more), weights, "run", ["native", "open", "visits"]))
                for _ in range(mixes)]

    def test_a_rule_without_a_fault_has_none_however_many_ways_it_is_compared_with(self):
        same = {way: (0.6, 0.6) for way in ("run", "native", "open", "visits")}
        self.assertAlmostEqual(judge.mean([found.value for found in self.over(same)]), 0, delta=0.008)

    def test_what_the_best_way_has_more_is_found(self):
        truth = {"run": (0.54, 0.54), "native": (0.5, 0.5), "open": (0.6, 0.6), "visits": (0.3, 0.3)}
        self.assertAlmostEqual(judge.mean([found.value for found in self.over(truth)]), 0.1, delta=0.008)

    def test_a_better_rule_than_all_has_less_than_none(self):
        truth = {"run": (0.66, 0.66), "native": (0.5, 0.5), "open": (0.6, 0.6), "visits": (0.3, 0.3)}
        self.assertAlmostEqual(judge.mean([found.value for found in self.over(truth)]), -0.1, delta=0.01)

    def test_the_interval_holds_the_truth_about_as_often_as_it_says(self):
        truth = {"run": (0.54, 0.54), "native": (0.2, 0.2), "open": (0.6, 0.6), "visits": (0.3, 0.3)}
        for rounds, least in ((5, 0.7), (16, 0.82)):
            hits = [found.low <= 0.1 <= found.high for found in self.over(truth, rounds=rounds)]
            self.assertGreaterEqual(judge.mean(hits), least, f"{rounds} rounds")
            self.assertLessEqual(judge.mean(hits), 0.97, f"{rounds} rounds")

    def test_a_weight_counts_as_so_many_programs(self):
        truth = {"run": (0.5, 0.5), "native": (0.5, 0.5), "open": (0.8, 0.25), "visits": (0.25, 0.8)}
        rounds = made_up(random.Random(1), truth, 0)
        regret, _ = judge.regrets(rounds, (3, 1), "run", ["native", "open", "visits"])
        self.assertAlmostEqual(regret, 1 - 0.5 / (0.8 ** 0.75 * 0.25 ** 0.25))

    def test_the_best_way_of_odd_rounds_is_judged_on_even_ones(self):
        ways = {"native": (0.5, 0.9, 0.5, 0.9), "open": (0.9, 0.5, 0.9, 0.5), "run": (0.5, 0.5, 0.5, 0.5)}
        rounds = [{"alone": [1], **{way: [speeds[at]] for way, speeds in ways.items()}} for at in range(4)]
        self.assertAlmostEqual(judge.regrets(rounds, (1,), "run", ["native", "open"])[0], 0)

    def test_the_median_of_mixes_has_wider_limits_than_the_rounds_alone_tell(self):
        dice = random.Random(2)
        values = [judge.regrets(made_up(dice, {"run": (1 - part,) * 2, "native": (1, 1)}, 0), ALIKE, "run", ["native"])
                  for part in (0.01, 0.02, 0.03, 0.2, 0.3)]
        middle = judge.middle(values)
        self.assertAlmostEqual(middle.value, 0.03)
        self.assertLessEqual(middle.low, 0.02)
        self.assertGreaterEqual(middle.high, 0.2)


class Owed(unittest.TestCase):
    def test_who_has_what_slices_give_or_its_share_is_not_listed_and_who_has_less_is(self):
        dice = random.Random(4)
        native = made_up(dice, {"run": (0.45, 0.2), "native": (0.45, 0.9)})
        first, second = judge.owed(native, ALIKE, "run")
        self.assertGreater(first.high, judge.KEEPS)
        self.assertLess(second.high, 0.5)
        self.assertAlmostEqual(second.value, 0.4, delta=0.05)  # its share is a half

    def test_a_share_is_by_weight(self):
        rounds = made_up(random.Random(4), {"run": (0.75, 0.25), "native": (0.5, 0.5)}, 0)
        self.assertEqual([round(found.value, 6) for found in judge.owed(rounds, (3, 1), "run")], [1.5, 1])

    def test_low_ones_at_best_are_between_the_parts_held(self):
        points = [(0.5, 0.9), (0.8, 0.6), (0.9, 0.3)]
        for high, low in ((0.4, 0.9), (0.5, 0.9), (0.65, 0.75), (0.9, 0.3), (0.95, 0.3)):
            self.assertAlmostEqual(judge.frontier(points, high), low)


class Tables(unittest.TestCase):
    TRUTH = {"native": (0.5, 0.5), "open": (0.5, 0.5), "visits": (0.6, 0.6), "run": (0.6, 0.6), "mps": (0.8, 0.8), "space": (0.8, 0.8)}

    def calls(self, truth, members=(Member("matmul"), Member("scan")), count=24, **more):
        dice = random.Random(6)
        return [call_of(members, made_up(dice, truth, **more)) for _ in range(count)]

    def row(self, calls, words):
        rows = [row for row in table.make(calls)[1]["rows"] if words in row["figure"]]
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def test_good_rounds_are_ok_and_bad_ones_fail(self):
        self.assertEqual(self.row(self.calls(self.TRUTH), "all, 24 mixes")["result"], "ok")
        bad = {**self.TRUTH, "run": (0.5, 0.5)}
        self.assertEqual(self.row(self.calls(bad), "all, 24 mixes")["result"], "FAIL")
        self.assertEqual(self.row(self.calls(bad), "all: mixes that surely")["result"], "FAIL")
        self.assertEqual(self.row(self.calls(bad), "by space")["result"], "ok")

    def test_few_mixes_are_not_judged(self):
        self.assertEqual(self.row(self.calls(self.TRUTH, count=23), "all, 23 mixes")["result"], "-")

    def test_a_kind_that_scatters_is_named_and_the_rows_without_it_leave_it_out(self):
        calls = self.calls(self.TRUTH, count=2) + self.calls(self.TRUTH, (Member("solve"), Member("jax")), 2, scatter=0.2)
        self.assertEqual(self.row(calls, "kinds that scatter")["measured"], "jax, solve")
        self.assertEqual(self.row(calls, "without these kinds, 2 mixes: ")["result"], "-")
        self.assertIn("2 mixes", self.row(calls, "kinds held out, ")["figure"])

    def test_a_tenant_beneath_a_class_is_owed_nothing_and_one_of_no_class_its_share(self):
        truth = {**self.TRUTH, "run": (0.6, 0.1)}
        self.assertTrue(self.row(self.calls(truth, count=1), "surely have less")["measured"].startswith("1 of 2; scan"))
        classes = (Member("matmul", level="high"), Member("scan", level="low"))
        self.assertEqual(self.row(self.calls(truth, classes, 1), "surely have less")["measured"], "0 of 1")

    def test_classes_are_compared_with_the_parts_held(self):
        truth = {"native": (0.5, 0.9), "held-0": (0.5, 0.9), "held-0.5": (0.8, 0.6), "held-1": (0.9, 0.3)}
        members = (Member("generate", level="high"), Member("matmul", level="low"))
        for run, is_good in (((0.8, 0.59), "ok"), ((0.8, 0.4), "FAIL"), ((0.6, 0.8), "FAIL")):
            row = self.row(self.calls({**truth, "run": run}, members, 1, scatter=0), "classes: generate (high)")
            self.assertEqual(row["result"], is_good, row)

    def test_the_table_says_what_was_drawn_and_reads_files_of_before_options_were(self):
        members = (Member("matmul", options={"size": 2048}), Member("scan", options={"steps": 50, "width": 128}))
        calls = self.calls(self.TRUTH, members, count=1)
        self.assertEqual(table.make(calls)[1]["mixes"][0]["mix"], "matmul:size=2048 + scan:steps=50,width=128")
        for member in calls[0]["mixes"][0]["members"]:
            del member["options"]
        self.assertEqual(table.make(calls)[1]["mixes"][0]["mix"], "matmul + scan")

    def test_a_mix_that_was_drawn_and_not_measured_is_told(self):
        calls = self.calls(self.TRUTH, count=1) + [call_of((Member("cupy", 2), Member("jax", 1)), [], "native jax: no done")]
        lines, numbers = table.make(calls)
        self.assertIn("1 of 2 mixes", lines[0])
        self.assertIn("Not measured: cupy (2) + jax (1) (one): native jax: no done", lines)
        self.assertEqual(len(numbers["mixes"]), 1)


unittest.main()
