#!/usr/bin/env python3
"""One tenant of several processes: starts so many of a program, hands each line of standard input to all of them, and adds up
what they did.

    crowd.py 4 loop_matmul.py [its options]
"""
import json
import os
import subprocess
import sys

import beat

FOLDER = os.path.dirname(os.path.abspath(__file__))


def wait_for(child, event):
    for text in child.stdout:
        line = json.loads(text)
        if line["event"] == event:
            return line
    sys.exit(f"crowd: {child.args} ended")


count, script, *options = sys.argv[1:]
words = [sys.executable, "-B", os.path.join(FOLDER, script), *options]
children = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(int(count))]
for each in children:
    wait_for(each, "ready")
beat.say("ready")
for stretch in sys.stdin:
    for each in children:
        each.stdin.write(stretch)
        each.stdin.flush()
    done = [wait_for(each, "done") for each in children]
    beat.say("done", iterations=sum(line["iterations"] for line in done), seconds=max(line["seconds"] for line in done),
             rate_per_s=sum(line["rate_per_s"] for line in done))
for each in children:
    each.stdin.close()
    each.wait()
