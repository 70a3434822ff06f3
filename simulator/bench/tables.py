#!/usr/bin/env python3
"""Tables for people out of what the benchmarks wrote as JSON.

  tables.py nova DIR          prints the comparison with Nova, and writes it to DIR/nova.json
  tables.py stamp JSON COMMIT DATE   writes into a report at which commit and when it was measured
  tables.py document DIR DOC  writes all tables into the document DOC, between its markers:
                              <!-- figures: NAME --> … <!-- end of figures -->

Reads preempt.json, request.json, memory.json, figure2.json, nova.json, service.json,
service_preempting.json, service_create.json, instructions.txt; for a file that is not there the
document says so.
"""
import json
import os
import re
import sys

PLOTS = {'preempt': 'How the time of a preempting request grows', 'request': 'How the time of an ordinary request grows',
         'figure2': "The paper's figure 2"}
SCENARIOS = ['empty-normal', 'empty-preemptible', 'saturated-normal']
SCHEDULERS = ['plain', 'preemptible-aware', 'retry']


def load(directory, name):
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def rows_of(report):
    return report.get('results', [report])


def time(us):
    if us is None:
        return '–'
    for limit, unit in ((1e6, 's'), (1e3, 'ms')):
        if us >= limit:
            return '%.2f %s' % (us / limit, unit)
    return ('%.0f µs' if us >= 100 else '%.2f µs') % us


def count(number):
    return '{:,}'.format(number)


def table(heads, rows):
    lines = ['| ' + ' | '.join(heads) + ' |', '|' + '---|' * len(heads)]
    lines += ['| ' + ' | '.join(str(cell) for cell in row) + ' |' for row in rows]
    return '\n'.join(lines)


def goal(value, limit):
    return '%s (goal %s: %s)' % (time(value), time(limit), 'met' if value <= limit else '**missed**')


def machine(report):
    m = report['machine']
    where = '%s, %d cores, %.0f GiB, %s, load %s, %s build, version %s' % (
        m['cpu'], m['cores'], m['memory_mib'] / 1024, m['system'], m['load_1m'], m['build'], m['version'])
    return '%s, %s.' % (where, measured(report.get('measured')))


def measured(when):
    """The commit and the day of a figure, which `stamp` has written into its report."""
    return 'commit %s, %s' % (when['commit'], when['date']) if when else '**commit and date unknown: measure anew**'


def stamp(path, commit, date):
    with open(path) as file:
        report = json.load(file)
    report['measured'] = {'commit': commit, 'date': date}
    with open(path, 'w') as file:
        json.dump(report, file, indent=2, ensure_ascii=False)
        file.write('\n')


def preempt(report):
    goals = {(10000, 16): (500, 2000), (100000, 16): (5000, 20000)}

    def row(r):
        p50, p99 = goals.get((r['hosts'], r['preemptibles']), (None, None))
        return [count(r['hosts']), r['preemptibles'],
                goal(r['p50_us'], p50) if p50 else time(r['p50_us']), goal(r['p99_us'], p99) if p99 else time(r['p99_us']),
                time(r['max_us']), time(r.get('cpu_p99_us')), 'yes' if r['exact'] else '**no**', '%d of %d' % (r['checked'], r['requests']),
                '%.2f' % r['mean_victims']]
    heads = ['hosts', 'preemptible each', 'p50', 'p99', 'max', 'p99 of CPU time', 'exact', 'checked', 'victims']
    return table(heads, [row(r) for r in rows_of(report)]) + '\n\n' + machine(report)


def request(report):
    def row(r):
        p50 = goal(r['p50_us'], 250) if r['hosts'] == 100000 else time(r['p50_us'])
        return [count(r['hosts']), p50, time(r['p99_us']), time(r['read_once_us']), '%.1f' % r['read_gib_per_s'],
                '%.1f×' % r['ratio_to_read_once']]
    heads = ['hosts', 'p50', 'p99', 'reading the columns once', 'GiB/s', 'p50 / reading once']
    return table(heads, [row(r) for r in rows_of(report)]) + '\n\n' + machine(report)


def memory(report):
    heads = ['hosts', 'instances', 'bytes a host (goal 1024)', 'bytes an instance (goal 256)', 'table']
    row = [count(report['hosts']), count(report['instances']), '%.0f' % report['bytes_per_host'],
           '%.0f' % report['bytes_per_instance'], '%.0f MiB' % report['table_mib']]
    return table(heads, [row]) + '\n\n' + machine(report)


def figure2(report):
    by = {(r['hosts'], r['scenario'], r['scheduler']): r for r in rows_of(report)}
    rows = []
    for hosts in sorted({r['hosts'] for r in rows_of(report)}):
        for scenario in SCENARIOS:
            plain, aware, retry = (by[hosts, scenario, s] for s in SCHEDULERS)
            to_plain = '–' if aware['ratio_to_plain'] is None else '%.2f' % aware['ratio_to_plain']
            rows.append([count(hosts), scenario.replace('-', ' & ')] + [time(r['p50_us']) for r in (plain, aware, retry)]
                        + [to_plain, '%.2f' % retry['ratio_to_aware']])
    heads = ['hosts', 'scenario', 'plain', 'preemptible-aware', 'retry', 'aware / plain (goal ≤ 1.10)', 'retry / aware']
    return table(heads, rows) + '\n\nMedians. ' + machine(report)


