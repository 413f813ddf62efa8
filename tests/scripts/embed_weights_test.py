"""script/embed_weights: the bytes of a header are those of the file, and a bad file is refused."""
import ast
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "script" / "embed_weights"


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


class EmbedWeights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "model.safetensors"

    def run_script(self, data, *arguments):
        self.file.write_bytes(data)
        return subprocess.run([sys.executable, SCRIPT, self.file, *arguments],
                              capture_output=True, text=True)

    def header(self, data, *arguments):
        done = self.run_script(data, *arguments)
        self.assertEqual(done.stderr, "")
        return self.file.with_suffix(".hpp").read_text()

    def assert_refused(self, data, what):
        done = self.run_script(data)
        self.assertEqual(done.returncode, 1)
        self.assertIn("model.safetensors: " + what, done.stderr)
        self.assertFalse(self.file.with_suffix(".hpp").exists())

    def test_bytes(self):
        # Every byte, each before a digit, which must not become a part of an octal number.
        values = bytes(b for i in range(256) for b in (i, ord("7")))
        data = file_of({"x": tensor("U8", [512], 0, 512)}, values)
        text = self.header(data)
        literals = re.findall(r'^    (".*");?$', text, re.MULTILINE)
        # C++ and Python agree about these escapes.
        embedded = b"".join(ast.literal_eval("b" + literal.replace(r"\?", "?")) for literal in literals)
        self.assertEqual(embedded, data)
        self.assertIn(f"model_bytes[{len(data) + 1}]", text)
        self.assertIn(f"first<{len(data)}>", text)

    def test_names(self):
        data = file_of({"a\n#error": tensor("F32", [], 0, 4)}, bytes(4))
        text = self.header(data, "--name", "weights")
        self.assertIn("std::span<const std::byte> weights()", text)
        self.assertNotRegex(text, "(?m)^#error")
        done = self.run_script(data, "--name", "7 weights")
        self.assertIn("the name '7 weights' is no name in C++", done.stderr)

    def test_bad_files(self):
        self.assert_refused(b"PK\3\4", "a zip archive")
        self.assert_refused(b"abc", "holds 3 bytes")
        self.assert_refused(struct.pack("<Q", 9) + b"{}", "header of 9 bytes, only 2 follow")
        self.assert_refused(file_of(b"{"), "header: ")
        self.assert_refused(file_of(b"[]"), "header: expected an object")
        self.assert_refused(file_of(b'{"x": 1, "x": 2}'), "the name 'x' appears twice")
        self.assert_refused(file_of({"x": {}}), "tensor 'x': expected dtype")

    def test_bad_tensors(self):
        refused = [
            (tensor("F4", [1], 0, 4), "tensor 'x': unknown dtype 'F4'"),
            (tensor("F32", [-1], 0, 4), "tensor 'x': shape is [-1], expected counts"),
            (tensor("F32", [True], 0, 4), "tensor 'x': shape is [True], expected counts"),
            (tensor("F32", [1], 4, 0), "tensor 'x': data_offsets are [4, 0]"),
            (tensor("F32", [2], 0, 4), "tensor 'x': data_offsets [0, 4] hold 4 bytes, F32 of shape [2] needs 8"),
            (tensor("F32", [1], 4, 8), "tensor 'x' begins at 4, the data before it ends at 0"),
            (tensor("F32", [1], 0, 4), "tensors have 4 bytes of data, the file has 8"),
        ]
        for entry, what in refused:
            self.assert_refused(file_of({"x": entry}, bytes(8)), what)


if __name__ == "__main__":
    unittest.main()
