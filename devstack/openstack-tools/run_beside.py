"""A chapter of the story: `ebbtide run` beside preemptible servers, with Nova alone."""
import os
import shutil
import signal
import subprocess
import tempfile

from cloud import until
from invariants import audit
from preempt import must

BIN = os.path.dirname(os.environ.get('STACK_EBBTIDE', ''))
ROUNDS = 300
# Counts to ROUNDS, ten a second, from where the last checkpoint was.
JOB = '''#!/bin/sh
n=$(cat "$EBBTIDE_RESTORE_DIR/n" 2>/dev/null || echo 0)
echo "$EBBTIDE_SERVER_NAME from $n" >> began
while [ "$n" -lt %d ]; do n=$((n+1)); echo $n > now.new; mv now.new now; sleep 0.1; done
echo "$n" >> ends
''' % ROUNDS


class Runner:
    """`ebbtide run` in a folder of its own; started again it goes on."""

    def __init__(self, folder):
        self.folder = folder
        with open(folder + '/job', 'w', encoding='utf-8') as file:
            file.write(JOB)
        self.process = None

    def start(self):
        command = [BIN + '/ebbtide', 'run', '--state-dir', self.folder + '/state', '--flavor', 'large.preemptible', '--image', 'tiny',
                   '--network', 'none', '--every', '1h', '--checkpoint-command', 'cp now $EBBTIDE_CHECKPOINT_DIR/n', '--', 'sh', 'job']
        with open(self.folder + '/log', 'a', encoding='utf-8') as log:
            # It is not told of the service `preemption`: Nova is enough.
            self.process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def text(self, name):
        try:
            with open('%s/%s' % (self.folder, name), encoding='utf-8') as file:
                return file.read()
        except FileNotFoundError:
            return ''

    def says(self, text, times=1, seconds=60):
        def said():
            if self.text('log').count(text) >= times:
                return True
            must(self.process.poll() is None, 'the run ended (%s): %s' % (self.process.returncode, self.text('log')))
            return False
        until('the run to say %r' % text, seconds, said)

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


def a_command_beside_its_servers(stage):
    """`ebbtide run` on a full cloud: saved on notice, it waits for room, goes on beside another
    server, is killed and started again, and leaves no server."""
    must(os.path.exists(BIN + '/ebbtide'), 'ebbtide is not in %r: cargo build -p ebbtide-cli' % BIN)
    cloud = stage.cloud
    stage.fill(count=5)
    folder = tempfile.mkdtemp(prefix='run-beside-')
    runner = Runner(folder)
    try:
        runner.start()
        runner.says('started from the beginning')
        first = [server for server in cloud.servers() if server['name'] == 'run-1']
        must(len(first) == 1 and first[0]['metadata'].get('ebbtide:order'), 'servers of the run: %s' % first)
        # The youngest server is the cheapest victim, and it is the run's.
        normal = cloud.create('normal', 'large')
        runner.says('notice: run-1 has to leave')
        runner.says('gone: run-1')
        must(cloud.settled(normal)['status'] == 'ACTIVE', 'the normal server is %s' % cloud.server(normal))
        runner.says('no capacity for a server now')
        cloud.delete(normal)
        runner.says('goes on from checkpoint')
        saved = int(runner.text('began').split()[-1])
        must(0 < saved < ROUNDS, 'it began %s' % runner.text('began'))
        # Killed beside its server: the next run finds that server, and makes no other.
        runner.process.kill()
        runner.process.wait()
        before = [server['id'] for server in cloud.servers() if server['name'].startswith('run-')]
        runner.start()
        runner.says('goes on from checkpoint', 2)
        after = [server['id'] for server in cloud.servers() if server['name'].startswith('run-')]
        must(len(before) == 1 and after == before, 'servers before the kill %s, after it %s' % (before, after))
        must(runner.process.wait(120) == 0, 'the run ended with %s: %s' % (runner.process.returncode, runner.text('log')))
        must(runner.text('ends').split() == [str(ROUNDS)], 'the job ended %r times' % runner.text('ends'))
        until('no server of the run to be left', 60, lambda: not [server for server in cloud.servers() if server['name'].startswith('run-')])
        audit()
        print('      a run: saved at %d of %d, gone on beside another server, killed and gone on' % (saved, ROUNDS), flush=True)
    except Exception:
        print('--- run\n%s' % runner.text('log')[-4000:], flush=True)
        raise
    finally:
        runner.end()
        shutil.rmtree(folder, ignore_errors=True)
