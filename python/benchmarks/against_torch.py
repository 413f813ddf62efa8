"""Times fastweights beside PyTorch in one process: script/bench python."""

import statistics
import sys
import time

import torch
from chunked import chunked, recurrent

import fastweights
import fastweights.torch

HEADS, LENGTH, CHUNKS = 8, 1024, (32, 64, 128)
QUICK = "--quick" in sys.argv[1:]
ROUNDS = 5 if QUICK else 15
MEMORIES = {"delta": fastweights.DeltaRule, "gated delta": fastweights.GatedDeltaRule}


def random_inputs(rule, batch, d, length=LENGTH, dtype=torch.float32):
    """Query, key, value, beta and log decay (or None), [batch, heads, time, d] and [batch, heads, time]."""
    query, key, value = (torch.randn(batch, HEADS, length, d, dtype=dtype) for _ in range(3))
    beta, decay = (torch.rand(batch, HEADS, length, dtype=dtype) for _ in range(2))
    key = torch.nn.functional.normalize(key, dim=-1)
    return [query / d**0.5, key, value, beta, -0.1 * decay if rule == "gated delta" else None]


def for_us(inputs):
    """The same as [batch, time, heads, d], with decays."""
    inputs = [x for x in inputs if x is not None]
    if len(inputs) == 5:
        inputs[4] = inputs[4].exp()
    return [x.transpose(1, 2).contiguous() for x in inputs]


def ours(rule, d, dtype="float32"):
    memory = MEMORIES[rule](d, heads=HEADS, dtype=dtype)
    return lambda *inputs: fastweights.torch.scan(memory, *inputs)[0]


def check():
    for rule in MEMORIES:
        inputs = random_inputs(rule, 2, 16, 128, torch.float64)
        slow = recurrent(*inputs)[0]
        for other in chunked(*inputs, 32)[0], ours(rule, 16, "float64")(*for_us(inputs)).transpose(1, 2):
            assert (other - slow).abs().max() < 1e-12 * slow.abs().max()


def forward(run, inputs):
    with torch.no_grad():
        run(*inputs)


def training(run, inputs):
    leaves = [x if x is None else x.detach().requires_grad_() for x in inputs]
    outputs = run(*leaves)
    outputs.backward(outputs.detach())


def milliseconds(run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def medians(engines):
    """The engines take turns; the loop over tokens takes part in a few rounds only."""
    times = {name: [] for name in engines}
    for round in range(-1, ROUNDS):
        for name, run in engines.items():
            if name == "loop" and round > 1:
                continue
            elapsed = milliseconds(run)
            if round >= 0:
                times[name].append(elapsed)
    return {name: statistics.median(all) for name, all in times.items()}


def row(mode, rule, batch, d):
    inputs = random_inputs(rule, batch, d)
    theirs = {c: (lambda *x, c=c: chunked(*x, c)[0]) for c in CHUNKS}
    tried = medians({c: (lambda f=f: mode(f, inputs)) for c, f in theirs.items()})
    chunk = min(tried, key=tried.get)
    scan, tokens = ours(rule, d), for_us(inputs)
    found = medians({
        "ours": lambda: mode(scan, tokens),
        "chunked": lambda: mode(theirs[chunk], inputs),
        "loop": lambda: mode(lambda *x: recurrent(*x)[0], inputs),
    })
    print(f"| {mode.__name__} | {rule} | {batch} | {d} | {found['ours']:.1f} | {found['chunked']:.1f} (C = {chunk}) | "
          f"{found['chunked'] / found['ours']:.1f} | {found['loop']:.0f} | {found['loop'] / found['ours']:.0f} |",
          flush=True)


def main():
    torch.manual_seed(1)
    threads = fastweights.get_num_threads()
    torch.set_num_threads(threads)
    check()
    print(f"float32, H = {HEADS}, T = {LENGTH}, {threads} threads, milliseconds, medians of {ROUNDS} rounds; "
          f"PyTorch {torch.__version__}\n")
    print("| pass | rule | B | d | fastweights | PyTorch, chunks | over ours | PyTorch, loop | over ours |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for mode in forward, training:
        for rule in MEMORIES:
            for batch in 1, 4:
                for d in 64, 128:
                    row(mode, rule, batch, d)


main()
