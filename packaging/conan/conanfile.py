"""Conan 2 recipe of the library in this repository (README.md)."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

VERSION_HEADER = os.path.join("include", "fastweights", "core", "version.hpp")
# The libraries of fastweights::compiled. Each links the one behind it.
COMPILED = ("compiled_memories_double", "compiled_memories", "compiled_kernels",
            "compiled_networks_float", "compiled_float", "compiled_core")


class FastweightsConan(ConanFile):
    name = "fastweights"
    license = "MIT"
    description = "Fast-weight memory layers on Eigen (C++20)"
    topics = ("linear-attention", "delta-rule", "fast-weights", "eigen", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    options = {"models": [True, False], "compiled": [True, False]}
    default_options = {"models": False, "compiled": False}
    no_copy_source = True

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root, VERSION_HEADER))
        self.version = ".".join(re.findall(r"#define FASTWEIGHTS_VERSION_\w+ (\d+)", text))

    def export_sources(self):
        for pattern in ("include/*.hpp", "src/*", "cmake/*", "CMakeLists.txt", "README.md", "CHANGELOG.md",
                        "LICENSE"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def configure(self):
        self.package_type = "static-library" if self.options.compiled else "header-library"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("eigen/[>=3.4.0 <6]", transitive_headers=True)
        if self.options.models:
            self.requires("nlohmann_json/[>=3.11 <4]", transitive_headers=True)

    def package_id(self):
        if not self.info.options.compiled:
            self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        if not self.options.compiled:
            return
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # no file beside the sources
        toolchain.cache_variables.update(
            {f"FASTWEIGHTS_{part}": False for part in ("TESTS", "EXAMPLES", "BENCHMARKS")},
            FASTWEIGHTS_INSTALL_COMPILED=True,
            # The tokenizer is left to the program, whatever this machine has.
            fastweights_pcre2_include="", fastweights_utf8proc_include="",
            CMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=not self.options.models)
        toolchain.generate()

    def build(self):
        if self.options.compiled:
            cmake = CMake(self)
            cmake.configure()
            cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        if not self.options.compiled:
            copy(self, "*.hpp", os.path.join(self.source_folder, "include"),
                 os.path.join(self.package_folder, "include"))
            return
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "share"))
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))

    def package_info(self):
        # One component for each target of the installed CMake package.
        self._component("core", "fastweights", ["eigen::eigen"])
        self._component("io", "io", ["core"])
        if self.options.models:
            self._component("models", "models", ["io", "nlohmann_json::nlohmann_json"])
        if self.options.compiled:
            self._compiled_components()
        self.cpp_info.set_property("cmake_file_name", "fastweights")
        # All components; the default is the name of one.
        self.cpp_info.set_property("cmake_target_name", "fastweights::all")

    def _compiled_components(self):
        for name, behind in zip(COMPILED, COMPILED[1:] + ("core",)):
            self._component(name, name, [behind], [f"fastweights_{name}"], ["FASTWEIGHTS_COMPILED"])
        self._component("compiled", "compiled", [COMPILED[0]], defines=["FASTWEIGHTS_COMPILED_MEMORIES"])
        if self.options.models:
            self._component("compiled_models", "compiled_models", ["compiled", "models"],
                            ["fastweights_architectures"], ["FASTWEIGHTS_COMPILED_MODELS"])

    def _component(self, name, target, requires, libs=(), defines=()):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"fastweights::{target}")
        component.requires = list(requires)
        component.libs, component.defines = list(libs), list(defines)
        component.bindirs = []
        if not libs:
            component.libdirs = []
