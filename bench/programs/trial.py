"""What the trials of frameworks have in common: does an unmodified program see its limit, meet it as its own error of
memory that is out, and go on after it?

    TRIAL --limit BYTES [--control] [its own options]

With --control no limit is in force: BYTES is the card's own memory, which is then not filled. A JSON object a line:

    {"event":"check","what":"total","ok":true,"text":"8.00 GiB"}
    {"event":"end"}

A framework is an object with: total(), bytes of the card's memory as the program sees it; take(bytes), something that
holds them; free(), after all that was taken has been dropped; is_own_error(error); compute(), whether a result is right;
and least, the share of the limit that it must be able to get.
"""
import argparse
import gc

import line

GIB = 1 << 30
CHUNK = 1 << 28


def arguments(**options):
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--control", action="store_true")
    for name, default in options.items():
        parser.add_argument("--" + name, type=type(default), default=default)
    return parser.parse_args()


def gib(count):
    return f"{count / GIB:.2f} GiB"


def name_of(error):
    return type(error).__name__


def check(what, is_ok, text):
    line.say(event="check", what=what, ok=bool(is_ok), text=str(text))


def see_total(framework, limit):
    total = framework.total()
    low, high = getattr(framework, "total_range", (1, 1))
    check("total", low * limit <= total <= high * limit, gib(total))


def take_too_much(framework, limit):
    """One request that no free card of that size could grant."""
    try:
        framework.take(limit + GIB)
    except Exception as error:  # which one is the question
        check("too much at once", framework.is_own_error(error), name_of(error))
    else:
        check("too much at once", False, "granted")


def fill(framework, limit):
    """Piece by piece until no more is given."""
    held = []
    try:
        while len(held) * CHUNK <= limit:
            held.append(framework.take(CHUNK))
    except Exception as error:
        got = len(held) * CHUNK
        check("filled", framework.is_own_error(error) and framework.least * limit <= got <= limit,
              f"{name_of(error)} after {gib(got)}")
    else:
        check("filled", False, f"no error after {gib(len(held) * CHUNK)}")


def go_on(framework):
    gc.collect()
    framework.free()
    try:
        held = framework.take(GIB)
        is_right = framework.compute()
        del held
        check("went on", is_right, "right" if is_right else "wrong result")
    except Exception as error:
        check("went on", False, f"{name_of(error)}: {' '.join(str(error).split())[:200]}")


def run(framework, options):
    see_total(framework, options.limit)
    take_too_much(framework, options.limit)
    if not options.control:
        fill(framework, options.limit)
    go_on(framework)
    line.say(event="end")
