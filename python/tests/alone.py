"""Runs code in a Python of its own, for what used to end the process."""

import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent


def run_alone(code, folder=FOLDER):
    """The output of the code, which must end without a signal and without a word on stderr."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, f"ended with {done.returncode}: {done.stderr}"
    return done.stdout


def error_of(code):
    """The error that the code raises, as "ValueError: text"."""
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    return run_alone(f"try:\n{lines}except Exception as error:\n    print(type(error).__name__, error, sep=': ')\n")
