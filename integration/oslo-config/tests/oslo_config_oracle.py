#!/usr/bin/env python3
"""Writes tests/vectors.json.gz: odd configuration files, and what Python's oslo.config makes of
them.

    /opt/nova/bin/python integration/oslo-config/tests/oslo_config_oracle.py

A case has files (in order), files of a directory, an environment, options with their kinds, and for
each option the value, or that there is an error. Where the files themselves are refused, `load`
says so.
"""
import gzip
import json
import os
import random
import sys
import tempfile

from oslo_config import cfg
from oslo_config import types

HERE = os.path.dirname(os.path.abspath(__file__))

KINDS = {
    'text': lambda n, **k: cfg.StrOpt(n, **k),
    'choice': lambda n, **k: cfg.StrOpt(n, choices=['a', 'B'], **k),
    'choice_any_case': lambda n, **k: cfg.StrOpt(n, choices=['a', 'B'], ignore_case=True, **k),
    'quotes': lambda n, **k: cfg.StrOpt(n, quotes=True, **k),
    'bool': lambda n, **k: cfg.BoolOpt(n, **k),
    'int': lambda n, **k: cfg.IntOpt(n, **k),
    'int_1_10': lambda n, **k: cfg.IntOpt(n, min=1, max=10, **k),
    'float': lambda n, **k: cfg.FloatOpt(n, **k),
    'float_0_1': lambda n, **k: cfg.FloatOpt(n, min=0, max=1, **k),
    'list': lambda n, **k: cfg.ListOpt(n, **k),
    'list_int': lambda n, **k: cfg.ListOpt(n, item_type=types.Integer(), **k),
    'list_bounds': lambda n, **k: cfg.ListOpt(n, bounds=True, **k),
    'list_quotes': lambda n, **k: cfg.ListOpt(n, item_type=types.String(quotes=True), **k),
    'dict': lambda n, **k: cfg.DictOpt(n, **k),
    'dict_int': lambda n, **k: cfg.Opt(n, type=types.Dict(types.Integer()), **k),
    'dict_bounds': lambda n, **k: cfg.Opt(n, type=types.Dict(bounds=True), **k),
    'many': lambda n, **k: cfg.MultiStrOpt(n, **k),
}


def opt(group, name, kind, default=None, deprecated=()):
    return {'group': group, 'name': name, 'kind': kind, 'default': default, 'deprecated': [list(d) for d in deprecated]}


def ask(case):
    """Adds the answers to a case."""
    with tempfile.TemporaryDirectory() as folder:
        args = []
        for number, text in enumerate(case['files']):
            path = os.path.join(folder, '%d.conf' % number)
            with open(path, 'w', newline='') as out:
                out.write(text)
            args += ['--config-file', path]
        if case['dir']:
            os.mkdir(os.path.join(folder, 'd'))
            for name, text in case['dir'].items():
                with open(os.path.join(folder, 'd', name), 'w', newline='') as out:
                    out.write(text)
            args += ['--config-dir', os.path.join(folder, 'd')]
        kept = dict(os.environ)
        os.environ.update(case['env'])
        try:
            conf = cfg.ConfigOpts()
            for o in case['options']:
                old = [cfg.DeprecatedOpt(name, group=group) for group, name in o['deprecated']]
                made = KINDS[o['kind']](o['name'], default=o['default'], deprecated_opts=old)
                conf.register_opt(made, group=None if o['group'] == 'DEFAULT' else o['group'])
            try:
                conf(args, project='x', default_config_files=[], default_config_dirs=[])
            except cfg.Error:
                case['load'] = 'error'
                return case
            case['load'] = 'ok'
            answers = []
            for o in case['options']:
                where = conf if o['group'] == 'DEFAULT' else conf[o['group']]
                try:
                    value = where[o['name'].replace('-', '_')]
                    if isinstance(value, float):
                        value = repr(value)
                    answers.append({'value': value})
                except (cfg.Error, ValueError, RecursionError) as error:
                    answers.append({'error': type(error).__name__})
            case['answers'] = answers
            return case
        finally:
            os.environ.clear()
            os.environ.update(kept)


