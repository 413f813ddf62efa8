"""The table of all memories in docs/memories.md says the cost and the source that each header says.

A row that links a header has a cost in flops, whose numbers stand in a comment of that header, and a source: the
first author, the year and the arXiv number. Prints what differs, and fails.   python3 docs/site/check_table.py
"""
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).parents[1] / 'memories.md'


def comments(header):
    """All comments of a header as one line."""
    return re.sub(r'\s+', ' ', ' '.join(re.findall(r'^ *///? ?(.*)$', header.read_text(), re.M)))


def rows(text):
    """(name, header, cost, source) of every row that links a header; `the same` is the source before."""
    before = ''
    for line in text.split('## All memories')[1].split('\n'):
        cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
        link = re.match(r'\[`(\w+).*`\]\(([^)]+)\)', cells[0]) if cells else None
        if link:
            before = before if cells[5].startswith('the same') else cells[5]
            yield link[1], PAGE.parent / link[2], cells[3], before


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


def differences(header, cost, source):
    said = comments(header)
    compact = bare(said)
    for formula in formulas(cost):
        if not re.search(r'(?<![\d.])' + re.escape(bare(formula)), compact):
            yield f'cost {formula}'
    first = re.match(r"(?:.*? )??([A-Z][\w’-]+)(?: et al\.| & [\w’-]+)? (\d{4})", source)
    for part in [*(first.groups() if first else []), *re.findall(r'arxiv.org/abs/([\d.]+)', source)]:
        if not re.search(rf'\b{re.escape(part)}\b', said):
            yield f'source {part}'
    if not first and source != "the rule's":
        yield 'no author and year in the table'


def main():
    found = list(rows(PAGE.read_text()))
    wrong = [f'{PAGE.name}: {name}: {what}, which {header.name} does not say'
             for name, header, cost, source in found for what in differences(header, cost, source)]
    print(*wrong, f'{len(found)} rows of memories, {len(wrong)} differences', sep='\n')
    return bool(wrong) or not found


if __name__ == '__main__':
    sys.exit(main())
