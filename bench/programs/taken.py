"""What calls of one function, many of them, take: of the card, as the driver itself says, or under a limit of what is left of
it. That is the limit less the charge, so a step of a governed program says what its account was charged."""
import ctypes
import sys

import driver
import line
import signatures

MIB = 1 << 20
INVALID_VALUE = 1
MOST = 2 * MIB  # the card gives memory out in such blocks: one may fall into any measurement


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    signatures.find("cuMemGetInfo_v2")(ctypes.byref(free), ctypes.byref(total))
    return free.value


def need(name, *args):
    """A call that the measured ones need before them or after, which has to succeed."""
    function = signatures.find(name)
    status = function(*args) if function else "not in this driver"
    if status:
        raise RuntimeError(f"{name}: {status}")


def by(name, times, one, most=MOST, charged=0, may_refuse=False, settle=None):
    """Calls one(function, number) so many times, or until one fails. most: bytes that the card may have less of then; None
    where memory is taken for nobody's account, which is told. charged: bytes that the account has more of. may_refuse: an
    error is an answer too. settle waits for what the calls have begun."""
    function = signatures.find(name)
    if function is None:
        line.say(event="passes", function=name, status=None)
        return
    print(name, file=sys.stderr, flush=True)  # what was called last, where the driver ends the program
    status, done, first = 0, 0, None
    before = free_bytes()
    for number in range(times):
        status = one(function, number) or 0
        if status:
            break
        done += 1
        first = before - free_bytes() if first is None else first
    if settle:
        settle()
    line.say(event="passes", function=name, status=status, times=done, first_bytes=first,
             taken_bytes=before - free_bytes(), most_bytes=most, charged_bytes=charged, may_refuse=may_refuse)


def to(handle, call, *words):
    """A call for what an earlier one made, or its error where that failed: drivers follow such pointers unseen."""
    return call(handle, *words) if handle else INVALID_VALUE


def refused(name, where, *args):
    """A call that the driver must answer with an error."""
    function = signatures.find(name)
    print(name, where, file=sys.stderr, flush=True)
    line.say(event="refused", function=name, where=where, status=function(*args) if function else None)


def card():
    """A context whose own needs are met: the first launch and the first mark take memory that no later call does."""
    made = driver.Card()
    made.launch(1000)
    made.mark()()
    return made


def place(array, number):
    """Where the driver is to write that element."""
    return ctypes.byref(array, number * ctypes.sizeof(array._type_))


def allocate(count):
    """Device memory; its address."""
    address = ctypes.c_uint64()
    need("cuMemAlloc_v2", ctypes.byref(address), count)
    return address.value
