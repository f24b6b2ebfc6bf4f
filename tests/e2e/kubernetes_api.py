#!/usr/bin/python3
"""kubernetes_api.py FOLDER: plays the API server of Kubernetes to a driver of ResourceClaims, over HTTPS.

FOLDER has server.pem (certificate and key) and token, which requests must have. A claim is the file FOLDER/claims/NAMESPACE/NAME.json; the
ResourceSlices are in FOLDER/slices.json, {NAME: OBJECT}, and are written anew at each change; each request is a line of
FOLDER/requests: METHOD PATH STATUS. FOLDER/port is the port, which a server that is started again takes again. While there is
a file FOLDER/gate-off, what the feature gate DRAConsumableCapacity guards is dropped from what is stored, as an API server without
the gate does.

What is written is checked as an API server does: against the fields of resource.k8s.io/v1, which are listed here by their types,
and the rules for names, quantities and requestPolicy. A field that is not listed is refused (400), what is against a rule too (422)."""
import copy
import http.server
import json
import os
import re
import ssl
import sys

FOLDER = sys.argv[1]
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node1", "uid": "4d5e9a5c-6f0a-4c59-9d55-0d3d8c9b7a11"}}

# A type: {field: (type, is required)}. A list is [type], a map ("map", type).
OWNER = {"apiVersion": (str, True), "kind": (str, True), "name": (str, True), "uid": (str, True), "controller": (bool, False),
         "blockOwnerDeletion": (bool, False)}
META = {"name": (str, False), "generateName": (str, False), "resourceVersion": (str, False), "uid": (str, False), "generation": (int, False),
        "creationTimestamp": (str, False), "labels": (("map", str), False), "annotations": (("map", str), False), "ownerReferences": ([OWNER], False)}
RANGE = {"min": ("quantity", True), "max": ("quantity", False), "step": ("quantity", False)}
POLICY = {"default": ("quantity", False), "validValues": (["quantity"], False), "validRange": (RANGE, False)}
CAPACITY = {"value": ("quantity", True), "requestPolicy": (POLICY, False)}
ATTRIBUTE = {"int": (int, False), "bool": (bool, False), "string": (str, False), "version": (str, False)}
DEVICE = {"name": (str, True), "attributes": (("map", ATTRIBUTE), False), "capacity": (("map", CAPACITY), False),
          "allowMultipleAllocations": (bool, False), "nodeName": (str, False), "allNodes": (bool, False)}
POOL = {"name": (str, True), "generation": (int, True), "resourceSliceCount": (int, True)}
SPEC = {"driver": (str, True), "pool": (POOL, True), "nodeName": (str, False), "allNodes": (bool, False), "devices": ([DEVICE], False)}
SLICE = {"apiVersion": (str, True), "kind": (str, True), "metadata": (META, True), "spec": (SPEC, True)}

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]*)?)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][-+]?[0-9]+)?")
NANO = 10**9
UNITS = {"n": 1, "u": 10**3, "m": 10**6, "": NANO, "k": NANO * 10**3, "M": NANO * 10**6, "G": NANO * 10**9, "T": NANO * 10**12, "P": NANO * 10**15,
         "E": NANO * 10**18, "Ki": NANO * 2**10, "Mi": NANO * 2**20, "Gi": NANO * 2**30, "Ti": NANO * 2**40, "Pi": NANO * 2**50, "Ei": NANO * 2**60}


class Refused(Exception):
    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


def need(is_so, why):
    if not is_so:
        raise Refused(422, why)


def amount(text):
    """In units of 10^-9."""
    number, unit = QUANTITY.fullmatch(text).groups("")
    whole, _, part = number.partition(".")
    factor = UNITS.get(unit) or NANO * 10 ** int(unit[1:])
    return int(whole + part) * factor // 10 ** len(part)


def check_type(value, wanted, where):
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            raise Refused(400, f"{where}: no object")
        for name in value:
            if name not in wanted:
                raise Refused(400, f"{where}.{name}: unknown field")
        for name, (its, is_required) in wanted.items():
            need(name in value or not is_required, f"{where}.{name}: Required value")
            if name in value:
                check_type(value[name], its, f"{where}.{name}")
    elif isinstance(wanted, list):
        if not isinstance(value, list):
            raise Refused(400, f"{where}: no list")
        for one in value:
            check_type(one, wanted[0], where)
    elif isinstance(wanted, tuple):
        if not isinstance(value, dict):
            raise Refused(400, f"{where}: no map")
        for name, one in value.items():
            check_type(one, wanted[1], f"{where}[{name}]")
    elif wanted == "quantity":
        if not isinstance(value, str) or not QUANTITY.fullmatch(value):
            raise Refused(400, f"{where}: no quantity")
    elif type(value) is not wanted:
        raise Refused(400, f"{where}: {value!r} has the wrong type")


def check_qualified(name):
    domain, _, last = name.rpartition("/")
    need(IDENTIFIER.fullmatch(last) and (not domain or SUBDOMAIN.fullmatch(domain)), f"{name}: no qualified name")


def check_policy(capacity, where):
    policy, whole = capacity["requestPolicy"], amount(capacity["value"])
    need(not ("validValues" in policy and "validRange" in policy), f"{where}: two policies")
    need("default" in policy or not (policy.keys() & {"validValues", "validRange"}), f"{where}.default: Required value")
    if "validRange" not in policy:
        return
    its, default = policy["validRange"], amount(policy["default"])
    least, most = amount(its["min"]), amount(its.get("max", capacity["value"]))
    need(least <= default <= most <= whole, f"{where}: not min <= default <= max <= value")
    if "step" in its:
        step = amount(its["step"])
        need(least + step <= whole, f"{where}: one step is larger than the capacity")
        need((default - least) % step == 0 and (most - least) % step == 0, f"{where}: not a multiple of the step")


