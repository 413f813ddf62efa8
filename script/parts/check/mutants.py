"""Finds the mutants of a C++ source: small changes of its code by the operators below.

A mutant replaces a statement, an initialiser or a condition, a `Site`, by a changed text. Sites keep
their place in the source, so that many mutants fit in one copy of it, each behind a switch.
"""

import collections
import re

# The operators: a token of code -> its replacements. Binary operators have a space on both sides.
BINARY = {
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["/"],
    "<": ["<="],
    "<=": ["<"],
    ">": [">="],
    ">=": [">"],
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "+=": ["=", "-="],
    "-=": ["+="],
    "*=": ["="],
    "/=": ["="],
}
WORDS = {"true": ["false"], "false": ["true"]}
NAMES = {"min": ["max"], "max": ["min"], "first": ["second"], "second": ["first"],
         "add": ["subtract"]}  # behind :: or a dot
# Besides: N -> N + 1 and, above 0, N - 1; -x -> x; condition -> !(condition); statement -> nothing,
# where a statement that checks is a case of its own.

# Mutants that are left out, because they compute the same: file, text of the line, operator (all
# three are searched for), reason.
EQUIVALENT = [
    (r"simd/prefetch\.hpp", r"", r"", "a prefetch is a hint"),
    (r"", r"prefetch", r"", "a prefetch is a hint"),
    (r"backward/rule", r"\badd\((inputs|queries|dy|dinputs|dqueries)_\.", r"", "a prefetch"),
    (r"backward/chunk\.", r"vectors_count_|per_call_|calls_|total_", r"", "a prefetch"),
    (r"backward/chunk_rows", r"bool regular", r"> to >=", "a view in place of a copy"),
    (r"backward/chunk_rows", r"regular = regular", r"- to \+", "a copy in place of a view"),
    (r"backward/chunk_rows", r"Index padded", r"- to \+", "a larger buffer"),
    (r"backward/chunk_rows", r"count > chunk_size / 2", r"> to", "lanes that nobody reads"),
    (r"decode/step", r"^ *panels\(", r"dropped", "lower panels take the rows"),
    (r"scan/segment", r"buffer_size_ > 0", r"> to", "a buffer without entries"),
    (r"algorithms/scan", r"std::min\(chunk, total - t\)", r"- to \+", "a view ends at the last token"),
    (r"algorithms/parallel_scan", r"parallel_for", r"true to false", "one thread, the same results"),
    (r"algorithms/checked", r"throw_violation\(M::name, v, -1\)", r"1 to 2", "any negative number"),
    (r"algorithms/backward", r"bool fits = true", r"true to", "the buffer is made anew"),
    (r"algorithms/backward", r"fits = fits && array", r"== to !=", "the buffer is made anew"),
    (r"algorithms/streams", r"requires \{ m\.check_capacity", r"0 to 1", "its type alone counts"),
    (r"backward/chunk\.", r"j < v\.entries", r"< to <=", "a prefetch"),
    (r"", r"two_columns|columns_per_pass|budget|NUMBER_OF_REGISTERS", r"", "a choice of speed"),
    (r"", r"\breserve\(", r"", "a capacity, not a size"),
    (r"amx/delta_scan", r"entries = padded_dk_|thread_buffer<float, Use>", r"4 to 5|2 to 3|3 to 4",
     "a larger buffer"),
    (r"safetensors_header", r"in_range<std::size_t>", r"", "for machines of 32 bits: see script/check portability"),
    (r"io/dtype", r"std::is_signed_v<T> && value < T\(0\)", r"&& to", "a number that is marked as "
     "negative and is not has the same bits as a signed and an unsigned number"),
    (r"safetensors_format", r"axis < 0", r"< to <=", "an axis of 0 does not reach this line"),
    (r"safetensors_reader", r"begin\.size\(\) > 1", r"1 to 0", "`begin` is in an array of 9 zeros"),
]

