"""The table of all memories in docs/memories.md, made of lines in their headers.

A header has the rows of its memories before a comment, one or more lines a row, in the order of the page's columns:

    //| `Efla` | W += b (v − W k) kᵀ, b = (1 − e^{−β‖k‖²}) / ‖k‖² | y = W q | 6 d_v d_k | yes |
    //|   Lei et al. 2025, 2512.12602

The page keeps the order of the headers; a new one comes last. Checks that the page has these rows, and that the
comments of the header say the same cost in flops, author, year and arXiv number.

    memory_table.py           prints what differs, and fails
    memory_table.py write     writes the page
"""
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).parents[1] / 'memories.md'
HEADERS = PAGE.parents[1] / 'include/fastweights/memories'
HEADING = '| memory | write | read | cost | merges | source |\n|---|---|---|---|---|---|\n'


class Row:
    """A memory of a header: its cells, and its source as in the header."""

    def __init__(self, header, line, is_first):
        self.header, self.is_first = header, is_first
        self.cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', line)]
        if len(self.cells) != 6:
            sys.exit(f'{header.name}: a row has {len(self.cells)} cells, expected 6: {line}')
        self.name, self.cost, self.source = self.cells[0].strip('`'), self.cells[3], self.cells[5]

    def text(self, before):
        """The row of the page behind another one."""
        name, *middle, source = self.cells
        if self.is_first:
            name = f'[{name}](../{self.header.relative_to(PAGE.parents[1])})'
        if before and source.startswith(before.source):
            source = 'the same' + source[len(before.source):]
        source = re.sub(r'\b(\d{4}\.\d{5})\b', r'[\1](https://arxiv.org/abs/\1)', source)
        return re.sub(' +', ' ', f"| {' | '.join([name, *middle, source])} |")


def rows_of(header):
    found = []
    for line in re.findall(r'^//\|(.*)$', header.read_text(), re.M):
        if line.startswith('   ') and found:
            found[-1] += ' ' + line.strip()
        else:
            found.append(line.strip())
    return [Row(header, line, i == 0) for i, line in enumerate(found)]


def all_rows(page):
    """The rows of all headers, in the page's order."""
    places = re.findall(r'^\| \[`.*?\]\(\.\./([^)]+)\)', page, re.M)
    headers = sorted(HEADERS.rglob('*.hpp'))
    place = {header: str(header.relative_to(PAGE.parents[1])) for header in headers}
    headers.sort(key=lambda header: places.index(place[header]) if place[header] in places else len(places))
    return [row for header in headers for row in rows_of(header)]


def with_table(page, rows):
    begin = page.index(HEADING) + len(HEADING)
    end = re.compile(r'^(?!\|)', re.M).search(page, begin).start()
    return page[:begin] + ''.join(row.text(before) + '\n' for before, row in zip([None, *rows], rows)) + page[end:]


def comments(header):
    """All comments of a header as one line."""
    return re.sub(r'\s+', ' ', ' '.join(re.findall(r'^ *///? ?(?!\|)(.*)$', header.read_text(), re.M)))


def formulas(cost):
    """The numbers of flops in a cost: `(4 c + 6) d_v d_k` and `20 m² n + 10 m³`."""
    for part in re.split(r' and |[,;]| (?:for|in|a|per) ', cost):
        formula = re.fullmatch(r'([\dd(][\w²³+/ ()]*?)( exponentials?)?', part.strip())
        if formula and re.search(r'\d', part) and not part.strip().isdigit():
            yield formula[1]


def bare(text):
    """Without spaces and outer parentheses."""
    text = text.replace(' ', '')
    return text[1:-1] if re.fullmatch(r'\([^()]*\)', text) else text


def differences(row):
    """What the row says and the comments of its header do not."""
    said = comments(row.header)
    compact = bare(said)
    for formula in formulas(row.cost):
        if not re.search(r'(?<![\d.])' + re.escape(bare(formula)), compact):
            yield f'cost {formula}'
    first = re.match(r"(?:.*? )??([A-Z][\w’-]+)(?: et al\.| & [\w’-]+)? (\d{4})", row.source)
    for part in [*(first.groups() if first else []), *re.findall(r'\b\d{4}\.\d{5}\b', row.source)]:
        if not re.search(rf'\b{re.escape(part)}\b', said):
            yield f'source {part}'
    if not first and row.source not in ("the rule's", 'flash-linear-attention'):
        yield 'no author and year in the row'


def main():
    page = PAGE.read_text()
    rows = all_rows(page)
    made = with_table(page, rows)
    if sys.argv[1:] == ['write']:
        PAGE.write_text(made)
    wrong = [f'{row.header.name}: {row.name}: {what}, which no comment there says' for row in rows
             for what in differences(row)]
    if PAGE.read_text() != made:
        wrong.append(f'{PAGE.name}: its table is not that of the headers; script/docs --table writes it')
    print(*wrong, f'{len(rows)} rows of memories, {len(wrong)} differences', sep='\n')
    return bool(wrong) or not rows


if __name__ == '__main__':
    sys.exit(main())
