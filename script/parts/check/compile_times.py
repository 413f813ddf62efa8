"""Prints a table of compile times; script/check compile-times runs it."""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path
from typing import NamedTuple

GENERAL_LIMIT, GENERAL_MIB = 22, 800  # for any source
README_LIMIT = 4
TOLERANCE = 1.15  # of limits, as machines differ
# Of recorded figures. The largest source of one tree took 41 to 53 empty mains on machines of one kind.
KNOWN_TOLERANCE = 1.3
PROCESSORS = 2
RULES = Path("include/fastweights/memories")
TESTED_RULE = RULES / "rules/gated_delta_rule.hpp"  # layers, models and the kernels' tests name it
QUICK = ["-L", "^quick$"]
# What somebody waits for, from nothing, and its limit in times the empty main.
TEST_LIMIT, ALL_LIMIT, CHANGE_LIMIT, DEMO_LIMIT = 1100, 1800, 100, 83
TIMED_RUNS = {"ci": (".ci/run", 3000), "python": ("script/python --without-torch", 400),
              "demo": ("script/demo until its first model trains", DEMO_LIMIT)}
WITH_MODELS = " with fastweights::compiled_models"
SECONDS = Path("build/seconds")  # where took() in script/parts/environment writes
BUILD_LOG = "compile_times.log"  # the name in cmake/fastweights-development.cmake
TESTS_LOG = "tests.xml"  # the name in script/test
LAUNCHER, EMPTY_MAIN = "cmake/log-compile-time", "empty_main"

COMPILER = shlex.split(os.environ.get("CXX", "g++"))


class Cost(NamedTuple):
    seconds: float
    mib: float


class Miss(NamedTuple):
    """A row that is known to miss a limit. It fails when it becomes worse than its figures here."""
    reason: str
    times: float = 0  # the recorded figure in times the empty main; 0: within its limit
    mib: float = 0    # the recorded figure; 0: within its limit


# With --check all other rows fail over TOLERANCE times their limits. A figure is lowered, or its row
# taken out, when a measurement is better.
KNOWN = {
    "own_rule.cpp": Miss("header-only, all of networks and every form of the rule are compiled in the program",
                         times=22.3, mib=1218),
    "own_rule.cpp with fastweights::compiled": Miss(
        "AnyMemory has every form of the user's rule; most of the time is optimisation", times=10.5),
    "trained_model.cpp": Miss("header-only, all of networks, training and files are compiled in the program",
                              times=34.3, mib=1407),
    "trained_model.cpp with fastweights::compiled": Miss(
        "the headers of networks, training and files together take the memory", mib=790),
    "stream_state.cpp": Miss("header-only, the reader and writer of files are compiled in the program", times=5.5),
    ".ci/run": Miss("sanitizers and other processors compile the tests again", times=3700),
    "script/test after a change of the median rule": Miss(
        "three scalars of a group of rules, and the tests, which take more than half of it", times=107),
    "script/test after a change of gated_delta_rule.hpp": Miss(
        "kernels' tests, published models and layers name this rule's type; running the tests takes a third of it",
        times=311),
    "char_lm for script/demo": Miss("kernels and networks of float, compiled from nothing", times=80),
    "script/test --all": Miss("as script/test, and programs of the headers alone", times=1835),
    "the largest source": Miss(
        "rules with all their kernels at -O3; in memory, header-only programs and tests of fixed sizes",
        times=27, mib=1520),
    "script/test": Miss("half of it are memories and networks in three scalars, which the laws need", times=1265),
}


class Row(NamedTuple):
    name: str
    cost: Cost
    limit: float  # times the empty main
    limit_mib: float

    def exceeded(self, empty, known=Miss("")):
        """The limits, or the recorded figures of a known miss, that are exceeded, as words."""
        over = []
        for measured, limit, figure, unit in (
                (self.cost.seconds / empty.seconds, self.limit, known.times, "times the empty main"),
                (self.cost.mib, self.limit_mib, known.mib, "MiB")):
            if measured > max(TOLERANCE * limit, KNOWN_TOLERANCE * figure):
                over.append(f"{max(limit, figure):g} {unit}")
        return " and ".join(over)

    def verdict(self, empty, known=None):
        """Two values: a text for the table, and True if the row fails."""
        over, miss = self.exceeded(empty), (KNOWN if known is None else known).get(self.name)
        if miss is None or not over:
            return over, bool(over)
        worse = self.exceeded(empty, miss)
        if worse:
            return f"{over}; worse than recorded, {worse}", True
        return f"{over}; known: {miss.reason}", False


def flags():
    """Compiler flags. With -idirafter the compiler's own headers come first."""
    prefixes = [p for p in re.split("[:;]", os.environ.get("CMAKE_PREFIX_PATH", "")) if p]
    found = ["-std=c++20", "-O2", "-Iinclude"]
    for prefix in prefixes + ["/usr/local", "/usr"]:
        for folder in f"{prefix}/include", f"{prefix}/include/eigen3":
            found += ["-idirafter", folder]
    return found


