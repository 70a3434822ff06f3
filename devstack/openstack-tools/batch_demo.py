#!/usr/bin/python3
"""The demonstration of batch work on this OpenStack: ./devstack/batch-demo --openstack. The works
of devstack/batch-works on servers of a tenant, while normal servers take three of them twice.
"""
import subprocess
import time

from batch_nodes import Batch, end, make_room
from cloud import until
from preempt import must
from slurm_cluster import cluster_of

# Of six preemptible servers.
TAKEN = 3


class Demonstration(Batch):
    nodes, spot = 8, 6


def say(words):
    print(words, flush=True)


def shown(cluster, *words):
    """Runs ebbtide batch, and shows the command and what it prints."""
    done = cluster.ebbtide(*words)
    say('$ ebbtide batch %s\n%s%s' % (' '.join(words).replace(cluster.folder + '/', ''), done.stdout, done.stderr))
    must(done.returncode == 0, 'it ended with %d' % done.returncode)


def main():
    with cluster_of(Demonstration) as (stage, tenant, cluster, config, machines):
        tenant.quota(instances=cluster.nodes, cores=-1, ram=-1)
        began = time.monotonic()
        cluster.run(config)
        # What the service says while it works.
        with subprocess.Popen(['tail', '-n', '+1', '-f', cluster.folder + '/controller.log']) as follows:
            try:
                shown(cluster, 'submit', cluster.work('sweep'))
                # The bag has a deadline and would go first.
                until('the sweep on two servers', 240, lambda: cluster.busy(2))
                shown(cluster, 'submit', cluster.work('bag'))
                shown(cluster, 'submit', cluster.work('flow'))
                for _ in range(2):
                    until('members on five servers', 240, lambda: cluster.busy(5))
                    time.sleep(5)
                    say('normal servers take %d of the servers' % TAKEN)
                    normal = make_room(stage, tenant, TAKEN)
                    time.sleep(25)
                    stage.cloud.delete(*normal)
                until('all work to be done', 900, cluster.all_done)
            finally:
                follows.terminate()
        shown(cluster, 'list')
        ends = cluster.ended('bag')
        say('%d members of the bag ended, %d of them more than once' % (len(ends), sum(count > 1 for count in ends.values())))
        for number in '123':
            shown(cluster, 'report', number)
        until('the servers to be given back', 120, lambda: not tenant.servers())
        end(cluster)
        say('all servers are given back; %.0f s on up to %d servers at a time' % (time.monotonic() - began, machines.most))


if __name__ == '__main__':
    main()
