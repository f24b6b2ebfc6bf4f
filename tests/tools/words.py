#!/usr/bin/env python3
"""tools/check_words finds the words of tools/words.txt where they are meant, and nowhere else."""
import pathlib
import subprocess
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_words"


def words_in(text, name="src/shim/time/flow.c"):
    found = subprocess.run([TOOL, "--as", name], input=text, capture_output=True, text=True)
    words = [line.split("'")[1] for line in found.stdout.splitlines() if line]
    assert found.returncode == (1 if words else 0), found
    return words


class CheckWords(unittest.TestCase):
    def test_a_word_is_found_as_part_of_an_identifier(self):
        self.assertEqual(words_in("bool is_deaf;"), ["is_deaf"])
        self.assertEqual(words_in("x = LL_PACE_AHEAD;"), ["ll_pace_ahead"])
        self.assertEqual(words_in("uint64_t space, is_deafening;"), [])

    def test_a_word_is_found_in_each_line_of_a_comment(self):
        self.assertEqual(words_in("/*\n * The seat is free,\n * and its process is deaf.\n */"), ["seat", "deaf"])

    def test_a_text_for_users_may_have_any_word(self):
        self.assertEqual(words_in('say("the seat is taken");'), [])

    def test_a_word_is_found_in_its_rooms_alone(self):
        self.assertEqual(words_in("uint64_t kind;"), ["kind"])
        self.assertEqual(words_in("enum ll_option_kind kind;", "src/cli/options/option.h"), [])

    def test_a_static_function_has_two_words(self):
        self.assertEqual(words_in("static int take(void)\n{\n}\n"), ["take"])
        self.assertEqual(words_in("static int take_row(void)\n{\n\treturn take(1);\n}\n"), [])
        self.assertEqual(words_in("static const int most = limit(3);\n"), [])

    def test_an_exception_allows_its_line(self):
        self.assertEqual(words_in("x = byte_order_mark;", "src/rules/hold/curve.c"), [])
        self.assertEqual(words_in("x = byte_order_mark;", "src/rules/share/busy.c"), ["byte_order_mark"])


if __name__ == "__main__":
    unittest.main()