def nova(report):
    goals = {1000: 4000, 10000: 5000}

    def ratio(r):
        text = '%s×' % count(round(r['ratio']))
        wanted = goals.get(r['hosts'])
        if wanted and r['path'] == 'columns':
            text += ' (goal %s×: %s)' % (count(wanted), 'met' if r['ratio'] >= wanted else '**missed**')
        return text
    heads = ['hosts', 'path', 'Nova, CPU median', 'Ebbtide, CPU median', 'Nova / Ebbtide', 'answers equal to the bit']
    rows = [[count(r['hosts']), r['path'], time(r['nova_cpu_p50_us']), time(r['cpu_p50_us']), ratio(r),
             '%d of %d' % (r['equal'], r['checked'])] for r in rows_of(report)]
    return table(heads, rows) + '\n\n' + machine(report)


def service(directory):
    rows, last = [], None
    for name, wanted in (('service.json', 2000), ('service_preempting.json', 500), ('service_create.json', None)):
        r = load(directory, name)
        if r is None:
            continue
        last = r
        rate = '%s/s' % count(round(r['placements_per_s']))
        if wanted is not None:
            met = 'met' if r['placements_per_s'] >= wanted else '**missed**'
            rate += ' (goal %s: %s)' % (count(wanted), met)
        rows.append([count(r['hosts']), 'preempting' if r['preempting'] else 'ordinary', r['call'], rate, time(r['p50_us']),
                     time(r['p99_us']), time(r['decision_mean_us']),
                     '%s for %.1f' % (time(r['commit_mean_us']), r['placements_per_commit']), r['bound_by']])
    if last is None:
        return None
    heads = ['hosts', 'placements', 'call', 'rate', 'p50', 'p99', 'decision', 'transaction', 'bounded by']
    return table(heads, rows) + '\n\n%d callers, %s. ' % (last['clients'], last['database']) + machine(last)


def instructions(directory):
    path = os.path.join(directory, 'instructions.txt')
    if not os.path.exists(path):
        return None
    rows, name = [], None
    with open(path) as file:
        for line in file:
            head = re.match(r'\S+::\S+::(\S+) (\S+?):', line)
            found = re.match(r'\s+Instructions:\s+(\d+)', line)
            if head:
                name = head.group(2)
            elif found and name:
                rows.append([name.replace('_', ' '), count(int(found.group(1)))])
                name = None
    if not rows:
        return None
    when = load(directory, 'instructions.json') or {}
    return table(['decision', 'instructions'], rows) + '\n\nOne thread under valgrind, %s.' % measured(when.get('measured'))


def collect_nova(directory):
    results, place = [], None
    for name in sorted(os.listdir(directory)):
        if re.fullmatch(r'ebbtide_nova_\d+\.json', name):
            report = load(directory, name)
            results += rows_of(report)
            place = report['machine']
    results.sort(key=lambda r: r['hosts'])
    return {'results': results, 'machine': place} if results else None


def sections(directory):
    def of(name, draw):
        report = load(directory, name)
        return None if report is None else draw(report)

    return {
        'preempt': of('preempt.json', preempt), 'request': of('request.json', request), 'memory': of('memory.json', memory),
        'figure2': of('figure2.json', figure2), 'nova': of('nova.json', nova), 'service': service(directory),
        'instructions': instructions(directory),
    }


def document(directory, path):
    with open(path) as file:
        text = file.read()
    for name, drawn in sections(directory).items():
        marked = re.compile(r'(<!-- figures: %s -->\n).*?(<!-- end of figures -->)' % name, re.S)
        if not marked.search(text):
            sys.exit('tables.py: %s has no marker for the figures %r' % (path, name))
        body = drawn or 'Not measured yet: run `./devstack/bench-all` on a quiet machine.'
        plot = os.path.join(directory, name + '.svg')
        if drawn and name in PLOTS and os.path.exists(plot):
            body += '\n\n![%s](%s)' % (PLOTS[name], os.path.relpath(plot, os.path.dirname(path)))
        text = marked.sub(lambda found: found.group(1) + body + '\n' + found.group(2), text)
    with open(path, 'w') as file:
        file.write(text)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == 'nova':
        report = collect_nova(sys.argv[2])
        if report is None:
            sys.exit('tables.py: %s has no ebbtide_nova_N.json' % sys.argv[2])
        with open(os.path.join(sys.argv[2], 'nova.json'), 'w') as file:
            json.dump(report, file, indent=2)
            file.write('\n')
        print(nova(report))
    elif len(sys.argv) == 5 and sys.argv[1] == 'stamp':
        stamp(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == 'document':
        document(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
