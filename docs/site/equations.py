"""TeX of the equations that headers and pages write in Unicode, such as u_t = β_t (v_t − W_{t−1} k_t)."""
import re
import unicodedata

SYMBOLS = {
    '·': r'\cdot ', '⋯': r'\cdots ', '…': r'\ldots ', '←': r'\leftarrow ', '→': r'\to ', '≤': r'\le ',
    '≥': r'\ge ', '<': r'\lt ', '>': r'\gt ', '∘': r'\circ ', '⊙': r'\odot ', '×': r'\times ', '−': '-',
    '∇': r'\nabla ', 'ℓ': r'\ell ', '‖': r'\|', '½': r'\tfrac12 ', '∫': r'\int ', 'Σ': r'\sum ',
    '∈': r'\in ', '∞': r'\infty ', '≠': r'\ne ', '≈': r'\approx ', '±': r'\pm ', '∂': r'\partial ',
    '⌊': r'\lfloor ', '⌋': r'\rfloor ', '⌈': r'\lceil ', '⌉': r'\rceil ', '|': '|', '%': r'\%',
}
GREEK = dict(zip('αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΦΨΩ', (
    'alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau '
    'upsilon varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Phi Psi Omega').split()))
ACCENTS = {'\u0304': 'bar', '\u0302': 'hat', '\u0303': 'tilde', '\u0305': 'bar'}
SUPERSCRIPTS = dict(zip('⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵗⁿⁱ', '0123456789-tni'), **{'ᵀ': r'\top ', '⅓': '1/3', '₊': '+'})
SUBSCRIPTS = dict(zip('₀₁₂₃₄₅₆₇₈₉', '0123456789'), **{'₊': '+'})
TOKEN = re.compile(r'`[^`]*`|\d+(?:\.\d+)?e-?\d+|\d+(?:\.\d+)?|[A-Za-z][A-Za-z0-9]*|\s+|.')
PROSE = set('''
    a all and answers as at but by column corrections doubled each else every first for from gradient if in is its
    layer likewise matrix mod no of or over probability read root so sums than the their then they times to token
    tokens where with without xor
'''.split())


def closing(text, start):
    """The position of the bracket that closes the one at `start`."""
    pairs, depth = {'(': ')', '{': '}', '[': ']'}, 0
    for i in range(start, len(text)):
        depth += (text[i] == text[start]) - (text[i] == pairs[text[start]])
        if depth == 0:
            return i
    raise ValueError(f'a bracket is not closed: {text}')


class Writer:
    """Goes through a text from left to right."""

    def __init__(self, text):
        self.text, self.at = unicodedata.normalize('NFD', text), 0

    def tex(self):
        out = ''
        while self.at < len(self.text):
            out += self.atom()
        return re.sub(r'\\ (?=[,;:.)]|$)', '', re.sub(r'(\\ )\s*(\\ )+', r'\1', out)).replace(r'(\ ', '(')

    def peek(self):
        return self.text[self.at:self.at + 1]

    def atom(self):
        """The next symbol, name, number or bracket with its accents and scripts."""
        token = TOKEN.match(self.text, self.at).group()
        self.at += len(token)
        if token.isspace():
            return r'\quad ' if len(token) > 1 else ' '
        if token == '√':
            return r'\sqrt{' + self.radicand() + '}'
        if token[0] == '`':
            return r'\texttt{' + token[1:-1].replace('_', r'\_') + '}'
        return self.scripts(self.base(token))

    def radicand(self):
        if self.peek() != '(':
            return self.atom()
        end = closing(self.text, self.at)
        inside, self.at = self.text[self.at + 1:end], end + 1
        return Writer(inside).tex()

    def base(self, token):
        if token[0].isdigit():
            mantissa, _, power = token.partition('e')
            ten = f'10^{{{power}}}' if power else ''
            return ten if mantissa == '1' and ten else mantissa + (r'\cdot ' + ten if ten else '')
        if token[0].isascii() and token[0].isalpha():
            return self.name(token)
        if token in GREEK:
            return '\\' + GREEK[token] + ' '
        if token == '|' and re.match(r'.* \| ', self.text[:self.at + 1]):
            return r'\mid '  # c | r, one below the other
        if token in SYMBOLS:
            return SYMBOLS[token]
        if token in SUPERSCRIPTS or token in "'′":
            self.at -= 1
            return ''
        if token in '()[],;:.=+-/!*':
            return token
        if token in '{}':
            return '\\' + token
        raise ValueError(f'docs/site/equations.py has no TeX for {token!r} in: {self.text}')

    def name(self, word):
        """A variable, a function, or prose."""
        rest = re.match(r'(?:_[A-Za-z0-9]{2,})+', self.text[self.at:]) if len(word) > 1 else None
        if rest:  # a name of code, such as feed_forward
            self.at += rest.end()
            return r'\mathrm{' + (word + rest.group()).replace('_', r'\_') + '}'
        if len(word) == 2 and word.isalpha() and word not in PROSE and word not in ('LN', 'NS', 'KL', 'ln', 'up'):
            return word  # a product, or a gradient such as dy
        before, after = self.text[:self.at - len(word)], self.text[self.at:]
        if len(word) == 1 and not (word == 'a' and re.search(r'[a-z]{3} $', before) and re.match(' [a-z]{3}', after)):
            return word
        if word in PROSE or re.match(r'[a-z]+$', word) and not after.startswith(('(', '_', '₂', '[')) and (
                word not in ('softmax', 'max', 'min', 'mean', 'exp', 'log', 'ln', 'var', 'diag', 'relu')):
            if after.startswith("'s "):
                word, self.at = word + "'s", self.at + 2
            return r'\ \text{' + word + r'}\ '
        return r'\operatorname{' + word + '}'

    def scripts(self, base):
        while self.peek() in ACCENTS and self.peek():
            base = f'\\{ACCENTS[self.peek()]}{{{base.strip()}}}'
            self.at += 1
        low = high = ''
        while self.peek() and (self.peek() in SUPERSCRIPTS or self.peek() in SUBSCRIPTS or self.peek() in "'′_^"):
            mark = self.peek()
            self.at += 1
            if mark in '_^':
                script = self.script()
                low, high = (low + script, high) if mark == '_' else (low, high + script)
            elif mark in "'′":
                high += r'\prime '
            elif mark in SUBSCRIPTS:
                low += SUBSCRIPTS[mark]
            else:
                high += SUPERSCRIPTS[mark]
        return base + (f'_{{{low}}}' if low else '') + (f'^{{{high}}}' if high else '')

    def script(self):
        """What follows _ or ^."""
        if self.peek() == '{' or self.peek() == '(':
            end, bracket = closing(self.text, self.at), self.peek()
            inside, self.at = self.text[self.at + 1:end], end + 1
            keep = bracket == '(' and inside.isalpha()  # z^(m) is the m-th z, x^(1/16) a power
            return f'({Writer(inside).tex()})' if keep else Writer(inside).tex()
        token = TOKEN.match(self.text, self.at).group()
        self.at += len(token)
        if token == '−':
            return '-' + self.script()
        if (len(token) > 2 or token in ('up', 'in')) and token.isalpha():
            return r'\mathrm{' + token + '}'
        return self.base(token) if len(token) == 1 else token


