"""Writes chat_template_cases.json: small chat templates, written for the tests, and the texts that
transformers makes of them. Needs: transformers and jinja2.

    python3 tests/data/make_chat_template_cases.py
"""
import json
from pathlib import Path

from transformers import __version__
from transformers.utils.chat_template_utils import render_jinja_template

VARIABLES = {
    "n": 7, "x": 2.5, "word": "W\u00f6rter und <b>", "list": ["b", "A", "c", "b"], "empty": [],
    "nothing": None, "yes": True, "person": {"name": "Ada", "age": 36, "langs": ["de", "en"]},
    "rows": [{"k": "x", "v": 2}, {"k": "y", "v": None}, {"k": "X", "v": 1}], "lines": "one\n\n two\n"}
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi "},
            {"role": "assistant", "content": "Ho", "thinking": "hm"}]
# Each has a name on its first line.
TEMPLATES = r'''
trimmed blocks
a
  {% if true %}
  b
  {% endif %}
c
---
signs of blocks
x  {%- if true -%}  y  {%- endif +%}
 z {%+ if true %} w{% endif %}
---
signs of outputs
a {{- 1 -}} b {{ 2 }}
c
---
comments
a {# one #} b
  {# two #}
c {#- three -#} d
---
if, elif, else
{% if n > 9 %}a{% elif n > 6 and n < 9 %}b{% else %}c{% endif %}
---
inline if
{{ 'a' if n == 7 else 'b' }}{{ 'c' if n == 8 }}{{ 1 if false else 2 if false else 3 }}
---
loop variables
{% for r in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('p', 'q') }}{{ loop.changed(r) }};{% endfor %}
---
loop with a condition and else
{% for r in list if r != 'b' %}{{ loop.length }}{{ r }}{% else %}none{% endfor %}{% for r in empty %}{{ r }}{% else %}none{% endfor %}
---
break and continue
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}
---
unpacking
{% for k, v in person.items() %}{{ k }}={{ v }};{% endfor %}{% for a, (b, c) in [[1, [2, 3]]] %}{{ a + b + c }}{% endfor %}{% set p, q = 1, 2 %}{{ p }}{{ q }}
---
scopes
{% set a = 1 %}{% for i in [1, 2] %}{% set a = a + i %}{{ a }}{% endfor %}{{ a }}{% if true %}{% set a = 5 %}{% endif %}{{ a }}{% with a = 9, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
---
namespace
{% set ns = namespace(a=1, b='x') %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}{{ ns['a'] }}
---
set of a block
{% set t %} a {{ n }} {% endset %}[{{ t }}]{% set u | trim | upper %} b {% endset %}[{{ u }}]
---
macro
{% macro f(a, b='y', c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 2, 3) }}{{ f(1, c=4) }}{{ f() }}{{ f(*[1, 2], **{'c': 3}) }}
---
macro that calls itself
{% macro f(i) %}{{ i }}{% if i > 0 %}{{ f(i - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
---
call with caller
{% macro f(a) %}<{{ caller(a) }}>{% endmacro %}{% call(b) f(3) %}{{ b }}!{% endcall %}
---
filter block and generation
{% filter upper | replace('A', 'b') %}a {{ word }}{% endfilter %}{% generation %}g{% set g = 1 %}{% endgeneration %}{{ g is defined }}
---
numbers
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 * 3.0 }} {{ 1 + true }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1e3 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e-5 }} {{ 123456789012345.0 }} {{ -n }} {{ 2 - -3 }}
---
comparisons
{{ 1 < 2 < 3 }}{{ 1 == 1.0 }}{{ true == 1 }}{{ 'a' < 'b' }}{{ [1, 2] < [1, 3] }}{{ 1 != 2 }}{{ not 1 >= 2 }}{{ 'ört' in word }}{{ 'q' not in list }}{{ 'name' in person }}{{ (1, 2) == [1, 2] }}{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}
---
texts
{{ 'a' ~ 1 ~ none ~ true ~ missing }}{{ 'a' + 'b' }}{{ 'ab' * 2 }}{{ '%s and %d: %5.2f%%' % ('x', n, x) }}{{ "a'b" 'c' }}{{ 'a\tb\u00e9\\' }}
---
printing
{{ [1, 2.0, 'a\'b', "it's", none, true, {'k': (1,)}, ()] }}{{ person }}{{ nothing }}{{ 'é\n\x07\u200b' | list }}
---
slices
{{ list[0] }}{{ list[-1] }}{{ list[1:] }}{{ list[::-1] }}{{ list[:-2] }}{{ word[1:4] }}{{ word[::-2] }}{{ list[9] is defined }}{{ word[1] }}{{ list[5:1] }}{{ messages[0]['role'] }}{{ messages[:1] | length }}
---
tests of kinds
{% for v in [none, true, 1, 1.5, 'a', [1], {'a': 1}, missing] %}{{ v is none }}{{ v is boolean }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is string }}{{ v is sequence }}{{ v is mapping }}{{ v is iterable }}{{ v is defined }}{{ v is true }};{% endfor %}
---
other tests
{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 'a' is in list }}{{ 'b' is in(list) }}{{ 1 is eq 1 }}{{ 1 is not equalto(2) }}{{ 2 is gt 1 }}{{ 'ab' is lower }}{{ 'AB' is upper }}{{ missing is not defined and true }}{{ false is false }}{{ none is sameas none }}
---
filters of texts
[{{ ' a ' | trim }}][{{ 'xxaxx' | trim('x') }}]{{ 'aBc dE-f' | upper }}{{ 'aBc' | lower }}{{ 'aBc dE-f(g' | title }}{{ 'éBC' | capitalize }}{{ 'aaa' | replace('a', 'b', 2) }}{{ word | length }}{{ 'abc' | reverse }}{{ 12 | string + 'a' }}{{ 'abc' | first }}{{ 'abc' | last }}{{ '%s-%s' | format('a', 1) }}
---
indent
{{ lines | indent }}|{{ lines | indent(2, true) }}|{{ lines | indent('> ', blank=true) }}|{{ '' | indent(3, first=true) }}
---
filters of lists
{{ list | join }}{{ list | join(', ') }}{{ rows | join('+', attribute='k') }}{{ list | sort }}{{ list | sort(reverse=true, case_sensitive=true) }}{{ list | unique | list }}{{ list | reverse | list }}{{ [3, 1] | min }}{{ [3, 1] | max }}{{ [3, 1] | sum }}{{ rows | map(attribute='v') | list }}{{ list | map('upper') | join }}{{ rows | sort(attribute='k,v') | map(attribute='v') | list }}{{ [1, 2, 3] | batch(2, 0) | list }}
---
select
{{ rows | selectattr('v') | map(attribute='k') | join }}{{ rows | rejectattr('v', 'none') | list | length }}{{ rows | selectattr('k', 'equalto', 'x') | list }}{{ [1, 2, 3] | select('odd') | list }}{{ [0, 1, none] | reject | list }}{{ [1, 5] | select('>', 2) | list }}{{ none | select | list }}
---
generators are read once
{% set g = list | map('lower') %}{{ g | join }}{{ g | join }}|{{ g | list }}
---
filters of dicts
{{ person | length }}{{ person | list }}{{ person | items | list }}{{ {'b': 1, 'A': 2} | dictsort }}{{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) }}{{ {'b': 1, 'A': 2} | dictsort(true) }}{{ person | first }}
---
default
{{ missing | default('d') }}{{ nothing | default('d') }}{{ nothing | default('d', true) }}{{ '' | d('e', boolean=true) }}{{ missing | default }}{{ missing.a | default('f') if missing is defined else 'g' }}
---
int and float
{{ '12' | int }}{{ '1.9' | int }}{{ 'a' | int }}{{ 'a' | int(5) }}{{ 2.9 | int }}{{ ' 3 ' | float }}{{ 'b' | float }}{{ true | int }}{{ -3 | abs }}{{ 2.5 | round }}{{ 2.51 | round(1, 'floor') }}{{ 3.5 | round | int }}
---
tojson
{{ person | tojson }}{{ [1, 2.0, none, true, 'é"\n<&\u001f'] | tojson }}{{ 'é😀' | tojson(ensure_ascii=true) }}{{ {'b': [], 'a': {}} | tojson(sort_keys=true) }}{{ person | tojson(separators=(',', ':')) }}
---
tojson with an indent
{{ person | tojson(indent=2) }}{{ [[], {}, [1]] | tojson(indent=1) }}{{ [1] | tojson(indent='-') }}
---
strip methods
[{{ ' a '.strip() }}][{{ 'xya'.lstrip('yx') }}][{{ 'a\n'.rstrip('\n') }}][{{ 'aé'.strip('é') }}]
---
split methods
{{ ' a  b '.split() }}{{ 'a,b,,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a\nb\r\nc\n'.splitlines() }}{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=') }}{{ '<think>x</think>y'.split('</think>')[-1] }}{{ 'a b c'.split(none, 1) }}{{ ''.split(',') }}{{ ''.split() }}
---
other methods of texts
{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abcabc'.replace('b', '', 1) }}{{ 'ab'.upper() }}{{ "it's éa".title() }}{{ '-'.join(['a', 'b']) }}{{ 'aéb'.find('b') }}{{ 'abab'.rfind('ab') }}{{ 'abab'.count('ab') }}{{ 'a1'.isdigit() }}{{ '12'.isdigit() }}{{ 'abc'.removeprefix('a') }}{{ 'ab'.replace('', '.') }}{{ 'aB'.capitalize() }}{{ 'aB'.islower() }}
---
methods of lists and dicts
{{ person.get('name') }}{{ person.get('x') }}{{ person.get('x', 5) }}{{ person['keys'] is defined }}{{ person.keys() | list }}{{ person.values() | list | length }}{{ list.index('A') }}{{ list.count('b') }}{{ person.name }}{{ person['langs'][1] }}{{ person.langs.0 }}{{ dict(a=1, **{'b': 2}) }}{{ dict([['a', 1]]) }}
---
hidden names
{{ list.append is defined }}{{ person.pop is defined }}{{ word.__class__ is defined }}{{ person.nothing is defined }}
---
safe texts
{{ '<' | safe + '<&"' }}{{ '<' | safe ~ '<' }}{{ ('<' | safe) | string }}
---
range
{{ range(3) | list }}{{ range(1, 8, 3) | list }}{{ range(3, 0, -1) | list }}{{ range(4) | length }}{{ range(5)[2] }}
---
messages
{% for m in messages %}{{ m.role }}:{{ m.content | trim }}{% if m.reasoning_content is defined %}({{ m.reasoning_content }}){% endif %};{% endfor %}{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ bos_token }}
---
undefined values
{{ missing }}{{ missing | length }}{{ missing | list }}{{ missing | upper }}{{ missing == missing }}{{ missing is iterable }}{{ [missing] }}{% for a in missing %}x{% endfor %}{{ 'a' in missing }}{{ missing | first }}
---
brackets in outputs
{{ {'a': {'b': 1}} }}{{ {'a': {'b': {}}}['a'] }}{{ '}}' }}{{ "{% if %}" }}
---
time
{{ strftime_now('%Y') | length }}{{ strftime_now('%d %b') == strftime_now('%d %b') }}
'''

cases = []
for block in TEMPLATES.strip("\n").split("\n---\n"):
    name, template = block.split("\n", 1)
    texts, _ = render_jinja_template(
        conversations=[MESSAGES], chat_template=template, add_generation_prompt=True, bos_token="<s>", **VARIABLES)
    cases.append({"name": name, "template": template, "text": texts[0]})
Path(__file__).with_name("chat_template_cases.json").write_text(json.dumps(
    {"transformers": __version__, "variables": VARIABLES, "messages": MESSAGES, "cases": cases},
    indent=1, ensure_ascii=False) + "\n")
