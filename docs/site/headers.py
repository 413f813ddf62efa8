"""The headers as Doxygen reads them, written to build/docs/input.   headers.py XML INPUT

XML: what a first run of Doxygen found, so that members without a comment are known by file and line.
- Members with the names of common_members.txt get its comment.
- Equations become formulas (equations.py), other indented lines of comments become code.
- Everything of a folder joins the topic of that folder (topics.py). arXiv numbers become links.
No line is added or removed, so that links to the source stay true.
"""
import collections
import pathlib
import re
import sys

import equations
import topics
from members import COMMON, INCLUDE, ROOT, common_text, members_of


def start_of(lines, i):
    """The first line of the declaration whose name is in line i."""
    while i > 0 and lines[i - 1].strip() and not re.search(r'[;{}:]$|^\s*(//|#)|//', lines[i - 1]):
        i -= 1
    return i


def declarators(line):
    """(`T `, [`a = 1`, `b`]) of `T a = 1, b;`"""
    parts, depth = [''], 0
    for c in line.partition('//')[0].rstrip().rstrip(';').strip():
        depth += (c in '<({[') - (c in '>)}]')
        if c == ',' and depth == 0:
            parts.append('')
        else:
            parts[-1] += c
    first = re.match(r'(.*?[\s>&*])(\w+\s*(?:=.*|\{.*|\[.*)?)$', parts[0])
    return first[1].strip(), [first[2], *parts[1:]]


def split_declarators(lines, i, texts):
    """`T a, b;` in line i as declarations of their own. A comment of the line, or before it, is for each of them."""
    own = lines[i].partition('///<')[2].strip()
    above = re.match(r'\s*/// (.*)', lines[i - 1])
    kind, names = declarators(lines[i])
    texts = [own or text or (above[1] if above else None) for text in texts]
    if above and not own:
        texts[0] = None  # has the comment
    lines[i] = re.match(' *', lines[i])[0] + ' '.join(
        (f'/** {text} */ ' if text else '') + f'{kind} {name.strip()};' for text, name in zip(texts, names))


def comment_on(lines, i, text):
    at = start_of(lines, i)
    indent = re.match(' *', lines[at])[0]
    lines[at] = f'{indent}/** {text} */ {lines[at][len(indent):]}'


def add_comments(lines, members, file, missing):
    """Comments for members that have none."""
    folder, by_line = file[len(INCLUDE):].split('/')[0], collections.defaultdict(list)
    for member in dict.fromkeys(members):
        by_line[member.line - 1].append(member)
    for i, here in sorted(by_line.items()):
        bare = [m for m in here if not m.documented]
        if not bare:
            continue
        if bare[0].scope.endswith('::Trace') and '///<' not in lines[i]:  # the layer's own matter
            lines[i] = re.sub(r'^( *)(.*?;)', r'\1/** @cond */ \2 /** @endcond */', lines[i])
            continue
        if len(here) > 1 and any(m.name == 'names' for m in bare):  # a record on one line
            names = 'static constexpr auto names'
            lines[i] = lines[i].replace(names, f'/** {COMMON[".", "names"]} */ {names}')
            bare = [m for m in bare if m.name != 'names']
        elif len(here) > 1 and here[0].kind == 'variable':
            here.sort(key=lambda m: re.search(rf'\b{m.name}\b', lines[i]).start())
            split_declarators(lines, i, [common_text(folder, m) for m in here])
            continue
        text = next((common_text(folder, m) for m in bare if common_text(folder, m)), None)
        if text:
            comment_on(lines, i, text)
        else:
            missing += [f'{file}:{m.line}: {m.scope}::{m.name}' for m in bare]


