"""Compiles and runs the tests of mutants (script/check mutations, script/parts/check/mutants.py).

Compilation is what takes time. So a batch of mutants is compiled together in a copy of the headers,
each behind a switch, and a test program runs once for every mutant with only its switch on; first
with none, when it must pass. A mutant in a constant expression, or whose type differs from the
original's, is compiled by itself; it is left out if only programs of all memories could kill it.

A mutant is killed if a program fails, crashes, or exceeds its time or 4 GiB. A mutant that does not
compile does not count.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import mutants as code

FOLDERS = {"kernels": "kernels", "rules": "memories/rules", "algorithms": "algorithms", "io": "io"}
REQUIRED = 90  # percent of the mutants
BATCH = 400  # mutants that are compiled together
FOLDER = pathlib.Path("build/mutations")


def tests_like(pattern):
    return sorted(map(str, pathlib.Path("tests").glob(pattern)))


# The memories by name: a source a group and scalar, which memory_sources of script/parts/environment writes.
SCALARS = ("float", "double", "complex")
TABLE = pathlib.Path("include/fastweights/any_memory/table")
GROUPS = re.findall(r"\bGROUP\((\w+)\)", (TABLE / "groups.hpp").read_text())
MEMORIES = [f"{FOLDER}/memories/{group}_{scalar}.cpp" for scalar in SCALARS
            for group in [*GROUPS, "table"]]
BY_NAME = [*tests_like("support/*.cpp"), *MEMORIES]
# The compiled library, which every program links; not what reads text, with libraries of others.
COMPILED = sorted(str(source) for source in pathlib.Path("src").glob("*.cpp")
                  if source.stem not in ("text", "chat_template"))

# Test programs: their sources. Each has Catch's main, except `reference`.
PROGRAMS = {name: [f"tests/{name}_test.cpp", "tests/support/values.cpp"] for name in (
    *(f"kernels/{source}" for source in (
        "scan", "row_scan", "segment", "small_sizes", "deferred", "eight_bits", "range", "backward",
        "backward_chunks", "backward_chunk_decays", "backward_corrections", "backward_decays",
        "backward_gates", "backward_products", "packed_product", "roll_back", "outer_product",
        "amx_scan", "write")),
    "io/safetensors", "io/files", "io/json", "io/leaves", "core/finite", "memories/constructors")}
PROGRAMS |= {
    "laws": ["tests/laws/forms_test.cpp", "tests/laws/gradients_test.cpp", *BY_NAME],
    "rules": [*(source for source in tests_like("memories/*_test.cpp") if "onnx" not in source),
              *(f"tests/laws/{name}_test.cpp" for name in (
                  "checked_tokens", "hostile_states", "options", "overlap", "range", "streams")),
              *BY_NAME],
    "files": ["tests/laws/files_test.cpp", "tests/io/weights_test.cpp", *BY_NAME],
    "reference": [*tests_like("reference/*.cpp"), *MEMORIES],
    "bad_files": [f"tests/bad_files/{name}.cpp" for name in ("bad_files_test", "files", "heap")],
    "faults": ["tests/faults/faults_test.cpp", "tests/faults/calls.cpp"],
}

# The tests of a header: those that kill most, for their time to compile, come first. Programs that
# do not include the header are left out.
SCANS = [f"kernels/{name}" for name in ("scan", "small_sizes", "row_scan", "segment", "roll_back",
                                        "deferred", "eight_bits", "range", "write")]
BACKWARD = [f"kernels/{name}" for name in (
    "backward", "backward_decays", "backward_chunks", "backward_chunk_decays",
    "backward_corrections", "backward_gates", "backward_products", "range")]
NAMED = ["laws", "reference", "rules"]
TESTS = [
    (r"kernels/amx/", ["kernels/amx_scan"]),
    (r"kernels/backward/", [*BACKWARD, *NAMED]),
    (r"kernels/simd/outer_product", ["kernels/outer_product", *NAMED]),
    (r"kernels/(decode/deferred|simd/stored)", ["kernels/deferred", "kernels/eight_bits",
                                                "kernels/range", *NAMED]),
    (r"kernels/simd/packet", ["kernels/outer_product", *SCANS, "kernels/backward", *NAMED]),
    (r"kernels/.*product", ["kernels/packed_product", *SCANS, "kernels/backward", *NAMED]),
    (r"kernels/", [*SCANS, "kernels/backward", *NAMED]),
    (r"(memories|algorithms)/", [*NAMED, "memories/constructors"]),
    (r"io/implementation/json", ["io/json", "io/safetensors", "bad_files"]),
    (r"io/implementation/(posix|standard)_files", ["io/files", "faults", "io/safetensors"]),
    (r"io/(implementation/)?weights", ["files"]),
    (r"io/", ["io/safetensors", "io/leaves", "io/files", "bad_files", "faults", "files"]),
]

COMMON = """#pragma once
#include <Eigen/Dense>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
namespace mutations {
inline const int active = [] {
  const char* number = std::getenv("FASTWEIGHTS_MUTANT");
  return number ? std::atoi(number) : 0;
}();
}
#define FASTWEIGHTS_MUTANT(number) (mutations::active == number)
"""


class Compiler:
    def __init__(self, eigen):
        self.options = ["-std=c++20", "-O1", "-march=native", "-w", "-DFASTWEIGHTS_POISON_SCRATCH",
                        "-DFASTWEIGHTS_COMPILED", f"-I{FOLDER}", "-Itests", *eigen]
        launcher = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", "")
        self.command = [*launcher.split(), os.environ.get("CXX", "g++")]
        self.headers, self.plain = {}, {}
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.write("common.hpp", COMMON)
        self.write("main.cpp", "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
        self.run(["bash", "-c", f". script/parts/environment; memory_sources {FOLDER}/memories "
                  + " ".join(SCALARS)]).check_returncode()
        self.write("data_folder.hpp", '#define FASTWEIGHTS_REFERENCE_DIR "tests/data"\n')
        precompiled = FOLDER / "common.hpp.gch"
        if not precompiled.exists():
            self.run([*self.command[-1:], *self.options, "-x", "c++-header", f"{FOLDER}/common.hpp",
                      "-o", str(precompiled)]).check_returncode()

    @staticmethod
    def write(name, text):
        file = FOLDER / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            if name == "common.hpp":
                (FOLDER / "common.hpp.gch").unlink(missing_ok=True)

    @staticmethod
    def run(command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def headers_of(self, source):
        """The headers of the library that a source includes."""
        if source not in self.headers:
            result = self.run([self.command[-1], *self.options, "-Iinclude", "-MM", source])
            result.check_returncode()
            self.headers[source] = set(re.findall(r"include/fastweights/\S+", result.stdout))
        return self.headers[source]

    def memories_of(self, file):
        """The names of the memories whose groups include a header."""
        names = []
        for group in GROUPS:
            if file in self.headers_of(f"{FOLDER}/memories/{group}_double.cpp"):
                names += re.findall(r'table\.add\(\s*"(\w+)"', (TABLE / f"{group}.hpp").read_text())
        return names

    def has_32_registers(self):
        macros = self.run([self.command[-1], *self.options, "-dM", "-E", "-x", "c++", "/dev/null"])
        return re.search(r"__AVX512F__|__aarch64__", macros.stdout) is not None

    def active_lines(self, names):
        """File -> its lines that the preprocessor keeps."""
        everything = FOLDER / "everything.cpp"
        everything.write_text("".join(f"#include <{n.removeprefix('include/')}>\n" for n in names))
        result = self.run([self.command[-1], *self.options, "-Iinclude", "-E", str(everything)])
        result.check_returncode()
        lines, file, number = collections.defaultdict(set), "", 0
        for text in result.stdout.split("\n"):
            marker = re.match(r'# (\d+) "([^"]*)"', text)
            if marker:
                number, file = int(marker[1]), marker[2]
                continue
            if text.strip():
                lines[file].add(number)
            number += 1
        return lines

    def object(self, source, include, out):
        """Compiles a source with the headers of a folder. Returns the errors, or none."""
        out.parent.mkdir(parents=True, exist_ok=True)
        common = ["-include", f"{FOLDER}/common.hpp", "-fpch-preprocess"]
        if source == f"{FOLDER}/main.cpp":
            common = []  # Catch's main must be the first to include Catch
        result = self.run([*self.command, *self.options, f"-I{include}", *common, "-c", source, "-o",
                           str(out)])
        return result.stdout if result.returncode else ""

    def object_of(self, source, tree):
        """The object of a source with the tree's mutants, and the errors of the compiler."""
        changed = bool(self.headers_of(source) & tree.files)
        if not changed and source in tree.other_objects:
            return tree.other_objects[source], ""
        memory = tree.objects if changed else self.plain
        if source not in memory:
            out = (tree.folder if changed else FOLDER / "plain") / (source.replace("/", "_") + ".o")
            errors = self.object(source, tree.include if changed else "include", out)
            if errors:
                return None, errors
            memory[source] = str(out)
        return memory[source], ""

    def program(self, name, tree, one_first=False):
        """Builds a test program with the tree's mutants. Returns its path, or the errors."""
        main = [] if name == "reference" else [f"{FOLDER}/main.cpp"]
        if one_first:  # most mutants that do not compile fail there
            changed = (s for s in PROGRAMS[name] if self.headers_of(s) & tree.files)
            _, errors = self.object_of(next(changed), tree)
            if errors:
                return None, errors
        made = []
        # The library first: most mutants of kernels that do not compile show there, before all
        # memories are made.
        for sources in (COMPILED, [*main, *PROGRAMS[name]]):
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                made += pool.map(lambda source: self.object_of(source, tree), sources)
            errors = "".join(text for _, text in made)
            if errors:
                return None, errors
        objects = [path for path, _ in made]
        program = tree.folder / name.replace("/", "_")
        result = self.run([self.command[-1], *objects, "-o", str(program), "-ldl"])
        if result.returncode:
            sys.exit(f"cannot link {name}:\n{result.stdout}")
        return program, ""


