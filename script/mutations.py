"""Compiles and runs the tests of mutants (script/mutations, script/mutants.py).

Compilation is what takes time. So a batch of mutants is compiled together in a copy of the headers,
each behind a switch, and a test program runs once for every mutant with only its switch on; first
with none, when it must pass. A mutant in a constant expression, or whose type differs from the
original's, is compiled by itself.

A mutant is killed if a program fails, crashes, or exceeds its time or 4 GiB. A mutant that does not
compile does not count.
"""

import argparse
import collections
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

FOLDERS = {"kernels": "kernels", "rules": "memories/rules", "io": "io"}
REQUIRED = 90  # percent of the mutants
BATCH = 200  # mutants that are compiled together

# Test programs: their sources. Each has Catch's main, unless its name begins with `reference`.
RUN = "tests/support/run.cpp"
REFERENCE = ["tests/reference/rule_run.cpp", "tests/reference/main.cpp"]
PROGRAMS = {name: [f"tests/{name}_test.cpp"] for name in (
    "kernels/scan", "kernels/small_sizes", "kernels/backward", "kernels/backward_chunks",
    "kernels/backward_chunk_decays", "kernels/backward_corrections", "kernels/backward_decays",
    "kernels/backward_gates", "kernels/backward_products", "kernels/outer_product",
    "kernels/amx_scan", "io/safetensors", "io/files", "io/json", "io/leaves", "core/finite")}
PROGRAMS |= {name: [f"tests/{name}_test.cpp", RUN] for name in (
    "kernels/deferred", "kernels/range", "laws/delta_rule", "laws/normalised_delta_rule",
    "laws/vector_delta_rule", "laws/linear_attention", "laws/decaying", "laws/gated_delta_rule",
    "laws/gated_linear_attention", "laws/fast_weight_memory", "laws/deferred",
    "laws/delta_family", "laws/delta_family_gates", "laws/test_time", "laws/test_time_window",
    "laws/test_time_models", "laws/state_space", "laws/state_space_scan", "laws/mesa",
    "laws/log_linear_attention", "io/weights",
    "memories/checked", "memories/checked_numbers")}
PROGRAMS |= {
    "bad_files": [f"tests/bad_files/{name}.cpp" for name in ("bad_files_test", "files", "heap")],
    "faults": ["tests/faults/faults_test.cpp", "tests/faults/calls.cpp"],
    "memories/hostile_states": ["tests/memories/hostile_states_test.cpp",
                                "tests/support/hostile_states.cpp", RUN],
    "reference": ["tests/reference/memories.cpp", "build/mutations/other_than_memory.cpp",
                  *REFERENCE],
    "reference_family": ["tests/reference/delta_family.cpp",
                         "build/mutations/other_than_delta_family.cpp", *REFERENCE],
    "reference_state_space": ["tests/reference/state_space.cpp",
                              "build/mutations/other_than_state_space.cpp", *REFERENCE],
    "reference_test_time": ["tests/reference/test_time.cpp",
                            "build/mutations/other_than_test_time.cpp", *REFERENCE],
}

