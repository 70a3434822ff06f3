#!/usr/bin/python3
"""The tables of a benchmark run in Markdown. Usage: bench_page.py RESULT.json"""
import json
import sys


def _ratio(a, b):
    return '%.1f' % (a / b) if a and b else '–'


def page(found):
    lines = ['Measured %s on %d cores, load %.1f at the beginning. Times in ms, end to end over RabbitMQ, one request at a time; both schedulers '
             'in the same run with the same client and stack.' % (found['began'], found['cores'], found['load1']), '',
             '| hosts | nova-scheduler median (p90) | ebbtide-scheduler median (p90) | times faster | RPC alone (ping) | Placement alone |',
             '|---|---|---|---|---|---|']
    sizes = [(n, s) for n, s in found['sizes'].items()]

    def get(size, which, *path):
        value = size.get(which)
        for part in path:
            value = (value or {}).get(part)
        return value

    def cell(value, form='%.1f'):
        return '–' if value is None else form % value
    both = ('nova-scheduler', 'ebbtide')
    for n, size in sizes:
        med, p90 = ([get(size, w, 'seq', k) for w in both] for k in ('median', 'p90'))
        lines.append('| %s | %s (%s) | %s (%s) | %s | %s | %s |' % (n, cell(med[0]), cell(p90[0]), cell(med[1]), cell(p90[1]), _ratio(*med),
                                                                    cell(get(size, 'ebbtide', 'ping', 'median')), cell(get(size, 'floor', 'median'))))
    lines += ['', 'Processor time for each request, in ms (one at a time):', '',
              '| hosts | nova-scheduler | ebbtide-scheduler | times less | Placement with theirs | Placement with ours | MariaDB with theirs | MariaDB with ours |',
              '|---|---|---|---|---|---|---|---|']
    for n, size in sizes:
        cpu = [get(size, w, 'seq', 'cpu_ms_per_request', 'scheduler') for w in both]
        lines.append('| %s | %s | %s | %s | %s | %s | %s | %s |' % (
            n, cell(cpu[0]), cell(cpu[1], '%.2f'), _ratio(*cpu), *[cell(get(size, w, 'seq', 'cpu_ms_per_request', p))
                                                               for p in ('placement', 'mysql') for w in both]))
    lines += ['', 'Requests a second with 4 and 16 in flight; memory; seconds from the start of the process to its first answer:', '',
              '| hosts | theirs, 4 | ours, 4 | theirs, 16 | ours, 16 | theirs, MiB | ours, MiB | theirs, start | ours, start |',
              '|---|---|---|---|---|---|---|---|---|']
    for n, size in sizes:
        lines.append('| %s | %s |' % (n, ' | '.join(cell(get(size, w, *path)) for path in (
            ('conc4', 'per_second'), ('conc16', 'per_second'), ('rss_mib',), ('start_to_first_answer_s',)) for w in both)))
    lines += ['', 'Processor time for each request with 16 in flight, ours, in ms (what bounds the rate):', '',
              '| hosts | ebbtide-scheduler | Placement | Keystone | MariaDB | RabbitMQ | client |', '|---|---|---|---|---|---|---|']
    for n, size in sizes:
        conc = get(size, 'ebbtide', 'conc16')
        if conc:
            cpu = conc['cpu_ms_per_request']
            lines.append('| %s | %s | %s |' % (n, ' | '.join(cell(cpu[p]) for p in ('scheduler', 'placement', 'keystone', 'mysql', 'rabbit')),
                                               cell(conc['client_cpu_seconds'] * 1000 / max(conc['n'], 1))))
    if 'full' in found:
        full = found['full']
        size = found['sizes'].get(full['hosts'], found['sizes'].get(str(full['hosts']), {}))
        ordinary = get(size, 'ebbtide', 'seq', 'median')
        lines += ['', 'A request that takes a victim\'s place, %d full hosts: median %s ms, p90 %s ms; %s times our ordinary request at that size; '
                  '%s requests/s with 16 in flight; providers over their capacity afterwards: %d.' % (
                      full['hosts'], cell(full['seq'].get('median')), cell(full['seq'].get('p90')), _ratio(full['seq'].get('median'), ordinary),
                      cell(full['conc16']['per_second']), full['over_capacity'])]
    lines += ['', 'Placement alone, without a scheduler: milliseconds until the answer, and processor time of Placement and MariaDB for each request:', '',
              '| hosts | what | median | Placement | MariaDB |', '|---|---|---|---|---|']
    asked = [(n, size, kind, what) for n, size in sizes for kind, what in (('claim', 'a claim'), ('floor', 'a claim with the look beside it'))]
    if 'full' in found:
        asked += [(found['full']['hosts'], found['full'], kind, what) for kind, what in (
            ('swap', 'a swap'), ('floor', 'a swap with the candidates and the consumers beside it'))]
    lines += ['| %s | %s | %s | %s | %s |' % (n, what, cell(get(of, kind, 'median')), *[cell(get(of, kind, 'cpu_ms_per_request', p)) for p in (
        'placement', 'mysql')]) for n, of, kind, what in asked if of.get(kind)]
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    with open(sys.argv[1], encoding='utf-8') as result:
        print(page(json.load(result)), end='')