def check_slice(its):
    check_type(its, SLICE, "ResourceSlice")
    spec = its["spec"]
    need(its["apiVersion"] == "resource.k8s.io/v1" and its["kind"] == "ResourceSlice", "apiVersion, kind")
    need(SUBDOMAIN.fullmatch(its["metadata"].get("name", "")) and len(its["metadata"]["name"]) <= 253, "metadata.name: no subdomain")
    need(SUBDOMAIN.fullmatch(spec["driver"]) and len(spec["driver"]) <= 63, "spec.driver: no subdomain of 63 characters")
    need(("nodeName" in spec) != ("allNodes" in spec), "spec: exactly one of nodeName, allNodes")
    need(all(SUBDOMAIN.fullmatch(part) for part in spec["pool"]["name"].split("/")) and len(spec["pool"]["name"]) <= 253, "spec.pool.name")
    need(spec["pool"]["generation"] >= 0 and spec["pool"]["resourceSliceCount"] > 0, "spec.pool: numbers")
    devices = spec.get("devices", [])
    need(len(devices) <= 128, "spec.devices: Too many")
    need(len({device["name"] for device in devices}) == len(devices), "spec.devices: Duplicate value")
    for device in devices:
        need(LABEL.fullmatch(device["name"]), f"{device['name']}: no label")
        need(len(device.get("attributes", {})) + len(device.get("capacity", {})) <= 32, "attributes and capacity: Too many")
        for name, attribute in device.get("attributes", {}).items():
            check_qualified(name)
            need(len(attribute) == 1 and len(attribute.get("string", "")) <= 64, f"attribute {name}")
        for name, capacity in device.get("capacity", {}).items():
            check_qualified(name)
            if "requestPolicy" in capacity:
                need(device.get("allowMultipleAllocations"), f"{name}.requestPolicy: allowMultipleAllocations must be true")
                check_policy(capacity, f"{name}.requestPolicy")


def read(name, default):
    try:
        with open(os.path.join(FOLDER, name)) as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def write(name, value):
    with open(os.path.join(FOLDER, name + ".new"), "w") as file:
        json.dump(value, file)
    os.rename(os.path.join(FOLDER, name + ".new"), os.path.join(FOLDER, name))


def store(slices, old, new):
    """As an API server stores it: canonical quantities, a resourceVersion, and no field of a gate that is off."""
    new = copy.deepcopy(new)
    for device in new["spec"].get("devices", []):
        for capacity in device.get("capacity", {}).values():
            gib, rest = divmod(amount(capacity["value"]), UNITS["Gi"])
            if capacity["value"].endswith("Mi") and not rest:
                capacity["value"] = f"{gib}Gi"
            if os.path.exists(os.path.join(FOLDER, "gate-off")):
                capacity.pop("requestPolicy", None)
        if os.path.exists(os.path.join(FOLDER, "gate-off")):
            device.pop("allowMultipleAllocations", None)
    new["metadata"]["resourceVersion"] = str(1 + int(old["metadata"]["resourceVersion"]) if old else 1)
    slices[new["metadata"]["name"]] = new
    write("slices.json", slices)
    return new


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value):
        body = json.dumps(value).encode()
        with open(os.path.join(FOLDER, "requests"), "a") as file:
            file.write(f"{self.command} {self.path} {status}\n")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            with open(os.path.join(FOLDER, "token")) as file:
                if self.headers.get("Authorization") != f"Bearer {file.read().strip()}":
                    raise Refused(401, "Unauthorized")
            self.reply(*self.find(self.command, self.path, body))
        except Refused as why:
            self.reply(why.status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": str(why), "code": why.status})

    do_GET = do_POST = do_PUT = serve

    def find(self, method, path, body):
        slices = read("slices.json", {})
        claim = re.fullmatch(r"/apis/resource\.k8s\.io/v1/namespaces/([a-z0-9-]+)/resourceclaims/([a-z0-9.-]+)", path)
        name = path[len(SLICES) + 1:] if path.startswith(SLICES + "/") else None
        if method == "GET" and path == "/api/v1/nodes/node1":
            return 200, NODE
        if method == "GET" and claim:
            found = read(f"claims/{claim[1]}/{claim[2]}.json", None)
            if not found:
                raise Refused(404, f'resourceclaims.resource.k8s.io "{claim[2]}" not found')
            return 200, found
        if method == "GET" and name in slices:
            return 200, slices[name]
        if method == "POST" and path == SLICES:
            new = json.loads(body)
            check_slice(new)
            if new["metadata"]["name"] in slices or "resourceVersion" in new["metadata"]:
                raise Refused(409, "already exists")
            return 201, store(slices, None, new)
        if method == "PUT" and name in slices:
            new, old = json.loads(body), slices[name]
            check_slice(new)
            if new["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]:
                raise Refused(409, "the object has been modified")
            for field in "driver", "nodeName":
                need(new["spec"].get(field) == old["spec"].get(field), f"spec.{field}: field is immutable")
            need(new["spec"]["pool"]["name"] == old["spec"]["pool"]["name"], "spec.pool.name: field is immutable")
            need(new["spec"]["pool"]["generation"] > old["spec"]["pool"]["generation"], "the generation of the pool does not grow")
            return 200, store(slices, old, new)
        raise Refused(404, f"{path} not found")

    def log_message(self, *args):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", read("port", 0)), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    write("port", server.server_address[1])
    server.serve_forever()


main()
