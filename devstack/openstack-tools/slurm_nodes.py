#!/usr/bin/python3
"""A burst of short jobs on nodes that are servers of this OpenStack, made and given back by
the elastic partition of ebbtide-batch (slurm_cluster.py).

A quota that is exhausted is said and got over; then a burst of short jobs, of whose servers normal
ones take two; every job ends once, and no server stays.
"""
import contextlib
import sys
import time

from cloud import until
from invariants import audit, check
from preempt import must
from slurm_cluster import STAYING, Cluster, cluster_of

SHORT_SECONDS, SHORT_JOBS = 8, 16

# It says on one line when it began, that it saved its work, and when it has ended. A long one
# works until a file is there: servers are wanted for as long as it works, and how long they take
# depends on the machine.
JOB = r'''#!/bin/bash
saved=
trap 'saved=1; echo "saved $1 $SLURM_JOB_ID" >>$3' USR1
echo "start $1 $SLURM_JOB_ID $SLURMD_NODENAME ${SLURM_RESTART_COUNT:-0}" >>$3
if [ "$2" = until ]; then while [ ! -e "$4" ]; do sleep 0.5; done & else sleep "$2" & fi
child=$!
wait $child; code=$?
[ -z "$saved" ] || { kill $child; exec sleep 300; }
[ $code = 0 ] || exit $code
echo "end $1 $SLURM_JOB_ID $SLURMD_NODENAME" >>$3
'''

SETTINGS = '''state_dir = "{folder}/state"
listen = "unix:{folder}/socket"
poll_seconds = 0.5

[slurm]
conf = "{folder}/cluster/slurm.conf"

[openstack]
cloud = "tenant"
clouds_file = "{folder}/{clouds}"
image = "{image}"
network = "none"

[elastic]
nodes = "c[1-{nodes}]"
flavor = "{flavor}"
long_partitions = ["long"]
short_servers = 2
on_demand_price = "0.30"
preemptible_price = "0.10"
threshold = 0.25
release_seconds = 2
margin_seconds = 0.5

[elastic.age]
features = ["cloud"]

[policy]
launch_seconds = 60
launch_again_seconds = 3
checkpoint_seconds = 0.5
'''


class Burst(Cluster):
    """The cluster with the service and its elastic partition beside it."""
    template = SETTINGS

    def __init__(self, folder, environment):
        super().__init__(folder, environment)
        with open(folder + '/job.sh', 'w', encoding='utf-8') as file:
            file.write(JOB)

    def submit(self, partition, name, seconds):
        self.slurm('sbatch', '--parsable', '-p', partition, '-c', '2', '-J', name, '-o', '/dev/null',
                   self.folder + '/job.sh', name, str(seconds), self.folder + '/out', self.folder + '/enough')

    def said(self, word):
        """How often each job said a word."""
        counts = {}
        with contextlib.suppress(FileNotFoundError), open(self.folder + '/out', encoding='utf-8') as file:
            for line in file:
                words = line.split()
                if words and words[0] == word:
                    counts[words[1]] = counts.get(words[1], 0) + 1
        return counts

    def show(self):
        super().show()
        with contextlib.suppress(Exception), open(self.folder + '/out', encoding='utf-8') as file:
            print('--- what jobs said\n%s' % file.read(), file=sys.stderr)


def bad_settings(cluster):
    """What is wrong is said before a node is asked for."""
    for change, words in (({'flavor': 'missing'}, 'there is no flavor "missing"'), ({'image': 'missing'}, 'there is no image "missing"')):
        code, said = cluster.beside(cluster.settings('wrong', **change), 'check')
        must(code != 0 and 'EB-BURST-004' in said and words in said, 'with %s check says (%d): %s' % (change, code, said))


def a_burst(stage, tenant, cluster, controller):
    """Short jobs on servers of the cloud, two of which make room for normal servers."""
    for n in range(STAYING):
        cluster.submit('long', 'long%d' % n, 'until')
    for n in range(SHORT_JOBS):
        cluster.submit('short', 'short%d' % n, SHORT_SECONDS)
    until('the exhausted quota to be said', 90, lambda: 'Quota exceeded' in cluster.log('controller'))
    must(not tenant.servers(), 'beyond the quota there are servers')
    tenant.quota(instances=Burst.nodes, cores=-1, ram=-1)

    def on_cloud():
        must(controller.poll() is None, 'the controller ended: %s' % cluster.log('controller'))
        lines = cluster.slurm('squeue', '-h', '-t', 'running', '-o', '%N').split()
        return len([node for node in lines if node.startswith('c')]) >= 3
    until('three jobs on servers of the cloud', 240, on_cloud)
    there = [server for server in tenant.servers() if server['status'] == 'ACTIVE']
    # Six fill the three hosts; what is still free is taken, too.
    wanted = 6 - len(there) + 2
    normal = [stage.cloud.create('urgent%d' % n, 'large') for n in range(wanted)]
    for uuid in normal:
        server = stage.cloud.settled(uuid, seconds=150)
        must(server['status'] == 'ACTIVE', 'a normal server is %s: %s' % (server['status'], server.get('fault')))
    with open(cluster.folder + '/enough', 'w', encoding='utf-8'):
        pass
    until('every job to end', 300, lambda: len(cluster.said('end')) == SHORT_JOBS + STAYING)
    # With nothing to do, all servers are given back.
    until('the servers to be given back', 120, lambda: not tenant.servers())
    ends = cluster.said('end')
    must(set(ends.values()) == {1}, 'jobs ended %s' % ends)
    notices = cluster.log('controller').count('the instance has notice')
    must(notices >= 1, 'no node was drained for a notice: %s' % cluster.log('controller'))
    stage.cloud.delete(*normal)
    return notices, ends


def main():
    with cluster_of(Burst) as (stage, tenant, cluster, config, machines):
        bad_settings(cluster)
        code, said = cluster.beside(config, 'check')
        must(code == 0 and 'servers: 0' in said, 'check says (%d): %s' % (code, said))
        controller = cluster.run(config)
        began = time.monotonic()
        notices, ends = a_burst(stage, tenant, cluster, controller)
        controller.terminate()
        must(controller.wait(30) == 0, 'the controller ended with %s: %s' % (controller.returncode, cluster.log('controller')))
        check('after a burst')
        audit()
        saved = len(cluster.said('saved'))
        print('      a burst on an OpenStack: %d jobs in %.0f s on up to %d servers; %d had notice, %d jobs saved their work and went on' % (
            len(ends), time.monotonic() - began, machines.most, notices, saved), flush=True)


if __name__ == '__main__':
    main()
