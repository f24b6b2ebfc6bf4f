"""A JSON object a line on standard output. A line and its end go out in one write: processes that share a pipe cannot get
between the two, which print would write apart where PYTHONUNBUFFERED is set."""
import json
import sys


def say(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()
