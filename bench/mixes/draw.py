"""What is drawn by a seed: the kinds of a pool, the options of each, and the mixes of it. Pure: the same seed draws the same.

Half of the kinds stay out of tuning: nobody looks at them while a rule is made or changed, so they tell what the rule is worth
for programs that it has not seen. The lists are fixed. A kind that was in a table before 2026-11-27 is for tuning."""
import random
from collections import namedtuple

TUNING = ("compiled", "copy_back", "decode_graph", "diffusion", "generate", "gpt_train", "host_bursts", "matmul", "mlp_float",
          "requests_long", "requests_short", "resnet_large", "resnet_small", "scan", "streams", "vit_train", "wait_each")
HELD_OUT = ("batches", "copy_in", "cupy", "elementwise", "gpt_accumulate", "graph_network", "graph_waited", "jax", "long_kernels",
            "lstm_train", "numba", "prefill", "recommend", "reinforce", "solve", "stream_text", "triton")
HALVES = {"tuning": TUNING, "held-out": HELD_OUT, "both": TUNING + HELD_OUT}

SIZES = (2, 3, 4, 5)
WEIGHTS = (1, 2, 4, 8)
CLASSES = ("low", "normal", "high")
PLAIN, WEIGHTED, CLASSED = 0.6, 0.2, 0.2  # of the mixes

# weight: of `loadline set`. level: its class. options: {option: value} of its command; none are in files of before they were drawn.
Member = namedtuple("Member", "kind weight level options", defaults=(1, "normal", {}))


def pool(seed, kinds, count):
    return random.Random(f"pool {seed}").sample(sorted(kinds), min(count, len(kinds)))


def options(seed, kind, choices):
    """{option: one of its values}, by dice of the kind's own: it has the same beside other kinds."""
    dice = random.Random(f"options {seed} {kind}")
    return {name: dice.choice(choices[name]) for name in sorted(choices)}


def program_of(member):
    """As programs.py reads it."""
    return ":".join([member.kind] + [",".join(f"{name}={value}" for name, value in member.options.items())] * bool(member.options))


def at_random(dice, kinds, choices):
    """One of the choices for each, not the same for all."""
    while True:
        chosen = [dice.choice(choices) for _ in kinds]
        if len(set(chosen)) > 1:
            return chosen


def mix(dice, kinds, drawn=None):
    """A list of Member: no kind twice, because each is started once. drawn: {kind: its options}."""
    return [member._replace(options=(drawn or {}).get(member.kind, {})) for member in mix_of(dice, kinds)]


def mix_of(dice, kinds):
    chosen = dice.sample(kinds, min(dice.choice(SIZES), len(kinds)))
    asked = dice.random()
    if asked < PLAIN:
        return [Member(kind) for kind in chosen]
    if asked < PLAIN + WEIGHTED:
        return [Member(kind, weight) for kind, weight in zip(chosen, at_random(dice, chosen, WEIGHTS))]
    return [Member(kind, level=level) for kind, level in zip(chosen, at_random(dice, chosen, CLASSES))]


def has_weights(members):
    return len({member.weight for member in members}) > 1


def has_classes(members):
    return len({member.level for member in members}) > 1


def half_of(members):
    """tuning: all kinds of the mix are; held-out: none is; both: some are."""
    tuned = [member.kind in TUNING for member in members]
    return "tuning" if all(tuned) else "both" if any(tuned) else "held-out"
