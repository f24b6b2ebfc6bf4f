#!/usr/bin/env python3
"""tools/check_readme passes where both files say the same, and finds each kind of difference."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_readme"

ENGLISH = """# thing
[中文](README.zh.md)
## Use
```
make hold        # starts it
```
```console
$ thing --now
done in 3 s
```
| what | measured |
|---|---|
| speed of 4 | 1.06, [row](doc/rows.md#the-rows-part) |

* It took 3 of
  20 s.

![picture](doc/picture.svg) ![words](doc/words.svg) [elsewhere](https://example.org/a)
"""
CHINESE = """# thing
[English](README.md)
## 用法
```
make hold        # 启动
```
```console
$ thing --now
用了 5 秒
```
| 内容 | 实测 |
|---|---|
| 1.06 是 4 个的速度 | [行](doc/rows.md#the-rows-part) |

* 20 s 里用了 3 s。

![图](doc/picture.svg) ![文字](doc/words.zh.svg) [别处](https://example.org/a)
"""


class CheckReadme(unittest.TestCase):
    def said(self, english=ENGLISH, chinese=CHINESE):
        """Exit status and output for these two files."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "doc").mkdir()
            (folder / "doc/rows.md").write_text("# Rows\n## The rows (`PART`)\n")
            for picture in ("picture.svg", "words.svg", "words.zh.svg"):
                (folder / "doc" / picture).write_text("<svg/>")
            (folder / "README.md").write_text(english)
            (folder / "README.zh.md").write_text(chinese)
            ended = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
            return ended.returncode, ended.stdout

    def finds(self, words, **files):
        status, output = self.said(**files)
        self.assertEqual(status, 1, output)
        self.assertIn(words, output)
        self.assertEqual(output.count("error: "), 1, output)

    def test_same_files_pass(self):
        self.assertEqual(self.said()[0], 0, self.said()[1])

    def test_another_command(self):
        self.finds("has make hold, README.zh.md has make check", chinese=CHINESE.replace("make hold", "make check"))

    def test_another_command_of_a_console(self):
        self.finds("has $ thing --now, README.zh.md has $ thing --later", chinese=CHINESE.replace("--now", "--later"))

    def test_a_command_less(self):
        self.finds("README.zh.md has a block of console", chinese=CHINESE.replace("make hold        # 启动\n", ""))

    def test_a_block_less(self):
        self.finds("README.zh.md has nothing more", chinese=CHINESE.replace("```console\n$ thing --now\n用了 5 秒\n```\n", ""))

    def test_a_picture_of_the_other_language(self):
        self.finds("README.zh.md: doc/words.svg: there is doc/words.zh.svg", chinese=CHINESE.replace("doc/words.zh.svg", "doc/words.svg"))
        self.finds("README.md: doc/words.zh.svg: there is doc/words.svg", english=ENGLISH.replace("doc/words.svg", "doc/words.zh.svg"))

    def test_pictures_in_another_order(self):
        swapped = CHINESE.replace("![图](doc/picture.svg) ![文字](doc/words.zh.svg)", "![文字](doc/words.zh.svg) ![图](doc/picture.svg)")
        self.finds("has the picture doc/picture.svg, README.zh.md has the picture doc/words.svg", chinese=swapped)

    def test_another_reason_why_a_block_is_not_run(self):
        marked = ("```\nmake hold", "<!-- not run: {} -->\n```\nmake hold")
        texts = {"english": ENGLISH.replace(marked[0], marked[1].format("needs root")), "chinese": CHINESE.replace(marked[0], marked[1].format("needs root"))}
        self.assertEqual(self.said(**texts)[0], 0)
        self.finds("has a block that is not run: needs root, README.zh.md has nothing more", english=texts["english"])

    def test_a_page_that_is_too_long(self):
        self.finds("README.md: has ", english=ENGLISH + "word " * 2000)

    def test_a_heading_less(self):
        self.finds("README.zh.md has nothing more", chinese=CHINESE.replace("## 用法\n", ""))

    def test_a_heading_of_another_level(self):
        self.finds("a heading of level 3", chinese=CHINESE.replace("## 用法", "### 用法"))

    def test_another_link(self):
        self.finds("a link to https://example.org/b", english=ENGLISH.replace("org/a", "org/b"))

    def test_another_number_in_a_table(self):
        self.finds("with 1.06 4, README.zh.md has a table's row with 1.07 4", chinese=CHINESE.replace("1.06", "1.07"))

    def test_another_number_in_an_item(self):
        self.finds("an item with 20 3, README.zh.md has an item with 21 3", chinese=CHINESE.replace("20 s 里", "21 s 里"))

    def test_a_link_to_no_file(self):
        there = {"english": ENGLISH.replace("doc/picture", "doc/none"), "chinese": CHINESE.replace("doc/picture", "doc/none")}
        status, output = self.said(**there)
        self.assertEqual((status, output.count("there is no doc/none.svg")), (1, 2), output)

    def test_a_link_to_no_heading(self):
        there = {"english": ENGLISH.replace("#the-rows-part", "#rose"), "chinese": CHINESE.replace("#the-rows-part", "#rose")}
        status, output = self.said(**there)
        self.assertEqual((status, output.count("rows.md has no such heading")), (1, 2), output)


unittest.main()
