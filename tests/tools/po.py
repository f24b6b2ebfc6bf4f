#!/usr/bin/env python3
"""tools/check_po passes where each text has its translation, and finds each kind of fault."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

SOURCE = """
int fail(struct ll_err *err) { return ll_err_set(err, -EINVAL, "--mem: '%s': not a size", text); }
const char *name(void) { return _("see `loadline doctor`"); }
"""
PO = """
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: zh_CN\\nPlural-Forms: nplurals=1; plural=0;\\n"
"Project-Id-Version: x\\nPO-Revision-Date: x\\nLast-Translator: x\\nLanguage-Team: x\\nMIME-Version: 1.0\\nContent-Transfer-Encoding: 8bit\\n"

#, c-format
msgid "--mem: '%s': not a size"
msgstr "--mem: '%s': 不是大小"

msgid "see `loadline doctor`"
msgstr "见 `loadline doctor`"
"""


class CheckPo(unittest.TestCase):
    def said(self, source=SOURCE, po=PO, shim="", listed="src/mps/place.c\n"):
        """Exit status and output for this tree."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for one in ("po", "src/mps", "src/shim"):
                (folder / one).mkdir(parents=True)
            (folder / "po/xgettext.args").write_text((ROOT / "po/xgettext.args").read_text())
            (folder / "po/POTFILES").write_text(listed)
            (folder / "po/zh_CN.po").write_text(po)
            (folder / "src/mps/place.c").write_text(source)
            (folder / "src/mps/other.c").write_text("int number;\n")
            (folder / "src/shim/say.c").write_text(shim)
            ended = subprocess.run([sys.executable, ROOT / "tools/check_po", folder], capture_output=True, text=True, check=False)
            return ended.returncode, ended.stdout + ended.stderr

    def finds(self, words, **tree):
        status, output = self.said(**tree)
        self.assertEqual(status, 1, output)
        self.assertIn(words, output)

    def test_a_tree_in_which_all_is_translated_passes(self):
        self.assertEqual(self.said(), (0, "2 texts, 0 problems\n"))

    def test_a_text_without_translation(self):
        self.finds("used but not defined", source=SOURCE + 'const char *other(void) { return _("new"); }\n')
        self.finds("is untranslated", po=PO.replace("见 `loadline doctor`", ""))

    def test_a_fuzzy_translation(self):
        self.finds("needs to be reviewed", po=PO.replace('msgid "see', '#, fuzzy\nmsgid "see'))

    def test_a_text_that_no_source_has(self):
        self.finds("which no source has", po=PO + '\nmsgid "old"\nmsgstr "旧"\n')

    def test_another_conversion(self):
        self.finds("format specifications", po=PO.replace("'%s': 不", "'%d': 不"))

    def test_parts_that_do_not_stay(self):
        self.finds("is not in front", po=PO.replace("--mem: '%s': 不", "内存: '%s': 不"))
        self.finds("its commands in backticks", po=PO.replace("见 `loadline doctor`", "见 `loadline 医生`"))
        self.finds("': ' between the parts", po=PO.replace("--mem: '%s': 不", "--mem: '%s' 不").replace("--mem: '%s' 不", "--mem '%s' 不"))

    def test_files_that_are_listed_wrongly(self):
        self.finds("po/POTFILES lacks src/mps/place.c", listed="src/mps/other.c\n")
        self.finds("po/POTFILES has src/mps/other.c", listed="src/mps/other.c\nsrc/mps/place.c\n")

    def test_a_mark_where_nothing_is_translated(self):
        self.finds("src/shim/say.c", shim='const char *line(void) { return _("line"); }\n')


if __name__ == "__main__":
    unittest.main()
