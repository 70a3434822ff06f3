#!/usr/bin/env python3
"""Writes cli/config-check/src/older_options.tsv: options that the oldest supported Nova (26, Zed)
and its libraries declare and the newest does not. A nova.conf of a release between them may have
them; Ebbtide reads none of them here.

On Debian 12 with python3-nova:

    /usr/bin/python3 integration/nova/older_options.py > cli/config-check/src/older_options.tsv

Columns: group, name.
"""
import importlib
import os

from nova.conf import opts as nova_opts

LIBRARIES = ['keystonemiddleware.auth_token._opts', 'os_brick.opts', 'os_vif.opts', 'oslo_cache._opts', 'oslo_concurrency.opts',
             'oslo_limit.opts', 'oslo_log._options', 'oslo_messaging.opts', 'oslo_middleware.opts', 'oslo_policy.opts',
             'oslo_reports.opts', 'osprofiler.opts']
NEWEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'src/options/declared.tsv')


def options(listed):
    for group, declared in listed:
        for option in declared:
            yield str(getattr(group, 'name', group) or 'DEFAULT'), option.dest


def main():
    found = set(options(nova_opts.list_opts()))
    for library in LIBRARIES:
        module = importlib.import_module(library)
        for name in dir(module):
            if name.startswith('list_') and name.endswith('opts'):
                found.update(options(getattr(module, name)()))
    with open(NEWEST, encoding='utf-8') as file:
        found -= {tuple(line.rstrip('\n').split('\t')[:2]) for line in file}
    for row in sorted(found):
        print('\t'.join(row))


if __name__ == '__main__':
    main()
