"""Builds and runs the programs of this folder with the package that was just created."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class TestFastweights(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # no file beside the sources
        toolchain.generate()

    def build(self):
        version = str(self.dependencies["fastweights"].ref.version)
        cmake = CMake(self)
        cmake.configure(variables={"EXPECTED_VERSION": version})
        cmake.build()

    def test(self):
        programs = ["step", "file"]
        if self.dependencies["fastweights"].options.compiled:
            programs.append("compiled")
        if can_run(self):
            for program in programs:
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")
