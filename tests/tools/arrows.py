#!/usr/bin/env python3
"""tools/check_arrows finds an include or a call that goes against the table, in sources, headers and lists."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPWARD = '#include "shim/memory/memory.h"'
# file, a line that goes against the table, what is said of it
BREACHES = [
    *((name, UPWARD, 'may not include "shim/memory/memory.h"')
      for name in ("src/rules/share/tokens.c", "src/rules/share/tokens.h", "src/shim/interpose/hooks.def", "src/abi/cuda_per_thread.def")),
    ("src/abi/cuda.def", "LL_CALL(cuMemFree_v2, ll_obstacles_note_wait())",
     "may not call ll_obstacles_note_wait, which is of shim/residency"),
    ("src/daemon/core/calls.c", '#include "daemon/queue/state.h"', "of daemon/queue it may include queue.h alone"),
    ("src/daemon/residency/memory.c", '#include "daemon/policy/policy.h"', 'may not include "daemon/policy/policy.h"'),
    ("src/rules/share/tokens.c", "uint64_t now_ns = ll_now_ns();", "rules call no clock"),
]


class Arrows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("src", "sim"):
            shutil.copytree(ROOT / name, self.root / name)
        (self.root / "tools").mkdir()
        shutil.copy2(ROOT / "tools/check_arrows", self.root / "tools")

    def check(self, status):
        done = subprocess.run([self.root / "tools/check_arrows"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_what_goes_against_the_table_is_found(self):
        self.assertIn(" 0 against the arrows", self.check(0))
        for name, line, _ in BREACHES:
            with open(self.root / name, "a", encoding="utf-8") as out:
                out.write(f"{line}\n")
        said = self.check(1).splitlines()
        for name, line, problem in BREACHES:
            self.assertTrue([one for one in said if one.startswith(f"{name}:") and problem in one], f"{name}: {line}")
        self.assertEqual(len(said), len(BREACHES) + 1)


unittest.main()
