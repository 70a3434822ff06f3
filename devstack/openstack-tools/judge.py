"""What counts as a fault: judgements of the bad days and of the benchmark, apart from the cloud, so that they can be tried without one."""

# Words of our scheduler's log: an answer with hosts, at once or after room was made.
ANSWERED = ('selected', '-> done')
REFUSED = 'outcome="no_valid_host"'
# Words of Nova's logs.
TROUBLE = (' ERROR ', ' WARNING ', ' CRITICAL ')
WAITED_IN_VAIN = 'MessagingTimeout'


class Fault(AssertionError):
    """Something that must not happen, also on a bad day."""


def must(condition, text):
    if not condition:
        raise Fault(text)


def whose_loss(ours, novas, fault='', broker_died=False, may_refuse=False):
    """Why a server did not come, proved by what was logged about its request; a Fault where nothing proves that Nova lost it.

    ours: lines of our scheduler's log about the request; novas: lines of the logs of Nova's API, conductor and computes; fault: what the
    server itself says. broker_died: messages may have been lost with the broker; may_refuse: NoValidHost is an honest answer on this day.
    """
    last = ' / '.join(line.strip() for line in ours[-3:])
    if any(word in line for word in ANSWERED for line in ours):
        return 'answered, and then lost by Nova'
    if any(REFUSED in line for line in ours):
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
    """Whether enough servers came: each is ACTIVE or lost for a proved reason, and at least `least` came."""
    must(active + len(losses) == wanted, '%s died: of %d servers %d are ACTIVE and %d were looked into' % (name, wanted, active, len(losses)))
    must(active >= least, '%s died: %d of %d servers came, at least %d should: %s' % (name, active, wanted, least, ', '.join(sorted(losses))))


def full_cloud_faults(result):
    """What must not be in the benchmark on full hosts: each request takes one victim's place, and no host gives more than it has."""
    faults = []
    if result['over_capacity']:
        faults.append('%d inventories gave away more than they have' % result['over_capacity'])
    if result['consumers_more']:
        faults.append('%+d consumers in Placement: a request did not take exactly one victim\'s place' % result['consumers_more'])
    for kind in ('seq', 'conc16'):
        if result[kind].get('failed'):
            faults.append('%d requests failed (%s): %s' % (result[kind]['failed'], kind, result[kind].get('errors')))
    return faults
