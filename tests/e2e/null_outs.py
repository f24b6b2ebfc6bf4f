"""Looks whether bench/c/null_outs.def passes NULL for each out-pointer of each function that the governing library hooks, and
prints those that are missing. An out-pointer is an argument whose name begins with ret_."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def included(path):
    """A list with what it includes."""
    text = (ROOT / path).read_text()
    return re.sub(r'^#include "(?:shim/interpose/|abi/)(\w+\.def)"$',
                  lambda match: included(pathlib.Path(path).parent / match[1]), text, flags=re.M)


def split(arguments):
    """The arguments between a function's parentheses."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def signatures():
    """{symbol: its parameters}"""
    found = {}
    for name in ("cuda_functions.def", "cuda_governed.def", "nvml_functions.def", "nvml_governed.def"):
        for symbol, parameters in re.findall(r"LL_(?:CUDA|NVML)_FUNCTION\([\w *]+,\s*\w+,\s*(\w+),\s*\w+,\s*\(([^;]*?)\)\)\n",
                                             included(f"src/abi/{name}")):
            found[symbol] = split(parameters)
    lists = included("src/abi/cuda_functions.def") + included("src/abi/cuda_governed.def")
    for symbol, suffix, parameters in re.findall(r"^LL_CUDA_FUNCTION_PER_THREAD\(\w+,\s*\w+,\s*(\w+),\s*\w+,\s*(_\w+),"
                                                 r"\s*\(([^;]*?)\),\s*\([\w,\s]*\)\)\n", lists, re.M):
        found[symbol] = found[symbol + suffix] = split(parameters)
    found["cuGetProcAddress_v2_ptsz"] = found["cuGetProcAddress_v2"]
    return found


def hooks():
    text = included("src/shim/interpose/hooks.def")
    found = re.findall(r"^LL_HOOK(?:_NVML)?\((\w+)\)", text, re.M)
    found += re.findall(r"^LL_PASSING(?:_WAIT|_ADDRESS|_LOAD|_CODE)?\(\s*(\w+),", text, re.M)
    for symbol, suffix in re.findall(r"^LL_PASSING(?:_WAIT)?_PER_THREAD\(\s*(\w+), (\w+),", text, re.M):
        found += [symbol, symbol + suffix]
    return [symbol for symbol in found if symbol != "symbol"]


def tried():
    """The functions and arguments that are passed as NULL: {(symbol, number)}, by the lines of the expected answers."""
    found = set()
    for line in (ROOT / "bench/c/null_outs.txt").read_text().splitlines():
        symbol, arguments = re.match(r"(\w+)\((.*)\): ", line).groups()
        found |= {(symbol, number) for number, argument in enumerate(split(arguments)) if argument == "NULL"}
    return found


def main():
    known, passed = signatures(), tried()
    missing = [f"{symbol}: {parameter}" for symbol in hooks() for number, parameter in enumerate(known[symbol])
               if re.search(r"\*\s*ret_\w+$", parameter) and (symbol, number) not in passed]
    print("\n".join(missing) or f"{len(passed)} arguments of {len({symbol for symbol, _ in passed})} functions are tried")
    return 1 if missing else 0


sys.exit(main())