class Tree:
    """A copy of the headers. Objects that include none of `files` are those of the real headers."""

    def __init__(self, name):
        self.folder = FOLDER / name
        self.include = self.folder / "include"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree("include", self.include)
        self.files, self.objects = set(), {}
        self.other_objects = {}  # of sources that include no changed header, if they are compiled

    def change(self, texts):
        """Replaces the texts of some headers, and restores all others."""
        self.write(texts)
        self.files, self.objects = set(texts), {}

    def write(self, texts):
        """Changes the headers alone. An object keeps the switches of mutants that left: they are off."""
        for file in self.files - set(texts):
            shutil.copy(file, self.folder / file)
        for file, text in texts.items():
            (self.folder / file).write_text(text)


def limit_resources():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def passes(program, number, limit, memories=()):
    """Runs a test program, whose laws are about these memories only, if some are named."""
    options = [] if program.name == "reference" else ["--abort"]
    own = {"FASTWEIGHTS_MUTANT": str(number)}
    if memories:
        own["FASTWEIGHTS_LAWS_OF"] = ",".join(memories)
    process = subprocess.Popen(
        [program, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=os.environ | own,
        start_new_session=True, preexec_fn=limit_resources)
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


class Session:
    def __init__(self, compiler, sources):
        self.compiler, self.sources = compiler, sources
        self.results, self.total, self.start = {}, 0, time.time()
        self.limits = {}

    def tests_of(self, file):
        names = next(names for pattern, names in TESTS if re.search(pattern, file))
        return [n for n in names
                if any(file in self.compiler.headers_of(source) for source in PROGRAMS[n])]

    def report(self, mutant, result, by=""):
        self.results[mutant] = result
        minutes = (time.time() - self.start) / 60
        print(f"[{len(self.results)}/{self.total}, {minutes:.1f} min] {label(mutant)}: {result}"
              f"{' by ' + by if by else ''}", flush=True)

    def batch(self, some):
        """Runs these mutants, by switches where that is possible."""
        together = {i: m for i, m in enumerate(some, 1) if not m.site.constant}
        tree = Tree("together")
        left = dict(together)  # not killed yet
        waiting = {i: self.tests_of(m.file) for i, m in together.items()}
        while any(waiting[i] for i in left):
            name = collections.Counter(waiting[i][0] for i in left if waiting[i]).most_common(1)[0][0]
            program = self.switched_program(name, tree, together, left, waiting)
            if program is None:
                break
            begin = time.time()
            if not passes(program, 0, 600):
                sys.exit(f"{name} fails without a mutant: build/mutations/together has the program")
            limit = self.limits[name] = 10 + 5 * (time.time() - begin)
            tested = [i for i in left if name in waiting[i]]

            def survives(i):
                memories = self.compiler.memories_of(together[i].file)
                return passes(program, i, min(60, limit), memories)

            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                for i, survived in zip(tested, pool.map(survives, tested)):
                    waiting[i].remove(name)
                    if not survived:
                        self.report(left.pop(i), "killed", name)
        for i, mutant in left.items():
            self.report(mutant, "SURVIVED")
        for mutant in some:
            if mutant not in self.results:
                self.alone(mutant, tree.objects)  # their switches are off

    def switched_program(self, name, tree, together, left, waiting):
        """Builds a program; mutants that do not compile behind a switch leave the batch."""
        while together:
            if not tree.files:
                tree.change(self.switched(together))
            print(f"   building {name} with {len(together)} mutants", flush=True)
            program, errors = self.compiler.program(name, tree)
            if program:
                return program
            wrong = self.blamed(errors, tree, together, r":\d+: error:") or \
                self.blamed(errors, tree, together, r":")
            if not wrong:
                wrong = set(left)
                print(errors[:2000])
            for i in wrong:
                for group in (together, left, waiting):
                    group.pop(i, None)
            tree.write(self.switched(together))
        return None

    def switched(self, mutants):
        """The texts of the headers of these mutants, each mutant behind its switch."""
        by_file = collections.defaultdict(dict)
        for i, m in mutants.items():
            by_file[m.file][i] = m
        return {f: self.sources[f].with_switches(ms) for f, ms in by_file.items()}

    def blamed(self, errors, tree, together, behind):
        places = {(m[1], int(m[2])) for m in re.finditer(
            rf"{re.escape(str(tree.folder))}/(\S+?):(\d+){behind}", errors)}
        wrong = set()
        for i, m in together.items():
            source = self.sources[m.file]
            lines = range(source.line_of(m.site.begin), source.line_of(m.site.end) + 1)
            if any((m.file, line) in places for line in lines):
                wrong.add(i)
        return wrong

    def alone(self, mutant, other_objects):
        """Compiles a mutant by itself."""
        tree = Tree("alone")
        tree.other_objects = other_objects
        tree.change({mutant.file: self.sources[mutant.file].changed(mutant)})
        names = self.tests_of(mutant.file)
        if len(self.compiler.memories_of(mutant.file)) > 20:
            names = [n for n in names if n not in NAMED]  # they compile for minutes for one mutant
        if not names:
            return self.report(mutant, "left out")
        for name in names:
            program, _ = self.compiler.program(name, tree, one_first=True)
            if program is None:
                return self.report(mutant, "not compiled")
            limit = min(60, self.limits.get(name, 60))
            if not passes(program, 0, limit, self.compiler.memories_of(mutant.file)):
                return self.report(mutant, "killed", name)
        return self.report(mutant, "SURVIVED")


def label(mutant):
    return f"{mutant.file.removeprefix('include/fastweights/')}:{mutant.line} {mutant.operator}"


def main():
    parser = argparse.ArgumentParser(prog="script/check mutations")
    parser.add_argument("--only", choices=FOLDERS, action="append")
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("text", nargs="*")
    own, eigen = sys.argv[1:], []
    if "--" in own:
        own, eigen = own[: own.index("--")], own[own.index("--") + 1 :]
    wanted = parser.parse_args(own)

    compiler = Compiler(eigen)
    wide = compiler.has_32_registers()
    sources, chosen = {}, {}
    for folder, place in FOLDERS.items():
        if wanted.only and folder not in wanted.only:
            continue
        names = sorted(map(str, pathlib.Path("include/fastweights", place).rglob("*.hpp")))
        active = compiler.active_lines(names)
        found = []
        for name in names:
            sources[name] = code.Source(name, pathlib.Path(name).read_text(), active[name], wide)
            found += [m for m in sources[name].mutants
                      if not wanted.text or any(t in label(m) for t in wanted.text)]
        if wanted.count and wanted.count < len(found):
            drawn = random.Random(wanted.seed).sample(range(len(found)), wanted.count)
            found = [found[i] for i in sorted(drawn)]
        chosen[folder] = found

    if wanted.list:
        for folder, found in chosen.items():
            print("\n".join(map(label, found)))
            print(f"{folder}: {len(found)} mutants")
        return 0

    session = Session(compiler, sources)
    session.total = sum(map(len, chosen.values()))
    everything = [mutant for found in chosen.values() for mutant in found]
    print(", ".join(f"{folder}: {len(found)} mutants" for folder, found in chosen.items()), flush=True)
    for i in range(0, len(everything), BATCH):
        session.batch(everything[i : i + BATCH])

    print("\n== Summary")
    enough = True
    for folder, found in chosen.items():
        count = collections.Counter(session.results[m] for m in found)
        counted = count["killed"] + count["SURVIVED"]
        percent = 100 * count["killed"] / max(1, counted)
        enough = enough and percent >= REQUIRED
        print(f"{folder}: {count['killed']} of {counted} mutants killed, {percent:.1f} %; "
              f"{count['not compiled']} more did not compile, {count['left out']} left out")
        for mutant in found:
            if session.results[mutant] == "SURVIVED":
                print(f"   survived: {label(mutant)}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
