"""The README's example runs."""

import pathlib
import re

import pytest


def test_example(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], names)
    assert names["key"].grad.abs().max() > 0
    assert names["y"].shape == (2, 8, 64) and (tmp_path / "state.safetensors").exists()