def write_block(lines, begin, end):
    """The indented lines [begin, end) of a comment as a formula or as code."""
    prefix = re.match(r' *///', lines[begin])[0]
    block = [re.match(r' */// {4}(.*)', line)[1] for line in lines[begin:end]]
    if equations.is_equation(block):
        lines[begin] = f'{prefix} \\f[{equations.tex(block)}\\f]'
        lines[begin + 1:end] = [prefix] * (end - begin - 1)
        return
    is_code = re.search(r'[;{(]', '\n'.join(block)) and not re.match(' *(write|read|8 bytes)', block[0])
    blank = re.compile(r' *///$')
    if begin > 0 and blank.match(lines[begin - 1]) and end < len(lines) and blank.match(lines[end]):
        lines[begin - 1] = f'{prefix} @code{"{.cpp}" if is_code else "{.txt}"}'
        lines[end] = f'{prefix} @endcode'


def rewrite_comments(lines):
    i = 0
    while i < len(lines):
        if re.match(r' */// {5}', lines[i]):
            begin = i
            while i < len(lines) and re.match(r' */// {5}', lines[i]):
                i += 1
            write_block(lines, begin, i)
        i += 1
    in_code = False
    for i, line in enumerate(lines):
        if '@code' in line or '@endcode' in line:
            in_code = '@code' in line
        elif '///' in line and '\\f[' not in line and not in_code:
            code, mark, comment = line.partition('///')
            comment = re.sub(r'\\(?!file\b)(?=\w)', r'\\\\', comment)
            comment = re.sub(r'(`[^`]*`)|<(?=[a-z])', lambda m: m[1] or '&lt;', comment)
            comment = re.sub(r'(`[^`]*`)|([^`]+)', lambda m: m[1] or equations.scripts_of_prose(m[2]), comment)
            comment = re.sub(r'(?<![/\d.])(\d{4}\.\d{5})\b', r'[\1](https://arxiv.org/abs/\1)', comment)
            comment = re.sub(r'\b(Shapes?|Cost(?: per token| of a write)?):', r'<b>\1:</b>', comment)
            lines[i] = code + mark + comment


def hide_macros(lines):
    """Macros without a comment are the library's own matter."""
    hidden = False
    for i, line in enumerate(lines):
        if line.startswith('#define') and not lines[i - 1].startswith('///'):
            hidden = True
        if hidden:
            lines[i], hidden = '', line.endswith('\\')


def add_topic(lines, topic):
    """Names of the library's namespaces join the topic; those of detail do not."""
    open_at = []
    for i, line in enumerate(lines):
        lines[i] = line = line.replace('::inline FASTWEIGHTS_ABI', '')
        if re.search(r'///\s+\\file$', line):
            lines[i] = line.replace('\\file', f'@topicfile{{{topic}}}')
        elif re.match(r'namespace fw\b', line):
            open_at.append('detail' not in line)
            if open_at[-1]:
                lines[i] += f' /** @topic{{{topic}}} */'
        elif re.match(r'namespace detail|namespace onnx \{', line) and open_at and open_at[-1]:
            lines[i] = f'/** @}} */ {line}' if 'detail' in line else line
        elif re.match(r'\}  // namespace detail', line) and open_at and open_at[-1]:
            lines[i] = f'}} /** @topic{{{topic}}} */'
        elif re.match(r'\}  // namespace fw', line) and open_at:
            if open_at.pop():
                lines[i] = '/** @} */ ' + line


def main():
    found, missing = members_of(sys.argv[1]), []
    count = sum(len(set(members)) for members in found.values())
    bare = sum(not m.documented for members in found.values() for m in set(members))
    for path in sorted((ROOT / INCLUDE).rglob('*.hpp')):
        file = str(path.relative_to(ROOT))
        lines = path.read_text().split('\n')
        add_comments(lines, found[file], file, missing)
        rewrite_comments(lines)
        hide_macros(lines)
        add_topic(lines, topics.topic_of(file))
        to = pathlib.Path(sys.argv[2]) / file
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text('\n'.join(lines))
    print(f'{count} public names, {count - bare} with a comment, {bare - len(missing)} from common_members.txt')
    if missing:
        raise SystemExit('These public names have no comment:\n' + '\n'.join(missing))


if __name__ == '__main__':
    main()