def scripts_of_prose(text):
    """d_v, z_{t−1} and 2^62 in a sentence, for HTML."""
    symbol = r'(?<![\w`])((?:\d )?[A-Za-zα-ωΑ-Ω][\u0302\u0303\u0304]?[′\']?|Σ)'
    text = re.sub(symbol + r'_(?:\{([^{}]*)\}|([A-Za-z0-9])(?![A-Za-z0-9_]))',
                  lambda m: f'{m[1]}<sub>{m[2] or m[3]}</sub>', text)
    return re.sub(r'(?<=[\w)])\^(?:\{([^{}]*)\}|(−?\d+|[a-z]\b))', lambda m: f'<sup>{m[1] or m[2]}</sup>', text)


def relation(text):
    """The position of the first = or ← outside of brackets, or −1."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in '([{') - (c in ')]}')
        if depth == 0 and c in '=←':
            return i - (text[i - 1] == '+')  # +=
    return -1


def rows(lines):
    """One row per equation: columns are 3 spaces apart. A line that begins deeper continues with the one before, and
    gets a row that begins with spaces."""
    found, margin = [], len(lines[0]) - len(lines[0].lstrip())
    for line in lines:
        deeper = bool(found) and len(line) - len(line.lstrip()) > margin
        for i, part in enumerate(re.split(r' {3,}', line.strip())):
            if i > 0 and (relation(part) < 0 or relation(found[-1]) < 0):
                found[-1] += '  ' + part
            else:
                found.append('  ' + part if deeper and i == 0 else part)
    return found


def is_equation(lines):
    """Otherwise it is code, or text."""
    text = re.sub('`[^`]*`', '', '\n'.join(lines))
    if re.search(r'fw::|;\s*$|;\s+//|^\s*(template|struct|using|static|auto|const|void|return|//|[}{#$])|\w\(\)|"|'
                 r'<\d|std::|\w&|\)\s*\{|memory\.|build/|script/|\.(cpp|hpp|py)|--', text, re.M):
        return False
    return bool(re.search('[=←√‖]', text.split('\n')[0])) and sum(len(w) > 2 for w in re.findall('[a-z]+', text)) <= 8 * len(lines)


def tex(lines):
    """All lines as one formula, aligned at their relations."""
    out = []
    for row in rows(lines):
        at = -1 if row.startswith(' ') else relation(row)
        if at < 0:
            out.append('&' + Writer(row).tex())
        else:
            right = Writer(row[at:]).tex().replace('+=', r'\mathrel{+}=', 1 if row[at] == '+' else 0)
            out.append(Writer(row[:at].rstrip()).tex() + ' &' + right)
    return r'\begin{aligned}' + r' \\ '.join(out) + r'\end{aligned}'
