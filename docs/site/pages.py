"""The Markdown pages as Doxygen reads them, written to build/docs/input.   pages.py XML INPUT HTML

README.md, docs/*.md and the README.md of the folders are written for GitHub. Here
- headings get GitHub's anchors, and links lead to pages, classes, or copies of files (viewer.py),
- equations become formulas (equations.py) and mermaid diagrams pictures (diagrams.py).
"""
import html
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree as xml

import diagrams
import equations
import topics
import viewer

ROOT = pathlib.Path(__file__).parents[2]
IMAGE = re.compile(r'!\[([^]]*)\]\(([^)]*)\)')
LINK = re.compile(r'\[((?:`[^`]*`|[^]`])*)\]\(([^)\s]+)\)|`[^`]*`')  # a link, or code that is no link


def guides():
    return [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]


def label(page):
    """The name of a page: mainpage, guides, or that of its file."""
    if page == ROOT / 'README.md':
        return 'mainpage'
    return 'guides' if page.name == 'README.md' else page.stem


def slug(heading):
    """GitHub's anchor of a heading."""
    text = re.sub(r'[`*]|\[|\]\([^)]*\)', '', heading).strip().lower()
    return re.sub(r'[^\w\- ]', '', text).replace(' ', '-')


class Site:
    """What links can lead to."""

    def __init__(self, index, folder):
        self.html, self.files, self.classes, self.copies = pathlib.Path(folder), {}, {}, set()
        for each in xml.parse(pathlib.Path(index) / 'index.xml').getroot():
            name, kind, refid = each.findtext('name'), each.get('kind'), each.get('refid')
            if kind not in ('class', 'struct', 'file') or '<' in name:
                continue
            path = xml.parse(pathlib.Path(index) / f'{refid}.xml').find('./compounddef/location').get('file')
            snake = re.sub(r'(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[A-Z][a-z])', '_', name.split('::')[-1]).lower()
            if kind == 'file':
                self.files[path] = refid
            elif snake == pathlib.PurePath(path).stem:
                self.classes[path] = refid

    def header(self, path):
        """The page of the class that a header is named after, or its source."""
        if path in self.classes:
            return self.classes[path] + '.html'
        return self.files[path] + '_source.html' if path in self.files else None

    def target(self, page, link):
        """Where a link of a page leads on the site."""
        if re.match(r'[a-z]+:', link):
            return link
        file, _, anchor = link.partition('#')
        path = (page.parent / file).resolve() if file else page
        if path in guides():
            file = 'index' if path == ROOT / 'README.md' else label(path)
            return f'{file}.html' + (f'#{label(path)}-{anchor}' if anchor else '')
        if not path.exists():
            return '#'  # links.py says so
        inside = str(path.relative_to(ROOT))
        found = self.header(inside)
        if not found:
            self.copies.add(path)
            found = viewer.name(inside)
        return found + (f'#{anchor}' if anchor else '')


def rewrite_links(site, page, line):
    def image(match):
        path = (page.parent / match[2]).resolve()
        if not path.exists():  # links.py says so
            return match[1]
        to = site.html / 'pictures' / path.name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
        return f'<img class="picture" src="pictures/{path.name}" alt="{match[1]}"/>'

    def link(match):
        text, target = ' '.join(match[1].split()), site.target(page, match[2])
        if page == ROOT / 'docs/README.md' and target in {f'{label(each)}.html' for each in guides()}:
            return f'@subpage {target[:-5]} "{text.strip("`")}"'
        return f'<a href="{target}">{re.sub("`([^`]*)`", lambda m: f"<code>{html.escape(m[1])}</code>", text)}</a>'

    return LINK.sub(lambda match: link(match) if match[2] else match[0], IMAGE.sub(image, line))


def escape(line):
    """Doxygen's commands and HTML's tags outside of code."""
    parts = re.split(r'(`[^`]*`|<img [^>]*>|<a href=.*?</a>|@subpage \w+ "[^"]*")', line)
    return ''.join(part if i % 2 else
                   equations.scripts_of_prose(re.sub(r'<(?=[a-z/])', '&lt;', part.replace('@', '\\@')))
                   for i, part in enumerate(parts))


def code_block(kind, block):
    if kind == 'mermaid':
        return ['@htmlonly', *diagrams.svg(block).split('\n'), '@endhtmlonly']
    kind = {'cpp': '{.cpp}'}.get(kind, '{.unparsed}')
    return [f'@code{kind}', *block, '@endcode']


def rewrite(site, page, text):
    text = re.sub(r'^<!--.*?-->\n', '', text, flags=re.M | re.S)  # what tests/documentation.cmake reads
    out, lines, plain, i = [], text.split('\n'), [], 0

    def flush():
        if plain:
            out.append(escape(rewrite_links(site, page, '\n'.join(plain))))
            plain.clear()

    while i < len(lines):
        line = lines[i]
        if line.startswith('```'):
            flush()
            end = lines.index('```', i + 1)
            out += code_block(line[3:], lines[i + 1:end])
            i = end
        elif line.startswith('    ') and i > 0 and not lines[i - 1].strip():
            flush()
            end = i + 1
            while ''.join(lines[end:end + 2]).startswith('    '):
                end += 1
            out += indented([each[4:] for each in lines[i:end]])
            i = end - 1
        elif heading := re.match(r'(#+) (.*)', line):
            flush()
            anchor = label(page) + ('' if heading[1] == '#' else '-' + slug(heading[2]))
            title = 'Guides' if anchor == 'guides' else heading[2].replace('`', '')
            out.append(f'{heading[1]} {title} {{#{anchor}}}')
            if heading[1] == '#' and page.parent == ROOT / 'docs' and text.count('\n## ') > 2:
                out.append('\n[TOC]\n')
        else:
            plain.append(line)
        i += 1
    flush()
    return '\n'.join(out)


def indented(block):
    """An indented block is an equation or code."""
    if equations.is_equation([each for each in block if each.strip()]):
        return [f'\\f[{equations.tex([each for each in block if each.strip()])}\\f]']
    return code_block('cpp' if re.search(r'fw::|;$', '\n'.join(block), re.M) else '', block)


def link_headers(page, text):
    """`name.hpp` in the README.md of a folder as a link."""
    return re.sub(r'`((?:\w+/)*\w+\.hpp)`', lambda m: f'[{m[0]}]({m[1]})' if (page.parent / m[1]).exists() else m[0], text)


def main():
    to, site = pathlib.Path(sys.argv[2]), Site(sys.argv[1], sys.argv[3])
    for page in guides():
        path = to / page.relative_to(ROOT)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rewrite(site, page, page.read_text()))
    (to / 'topics.dox').write_text(topics.definitions(lambda page, text: rewrite(site, page, link_headers(page, text))))
    viewer.write(site.copies, site.html)


if __name__ == '__main__':
    main()