def case(name, files, options, env=None, dir_=None):
    return {'name': name, 'files': files if isinstance(files, list) else [files], 'dir': dir_ or {}, 'env': env or {},
            'options': options}


def hand_made():
    a = opt('DEFAULT', 'a', 'text')
    yield case('continuation', '[DEFAULT]\na = 1\n  2\n\t3 \nb = x\n', [a])
    yield case('continuation after a comment', '[DEFAULT]\na = 1\n# c\n 2\n', [a])
    yield case('continuation after an empty line', '[DEFAULT]\na = 1\n\n 2\n', [a])
    yield case('continuation after a line of blanks', '[DEFAULT]\na = 1\n   \n 2\n', [a])
    yield case('continuation that looks like a comment', '[DEFAULT]\na = 1\n # 2\n ; 3\n', [a])
    yield case('continuation that looks like a section', '[DEFAULT]\na = 1\n [g]\n', [a])
    yield case('continuation first of all', '[DEFAULT]\n a = 1\n', [a])
    yield case('list over lines', '[DEFAULT]\na = 1,\n  2,\n 3\n', [opt('DEFAULT', 'a', 'list')])
    for sign in ('#', ';'):
        yield case('comment ' + sign, '[DEFAULT]\n%s a = 0\na = 1 %s c\n' % (sign, sign), [a])
    for line in ('a=1', 'a:1', 'a = 1:2', 'a : 1=2', 'a==1', 'a=', 'a = ""', "a = ''", 'a = "x"', "a = 'x'", 'a = "x\'', 'a = "',
                 'a = "x" y "z"', 'a = "x" y', 'a = " x "', r'a = x\ny', r'a = "x\"', 'a = $$x', r'a = \$x', 'a = 1 ; 2', 'a',
                 '= 1', ': 1', '[', '[]', '[x', '[x] y', '[ DEFAULT ]', 'a\u00e4 = 1', 'a = \u00e4\u2028b', 'a\u00a0=\u00a01\u00a0',
                 'a = x\x1c', 'A = 1', 'a-b = 1', 'a b = 1', 'a = 1\r', 'a = 1\x0b2', '\ufeffa = 1', '%a = 1', 'a = %(b)s'):
        yield case('line %r' % line, '[DEFAULT]\n%s\n' % line, [a])
    yield case('value before the first section', 'a = 1\n', [a])
    yield case('value before a section', 'a = 1\n[DEFAULT]\na = 2\n', [a])
    yield case('carriage returns', '[DEFAULT]\r\na = 1\r\n  2\r\nb = 3\r\n', [a, opt('DEFAULT', 'b', 'text')])
    yield case('old carriage returns', '[DEFAULT]\ra = 1\rb = 3\r', [a, opt('DEFAULT', 'b', 'text')])
    yield case('no line break at the end', '[DEFAULT]\na = 1', [a])
    yield case('empty', '', [a])
    m = opt('DEFAULT', 'a', 'many')
    twice = '[DEFAULT]\na = 1\na = 2\n[g]\nx = 1\n[DEFAULT]\na = 3\n'
    yield case('repeated', twice, [a])
    yield case('repeated, many', twice, [m])
    yield case('repeated in files', [twice, '[DEFAULT]\na = 4\na = 5\n'], [m])
    yield case('last of files', [twice, '[DEFAULT]\na = 4\na = 5\n'], [a])
    yield case('files and directory', ['[DEFAULT]\na = 1\nb = 1\nc = 1\n'], [a, opt('DEFAULT', 'b', 'text'), opt('DEFAULT', 'c', 'many')],
               dir_={'2.conf': '[DEFAULT]\na = 3\nc = 3\n', '10.conf': '[DEFAULT]\na = 2\nb = 2\nc = 2\n',
                     '.3.conf': '[DEFAULT]\na = 9\n', '4.conf~': '[DEFAULT]\na = 9\n', '5.cnf': '[DEFAULT]\na = 9\n'})
    g = opt('Gr', 'x', 'text')
    for section in ('Gr', 'gr', 'GR'):
        yield case('group ' + section, '[%s]\nx = 1\n' % section, [g])
    yield case('groups of several cases', '[gr]\nx = 1\n[GR]\nx = 2\n', [g])
    yield case('default in lower case', '[default]\na = 1\n', [a])
    old = opt('new', 'x', 'text', deprecated=[('old', 'y'), ('DEFAULT', 'z')])
    yield case('old name', '[old]\ny = 1\n', [old])
    yield case('older name', '[DEFAULT]\nz = 1\n', [old])
    yield case('old and new name', '[old]\ny = 1\n[new]\nx = 2\n[DEFAULT]\nz = 3\n', [old])
    yield case('new name before old name in a later file', ['[new]\nx = 1\n', '[old]\ny = 2\n'], [old])
    old = opt('new', 'x', 'many', deprecated=[('old', 'y')])
    yield case('old and new names, many', ['[new]\nx = 1\n[old]\ny = 2\n', '[old]\ny = 3\n[new]\nx = 4\n'], [old])
    names = [opt('DEFAULT', 'n', 'text', 'N'), opt('DEFAULT', 'i', 'int', 7), opt('g', 'n', 'text', 'G'), opt('g', 'h', 'text', '${n}-$i'),
             opt('DEFAULT', 'empty', 'text'), opt('DEFAULT', 'b', 'bool', True), opt('DEFAULT', 'f', 'float', 1.0),
             opt('DEFAULT', 'l', 'list', ['p', 'q'])]
    for value in ('$n', '${n}', '$n.', '$n-x', '${n}x', '$nx', '$$n', '$$$n', r'\$n', r'\\$n', '$', '$ n', '${', '${n', '${}', '$1', '$i',
                  '$g.n', '${g.n}', '$g.h', '${g.h}', '$g.none', '$none.n', '$none', '${none}', 'x$empty.', 'x${empty}y', '$b', '$f', '$l',
                  '$n$n', '$N', '${N}', '$g', 'http://$n:$i/', '${n.m}', '$_n', '$a', '${g.a}'):
        yield case('variable %r' % value, '[DEFAULT]\na = %s\n[g]\na = %s\n' % (value, value), [a, opt('g', 'a', 'text')] + names)
    yield case('variables of variables', '[DEFAULT]\na = $n\nn = $o\no = $i\n', [a, opt('DEFAULT', 'o', 'text')] + names)
    yield case('variables in a circle', '[DEFAULT]\na = $n\nn = $a\n', [a] + names)
    yield case('variables in a list', '[DEFAULT]\nq = $n, ${i},$l\n', [opt('DEFAULT', 'q', 'list')] + names)
    yield case('variables in many', '[DEFAULT]\nq = $n\nq = $i\n', [opt('DEFAULT', 'q', 'many')] + names)
    yield case('variable for a number', '[DEFAULT]\nq = $i\n', [opt('DEFAULT', 'q', 'int')] + names)
    yield case('environment', '[DEFAULT]\na = 1\n[gr]\nx = 1\n', [a, g, opt('DEFAULT', 'b-c', 'text'), opt('DEFAULT', 'i', 'int')],
               env={'OS_DEFAULT__A': '2', 'OS_GR__X': '$a', 'OS_DEFAULT__B_C': '3', 'OS_DEFAULT__I': 'x'})
    yield case('environment without file', [], [a, opt('g', 'b', 'bool'), opt('g', 'l', 'list')],
               env={'OS_DEFAULT__A': '', 'OS_G__B': 'yes', 'OS_G__L': 'a,b', 'OS_g__l': 'no'})
    yield case('environment under an old name', [], [opt('new', 'x', 'text', deprecated=[('old', 'y')])], env={'OS_OLD__Y': '1'})
    values = {
        'choice': ['a', 'A', 'B', 'b', '', 'ab', '"a"'],
        'choice_any_case': ['a', 'A', 'B', 'b', 'c'],
        'quotes': ['x', "'x", 'x"', "'x'y'", '""x""', "a'b'"],
        'bool': ['true', 'TRUE', 'True', '1', 'on', 'yes', 'Yes', 't', 'y', '', 'false', '0', 'off', 'no', 'f', 'n', '2', 'none', '01'],
        'int': ['1', '-1', '+1', ' 1', '1_000', '_1', '1_', '1__0', '0x10', '1.0', '1e3', '', 'x', '007', '- 1', '9223372036854775807', '--1'],
        'int_1_10': ['0', '1', '10', '11', '', '-5', '5'],
        'float': ['1', '1.5', '-1.5e3', '.5', '5.', 'inf', '-inf', 'nan', 'Infinity', '1_0.5', '1_.5', '', 'x', '1e400', '0x1p3', '1,5', '1e-5', '100000000000000000000'],
        'float_0_1': ['0', '1', '-0.1', '1.1', 'nan', 'inf'],
        'list': ['', 'a', 'a,b', ' a , b ', 'a,,b', 'a,b,', 'a,b,,', ',', ',a', '"a,b"', "'a',b", '[a,b]', 'a b'],
        'list_int': ['1,2', '1, 2 ', '1,x', '1,,2', 'x', '', '1,2,'],
        'list_bounds': ['[a,b]', 'a,b', '[]', '[a', '[', '[a,b],', '[[a]]', '[a],[b]', ''],
        'list_quotes': ['"a,b",c', "'a',b", '"a', "x,'a,b", '"a","b"', 'a"b,c', '"a,b,c"'],
        'dict': ['a:b', 'a:b,c:d', ' a : b , c : d ', 'a', 'a:b,c', 'a:b,a:c', ':b', 'a:', 'a:b:c', '', 'a:b,', ',a:b', 'a:b,,c:d'],
        'dict_int': ['a:1', 'a:x', 'a:1,b:2', 'a:1,b', 'a:'],
        'dict_bounds': ['{a:b}', 'a:b', '{}', '{a:b', '{a:b,c:d}'],
        'many': ['a', 'a,b', ''],
        'text': ['', '  ', 'x' * 300],
    }
    for kind, texts in values.items():
        for text in texts:
            yield case('%s %r' % (kind, text[:30]), '[DEFAULT]\nv = %s\n' % text, [opt('DEFAULT', 'v', kind)])


