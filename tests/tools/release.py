#!/usr/bin/env python3
"""tools/release makes a release of a commit that says that it is one, and refuses any other: in a copy of the tree, without packages."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Release(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        subprocess.run([ROOT / "tools/copy_tree", self.root], check=True)
        self.version = self.run_in("tools/version").stdout.strip()
        self.run_in("git", "init", "-q")
        self.run_in("git", "config", "user.name", "somebody")
        self.run_in("git", "config", "user.email", "somebody@example.com")
        self.commit()

    def tearDown(self):
        self.folder.cleanup()

    def run_in(self, *words):
        return subprocess.run(words, cwd=self.root, capture_output=True, text=True, check=False)

    def commit(self):
        self.run_in("git", "add", "-A")
        self.run_in("git", "commit", "-q", "-m", "all")

    def refused(self):
        done = self.run_in("tools/release")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.run_in("git", "tag").stdout, "")
        return done.stdout

    def change(self, name, pattern, by):
        path = self.root / name
        path.write_text(re.sub(pattern, by, path.read_text(), count=1))

    def test_a_release(self):
        self.assertIn(f"CHANGELOG.md: no heading '## [{self.version}] - DATE'", self.refused())
        self.change("CHANGELOG.md", r"## \[Unreleased\]\n", f"## [Unreleased]\n\n## [{self.version}] - 2026-12-01\n\n### Added\n\n* The first thing.\n\n"
                    "## [0.0.1] - 2026-11-01\n")
        self.assertIn("error: the tree has changes", self.refused())
        self.commit()
        self.assertIn(f"debian/changelog: v{self.version} is UNRELEASED there", self.refused())
        self.change("debian/changelog", "UNRELEASED", "unstable")
        self.commit()
        done = self.run_in("tools/release")
        self.assertEqual(done.returncode, 0, done)
        out = self.root / "build-release"
        self.assertEqual((out / "notes.md").read_text().strip(), "### Added\n\n* The first thing.")
        self.assertEqual(self.run_in("git", "tag", "--points-at", "HEAD").stdout.strip(), f"v{self.version}")
        self.assertEqual(self.run_in("sh", "-c", "cd build-release && sha256sum --quiet -c SHA256SUMS").returncode, 0)
        listed = self.run_in("tar", "-tf", out / f"loadline-{self.version}.tar.gz").stdout.split()
        tracked = self.run_in("git", "ls-files").stdout.split()
        self.assertEqual(sorted(name for name in listed if not name.endswith("/")), sorted(f"loadline-{self.version}/{name}" for name in tracked))
        self.assertIn("is released already", self.run_in("tools/release").stdout)
        self.assertEqual(self.run_in("tools/version", "--check").returncode, 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
