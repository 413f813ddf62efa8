"""Conan 2 recipe of the headers in this repository (README.md)."""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load

VERSION_HEADER = os.path.join("include", "fastweights", "core", "version.hpp")


class FastweightsConan(ConanFile):
    name = "fastweights"
    license = "MIT"
    description = "Fast-weight memory layers on Eigen, header-only (C++20)"
    topics = ("linear-attention", "delta-rule", "fast-weights", "eigen", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"models": [True, False]}
    default_options = {"models": False}
    no_copy_source = True

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root, VERSION_HEADER))
        self.version = ".".join(re.findall(r"#define FASTWEIGHTS_VERSION_\w+ (\d+)", text))

    def export_sources(self):
        copy(self, "include/*.hpp", self._root, self.export_sources_folder)
        copy(self, "LICENSE", self._root, self.export_sources_folder)

    def requirements(self):
        self.requires("eigen/[>=3.4.0 <6]", transitive_headers=True)
        if self.options.models:
            self.requires("nlohmann_json/[>=3.11 <4]", transitive_headers=True)

    def package_id(self):
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def package(self):
        copy(self, "*.hpp", os.path.join(self.source_folder, "include"),
             os.path.join(self.package_folder, "include"))
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # One component for each target of the installed CMake package.
        self._component("core", "fastweights", ["eigen::eigen"])
        self._component("io", "io", ["core"])
        if self.options.models:
            self._component("models", "models", ["io", "nlohmann_json::nlohmann_json"])
        self.cpp_info.set_property("cmake_file_name", "fastweights")
        # All components; the default is the name of one.
        self.cpp_info.set_property("cmake_target_name", "fastweights::all")

    def _component(self, name, target, requires):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"fastweights::{target}")
        component.requires = requires
        component.bindirs = component.libdirs = []