# The tests of a header: those that kill most, for their time to compile, come first. Programs that
# do not include the header are left out.
SCANS = ["kernels/scan", "kernels/small_sizes", "kernels/deferred", "kernels/range"]
CHECKED = ["memories/checked", "memories/checked_numbers"]
TESTS = [
    (r"kernels/amx/", ["kernels/amx_scan"]),
    (r"kernels/backward/", ["kernels/backward", "kernels/backward_decays", "kernels/backward_chunks",
                            "kernels/backward_chunk_decays", "kernels/backward_corrections",
                            "kernels/backward_gates", "kernels/backward_products",
                            "kernels/range"]),
    (r"kernels/simd/outer_product", ["kernels/outer_product"]),
    (r"kernels/(decode/deferred|simd/stored)", ["kernels/deferred", "laws/deferred", "kernels/range"]),
    (r"kernels/simd/packet", ["kernels/outer_product", *SCANS, "kernels/backward"]),
    (r"kernels/scan/(pair|pair_loop|matrix_pass|panels)\.", ["kernels/scan", "kernels/backward",
                                                            *SCANS[1:]]),
    (r"kernels/", [*SCANS, "kernels/backward"]),
    (r"rules/fast_weight_memory", ["laws/fast_weight_memory", *CHECKED]),
    (r"rules/(hebbian|programmer)", ["laws/decaying", "reference", "kernels/backward",
                                     "laws/linear_attention", *CHECKED]),
    (r"rules/linear_attention", ["laws/linear_attention", "reference", "kernels/backward"]),
    (r"rules/(comba|correction|gated_delta_product|low_rank_rule)", [
        "laws/delta_family", "reference_family"]),
    (r"rules/(gated_slot|hgrn|mlstm)", ["laws/state_space", "reference_state_space"]),
    (r"rules/(selective_scan|mamba3|normalised_gated)", [
        "laws/state_space_scan", "reference_state_space"]),
    (r"rules/mesa", ["laws/mesa"]),
    (r"rules/log_linear", ["laws/log_linear_attention"]),
    (r"rules/(miras_memory|inner_losses|retentions)", ["laws/test_time", "reference_test_time"]),
    (r"(rules/(omega_memory|atlas_memory|token_window)|math/newton_schulz)", [
        "laws/test_time_window", "reference_test_time"]),
    (r"rules/(test_time_training|titans_learner|inner_models|inner_objectives)", [
        "laws/test_time_models", "reference_test_time"]),
    (r"rules/(gated_delta_rule_2|gated_oja|longhorn|preconditioned|rwkv6|titans)", [
        "laws/delta_family_gates", "reference_family"]),
    (r"rules/gated_linear", ["laws/gated_linear_attention", "reference", "kernels/backward_decays",
                             *CHECKED]),
    (r"rules/gated_delta", ["laws/gated_delta_rule", "reference", "kernels/backward_decays", *CHECKED]),
    (r"rules/delta_rule", ["laws/normalised_delta_rule", "laws/delta_rule",
                           "laws/vector_delta_rule", "reference", "kernels/backward", *CHECKED]),
    (r"rules/affine", ["laws/delta_rule"]),
    (r"rules/causal", ["laws/decaying", "laws/linear_attention", "laws/delta_rule"]),
    (r"rules/(normaliser|sums)", ["laws/linear_attention", "laws/normalised_delta_rule", "reference",
                                  "kernels/scan", "memories/hostile_states", *CHECKED]),
    (r"io/implementation/json", ["io/json", "io/safetensors", "bad_files"]),
    (r"io/implementation/(posix|standard)_files", ["io/files", "faults", "io/safetensors"]),
    (r"io/(implementation/)?weights", ["io/weights", "memories/hostile_states"]),
    (r"io/", ["io/safetensors", "io/leaves", "io/files", "bad_files", "faults", "io/weights"]),
]

FOLDER = pathlib.Path("build/mutations")
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
# A program of reference tests has those of one group. main.cpp asks for all groups.
GROUPS = ("memory", "delta_family", "state_space", "mesa", "attention", "test_time", "feature_map",
          "layer", "infformer", "fast_weights_rnn", "hypernetwork", "synthetic",
          "recurrent_programmer")


def other_groups(own):
    """The source of empty groups."""
    return "#include <reference/case.hpp>\nnamespace reference {\n" + "".join(
        f"std::map<std::string, Test> {group}_tests() {{ return {{}}; }}\n"
        for group in GROUPS if group != own) + "}\n"


