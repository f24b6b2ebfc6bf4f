#!/usr/bin/python3
"""dra_peer.py FOLDER: plays the kubelet to a driver of ResourceClaims, over gRPC; FOLDER is FOLDER/plugins_registry's parent.

Commands come from standard input, one a line, and each has one line of JSON as its answer, or {"error", "code"}:

  register                                -> asks the driver at its socket of registration who it is, and tells it that it is registered:
                                             {type, name, endpoint, versions}
  refuse TEXT                             -> tells it that it is not
  prepare NAMESPACE NAME UID...           -> {UID: {error} or {devices: [{requests, pool, device, cdi}]}}; several claims follow each other
  unprepare NAMESPACE NAME UID...         -> {UID: {error} or {}}
  call METHOD HEX                         -> {}: any bytes

The messages are read and written by their field numbers, which are those of the kubelet's interfaces, not by the driver's own
description of them."""
import glob
import json
import sys

import grpc

from kubelet_peer import field, fields, text

FOLDER = sys.argv[1]
SERVICE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
endpoint = None


def call(path, method, request):
    """A new connection each time: the driver may have been started again."""
    with grpc.insecure_channel(f"unix:{path}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        return channel.unary_unary(method, request_serializer=None, response_deserializer=None)(request, timeout=30)


def registry(method, request):
    sockets = glob.glob(f"{FOLDER}/plugins_registry/*")
    if len(sockets) != 1:
        raise OSError(f"{len(sockets)} sockets")
    return call(sockets[0], f"/pluginregistration.Registration/{method}", request)


def texts(message, number):
    return [one.decode() for one in message.get(number, [])]


def register():
    global endpoint
    info = fields(registry("GetInfo", b""))
    endpoint = text(info, 3)
    registry("NotifyRegistrationStatus", field(1, 1))
    return {"type": text(info, 1), "name": text(info, 2), "endpoint": endpoint, "versions": texts(info, 4)}


def of_claims(method, words):
    claims = b"".join(field(1, field(1, words[i]) + field(2, words[i + 2]) + field(3, words[i + 1])) for i in range(0, len(words), 3))
    return {text(entry, 1): fields(entry.get(2, [b""])[0]) for entry in map(fields, fields(call(endpoint, SERVICE + method, claims)).get(1, []))}


def run(words):
    if words[0] == "register":
        return register()
    if words[0] == "refuse":
        registry("NotifyRegistrationStatus", field(2, " ".join(words[1:])))
        return {}
    if words[0] == "prepare":
        return {uid: {"error": text(one, 2)} if 2 in one else {"devices": [
            {"requests": texts(device, 1), "pool": text(device, 2), "device": text(device, 3), "cdi": texts(device, 4)}
            for device in map(fields, one.get(1, []))]} for uid, one in of_claims("NodePrepareResources", words[1:]).items()}
    if words[0] == "unprepare":
        return {uid: {"error": text(one, 1)} if 1 in one else {} for uid, one in of_claims("NodeUnprepareResources", words[1:]).items()}
    call(endpoint, SERVICE + words[1], bytes.fromhex(words[2]))
    return {}


for line in sys.stdin:
    try:
        answer = run(line.split())
    except grpc.RpcError as error:
        answer = {"error": error.details(), "code": error.code().name}
    except OSError as error:
        answer = {"error": str(error), "code": "OS"}
    print(json.dumps(answer), flush=True)