def read_log(log):
    """Cost by object, and the costs of empty mains. An object that was compiled repeatedly has its last cost."""
    costs, empties = {}, []
    for line in Path(log).read_text().splitlines():
        user, _, kib, name = line.split("\t")
        cost = Cost(float(user), int(kib) / 1024)
        if name == EMPTY_MAIN:
            empties.append(cost)
        else:
            costs[name] = cost
    return costs, empties


def compile_alone(source, folder, *options):
    """Compiles a source; returns its cost and its object."""
    target, log = Path(folder) / (Path(source).stem + ".o"), Path(folder) / "log"
    subprocess.run([LAUNCHER, log, *COMPILER, *flags(), *options, "-c", source, "-o", target],
                   check=True)
    return read_log(log)[0][str(target)], target


def compile_empty(folder):
    """The cost of an empty main with <Eigen/Dense>."""
    source = Path(folder) / "empty_main.cpp"
    source.write_text("#include <Eigen/Dense>\nint main() {}\n")
    return compile_alone(source, folder)[0]


def median(costs):
    return Cost(*map(statistics.median, zip(*costs)))


def readme_program(folder):
    """The first program of README.md, as a source."""
    for code in re.findall(r"\n```cpp\n(.*?\n)```", Path("README.md").read_text(), re.DOTALL):
        if "int main" in code:
            source = Path(folder) / "readme_program.cpp"
            source.write_text(f"// limit: {README_LIMIT}\n{code}")
            return source
    sys.exit("script/check compile-times: README.md has no program")


def limits_of(source):
    first = Path(source).read_text().split("\n", 1)[0]
    match = re.fullmatch(rf"// limit: ([0-9.]+)(?:, ([0-9.]+) MiB)?({WITH_MODELS})?", first.strip())
    if match is None:
        return GENERAL_LIMIT, GENERAL_MIB
    return float(match[1]), float(match[2] or GENERAL_MIB)


def measure_program(source, folder):
    """Two rows: header-only, which must also run, and with fastweights::compiled. Of a program that
    is meant for fastweights::compiled_models, one: without it, it compiles for minutes."""
    name, limits = Path(source).name, limits_of(source)
    if Path(source).read_text().split("\n", 1)[0].endswith(WITH_MODELS):
        cost, _ = compile_alone(source, folder, "-DFASTWEIGHTS_COMPILED",
                                "-DFASTWEIGHTS_COMPILED_MODELS", "-DFASTWEIGHTS_COMPILED_TEXT")
        return [Row(f"{name}{WITH_MODELS}", cost, *limits)]
    compiled, _ = compile_alone(source, folder, "-DFASTWEIGHTS_COMPILED")
    cost, target = compile_alone(source, folder)
    program = target.with_suffix("")
    subprocess.run([*COMPILER, target, "-o", program], check=True)
    subprocess.run([program], check=True, stdout=subprocess.DEVNULL)
    return [Row(name, cost, *limits), Row(f"{name} with fastweights::compiled", compiled, *limits)]


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def outputs_of(build, target):
    """The files that compilers and linkers write for a target; none if there is no such target."""
    commands = output_of("ninja", "-C", build, "-t", "commands", target)
    return set(re.findall(r" -o (\S+)", commands))


def rule_headers():
    """The headers that define a memory."""
    return [path for path in sorted(RULES.rglob("*.hpp"))
            if "static constexpr std::string_view name = " in path.read_text()]


def dependents(build, headers):
    """For each header, the objects that a change of it makes stale."""
    found, output = {header: set() for header in headers}, None
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            output = line.split(": #deps")[0]
        elif (at := line.find(f"{RULES}/")) >= 0 and (header := Path(line[at:])) in found:
            found[header].add(output)
    return found


def test_seconds(build, *choice):
    """The time of one processor that these tests took when script/test last ran; none if it did not."""
    log = Path(build) / TESTS_LOG
    if not log.exists():
        return None
    known = {case.get("name"): float(case.get("time"))
             for case in xml.etree.ElementTree.parse(log).iter("testcase")}
    tests = json.loads(output_of("ctest", "--test-dir", build, "--show-only=json-v1", *choice))["tests"]
    return sum(known.get(test["name"], 0) for test in tests)


