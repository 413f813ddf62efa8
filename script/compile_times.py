"""Prints a table of compile times; script/compile_times runs it."""
import argparse
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

GENERAL_LIMIT, GENERAL_MIB = 36, 1024  # for any source
README_LIMIT = 4
BUILD_LOG = "compile_times.log"  # the name in cmake/fastweights-development.cmake
LAUNCHER = "cmake/log-compile-time"

COMPILER = shlex.split(os.environ.get("CXX", "g++"))


class Cost(NamedTuple):
    seconds: float
    mib: float


class Row(NamedTuple):
    name: str
    cost: Cost
    limit: float  # times the empty main
    limit_mib: float

    def exceeded(self, empty):
        """The exceeded limits, as words."""
        over = []
        if self.cost.seconds > self.limit * empty.seconds:
            over.append(f"{self.limit:g} times the empty main")
        if self.cost.mib > self.limit_mib:
            over.append(f"{self.limit_mib:g} MiB")
        return over


def flags():
    """Compiler flags. With -idirafter the compiler's own headers come first."""
    prefixes = [p for p in re.split("[:;]", os.environ.get("CMAKE_PREFIX_PATH", "")) if p]
    found = ["-std=c++20", "-O2", "-Iinclude"]
    for prefix in prefixes + ["/usr/local", "/usr"]:
        for folder in f"{prefix}/include", f"{prefix}/include/eigen3":
            found += ["-idirafter", folder]
    return found


def read_log(log):
    """Cost by object. An object that was compiled repeatedly has its last cost."""
    costs = {}
    for line in Path(log).read_text().splitlines():
        user, _, kib, name = line.split("\t")
        costs[name] = Cost(float(user), int(kib) / 1024)
    return costs


def compile_alone(source, folder, *options):
    """Compiles a source; returns its cost and its object."""
    target, log = Path(folder) / (Path(source).stem + ".o"), Path(folder) / "log"
    subprocess.run([LAUNCHER, log, *COMPILER, *flags(), *options, "-c", source, "-o", target],
                   check=True)
    return read_log(log)[str(target)], target


def measure_empty(folder):
    """The cost of an empty main with <Eigen/Dense>: the median of three runs."""
    source = Path(folder) / "empty_main.cpp"
    source.write_text("#include <Eigen/Dense>\nint main() {}\n")
    costs = [compile_alone(source, folder)[0] for _ in range(3)]
    return Cost(*map(statistics.median, zip(*costs)))


def readme_program(folder):
    """The first program of README.md, as a source."""
    for code in re.findall(r"\n```cpp\n(.*?\n)```", Path("README.md").read_text(), re.DOTALL):
        if "int main" in code:
            source = Path(folder) / "readme_program.cpp"
            source.write_text(f"// limit: {README_LIMIT}\n{code}")
            return source
    sys.exit("script/compile_times: README.md has no program")


def limits_of(source):
    first = Path(source).read_text().split("\n", 1)[0]
    match = re.fullmatch(r"// limit: ([0-9.]+)(?:, ([0-9.]+) MiB)?", first.strip())
    if match is None:
        return GENERAL_LIMIT, GENERAL_MIB
    return float(match[1]), float(match[2] or GENERAL_MIB)


def measure_program(source, folder):
    """Two rows: header-only, which must also run, and with fastweights::compiled."""
    name, limits = Path(source).name, limits_of(source)
    compiled, _ = compile_alone(source, folder, "-DFASTWEIGHTS_COMPILED")
    cost, target = compile_alone(source, folder)
    program = target.with_suffix("")
    subprocess.run([*COMPILER, target, "-o", program], check=True)
    subprocess.run([program], check=True, stdout=subprocess.DEVNULL)
    return [Row(name, cost, *limits), Row(f"{name} with fastweights::compiled", compiled, *limits)]


def build_rows(build):
    log = Path(build) / BUILD_LOG
    if not log.exists():
        sys.exit(f"script/compile_times: {log} is missing; configure that build with "
                 "-DFASTWEIGHTS_LOG_COMPILE_TIMES=ON and build it")
    rows = []
    for name, cost in read_log(log).items():
        source = re.sub(r"CMakeFiles/[^/]*\.dir/|\.o$", "", name)
        rows.append(Row(source, cost, GENERAL_LIMIT, GENERAL_MIB))
    return rows


def print_table(rows, empty):
    print(f"An empty main with <Eigen/Dense> at -O2 ({' '.join(COMPILER)}): "
          f"{empty.seconds:.2f} s, {empty.mib:.0f} MiB.\n")
    print("| source | times the empty main | limit | seconds | MiB | limit | exceeds |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for row in sorted(rows, key=lambda r: -r.cost.seconds):
        print(f"| {row.name} | {row.cost.seconds / empty.seconds:.1f} | {row.limit:g} "
              f"| {row.cost.seconds:.2f} | {row.cost.mib:.0f} | {row.limit_mib:g} "
              f"| {' and '.join(row.exceeded(empty))} |")
    over = sum(1 for row in rows if row.exceeded(empty))
    total = sum(row.cost.seconds for row in rows)
    print(f"\n{len(rows)} rows, {total:.0f} s in all; {over} of them exceed a limit.")
    return over


def main():
    parser = argparse.ArgumentParser(prog="script/compile_times", description=(
        "Compile time and memory of sources, as a Markdown table."))
    parser.add_argument("--check", action="store_true", help="exit with 1 when a limit is exceeded")
    parser.add_argument("--build", metavar="FOLDER", help="all sources of this build instead")
    parser.add_argument("sources", nargs="*", help="instead of tests/compile_times/*.cpp")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty = measure_empty(folder)
        if options.build:
            rows = build_rows(options.build)
        else:
            sources = options.sources or [readme_program(folder),
                                          *sorted(Path("tests/compile_times").glob("*.cpp"))]
            rows = [row for source in sources for row in measure_program(source, folder)]
    over = print_table(rows, empty)
    return 1 if options.check and over else 0


sys.exit(main())
