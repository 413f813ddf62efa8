"""The README's example runs, and leaves no word of a leak."""

import pathlib
import re

import pytest
from alone import run_alone

README = pathlib.Path(__file__).parent.parent / "README.md"
AFTER = """
assert key.grad.abs().max() > 0
assert y.shape == (2, 8, 64)
"""


def test_example(tmp_path):
    pytest.importorskip("torch")
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.S)[1]
    run_alone(example + AFTER, tmp_path)
    assert (tmp_path / "state.safetensors").exists()
