"""script/check compile-times: which rows of made-up figures fail."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "script/parts/check"))
sys.dont_write_bytecode = True
import compile_times
from compile_times import Cost, KNOWN, Miss, Row

EMPTY = Cost(2.0, 200)
MISSES = {"slow": Miss("its templates", times=20), "large": Miss("its tables", mib=1000)}


def row(times, mib=0, name="a row", limit=10, limit_mib=800):
    return Row(name, Cost(times * EMPTY.seconds, mib), limit, limit_mib)


class CompileTimes(unittest.TestCase):
    def assert_verdict(self, of, fails, *words):
        text, failed = of.verdict(EMPTY, MISSES)
        self.assertEqual(failed, fails, text)
        for word in words:
            self.assertIn(word, text)
        if not words:
            self.assertEqual(text, "")

    def test_a_row_fails_over_1_15_times_its_limit(self):
        self.assert_verdict(row(10), False)
        self.assert_verdict(row(11.49), False)
        self.assert_verdict(row(11.51), True, "10 times the empty main")

    def test_memory_is_a_limit_too(self):
        self.assert_verdict(row(1, 919), False)
        self.assert_verdict(row(1, 921), True, "800 MiB")
        self.assert_verdict(row(12, 921), True, "10 times the empty main and 800 MiB")
        self.assert_verdict(row(1, 5000, limit_mib=float("inf")), False)

    def test_a_known_row_is_reported_with_its_reason(self):
        self.assert_verdict(row(20, name="slow"), False, "10 times the empty main", "its templates")
        self.assert_verdict(row(25.9, name="slow"), False, "its templates")
        self.assert_verdict(row(1, 1299, name="large"), False, "800 MiB", "its tables")

    def test_a_known_row_fails_when_it_is_30_percent_worse(self):
        self.assert_verdict(row(26.1, name="slow"), True, "20 times the empty main")
        self.assert_verdict(row(1, 1301, name="large"), True, "1000 MiB")

    def test_the_other_limit_of_a_known_row_holds(self):
        self.assert_verdict(row(20, 921, name="slow"), True, "800 MiB")
        self.assert_verdict(row(11.51, 900, name="large"), True, "10 times the empty main")

    def test_a_known_row_that_is_within_its_limit_is_not_reported(self):
        self.assert_verdict(row(11, name="slow"), False)

    def test_a_table_counts_what_exceeds_and_what_fails(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            over, failed = compile_times.print_table([row(1), row(12), row(3, 1000)], EMPTY)
        self.assertEqual(over, 2)
        self.assertEqual(failed, [
            "a row: 12.0 times the empty main, 0 MiB; exceeds 10 times the empty main",
            "a row: 3.0 times the empty main, 1000 MiB; exceeds 800 MiB"])
        self.assertEqual(len(out.getvalue().splitlines()), 2 + 3)

    def test_a_log_has_empty_mains_beside_objects(self):
        with tempfile.NamedTemporaryFile("w") as log:
            log.write("2.0\t0\t1024\ta.o\n1.5\t0\t2048\tempty_main\n3.0\t0\t1024\ta.o\n")
            log.flush()
            costs, empties = compile_times.read_log(log.name)
        self.assertEqual(costs, {"a.o": Cost(3, 1)})
        self.assertEqual(empties, [Cost(1.5, 2)])

    def test_known_rows_have_a_reason_and_a_figure(self):
        for name, miss in KNOWN.items():
            self.assertTrue(miss.reason, name)
            self.assertGreater(miss.times + miss.mib, 0, name)


if __name__ == "__main__":
    unittest.main()
