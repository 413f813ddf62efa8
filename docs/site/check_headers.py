"""Every memory and layer says its equation, shapes, cost, errors and source in the comment of its class.

Prints what is missing, and fails.   python3 docs/site/check_headers.py [FOLDER of include/fastweights ...]
"""
import pathlib
import re
import sys

NEEDED = {
    'an equation': '[=←]',
    'shapes': r'\bShapes?\b',
    'cost': r'\b[Cc]osts?\b|\bflops\b',
    'errors': r'\b[Tt]hrows?\b',
    'a source': r'arXiv|\b(19|20)\d\d\b|PyTorch',
}


# What is no paper's and has no source.
OWN = {'Deferred', 'FeatureMapped', 'AffineGate', 'LanguageModel', 'Elementwise', 'IdentityLayer'}


def classes(text):
    """(name, comment) of every class that has a `name` for errors: these are the memories and layers."""
    for block in re.finditer(r'^((?:///.*\n)+)((?:[^/\n].*\n)*?[^/\n].*\{$)', text, re.M):
        name = re.search(r'^(?:template .*?> )?(?:struct|class) (\w+)', block[2], re.M)
        body = text[block.end():]
        end = re.search(r'^\};', body, re.M)
        if name and end and re.search(r'^  static constexpr std::string_view name\b', body[:end.start()], re.M):
            yield name[1], re.sub(r'^/// ?', '', block[1], flags=re.M)


def main():
    root = pathlib.Path(__file__).parents[2] / 'include' / 'fastweights'
    missing = count = 0
    for folder in sys.argv[1:] or ['memories', 'layers']:
        for file in sorted((root / folder).rglob('*.hpp')):
            for name, comment in classes(file.read_text()):
                count += 1
                lacks = [what for what, pattern in NEEDED.items() if not re.search(pattern, comment, re.M)
                         and not (what == 'a source' and name in OWN)]
                missing += len(lacks)
                if lacks:
                    print(f'{file.relative_to(root)}: {name} does not say {", ".join(lacks)}')
    print(f'{count} memories and layers, {missing} of {len(NEEDED) * count} entries are missing')
    return missing > 0 or count == 0


if __name__ == '__main__':
    sys.exit(main())
