"""Checks every link and anchor.   links.py FOLDER of a built site, or links.py markdown

`markdown`: the links of all Markdown files of the repository, as GitHub follows them.
"""
import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

import pages

ROOT = pathlib.Path(__file__).parents[2]


class Page(html.parser.HTMLParser):
    """The links and anchors of an HTML page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ('id', 'name') and value:
                self.anchors.add(value)
            if name in ('href', 'src') and value:
                self.links.append(value)


def of_site(folder):
    found = {path: Page(path) for path in sorted(folder.rglob('*.html')) if 'mathjax' not in path.parts}
    for path, page in found.items():
        for link in page.links:
            file, _, anchor = urllib.parse.unquote(link).partition('#')
            if re.match('[a-z]+:', file) or file.startswith('//'):
                continue
            to = (path.parent / file).resolve() if file else path.resolve()
            target = next((p for p in (folder / to.name, path) if p.resolve() == to), to)
            if not to.exists():
                yield f'{path.name}: {link}'
            elif anchor and target in found and anchor not in found[target].anchors:
                yield f'{path.name}: {link} (no such anchor)'
    print(f'{len(found)} pages, {sum(len(p.links) for p in found.values())} links')


def of_markdown():
    command = ['git', 'ls-files', '-co', '--exclude-standard', '*.md']
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    files, count = [ROOT / name for name in listed.stdout.split()], 0
    if listed.returncode != 0:  # an archive, without git
        files = sorted(p for p in ROOT.rglob('*.md') if p.relative_to(ROOT).parts[0] != 'build')
    anchors = {}
    for file in files:
        text = re.sub(r'^```.*?^```', '', file.read_text(), flags=re.M | re.S)
        anchors[file.resolve()] = {pages.slug(h) for h in re.findall(r'^#+ (.*)', text, re.M)}
    for file in files:
        text = re.sub(r'^```.*?^```', '', file.read_text(), flags=re.M | re.S)
        for link in pages.IMAGE.findall(text) + pages.LINK.findall(pages.IMAGE.sub('', text)):
            link = link[1]
            name, _, anchor = link.partition('#')
            if not link or re.match('[a-z]+:', link):
                continue
            count += 1
            to = (file.parent / name).resolve() if name else file.resolve()
            if not to.exists() or anchor and to in anchors and anchor not in anchors[to]:
                yield f'{file.relative_to(ROOT)}: {link}'
    print(f'{len(files)} Markdown files, {count} links')


def main():
    dead = list(of_markdown() if sys.argv[1] == 'markdown' else of_site(pathlib.Path(sys.argv[1])))
    print('\n'.join(dead) if dead else 'no dead links')
    return bool(dead)


if __name__ == '__main__':
    sys.exit(main())
