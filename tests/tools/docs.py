#!/usr/bin/env python3
"""tools/check_docs passes where what the pages name is there, and finds each kind of name that is not."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_docs"

PAGE = """# Sharing
[the rule](other.md#the-rule), [elsewhere](https://example.org/none)

The rule is in `src/rules/share/visits.h` (`rules/share/visits.h`, `visits.h`, `src/rules/share/*.h`); `ll_visits_next` decides, within `LL_QUANTUM_NS`.
`python train.py` and `/etc/none.h` are not of the tree.

    loadline run --compute 25% -- ./a --unknown

`loadline run --compute 50%`, `docker run --unknown`
"""


class CheckDocs(unittest.TestCase):
    def said(self, page=PAGE, header="long ll_visits_next(void);\n#define LL_QUANTUM_NS 8\n"):
        """Exit status and output for this page."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for one in ("doc", "src/rules/share", "src/cli/run"):
                (folder / one).mkdir(parents=True)
            (folder / "doc/share.md").write_text(page)
            (folder / "doc/other.md").write_text("# Other\n## The rule\n")
            (folder / "src/rules/share/visits.h").write_text(header)
            (folder / "src/cli/run/args.c").write_text('{.name = "compute"},\n')
            ended = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
            return ended.returncode, ended.stdout

    def finds(self, words, **files):
        status, output = self.said(**files)
        self.assertEqual((status, output.count("error: ")), (1, 1), output)
        self.assertIn(words, output)

    def test_what_is_there_passes(self):
        self.assertEqual(self.said()[0], 0, self.said()[1])

    def test_a_file_that_is_not_there(self):
        self.finds("there is no file src/rules/share/turns.h", page=PAGE.replace("`src/rules/share/visits.h`", "`src/rules/share/turns.h`"))

    def test_a_file_below_src_that_is_not_there(self):
        self.finds("there is no file rules/share/turns.h", page=PAGE.replace("`rules/share/visits.h`", "`rules/share/turns.h`"))

    def test_a_file_without_its_folder_that_is_not_there(self):
        self.finds("there is no file turns.h", page=PAGE.replace("`visits.h`", "`turns.h`"))

    def test_a_star_that_matches_nothing(self):
        self.finds("there is no file src/rules/share/*.c", page=PAGE.replace("`src/rules/share/*.h`", "`src/rules/share/*.c`"))

    def test_a_function_that_is_not_there(self):
        self.finds("nothing has the name ll_visits_next", header="#define LL_QUANTUM_NS 8\n")

    def test_a_constant_that_is_not_there(self):
        self.finds("nothing has the name LL_QUANTUM_NS", header="long ll_visits_next(void);\n")

    def test_an_option_of_a_line_that_is_not_there(self):
        self.finds("no option --computed", page=PAGE.replace("run --compute 25%", "run --computed 25%"))

    def test_an_option_of_a_span_that_is_not_there(self):
        self.finds("no option --computed", page=PAGE.replace("run --compute 50%", "run --computed 50%"))

    def test_a_link_to_no_page(self):
        self.finds("there is no none.md", page=PAGE.replace("other.md", "none.md"))

    def test_a_link_to_no_heading(self):
        self.finds("no such heading", page=PAGE.replace("#the-rule", "#the-role"))

    def test_a_page_that_a_source_names(self):
        self.finds("src/rules/share/visits.h: there is no page doc/turns.md", header="/* ll_visits_next LL_QUANTUM_NS (doc/turns.md) */\n")


unittest.main()
