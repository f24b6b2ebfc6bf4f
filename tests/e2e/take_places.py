#!/usr/bin/env python3
"""take_places.py SOCKET SECONDS: asks the queue for one card, holds the place for so long without a job, and goes."""
import socket
import struct
import sys
import time

HELLO, WELCOME, ADMIT, QUEUED, ADMITTED = 1, 2, 60, 61, 62
COMMAND = 2


def main():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(sys.argv[1])
    connection.send(struct.pack("<HHIIIQQ32s", HELLO, 64, 1, 1, COMMAND, 0, 1000, b"0.1.0"))
    connection.recv(2048)
    limits = struct.pack("<QQQIIIIIHH", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    rest = struct.pack("<QQQQQIIiI64s64s", 0, 0, 0, 0, 0, 0, 1, -1, 0, b"", b"nothing")
    body = struct.pack("<Q", 4711) + limits + rest
    connection.send(struct.pack("<HHI", ADMIT, 8 + len(body), 2) + body)
    kind = QUEUED
    while kind == QUEUED:
        (kind,) = struct.unpack_from("<H", connection.recv(2048))
    if kind != ADMITTED:
        sys.exit(f"kind {kind}")
    time.sleep(float(sys.argv[2]))


main()
