"""The version of the package is the version of the headers; the wheel has its licences."""

import importlib.metadata
import pathlib
import re

import pytest

import fastweights

HEADER = pathlib.Path(__file__).parents[2] / "include/fastweights/core/version.hpp"


def test_version():
    assert fastweights.__version__ == importlib.metadata.version("fastweights")
    if not HEADER.exists():
        pytest.skip("the headers are not beside this folder")
    numbers = re.findall(r"^#define FASTWEIGHTS_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", HEADER.read_text(), re.M)
    assert fastweights.__version__ == ".".join(numbers)


def test_licences():
    files = importlib.metadata.files("fastweights")
    texts = {file.name: file.read_text() for file in files if "licenses" in file.parts}
    assert texts["LICENSE"].lstrip().startswith("MIT License")
    assert all(name in texts["NOTICE"] for name in ("Eigen", "Mozilla Public License 2.0", "nanobind", "robin-map"))