class Compiler:
    def __init__(self, eigen):
        self.options = ["-std=c++20", "-O1", "-march=native", "-w", "-DFASTWEIGHTS_POISON_SCRATCH",
                        f"-I{FOLDER}", "-Itests", *eigen]
        launcher = os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", "")
        self.command = [*launcher.split(), os.environ.get("CXX", "g++")]
        self.headers, self.plain = {}, {}
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.write("common.hpp", COMMON)
        self.write("main.cpp", "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n")
        for own in ("memory", "delta_family", "state_space", "test_time"):
            self.write(f"other_than_{own}.cpp", other_groups(own))
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

    def program(self, name, tree):
        """Builds a test program with the tree's mutants. Returns its path, or the errors."""
        objects = []
        main = [] if name.startswith("reference") else [f"{FOLDER}/main.cpp"]
        for source in [*main, *PROGRAMS[name]]:
            changed = bool(self.headers_of(source) & tree.files)
            memory = tree.objects if changed else self.plain
            if source not in memory:
                out = (tree.folder if changed else FOLDER / "plain") / (source.replace("/", "_") + ".o")
                errors = self.object(source, tree.include if changed else "include", out)
                if errors:
                    return None, errors
                memory[source] = str(out)
            objects.append(memory[source])
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

    def change(self, texts):
        """Replaces the texts of some headers, and restores all others."""
        for file in self.files - set(texts):
            shutil.copy(file, self.folder / file)
        for file, text in texts.items():
            (self.folder / file).write_text(text)
        self.files, self.objects = set(texts), {}


def limit_resources():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def passes(program, number, limit):
    options = [] if program.name.startswith("reference") else ["--abort"]
    process = subprocess.Popen(
        [program, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=os.environ | {"FASTWEIGHTS_MUTANT": str(number)},
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
            for i in [i for i in left if name in waiting[i]]:
                waiting[i].remove(name)
                if not passes(program, i, min(60, limit)):
                    self.report(left.pop(i), "killed", name)
        for i, mutant in left.items():
            self.report(mutant, "SURVIVED")
        for mutant in some:
            if mutant not in self.results:
                self.alone(mutant)

    def switched_program(self, name, tree, together, left, waiting):
        """Builds a program; mutants that do not compile behind a switch leave the batch."""
        while together:
            if not tree.files:
                by_file = collections.defaultdict(dict)
                for i, m in together.items():
                    by_file[m.file][i] = m
                tree.change({f: self.sources[f].with_switches(ms) for f, ms in by_file.items()})
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
            tree.change({})
        return None

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

    def alone(self, mutant):
        """Compiles a mutant by itself."""
        tree = Tree("alone")
        tree.change({mutant.file: self.sources[mutant.file].changed(mutant)})
        for name in self.tests_of(mutant.file):
            program, _ = self.compiler.program(name, tree)
            if program is None:
                return self.report(mutant, "not compiled")
            if not passes(program, 0, min(60, self.limits.get(name, 60))):
                return self.report(mutant, "killed", name)
        return self.report(mutant, "SURVIVED")


def label(mutant):
    return f"{mutant.file.removeprefix('include/fastweights/')}:{mutant.line} {mutant.operator}"


def main():
    parser = argparse.ArgumentParser(prog="script/mutations")
    parser.add_argument("--only", choices=FOLDERS)
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
        if wanted.only not in (None, folder):
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
    for folder, found in chosen.items():
        print(f"\n== {folder}: {len(found)} mutants", flush=True)
        for i in range(0, len(found), BATCH):
            session.batch(found[i : i + BATCH])

    print("\n== Summary")
    enough = True
    for folder, found in chosen.items():
        count = collections.Counter(session.results[m] for m in found)
        counted = count["killed"] + count["SURVIVED"]
        percent = 100 * count["killed"] / max(1, counted)
        enough = enough and percent >= REQUIRED
        print(f"{folder}: {count['killed']} of {counted} mutants killed, {percent:.1f} %; "
              f"{count['not compiled']} more did not compile")
        for mutant in found:
            if session.results[mutant] == "SURVIVED":
                print(f"   survived: {label(mutant)}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
