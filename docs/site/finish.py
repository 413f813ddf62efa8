"""What Doxygen leaves to do.   finish.py MATHJAX HTML

Copies the part of MathJax that formulas as SVG need, and removes links of Doxygen 1.9.4 to nothing: to
the nested classes of a class which are all private.
"""
import pathlib
import re
import shutil
import sys

PARTS = ['MathJax.js', 'config/TeX-MML-AM_CHTML.js', 'extensions', 'jax/element', 'jax/input/TeX', 'jax/input/MathML',
         'jax/output/SVG']


def copy_mathjax(source, to):
    for part in PARTS:
        path = (source / part).resolve()
        (to / part).parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, to / part, dirs_exist_ok=True)
        else:
            shutil.copy(path, to / part)


def remove_dead_links(page):
    text = page.read_text()
    if '"#nested-classes"' in text and 'id="nested-classes"' not in text and 'name="nested-classes"' not in text:
        page.write_text(re.sub(r'<a href="#nested-classes">.*?</a> *\|?', '', text))


def main():
    mathjax, site = map(pathlib.Path, sys.argv[1:])
    copy_mathjax(mathjax, site / 'mathjax')
    for page in site.glob('*.html'):
        remove_dead_links(page)


if __name__ == '__main__':
    main()