# Code for processors with 32 vector registers (AVX-512, AArch64), which others compile but do not
# run: file, text of the first line, text of the last line.
WIDE = [
    (r"scan/pair_loop", r"if constexpr \(two_pairs_per_pass", r"\} else \{"),
    (r"scan/pair_loop", r"void visit_two", r"^\};"),
    (r"scan/pair_loop", r"PairLoop<PanelPass<S, tallest", r"pairs, count\)"),
    (r"backward/backward", r"two_pairs_per_pass", r"^  \}"),
    (r"kernels/scan/scan\.", r"if constexpr \(two_pairs_per_pass", r";"),
    (r"(scan/scan|backward/backward)\.", r"void set_previous_products", r"^  \}"),
    (r"kernels/decode/", r"REGISTERS >= 32", r";"),
]

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<pp>^[ \t]*\#(?:\\\n|[^\n])*)
      |(?P<string>(?:u8|[LuU])?R"\((?:.|\n)*?\)"|(?:u8|[LuU])?"(?:\\.|[^"\\\n])*")
      |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)|(?P<char>(?:u8|[LuU])?'(?:\\.|[^'\\\n])+')
      |(?P<word>[A-Za-z_]\w*)|(?P<op><<=|>>=|<=>|\.\.\.|->|::|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S)
      |(?P<space>\s+)""", re.X | re.M | re.S)
Token = collections.namedtuple("Token", "kind text begin end")
OPEN = {"(": ")", "[": "]", "{": "}"}

Mutant = collections.namedtuple("Mutant", "file line operator site edits")


class Site:
    """Code that a mutant replaces as a whole. The kind says how a switch is put around it."""

    def __init__(self, kind, begin, end, constant):
        self.kind, self.begin, self.end, self.constant = kind, begin, end, constant


class Source:
    def __init__(self, name, text, active=None, wide=True):
        self.name, self.text, self.active, self.mutants = name, text, active, []
        self.lines = text.split("\n")
        self.idle = set() if wide else self.wide_lines()
        self.tokens = []
        for m in TOKEN.finditer(text):
            if m.lastgroup not in ("comment", "pp", "space"):
                self.tokens.append(Token(m.lastgroup, m.group(), m.start(), m.end()))
        self.partner, stack = {}, []
        for i, t in enumerate(self.tokens):
            if t.kind == "op" and t.text in OPEN:
                stack.append(i)
            elif t.kind == "op" and t.text in OPEN.values():
                self.partner[stack.pop()] = i
        self.declarations(0, len(self.tokens))

    def wide_lines(self):
        idle = set()
        for file, first, last in WIDE:
            inside = False
            for number, line in enumerate(self.lines if re.search(file, self.name) else [], 1):
                begins = re.search(first, line)
                inside = inside or begins
                if inside:
                    idle.add(number)
                    inside = not re.search(last, line)
        return idle

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1

    def is_op(self, i, *texts):
        return self.tokens[i].kind == "op" and self.tokens[i].text in texts

    def skip_template(self, i):
        """The token behind template <...> prefixes."""
        while self.tokens[i].text == "template" and self.tokens[i + 1].text == "<":
            i, depth = i + 1, 0
            while True:
                if self.is_op(i, *OPEN):
                    i = self.partner[i]
                depth += {"<": 1, ">": -1, ">>": -2}.get(self.tokens[i].text, 0)
                i += 1
                if depth == 0:
                    break
        return i

    # Namespaces and classes: finds the bodies of functions.
    def declarations(self, i, end):
        begin = i
        while i < end:
            if self.is_op(i, ";"):
                begin = i + 1
            elif self.is_op(i, "(", "["):
                i = self.partner[i]
            elif self.is_op(i, "{"):
                close = self.partner[i]
                while self.tokens[begin].text in ("public", "private", "protected"):
                    begin += 2
                head = self.tokens[self.skip_template(begin) : i]
                words = [t.text for t in head]
                # A member in a constructor's list of initialisers.
                initialises = ")" in words and ":" in words[words.index(")") :] and \
                    head[-1].kind == "word"
                if "namespace" in words or (words and words[0] in ("struct", "class", "union")):
                    self.declarations(i + 1, close)
                    begin = close + 1
                elif "(" in words and not initialises and words.index("(") < (words + ["="]).index("="):
                    self.body(i + 1, close, "constexpr" in words)
                    begin = close + 1
                elif "operator" in words:
                    self.body(i + 1, close, "constexpr" in words)
                    begin = close + 1
                i = close
            i += 1

    # The statements of a function.
    def body(self, i, end, constant):
        while i < end:
            t = self.tokens[i]
            if t.text in ("else", "do", "try", ";", "break", "continue"):
                i += 1
            elif t.text == "{":
                self.body(i + 1, self.partner[i], constant)
                i = self.partner[i] + 1
            elif t.text in ("if", "while", "for", "switch", "catch"):
                at_compile_time = self.tokens[i + 1].text == "constexpr"
                opening = i + 1 + at_compile_time
                close = self.partner[opening]
                self.control(t.text, opening + 1, close, constant or at_compile_time)
                i = close + 1
            elif t.text in ("case", "default"):
                while not self.is_op(i, ":"):
                    i += 1
                i += 1
            elif t.text in ("struct", "class"):
                while not self.is_op(i, "{"):
                    i += 1
                self.declarations(i + 1, self.partner[i])
                i = self.partner[i] + 1
            else:
                i = self.statement(i, end, constant)

    def control(self, word, begin, end, constant):
        parts = self.split(begin, end, ";")
        if word == "for" and len(parts) == 3:
            self.initialiser(*parts[0], constant)
            self.site("value", *parts[1], constant)
        elif word in ("if", "while") and parts:
            for part in parts[:-1]:
                self.initialiser(*part, constant)
            begin, end = parts[-1]
            if self.assignment(begin, end) is None:
                site = self.site("value", begin, end, constant)
                if site and not self.is_comparison(begin, end):  # else it is == to !=
                    self.add(begin, "negated condition", site,
                             [(site.begin, site.begin, "!("), (site.end, site.end, ")")])
            else:
                self.initialiser(begin, end, constant)

    def is_comparison(self, begin, end):
        words = [t.text for t in self.tokens[begin:end]]
        return ("==" in words or "!=" in words) and "&&" not in words and "||" not in words

    def split(self, begin, end, separator):
        parts, start, i = [], begin, begin
        while i < end:
            if self.is_op(i, *OPEN):
                i = self.partner[i]
            elif self.is_op(i, separator):
                parts.append((start, i))
                start = i + 1
            i += 1
        return parts + [(start, end)]

    def statement(self, begin, end, constant):
        i = begin
        while i < end and not self.is_op(i, ";"):
            if self.is_op(i, *OPEN):
                i = self.partner[i]
            i += 1
        first = self.tokens[begin].text
        if first in ("using", "static_assert", "namespace", "typedef", "template", "goto"):
            return i + 1
        if first == "return":
            if i > begin + 1:
                self.site("return", begin, i, constant)
        elif self.is_declaration(begin, i):
            self.initialiser(begin, i, constant or "constexpr" in
                             (self.tokens[begin].text, self.tokens[begin + 1].text))
        else:
            site = self.site("statement", begin, i, constant)
            if site:
                word = "dropped check" if re.match(r"(\w+::)*(check|raise|fail|throw)", self.text[site.begin:]) \
                    else "dropped statement"
                self.add(begin, word, site, [(site.begin, site.end, "")])
        return i + 1

    def is_declaration(self, begin, end):
        if self.tokens[begin].text in ("const", "auto", "static", "constexpr", "[", "typename"):
            return self.tokens[begin].text != "[" or self.tokens[begin + 1].text == "["
        operators = ("operator", "template", "throw", "delete", "new", "sizeof")
        for a, b in zip(range(begin, end), range(begin + 1, end)):
            x, y = self.tokens[a], self.tokens[b]
            if self.is_op(a, "(", "=", "{") or x.text in operators:
                return False
            if y.kind != "word" or y.text in operators or a == begin and x.kind != "word":
                continue
            left, right = self.text[x.begin - 1] == " ", x.end < y.begin
            if x.kind == "word" or x.text in (">", "*", "&") and left != right:
                return True
        return False

    def assignment(self, begin, end):
        i = begin
        while i < end:
            if self.is_op(i, *OPEN):
                i = self.partner[i]
            elif self.is_op(i, "="):
                return i
            i += 1
        return None

    def initialiser(self, begin, end, constant):
        """A declaration. Only the initialiser has mutants, behind = or in parentheses."""
        at = self.assignment(begin, end)
        if at is not None and len(self.split(begin, end, ",")) == 1 and not self.is_op(at + 1, "{"):
            self.site("value", at + 1, end, constant)
        else:
            self.site("declaration", begin, end, True)

    def site(self, kind, begin, end, constant):
        """Makes a site of these tokens and its mutants, and visits the lambdas inside."""
        if begin >= end:
            return None
        site = Site(kind, self.tokens[begin].begin, self.tokens[end - 1].end, constant)
        nested = []
        i = begin
        while i < end:
            if self.is_op(i, "{") and i > begin and self.is_lambda(i):
                nested.append((i, self.partner[i]))
                i = self.partner[i]
            i += 1
        inside = {i for a, b in nested for i in range(a, b + 1)}
        own = [i for i in range(begin, end) if i not in inside]
        has_text = any(self.tokens[i].kind == "string" for i in own)
        for i in own:
            self.token_mutants(i, site, has_text)
        for a, b in nested:
            self.body(a + 1, b, constant)
        return site

    def is_lambda(self, i):
        before = [t.text for t in self.tokens[max(0, i - 9) : i]]
        return before[-1] in (")", "]", "mutable", "FASTWEIGHTS_INLINE_LAMBDA") or "->" in before \
            and ";" not in before

    def token_mutants(self, i, site, has_text):
        t, before, after = self.tokens[i], self.text[self.tokens[i].begin - 1], self.text[
            self.tokens[i].end : self.tokens[i].end + 1]
        replace = lambda new: [(t.begin, t.end, new)]
        if t.kind == "op" and t.text in BINARY and before in " \n" and after in " \n":
            if not (has_text and t.text in ("+", "+=")):
                for new in BINARY[t.text]:
                    self.add(i, f"{t.text} to {new}", site, replace(new))
        elif t.text == "-" and t.kind == "op" and before in " (,{" and after not in " \n":
            self.add(i, "-x to x", site, replace(""))
        elif t.kind == "word" and t.text in (NAMES if before in ".:" else WORDS):
            for new in (WORDS | NAMES)[t.text]:
                self.add(i, f"{t.text} to {new}", site, replace(new))
        elif t.kind == "number" and re.fullmatch(r"0|[1-9]\d*", t.text):
            self.add(i, f"{t.text} to {int(t.text) + 1}", site, replace(str(int(t.text) + 1)))
            if int(t.text) > 0:
                self.add(i, f"{t.text} to {int(t.text) - 1}", site, replace(str(int(t.text) - 1)))

    def add(self, i, operator, site, edits):
        line = self.line_of(self.tokens[i].begin)
        if line in self.idle or self.active is not None and line not in self.active:
            return
        for file, pattern, change, _ in EQUIVALENT:
            if re.search(file, self.name) and re.search(pattern, self.lines[line - 1]) \
                    and re.search(change, operator):
                return
        self.mutants.append(Mutant(self.name, line, operator, site, tuple(edits)))

    def changed(self, mutant):
        """The source with this one mutant."""
        text = self.text
        for begin, end, new in sorted(mutant.edits, reverse=True):
            text = text[:begin] + new + text[end:]
        return text

    def with_switches(self, mutants):
        """The source with these mutants, a dictionary from their numbers, each behind a switch."""
        sites = collections.defaultdict(dict)
        for number, mutant in mutants.items():
            sites[mutant.site][number] = mutant
        return self.render(0, len(self.text), sorted(sites, key=lambda s: (s.begin, -s.end)), sites)

    def render(self, begin, end, order, sites):
        text, at = [], begin
        while order:
            site, order = order[0], order[1:]
            inner = [s for s in order if s.end <= site.end]
            order = order[len(inner) :]
            text.append(self.text[at : site.begin])
            text.append(self.switch(site, sites[site], self.render(site.begin, site.end, inner, sites)))
            at = site.end
        text.append(self.text[at:end])
        return "".join(text)

    def switch(self, site, mutants, original):
        """Changed texts are on one line, so that line numbers stay."""
        result = original
        for number, mutant in mutants.items():
            text = self.text[site.begin : site.end]
            for begin, end, new in sorted(mutant.edits, reverse=True):
                text = text[: begin - site.begin] + new + text[end - site.begin :]
            text = re.sub(r"\s*(//[^\n]*)?\n\s*", " ", text)
            on = f"FASTWEIGHTS_MUTANT({number})"
            if site.kind == "value":
                result = f"({on} ? ({text}) : ({result}))"
            else:
                result = f"do {{ if ({on}) {{ {text}; }} else {{ {result}; }} }} while (false)"
        return result
