"""Merges gcov's reports of several sources (JSON, one a line) and prints the branches not taken."""

import collections
import functools
import json
import sys

wanted = sys.argv[1]


@functools.cache
def text_of(file):
    with open(file, encoding="utf-8") as source:
        return source.read().splitlines()


def is_code(file, number):
    """gcov counts the cleaning up behind an exception at the brace that ends a function."""
    return text_of(file)[number - 1].strip() not in ("}", "};", "});")


branches = collections.defaultdict(dict)  # file -> (line, number of the branch) -> times taken
lines = collections.defaultdict(dict)  # file -> line -> times run
for report in sys.stdin:
    for file in json.loads(report)["files"]:
        at = file["file"].find(wanted)
        if at < 0:
            continue
        name = file["file"][at + len("include/") :]
        for line in file["lines"]:
            number = line["line_number"]
            if is_code(file["file"], number):
                lines[name][number] = lines[name].get(number, 0) + line["count"]
            kept = [b for b in line["branches"] if not b["throw"]]
            for i, branch in enumerate(kept):
                key = (number, len(kept), i)
                branches[name][key] = branches[name].get(key, 0) + branch["count"]

all_branches = taken = all_lines = run = 0
for name in sorted(lines):
    missed = sorted({line for (line, _, _), count in branches[name].items() if count == 0})
    unrun = [line for line, count in sorted(lines[name].items()) if count == 0]
    all_branches += len(branches[name])
    taken += sum(count > 0 for count in branches[name].values())
    all_lines += len(lines[name])
    run += sum(count > 0 for count in lines[name].values())
    if missed:
        print(f"{name}: branches of lines {', '.join(map(str, missed))}")
    if unrun:
        print(f"{name}: lines {', '.join(map(str, unrun))} do not run")
print(f"{taken} of {all_branches} branches, {100 * taken / max(1, all_branches):.1f} %")
print(f"{run} of {all_lines} lines, {100 * run / max(1, all_lines):.1f} %")
