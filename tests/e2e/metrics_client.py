#!/usr/bin/env python3
"""What the tests of metrics ask over HTTP, with Python's own library.

    metrics_client.py get ADDRESS PATH...    the bodies, directly one after the other; exit status 1 if the last one's status is not 200.
                                             ADDRESS: HOST:PORT or unix:/PATH
    metrics_client.py silent ADDRESS NUMBER  opens so many connections, and says nothing on them, until stdin ends
    metrics_client.py deaf ADDRESS NUMBER    the same, but each requests /metrics and reads nothing
    metrics_client.py port                   a TCP port that was free a moment ago
    metrics_client.py queries FILE...        each expression of dashboards (.json) and rules (.yml), a line each
    metrics_client.py query ADDRESS EXPR     asks Prometheus' API; prints the number of series
"""
import http.client
import json
import re
import socket
import sys
import time
import urllib.parse

TIMEOUT_S = 30
RECEIVE_BYTES = 4096


def connect(address, receive_bytes=0):
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        place = address[len("unix:") :]
    else:
        host, _, port = address.rpartition(":")
        sock = socket.socket(socket.AF_INET)
        place = (host, int(port))
    if receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.settimeout(TIMEOUT_S)
    sock.connect(place)
    return sock


def get(address, path):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connect(address)
    connection.request("GET", path, headers={"Connection": "close"})
    response = connection.getresponse()
    return response.status, response.read().decode()


def many(address, number, request):
    socks = []
    for _ in range(number):
        sock = connect(address, RECEIVE_BYTES)
        if request:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        socks.append(sock)
    print("open", len(socks), flush=True)
    sys.stdin.read()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def panels_of(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def queries(path):
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            dashboard = json.load(file)
        for panel in panels_of(dashboard):
            for target in panel["targets"]:
                yield target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
        return
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # "expr: TEXT", or "expr: >-" and the deeper lines that follow.
    for match in re.finditer(r"^( *)expr: (?:>-\n((?:\1  .*\n)+)|(.*)\n)", text, re.M):
        yield " ".join((match[2] or match[3]).split())


def query(address, expression):
    status, body = get(address, "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    reply = json.loads(body)
    if status != http.HTTPStatus.OK or reply["status"] != "success":
        sys.exit(f"{expression}: {body}")
    return len(reply["data"]["result"])


def main():
    command, *words = sys.argv[1:]
    if command == "get":
        begin = time.monotonic()
        for path in words[1:]:
            status, body = get(words[0], path)
            print(body, end="")
        print(f"status {status} after {time.monotonic() - begin:.3f} s", file=sys.stderr)
        return 0 if status == http.HTTPStatus.OK else 1
    if command in ("silent", "deaf"):
        many(words[0], int(words[1]), command == "deaf")
    elif command == "port":
        print(free_port())
    elif command == "queries":
        for path in words:
            for expression in queries(path):
                print(expression)
    elif command == "query":
        print(query(*words))
    else:
        sys.exit(__doc__)
    return 0


sys.exit(main())
