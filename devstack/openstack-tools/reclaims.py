"""A chapter of the story: a compute host is taken back for an outside owner, and lent again."""
import signal
import time

import processes
from cloud import until
from invariants import audit, check
from preempt import Watch, must, wait_scheduler

OURS = 'ebbtide-scheduler-1'
OWNER = {'owner': 'slurm:story', 'reason': 'job 7'}
# The flavor's grace is 20 s; the deadline cuts it.
FLAVOR, DEADLINE_SECONDS = 'large.patient.preemptible', 4


def a_host_that_is_taken_back(stage):
    """`ebbtide host reclaim`, `reclaims` and `return`: preemptible servers leave by the deadline, a
    normal one stays, Nova's service is disabled meanwhile, also over a restart of the scheduler; a
    return in time spares."""
    cloud = stage.cloud

    def call(method, path, body=None, **options):
        return cloud.request('preemption', method, '/v1' + path, body, **options)

    def reclaim(host, **terms):
        return call('POST', '/hosts/%s/reclaim' % host, OWNER | terms).json()['reclaim']

    def state(host):
        return call('GET', '/hosts/%s/reclaim' % host).json()['reclaim']

    def disabled(host):
        """Why Nova has the host disabled; None: it is enabled."""
        (service,) = cloud.nova('GET', '/os-services?binary=nova-compute&host=' + host).json()['services']
        return service['disabled_reason'] if service['status'] == 'disabled' else None

    def ours(host):
        return OWNER['owner'] in (disabled(host) or '')

    try:
        pet = cloud.boot('pet', 'large')
        must(pet['status'] == 'ACTIVE', 'a normal server is %s' % pet['status'])
        ages = stage.fill(FLAVOR, 5)
        servers = {uuid: cloud.server(uuid) for uuid in ages}
        hosts = {uuid: server['OS-EXT-SRV-ATTR:host'] for uuid, server in servers.items()}
        names = {uuid: server['name'] for uuid, server in servers.items()}
        home = pet['OS-EXT-SRV-ATTR:host']
        (victim,) = [uuid for uuid in ages if hosts[uuid] == home]
        planned = reclaim(home, dry_run=True)['planned']
        must([one['server_id'] for one in planned] == [victim], 'a dry run plans %s' % planned)
        must(call('GET', '/reclaims').json()['reclaims'] == [] and not disabled(home), 'a dry run has changed something')

        # A return in time: both servers of another host have had notice, and stay.
        other = next(host for host in hosts.values() if host != home)
        watch = Watch(ages)
        try:
            reclaim(other)
            spared = {uuid for uuid in ages if hosts[uuid] == other}
            until('the notices', 30, lambda: spared <= set(watch.told))
            until('Nova to disable the host', 30, lambda: ours(other))
            call('POST', '/hosts/%s/return' % other, {})
            until('Nova to enable the host', 30, lambda: not disabled(other))
            until('the evacuations to end', 60, lambda: not [
                one for one in call('GET', '/evacuations').json()['evacuations'] if one['victim_id'] in spared and one['state'] == 'draining'])
            must(stage.left(ages) == ages, 'a return in time has spared %s only' % sorted(stage.left(ages)))

            began = time.monotonic()
            reclaim(home, deadline_seconds=DEADLINE_SECONDS)
            refused = call('POST', '/hosts/%s/reclaim' % home, {'owner': 'maintenance', 'reason': 'disks'}, check=False)
            must(refused.status_code == 409 and 'EB-REGION-008' in refused.text, 'another owner gets %s: %s' % (refused.status_code, refused.text))
            free = until('the host to be free', 60, lambda: (lambda s: s if s['state'] == 'free' else None)(state(home)))
            stage.wait_gone({victim})
            seconds = time.monotonic() - began
            must(victim in watch.told, 'the victim went without a notice in its metadata')
        finally:
            watch.end()
        must([(one['server_id'], one['reason']) for one in free['staying']] == [(pet['id'], 'normal')], 'on the host stay %s' % free['staying'])
        causes = {(one['victim_id'], one['cause'], one['state']) for one in free['evacuations']}
        must(causes == {(victim, 'reclaim', 'evacuated')}, 'the evacuations are %s' % causes)
        must(free['leaving'] == 0, 'of a free host leave %s' % free['leaving'])
        # Nova does not know the server any more.
        listed = [one for one in call('GET', '/evacuations').json()['evacuations'] if one['id'] == free['evacuations'][0]['id']]
        must(listed == free['evacuations'], 'the evacuation is listed as %s' % listed)
        shown = {key: listed[0][key] for key in ('victim_name', 'reclaim_owner', 'host', 'cost')}
        must(shown == {'victim_name': names[victim], 'reclaim_owner': OWNER['owner'], 'host': home, 'cost': free['cost']} and free['cost'] > 0,
             'the evacuation is shown as %s, and the reclaim costs %s' % (shown, free['cost']))
        must(set(stage.left(ages)) == set(ages) - {victim}, 'others have left, too')
        must(ours(home), 'Nova has the host disabled because of %s' % disabled(home))

        # The order stands: over a restart, and for an operator who enables the host by mistake.
        processes.restart(OURS, signal.SIGTERM)
        wait_scheduler()
        (service,) = cloud.nova('GET', '/os-services?binary=nova-compute&host=' + home).json()['services']
        cloud.nova('PUT', '/os-services/' + service['id'], {'status': 'enabled'})
        until('Nova to disable the host again', 60, lambda: ours(home))
        must(state(home)['state'] == 'free', 'after a restart the reclaim is %s' % state(home))
        late = cloud.boot('late', 'large.preemptible')
        must(late['status'] == 'ERROR', 'a server was placed on a reclaimed host: %s' % late)
        cloud.delete(late['id'])

        call('POST', '/hosts/%s/return' % home, {})
        until('Nova to enable the host', 30, lambda: not disabled(home))
        must(call('GET', '/reclaims').json()['reclaims'] == [], 'after the return there are reclaims')
        again = cloud.boot('again', 'large.preemptible')
        must(again['status'] == 'ACTIVE' and again['OS-EXT-SRV-ATTR:host'] == home, 'after the return a server is %s' % again)
        must(cloud.server(pet['id'])['status'] == 'ACTIVE', 'the normal server is gone')
        check('a host that was taken back')
        audit()
        print('      a host taken back: free %.1f s after the call with a deadline of %d s; %d spared by a return in time' % (
            seconds, DEADLINE_SECONDS, len(spared)), flush=True)
    finally:
        for host in {one['host'] for one in call('GET', '/reclaims').json()['reclaims']}:
            call('POST', '/hosts/%s/return' % host, {})
        stage.clear()
