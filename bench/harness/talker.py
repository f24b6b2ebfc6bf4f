"""A running child that prints a JSON object a line: its lines as they come."""
import json
import subprocess
import threading
import time


class Talker:
    def __init__(self, lab, name, command, env=None, **streams):
        self.lab = lab
        self.name = name
        self.lines = []  # (wall clock at arrival, object)
        self.news = threading.Condition()
        self.is_over = False
        self.started_s = time.time()
        self.process = lab.spawn(name, command, env, stdout=subprocess.PIPE, **streams)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    @property
    def pid(self):
        return self.process.pid

    def read(self):
        with open(self.lab.log(self.name + ".jsonl"), "wb") as log:
            for text in self.process.stdout:
                now_s = time.time()
                log.write(text)
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                if isinstance(line, dict):
                    self.take(now_s, line)
        with self.news:
            self.is_over = True
            self.news.notify_all()

    def take(self, now_s, line):
        with self.news:
            self.lines.append((now_s, line))
            self.news.notify_all()

    def mark(self):
        return len(self.lines)

    def wait_for(self, test, seconds, since=0):
        """The first (wall clock, line) from `since` on that passes the test; None when there is none in time."""
        deadline = time.monotonic() + seconds
        at = since
        with self.news:
            while True:
                for at in range(at, len(self.lines)):
                    if test(self.lines[at][1]):
                        return self.lines[at]
                at = len(self.lines)
                left = deadline - time.monotonic()
                if self.is_over or left <= 0:
                    return None
                self.news.wait(left)

    def complaint(self):
        return self.lab.tail(self.name + ".err")
