"""Public names as a first run of Doxygen found them, and what common_members.txt says of them."""
import collections
import pathlib
import re
import xml.etree.ElementTree as xml

import equations

ROOT = pathlib.Path(__file__).parents[2]
INCLUDE = 'include/fastweights/'
Member = collections.namedtuple('Member', 'line kind scope name args documented')


def common_members():
    """(folders, name) → text"""
    texts, folders = {}, []
    for line in (ROOT / 'docs/site/common_members.txt').read_text().splitlines():
        if re.match(r'\[.*\]$', line):
            folders = line[1:-1].split()
        elif line and not line.startswith('#'):
            names, text = line.split(': ', 1)
            text = re.sub('(`[^`]*`)|([^`]+)', lambda m: m[1] or equations.scripts_of_prose(m[2]), text)
            for name in names.split():
                for folder in folders:
                    texts[folder, name] = text
    return texts


COMMON = common_members()


def common_text(folder, member):
    """The comment that a member of this name has in this folder."""
    names = [member.name]
    if member.name == member.scope.split('::')[-1]:
        names = ['<constructor>']
    elif member.kind == 'function' and member.args.startswith('()'):
        names = [member.name + '()', member.name]
    for name in names:
        for place in (folder, '.'):
            if (place, name) in COMMON:
                return COMMON[place, name]
    return None


def documented(element):
    return any(''.join(part.itertext()).strip() for tag in ('briefdescription', 'detaileddescription')
               for part in element.findall(tag))


def members_of(folder):
    """file → its members and classes"""
    found = collections.defaultdict(list)

    def add(element, kind, scope, name):
        at = element.find('location')
        if at is not None and at.get('file', '').startswith(INCLUDE):
            found[at.get('file')].append(Member(int(at.get('line')), kind, scope, name,
                                                element.findtext('argsstring') or '', documented(element)))

    for file in sorted(pathlib.Path(folder).glob('*.xml')):
        for compound in xml.parse(file).getroot().findall('compounddef'):
            kind, full = compound.get('kind'), compound.findtext('compoundname')
            if kind not in ('class', 'struct', 'concept', 'namespace') or compound.get('prot') == 'private' or (
                    not full.startswith('fw')):
                continue
            scope, _, name = re.sub('<.*', '', full).rpartition('::')
            if kind != 'namespace':
                add(compound, kind, scope, name)
            for each in compound.iter('memberdef'):
                if each.get('prot') != 'private':
                    add(each, each.get('kind'), re.sub('<.*', '', full), each.findtext('name'))
    return found
