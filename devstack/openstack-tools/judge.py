"""What counts as a fault: judgements of the bad days and of the benchmark, apart from the cloud, so
that they can be tried without one."""

# Words of our scheduler's log: an answer with hosts, at once or after room was made.
ANSWERED = ('selected', '-> done')
REFUSED = 'outcome="no_valid_host"'
# The server was deleted while room was made for it.
DELETED = 'what room is made for was deleted'
# Words of Nova's logs.
TROUBLE = (' ERROR ', ' WARNING ', ' CRITICAL ')
WAITED_IN_VAIN = 'MessagingTimeout'


class Fault(AssertionError):
    """Something that must not happen, also on a bad day."""


def must(condition, text):
    if not condition:
        raise Fault(text)


def at_rest(server, states=('ACTIVE', 'ERROR')):
    """Whether nothing is under way any more with a server that has one of `states`. Nova writes the
    fault of a server in ERROR in a transaction after the status: until then it is under way."""
    return (server['status'] in states and server['OS-EXT-STS:task_state'] is None
            and (server['status'] != 'ERROR' or bool(server.get('fault'))))


def whose_loss(ours, novas, fault='', broker_died=False, may_refuse=False):
    """Why a server did not come, proved by what was logged about its request; a Fault where nothing
    proves that Nova lost it.

    ours: lines of our scheduler's log about the request; novas: lines of the logs of Nova's API,
    conductor and computes; fault: what the server itself says. broker_died: messages may have been
    lost with the broker; may_refuse: NoValidHost is an honest answer on this day.
    """
    last = ' / '.join(line.strip() for line in ours[-3:])
    if any(word in line for word in ANSWERED for line in ours):
        return 'answered, and then lost by Nova'
    if any(REFUSED in line for line in ours):
        # Nova's own limit for an answer can end while the broker is away: the server goes into
        # ERROR and is deleted.
        if broker_died and any(DELETED in line for line in ours) and any(WAITED_IN_VAIN in line for line in novas):
            return 'given up by Nova while the broker was away'
        must(may_refuse, 'refused although there was room, or a victim, and patience had not run out: %s' % last)
        return 'refused'
    must(not ours, 'the request came to the scheduler and was never answered: %s' % last)
    must('No valid host' not in fault, 'refused (%s), and our log does not know the request' % fault)
    trouble = [line.strip() for line in novas if any(word in line for word in TROUBLE)]
    if any(WAITED_IN_VAIN in line for line in trouble + [fault]):
        must(broker_died, 'Nova waited in vain for our answer to a request that our log does not know: %s' % (trouble or [fault])[-1])
        return 'lost with the broker'
    if trouble or fault:
        return 'failed in Nova before it came to us'
    must(broker_died, 'the request left no trace, neither in our log nor in those of Nova')
    return 'lost with the broker'


def verdict(name, losses, active, wanted, least):
    """Whether enough servers came: each is ACTIVE or lost for a proved reason, and at least `least`
    came."""
    must(active + len(losses) == wanted, '%s died: of %d servers %d are ACTIVE and %d were looked into' % (name, wanted, active, len(losses)))
    must(active >= least, '%s died: %d of %d servers came, at least %d should: %s' % (name, active, wanted, least, ', '.join(sorted(losses))))


# Requests of the scenarios that come to a scheduler, at least.
SHADOWED = 40
# How many of them are answered the same, at least. On a busy machine nova-scheduler may claim
# before a shadow without optimisation has decided, which is told apart, and rebuilds claim nothing.
SAME = 25


# How many may name another host, at most: nova-scheduler reads the computes' reports some tenths
# of a second before or after the shadow, and not every change in between is seen.
DIFFERENT = 6


def shadow_faults(report):
    """What must not be in the report of a shadow that ran beside nova-scheduler while one request
    came after the other."""
    faults = []
    counts = report['verdicts']
    if report['requests'] < SHADOWED:
        faults.append('the shadow saw %d requests, at least %d came' % (report['requests'], SHADOWED))
    if counts['same'] < SAME:
        faults.append('%d answers are the same, at least %d should' % (counts['same'], SAME))
    differing = counts['different'] + counts['equal_weight']
    if differing > DIFFERENT:
        faults.append('%d decisions name another host, at most %d may' % (differing, DIFFERENT))
    if counts['nova_only']:
        faults.append('%d decisions are nova_only' % counts['nova_only'])
    if counts['ebbtide_only'] != report['served_by_preemption']:
        faults.append('%d requests found a host only here, and preemption served %d' % (
            counts['ebbtide_only'], report['served_by_preemption']))
    if not any(flavor['most'] for flavor in report['idle']):
        faults.append('no flavor fitted at any time, and the cloud was empty at first')
    return faults


def full_cloud_faults(result):
    """What must not be in the benchmark on full hosts: each request takes one victim's place, and
    no host gives more than it has."""
    faults = []
    if result['over_capacity']:
        faults.append('%d inventories gave away more than they have' % result['over_capacity'])
    if result['consumers_more']:
        faults.append('%+d consumers in Placement: a request did not take exactly one victim\'s place' % result['consumers_more'])
    for kind in ('seq', 'conc16'):
        if result[kind].get('failed'):
            faults.append('%d requests failed (%s): %s' % (result[kind]['failed'], kind, result[kind].get('errors')))
    return faults
