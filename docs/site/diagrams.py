"""Mermaid's flowcharts as SVG by Graphviz: GitHub draws the former, and a site without scripts the latter.

Understands what the pages use: nodes with a text, arrows with or without one, and subgraphs.
"""
import re
import subprocess

NODE = r'(\w+)(?:\["(.*?)"\])?'
LINE = re.compile(rf'{NODE}((?: (?:-->|-\.->|-- ".*?" -->) {NODE})*)$')
ARROW = re.compile(rf' (-->|-\.->|-- "(.*?)" -->) {NODE}')


def dot(lines):
    directions = {'BT': 'BT', 'LR': 'LR', 'TD': 'TB'}
    out = ['digraph { bgcolor="transparent"; node [shape=box style="rounded" fontname="sans-serif" fontsize=11];',
           'edge [fontname="sans-serif" fontsize=10]; graph [fontname="sans-serif" fontsize=11];',
           f'rankdir={directions[lines[0].split()[1]]};']

    def node(name, text):
        if text is not None:
            out.append(f'{name} [label="{text.replace("<br>", chr(92) + "n")}"];')

    for line in lines[1:]:
        line = line.strip()
        if found := re.match(r'subgraph (\w+)\["(.*)"\]$', line):
            out.append(f'subgraph cluster_{found[1]} {{ label="{found[2]}"; style="rounded";')
        elif line == 'end':
            out.append('}')
        elif found := LINE.match(line):
            last = found[1]
            node(found[1], found[2])
            for kind, text, to, label in ARROW.findall(found[3]):
                node(to, label or None)
                dashed = ' style=dashed' if kind == '-.->' else ''
                out.append(f'{last} -> {to} [label="{text}"{dashed}];')
                last = to
        elif line:
            raise SystemExit(f'docs/site/diagrams.py does not understand: {line}')
    return '\n'.join(out + ['}'])


def svg(lines):
    """With the colour of the text around it."""
    drawn = subprocess.run(['dot', '-Tsvg'], input=dot(lines), capture_output=True, text=True, check=True).stdout
    drawn = drawn[drawn.index('<svg'):]
    drawn = re.sub(r'<!--.*?-->\n?', '', drawn, flags=re.S)
    drawn = drawn.replace('stroke="black"', 'stroke="currentColor"').replace('fill="black"', 'fill="currentColor"')
    drawn = re.sub('<text ', '<text fill="currentColor" ', drawn)
    return f'<div class="diagram">{drawn}</div>'
