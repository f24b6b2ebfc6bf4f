#!/usr/bin/python3
"""kubelet_peer.py FOLDER: plays the kubelet to a device plugin, over gRPC.

It serves the kubelet's registration at FOLDER/kubelet.sock, asks each plugin that registers for its options, and watches its
devices. What it knows is in FOLDER/../state.json, written anew at each change: {RESOURCE: {endpoint, options, devices: {ID:
HEALTH}, lists}}. Commands come from standard input, one a line, and each has one line of JSON as its answer:

  allocate RESOURCE ID...            -> the container's environment, mounts, annotations, devices; or {"error"}
  start RESOURCE ID...               -> {} or {"error"}
  prefer RESOURCE COUNT ID...        -> [ID...]
  call RESOURCE METHOD HEX           -> {} or {"error"}: any bytes

The messages are read and written here by their field numbers, which are those of Kubernetes' v1beta1, not by the plugin's own
description of them."""
import concurrent.futures
import json
import os
import sys
import threading

import grpc


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            return number, at


def fields(data):
    """{number: [values]}"""
    out, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        elif key & 7 == 2:
            length, at = read_varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f"wire type {key & 7}")
        out.setdefault(key >> 3, []).append(value)
    return out


def text(message, number):
    return message.get(number, [b""])[-1].decode()


FOLDER = sys.argv[1]
lock = threading.Lock()
state, channels = {}, {}


def save():
    path = os.path.join(os.path.dirname(FOLDER.rstrip("/")), "state.json")
    with open(path + ".new", "w") as file:
        json.dump(state, file)
    os.rename(path + ".new", path)


def method(resource, name):
    return channels[resource].unary_unary(f"/v1beta1.DevicePlugin/{name}", request_serializer=None, response_deserializer=None)


def watch(resource, channel):
    stream = channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch", request_serializer=None, response_deserializer=None)
    try:
        for reply in stream(b"", wait_for_ready=True, timeout=600):
            devices = {}
            for bytes_ in fields(reply).get(1, []):
                device = fields(bytes_)
                devices[text(device, 1)] = text(device, 2)
            with lock:
                if channels.get(resource) is not channel:
                    return
                state[resource]["devices"] = devices
                state[resource]["lists"] += 1
                save()
    except grpc.RpcError:
        pass
    with lock:
        if channels.get(resource) is channel:
            state[resource]["devices"] = {}
            save()


def register(request, context):
    message = fields(request)
    resource, endpoint = text(message, 3), text(message, 2)
    if text(message, 1) != "v1beta1":
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "version")
    channel = grpc.insecure_channel(f"unix:{FOLDER}/{endpoint}", options=[("grpc.use_local_subchannel_pool", 1)])
    with lock:
        channels[resource] = channel
        state[resource] = {"endpoint": endpoint, "devices": {}, "lists": 0,
                           "registered_options": {k: v[-1] for k, v in fields(message[4][0]).items()}}
    asked = method(resource, "GetDevicePluginOptions")(b"", timeout=10, wait_for_ready=True)
    with lock:
        state[resource]["options"] = {k: v[-1] for k, v in fields(asked).items()}
        save()
    threading.Thread(target=watch, args=(resource, channel), daemon=True).start()
    return b""


def pairs(messages):
    return {text(fields(pair), 1): text(fields(pair), 2) for pair in messages}


def run(words):
    resource, rest = words[1], words[2:]
    ids = b"".join(field(1, one) for one in rest)
    if words[0] == "allocate":
        container = fields(fields(method(resource, "Allocate")(field(1, ids), timeout=10))[1][0])
        return {"envs": pairs(container.get(1, [])), "annotations": pairs(container.get(4, [])),
                "mounts": [{"container": text(m, 1), "host": text(m, 2), "read_only": m.get(3, [0])[-1]}
                           for m in map(fields, container.get(2, []))],
                "cdi": [text(fields(device), 1) for device in container.get(5, [])]}
    if words[0] == "start":
        method(resource, "PreStartContainer")(ids, timeout=30)
        return {}
    if words[0] == "prefer":
        wish = b"".join(field(1, one) for one in rest[1:]) + field(3, int(rest[0]))
        answer = fields(fields(method(resource, "GetPreferredAllocation")(field(1, wish), timeout=10))[1][0])
        return [one.decode() for one in answer.get(1, [])]
    method(resource, rest[0])(bytes.fromhex(rest[1]), timeout=10)
    return {}


def main():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "v1beta1.Registration", {"Register": grpc.unary_unary_rpc_method_handler(register)}),))
    path = f"{FOLDER}/kubelet.sock"
    # As the kubelet does, it removes what is there first: the plugins' sockets too.
    for name in os.listdir(FOLDER):
        os.unlink(f"{FOLDER}/{name}")
    if not server.add_insecure_port(f"unix:{path}"):
        sys.exit("no socket")
    server.start()
    for line in sys.stdin:
        try:
            answer = run(line.split())
        except grpc.RpcError as error:
            answer = {"error": error.details(), "code": error.code().name}
        print(json.dumps(answer), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
