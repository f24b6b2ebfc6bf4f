"""tools/check_layouts finds a change that programs of other versions do not understand: in copies of the headers."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WELCOME = "\tuint64_t last_job; "
VERSION = "LL_PROTOCOL_VERSION = 1,"


class Layouts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "tools").mkdir()
        shutil.copy(ROOT / "tools/check_layouts", self.root / "tools")
        for room in "base", "protocol":
            shutil.copytree(ROOT / "src" / room, self.root / "src" / room)

    def tearDown(self):
        self.folder.cleanup()

    def change(self, header, old, new):
        path = self.root / "src/protocol" / header
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def said(self, *words):
        return subprocess.run([self.root / "tools/check_layouts", *words], capture_output=True, text=True, check=False).stdout

    def test_a_field_that_moves_needs_a_new_version(self):
        self.change("message.h", WELCOME, "\tuint64_t inserted;\n" + WELCOME)
        self.assertIn("struct ll_message_welcome: last_job@", self.said("--keep"))
        self.change("message.h", VERSION, "LL_PROTOCOL_VERSION = 2,")
        self.assertEqual(self.said("--keep"), "")
        self.assertEqual(self.said(), "")

    def test_an_atomic_field_that_moves_needs_a_new_version(self):
        self.change("page.h", "_Atomic uint64_t words[LL_BUSY_BINS];", "uint64_t inserted; _Atomic uint64_t words[LL_BUSY_BINS - 1];")
        self.assertIn("struct ll_busy_bins: words@0:512 is not there as before, and LL_PAGE_VERSION still is 1", self.said())

    def test_a_number_that_changes_needs_a_new_version(self):
        self.change("message.h", "LL_MESSAGE_LIST = 7,", "LL_MESSAGE_LIST = 107,")
        self.assertIn("enum ll_message_kind: LL_MESSAGE_LIST=7 is not there", self.said("--keep"))

    def test_a_field_at_the_end_and_reserved_ones_need_none(self):
        self.change("message.h", "uint32_t jobs, tenants, connections, reserved;", "uint32_t jobs, tenants, reserved_1, later;")
        self.change("message.h", "\tuint32_t is_operator;", "\tuint32_t is_operator; uint64_t appended;")
        self.assertEqual(self.said("--keep"), "")
        self.assertEqual(self.said(), "")


if __name__ == "__main__":
    sys.exit(unittest.main() if shutil.which("abidw") else 77)
