#!/usr/bin/env python3
"""Turns a file into a C array: embed.py INPUT OUTPUT NAME. A NUL is added after the data, so text is a C string."""
import sys

source, target, name = sys.argv[1:4]
data = open(source, "rb").read()
body = ",".join(str(b) for b in data + b"\0")
with open(target, "w") as out:
    out.write(f"/* Made from {source.rsplit('/', 1)[-1]} by tools/embed.py. */\n")
    out.write("#include <stddef.h>\n")
    out.write(f"extern const unsigned char {name}[];\nextern const size_t {name}_bytes;\n")
    out.write(f"_Alignas(8) const unsigned char {name}[] = {{{body}}};\nconst size_t {name}_bytes = {len(data)};\n")
