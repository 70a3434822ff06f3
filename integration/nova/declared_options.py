#!/usr/bin/env python3
"""Writes integration/nova/src/options/declared.tsv: every option that Nova declares, as the
oracle's process sees them.

    cd integration/nova
    /path/to/venv/bin/python declared_options.py > src/options/declared.tsv

Columns: group, name, kind, least, most, choices. Kinds: bool, int, float, str, words (a list of
text), ints (a list of whole numbers), names (several values, each text), any (not checked here:
none of those shapes a decision).
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'oracle'))
import nova_oracle  # noqa: E402


def kind(option):
    kind_of = type(option.type).__name__
    if option.multi:
        return 'names' if kind_of == 'MultiString' else 'any'
    if kind_of == 'List':
        item = type(option.type.item_type).__name__
        plain = not option.type.bounds
        return {'String': 'words', 'Integer': 'ints'}.get(item, 'any') if plain else 'any'
    return {'Boolean': 'bool', 'Integer': 'int', 'Port': 'int', 'Float': 'float', 'String': 'str'}.get(kind_of, 'any')


def column(value):
    return '' if value is None else str(value)


def main():
    conf = nova_oracle.CONF
    groups = [('DEFAULT', conf._opts)] + [(name, group._opts) for name, group in conf._groups.items()]
    rows = []
    for group, options in groups:
        for name, entry in options.items():
            option = entry['opt']
            checked = option.type.item_type if kind(option) in ('words', 'ints') else option.type
            choices = getattr(checked, 'choices', None)
            if getattr(checked, 'ignore_case', False):
                choices = None
            rows.append((group, name, kind(option), column(getattr(checked, 'min', None)),
                         column(getattr(checked, 'max', None)), '|'.join(map(str, choices or ()))))
    for row in sorted(rows):
        print('\t'.join(row))


if __name__ == '__main__':
    main()