class Build:
    """What a build directory's log says."""

    def __init__(self, folder):
        log = Path(folder) / BUILD_LOG
        if not log.exists():
            sys.exit(f"script/check compile-times: {log} is missing; configure that build with "
                     "-DFASTWEIGHTS_LOG_COMPILE_TIMES=ON and build it")
        self.folder = folder
        self.costs, empties = read_log(log)
        if not empties:
            sys.exit(f"script/check compile-times: {log} has no empty main; build more of it")
        self.empty = median(empties)

    def waits(self, name, limit, outputs, tests=0.0):
        """A row of what a user waits for; nothing if the log lacks more than a hundredth of it, or the tests."""
        known = [self.costs[o].seconds for o in outputs if o in self.costs]
        if len(known) < 0.99 * len(outputs) or not known or tests is None:
            return []
        seconds = (sum(known) + tests) / PROCESSORS
        return [Row(name, Cost(seconds, 0), limit, float("inf"))]

    def user_rows(self):
        quick = outputs_of(self.folder, "quick_tests")
        quick_tests = test_seconds(self.folder, *QUICK)
        whole = outputs_of(self.folder, "tests/all")
        demo = outputs_of(self.folder, "char_lm")
        return [
            *self.waits("script/test", TEST_LIMIT, quick, quick_tests),
            *self.waits("script/test --all", ALL_LIMIT, whole, test_seconds(self.folder)),
            *self.change_rows(quick, quick_tests),
            *self.waits("char_lm for script/demo", DEMO_LIMIT, demo),
            Row("the largest source", Cost(max(c.seconds for c in self.sources().values()),
                                           max(c.mib for c in self.sources().values())),
                GENERAL_LIMIT, GENERAL_MIB),
        ]

    def change_rows(self, quick, tests):
        """After a change of a rule's header: the median of all rules, and one that many name."""
        stale = {header: quick & objects for header, objects in dependents(self.folder, rule_headers()).items()}
        if quick and not any(stale.values()):
            sys.exit(f"script/check compile-times: ninja knows no object of {self.folder} that includes a rule")
        programs = {o for o in quick if not o.endswith((".o", ".gch"))}
        by_cost = sorted(stale, key=lambda header: sum(self.costs[o].seconds for o in stale[header]
                                                       if o in self.costs))
        for header, name in ((by_cost[len(by_cost) // 2], "the median rule"), (TESTED_RULE, TESTED_RULE.name)):
            yield from self.waits(f"script/test after a change of {name}", CHANGE_LIMIT,
                                  stale[header] | programs, tests)

    def sources(self):
        return {re.sub(r"CMakeFiles/[^/]*\.dir/|\.o$", "", name): cost
                for name, cost in self.costs.items() if name.endswith((".o", ".gch"))}

    def source_rows(self):
        return [Row(name, cost, GENERAL_LIMIT, GENERAL_MIB)
                for name, cost in self.sources().items()]


def timed_rows():
    """Runs of scripts from nothing, which noted their seconds."""
    return [Row(name, Cost(float((SECONDS / key).read_text()), 0), limit, float("inf"))
            for key, (name, limit) in TIMED_RUNS.items() if (SECONDS / key).exists()]


def print_table(rows, empty):
    """Prints the rows, and returns how many exceed a limit, and those that fail, a text each."""
    print("| what | times the empty main | limit | seconds | MiB | limit | exceeds |")
    print("|---|---:|---:|---:|---:|---:|---|")
    over, failed = 0, []
    for row in sorted(rows, key=lambda r: -r.cost.seconds):
        memory = f"{row.cost.mib:.0f} | {row.limit_mib:g}" if row.cost.mib else " | "
        text, fails = row.verdict(empty)
        over += bool(text)
        if fails:
            failed.append(f"{row.name}: {row.cost.seconds / empty.seconds:.1f} times the empty main, "
                          f"{row.cost.mib:.0f} MiB; exceeds {text}")
        print(f"| {row.name} | {row.cost.seconds / empty.seconds:.1f} | {row.limit:g} "
              f"| {row.cost.seconds:.2f} | {memory} | {text} |")
    return over, failed


def measure(sources):
    """An empty main, and the rows of programs."""
    with tempfile.TemporaryDirectory() as folder:
        empties, rows = [compile_empty(folder)], []
        sources = sources or [readme_program(folder), *sorted(Path("tests/compile_times").glob("*.cpp"))]
        for source in sources:  # an empty main after each, as other programs may come and go
            rows += measure_program(source, folder)
            empties.append(compile_empty(folder))
        while len(empties) < 3:
            empties.append(compile_empty(folder))
    return median(empties), rows


def main():
    parser = argparse.ArgumentParser(prog="script/check compile-times", description=(
        "Compile time and memory of sources, as a Markdown table."))
    parser.add_argument("--check", action="store_true", help="exit with 1 when a row fails")
    parser.add_argument("--build", metavar="FOLDER",
                        help="what a user of the repository waits for, and the sources of this build")
    parser.add_argument("sources", nargs="*", help="instead of tests/compile_times/*.cpp")
    options = parser.parse_args()
    if options.build:
        build = Build(options.build)
        empty, rows = build.empty, build.source_rows()
    else:
        empty, rows = measure(options.sources)
    print(f"An empty main with <Eigen/Dense> at -O2 ({' '.join(COMPILER)}): "
          f"{empty.seconds:.2f} s, {empty.mib:.0f} MiB.\n")
    over, failed = print_table(rows, empty)
    if options.build:  # its row of the largest source fails for all of them
        print()
        more, failed = print_table(build.user_rows() + timed_rows(), empty)
        over += more
    total = sum(row.cost.seconds for row in rows)
    print(f"\n{len(rows)} sources, {total:.0f} s in all; {over} rows exceed a limit, {len(failed)} fail.")
    for text in failed:  # last, where a reader of a long log looks
        print(text)
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
