"""Equations of headers and their TeX.   python3 docs/site/equations_test.py"""
import unittest

import equations


class Equations(unittest.TestCase):
    def tex_of(self, *lines):
        return equations.tex(list(lines)).removeprefix(r'\begin{aligned}').removesuffix(r'\end{aligned}')

    def test_columns_are_rows_aligned_at_their_relation(self):
        self.assertEqual(self.tex_of('W_t = W_{t−1} + u_t k_tᵀ     y_t = W_t q_t'),
                         r'W_{t} &= W_{t-1} + u_{t} k_{t}^{\top } \\ y_{t} &= W_{t} q_{t}')

    def test_accents_and_scripts_of_one_symbol(self):
        self.assertEqual(self.tex_of('k̂_tᵀ = W̄⁻¹'), r"\hat{k}_{t}^{\top } &= \bar{W}^{-1}")
        self.assertEqual(self.tex_of("k'_tᵀ = x²"), r"k_{t}^{\prime \top } &= x^{2}")

    def test_roots_take_their_bracket_or_one_symbol(self):
        self.assertEqual(self.tex_of('y = x / √(σ² + ε)'), r'y &= x / \sqrt{\sigma ^{2} + \varepsilon }')
        self.assertEqual(self.tex_of('s = q/√d_k'), r's &= q/\sqrt{d_{k}}')

    def test_functions_words_and_numbers(self):
        self.assertEqual(self.tex_of('v = silu(W_v x)'), r'v &= \operatorname{silu}(W_{v} x)')
        self.assertEqual(self.tex_of('a = 1e-6 for x'), r'a &= 10^{-6} \ \text{for}\  x')

    def test_what_adds(self):
        self.assertEqual(self.tex_of('dv_t += G k_t'), r'dv_{t} &\mathrel{+}= G k_{t}')

    def test_a_symbol_without_tex_is_an_error(self):
        with self.assertRaisesRegex(ValueError, '☃'):
            self.tex_of('x = ☃')

    def test_code_and_text_are_no_equations(self):
        for line in ('fw::step(memory, state, {k, v, beta}, {q}, {y});', 'auto y = f(x);', 'script/bench --quick',
                     '8 bytes   n, little-endian'):
            self.assertFalse(equations.is_equation([line]), line)
        self.assertTrue(equations.is_equation(['y_t = W_t q_t']))

    def test_indices_in_a_sentence(self):
        self.assertEqual(equations.scripts_of_prose('d_v×d_k and z_{t−1}, 2^62, d_model'),
                         'd<sub>v</sub>×d<sub>k</sub> and z<sub>t−1</sub>, 2<sup>62</sup>, d_model')


if __name__ == '__main__':
    unittest.main()