def random_files(rng, count):
    lines = ['[DEFAULT]', '[g]', '[G]', 'a = 1', 'a: 2', 'b = $a', 'b = x', ' cont', '\tcont', '', '   ', '# c', '; c', 'a = "q"', 'b = ${g.a}',
             'a=1,2', 'a = $$', ' [x]', 'a', '[x', "b = 'y'", ' # d', 'a = $b', 'c : a:b,c=d']
    weights = [4, 3, 1, 6, 3, 2, 3, 3, 2, 2, 1, 2, 1, 2, 1, 2, 1, 1, 0.2, 0.2, 2, 1, 1, 2]
    for number in range(count):
        files = ['\n'.join(['[DEFAULT]'] + rng.choices(lines, weights, k=rng.randrange(1, 12))) + rng.choice(['', '\n'])
                 for _ in range(rng.randrange(1, 4))]
        options = [opt(group, name, kind) for group in ('DEFAULT', 'g') for name, kind in
                   (('a', rng.choice(['text', 'many', 'list'])), ('b', rng.choice(['text', 'many'])), ('c', 'text'))]
        yield case('random %d' % number, files, options)


def main():
    cases = [ask(c) for c in hand_made()] + [ask(c) for c in random_files(random.Random('ebbtide'), 300)]
    with gzip.GzipFile(os.path.join(HERE, 'vectors.json.gz'), 'wb', mtime=0) as out:
        out.write(('[\n' + ',\n'.join(json.dumps(c) for c in cases) + '\n]\n').encode())
    refused = sum(c['load'] == 'error' for c in cases)
    print(len(cases), 'cases, files refused in', refused, file=sys.stderr)


if __name__ == '__main__':
    main()
