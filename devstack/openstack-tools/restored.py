"""Chapter of the story: the ledger is lost and restored from a backup which lacks a preemption that
has taken allocations from a victim. The victim runs on; its allocations are mended, or it leaves if
another server has its capacity by then."""
import json
import os
import signal
import subprocess

import processes
from cloud import until
from invariants import Broken, allocations, audit, check
from invariants import manage as nova_manage
from preempt import must, wait_scheduler

OURS = 'ebbtide-scheduler-1'
CONF = processes.HOME + '/etc/nova.conf'
DUMP = processes.HOME + '/ledger.sql'
MYSQL = ['--no-defaults', '-uroot', '-S', processes.HOME + '/run/mysql.sock']


def manage(*command):
    """ebbtide-manage: exit status and its JSON."""
    done = subprocess.run([os.environ['STACK_EBBTIDE'], *command, '--config-file', CONF, '--output', 'json'],
                          text=True, capture_output=True, check=False)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError as error:
        raise Broken('ebbtide-manage %s ends with %d: %s' % (' '.join(command), done.returncode, done.stderr[-2000:])) from error


def findings():
    """The codes of an audit, and what each says about whom."""
    found = manage('audit')[1]['findings']
    return {one['code'] for one in found}, found


def reconcile(*options):
    """The steps, as {(action, subject)}."""
    status, answer = manage('reconcile', *options)
    must(status == 0 and answer.get('held'), 'reconcile %s ends with %d: %s' % (options, status, answer))
    return {(step['action'], step['subject']) for step in answer.get('steps', [])}, answer


def back_up():
    """As the page for operators says."""
    subprocess.run(['mariadb-dump', *MYSQL, '--single-transaction', '--result-file=' + DUMP, 'ebbtide'], check=True)


def restore():
    """The database is of the time of the backup, and marked, before any scheduler starts on it."""
    subprocess.run(['mariadb', *MYSQL, '-e', 'drop database ebbtide; create database ebbtide character set utf8mb4'], check=True)
    with open(DUMP, encoding='utf-8') as dump:
        subprocess.run(['mariadb', *MYSQL, 'ebbtide'], stdin=dump, check=True)
    scheduler = os.path.join(os.path.dirname(os.environ['STACK_EBBTIDE']), 'ebbtide-scheduler')
    subprocess.run([scheduler, '--config-file', CONF, '--restored'], check=True)


def loses_a_preemption(stage, victim, name):
    """A small server takes a part of the victim's allocations, the scheduler dies before any notice
    leaves, and the restored ledger knows nothing of it. The scheduler is held afterwards, and Nova
    has given the small server up."""
    before = allocations()
    back_up()
    processes.restart(OURS, signal.SIGTERM, {'EBBTIDE_DIE_AT': 'nova-swapped'})
    wait_scheduler()
    newcomer = stage.cloud.create(name, 'small')
    processes.ended(OURS, 60)
    after = allocations()
    must(newcomer in after, 'Placement has no claim of the small server')
    lost = {uuid for uuid in before if after.get(uuid) != before[uuid]}
    must(lost == {victim}, 'allocations have changed of %s, and the cheapest was %s' % (lost, victim))
    must(after[victim], 'the victim holds nothing, and the small server needs a part of it')
    restore()
    # Nova's conductor has waited for its answer, and buries the server.
    buried = stage.cloud.settled(newcomer, ('ERROR',), seconds=150)
    must(buried['status'] == 'ERROR', 'without an answer the small server is %s' % buried['status'])
    processes.start(OURS)
    wait_scheduler()
    must(allocations() == after, 'a held scheduler has changed allocations to %s' % allocations())
    return newcomer, after


def stays(stage, victim):
    """Nothing needs what the victim has: it gets its allocations back, and keeps running."""
    before = allocations()
    newcomer, lost = loses_a_preemption(stage, victim, 'buried')
    codes, found = findings()
    must(codes == {'EB-AUDIT-002', 'EB-AUDIT-016', 'EB-AUDIT-017'}, 'the audit says %s' % found)
    must([one['subject'].endswith('(%s)' % victim) for one in found if one['code'] == 'EB-AUDIT-017'] == [True], 'the audit says %s' % found)
    expected = {('spare', 'server ' + victim), ('close', 'consumer ' + newcomer)}
    steps, answer = reconcile()
    must(steps == expected, 'reconcile shows %s' % answer)
    must(allocations() == lost, 'a look has changed allocations to %s' % allocations())
    steps, answer = reconcile('--apply')
    must(steps == expected and answer['applied'], 'reconcile --apply says %s' % answer)
    until('allocations as before', 60, lambda: allocations() == before)
    must(stage.cloud.server(victim)['status'] == 'ACTIVE', 'the victim does not run')
    check('a victim that survived')
    audit()
    stage.cloud.delete(newcomer)
    why = next(step['why'] for step in answer['steps'] if step['action'] == 'spare')
    print('      %s; its allocations are those of before' % why, flush=True)


def leaves(stage, ages, victim):
    """Until the ledger is reconciled, another server takes what Placement shows as free. It stays,
    and the victim leaves with notice."""
    newcomer, _lost = loses_a_preemption(stage, victim, 'deleted')
    # Nova leaves claims of a server that it has buried. The operator has them deleted, and
    # Placement shows capacity in which the victim runs.
    stage.cloud.delete(newcomer)
    nova_manage('placement', 'audit', '--delete')
    must(newcomer not in allocations(), 'the claim of a deleted server is there')
    late = stage.cloud.boot('late', 'small')
    must(late['status'] == 'ACTIVE', 'late is %s: %s' % (late['status'], late.get('fault')))
    must(late['OS-EXT-SRV-ATTR:host'] == stage.cloud.server(victim)['OS-EXT-SRV-ATTR:host'], 'late is not beside the victim')
    codes, found = findings()
    must({'EB-AUDIT-016', 'EB-AUDIT-017'} <= codes, 'the audit says %s' % found)
    steps, answer = reconcile()
    must(('continue', 'server ' + victim) in steps, 'reconcile shows %s' % answer)
    must(victim in stage.left(ages), 'a look has ended the victim')
    reconcile('--apply')
    stage.wait_gone({victim})
    check('a victim whose capacity another server took')
    must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
    must(stage.cloud.server(late['id'])['status'] == 'ACTIVE', 'late does not run any more')
    audit()
    why = next(step['why'] for step in answer['steps'] if step['action'] == 'continue')
    print('      %s; it left after its notice' % why, flush=True)


def a_ledger_that_was_restored(stage):
    """A backup lacks a preemption whose victim runs: once its allocations go back, once another
    server has taken its capacity meanwhile."""
    ages = stage.fill()
    (victim,) = stage.cheapest(ages)
    stays(stage, victim)
    must(set(stage.left(ages)) == set(ages), 'left are %s' % stage.left(ages))
    leaves(stage, ages, victim)


CHAPTERS = [a_ledger_that_was_restored]
