"""Copies of files of the repository that pages link to, as HTML."""
import html
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
PAGE = '''<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{path}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="viewer.css"></head>
<body><p><a href="index.html">fastweights</a> / {path}</p>
<pre>{text}</pre></body></html>
'''


def name(path):
    return 'file_' + path.replace('/', '_') + '.html'


def text_of(path):
    """The text of a file; of a folder its README.md, or a list of its files."""
    if path.is_file():
        return path.read_text()
    if (path / 'README.md').exists():
        return (path / 'README.md').read_text()
    return '\n'.join(sorted(each.name for each in path.iterdir()))


def write(paths, to):
    for path in sorted(paths):
        inside = str(path.relative_to(ROOT))
        page = PAGE.format(path=html.escape(inside), text=html.escape(text_of(path)))
        (pathlib.Path(to) / name(inside)).write_text(page)
