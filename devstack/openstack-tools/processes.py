"""The stack's processes from Python: the same files as devstack/lib/openstack/processes.sh
writes."""
import os
import signal
import subprocess

from cloud import until

HOME = os.environ['STACK_HOME']


def stack(*command):
    """A function of devstack/lib/openstack."""
    subprocess.run(['./devstack/openstack', 'run', *command], cwd=os.environ['STACK_CHECKOUT'], check=True)


def _birth(pid):
    """The time of birth of a living process, else None (proc(5), field 22 of stat)."""
    try:
        with open('/proc/%d/stat' % pid, encoding='utf-8', errors='replace') as file:
            fields = file.read().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == 'Z' else fields[19]


def pid(name):
    """The id of a living process of the stack, else None."""
    try:
        with open('%s/run/%s.pid' % (HOME, name), encoding='utf-8') as file:
            number, birth = file.read().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(number) if _birth(int(number)) == birth else None


def names():
    """The processes that were started and not stopped."""
    return sorted(f[:-4] for f in os.listdir(HOME + '/run') if f.endswith('.pid'))


def start(name, environment=None):
    """Starts a process with the command of its last start; what it writes is appended to its
    log."""
    if pid(name):
        return
    with open(log(name), 'a', encoding='utf-8') as out:
        child = subprocess.Popen(['setsid', 'bash', '%s/run/%s.command' % (HOME, name)], stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=out, env=dict(os.environ, **(environment or {})))
    with open('%s/run/%s.pid' % (HOME, name), 'w', encoding='utf-8') as file:
        file.write('%d %s\n' % (child.pid, _birth(child.pid)))
    CHILDREN[child.pid] = child


# Children are waited for when they have ended, so that none stays a zombie.
CHILDREN = {}


def kill(name, number=signal.SIGKILL, seconds=30):
    """A signal to a process's whole group; waits until the process has ended."""
    found = pid(name)
    if found is None:
        return
    os.killpg(found, number)
    ended(name, seconds)


def hang_up(name):
    """SIGHUP to the process itself, which goes on."""
    os.kill(pid(name), signal.SIGHUP)


def log(name):
    """The file with what a process has written."""
    return '%s/log/%s.out' % (HOME, name)


def ended(name, seconds=30):
    """Waits until a process has ended by itself or by a signal."""
    def gone():
        for child in list(CHILDREN.values()):
            if child.poll() is not None:
                del CHILDREN[child.pid]
        return pid(name) is None
    until('%s to end' % name, seconds, gone)


def restart(name, number=signal.SIGTERM, environment=None):
    kill(name, number)
    start(name, environment)


def cpu_seconds(name):
    """Processor time of a process and its children that live, in seconds."""
    found, total = pid(name), 0
    if found is None:
        return 0.0
    ticks = os.sysconf('SC_CLK_TCK')
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open('/proc/%s/stat' % entry, encoding='utf-8', errors='replace') as file:
                    fields = file.read().rpartition(')')[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[2]) == found:
                total += int(fields[11]) + int(fields[12])
    return total / ticks


def exact_cpu_seconds(name):
    """Processor time of the threads of one process, to the nanosecond (cpu_seconds counts in
    hundredths). Threads that have ended are missing."""
    found, total = pid(name), 0
    for task in os.listdir('/proc/%d/task' % found) if found else []:
        try:
            with open('/proc/%d/task/%s/schedstat' % (found, task), encoding='utf-8') as file:
                total += int(file.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e9


def memory_mib(name):
    """Resident memory of the process itself, in MiB."""
    found = pid(name)
    if found is None:
        return 0.0
    with open('/proc/%d/status' % found, encoding='utf-8') as file:
        for line in file:
            if line.startswith('VmRSS:'):
                return int(line.split()[1]) / 1024
    return 0.0


def pause(name):
    """Stops a process group for a while: `with pause('placement'): …`"""
    return _Pause(name)


class _Pause:
    def __init__(self, name):
        self.group = pid(name)

    def __enter__(self):
        os.killpg(self.group, signal.SIGSTOP)

    def __exit__(self, *_):
        os.killpg(self.group, signal.SIGCONT)


def wait_for_port(name, port, seconds=60):
    """Until a process listens on a port of loopback; fails at once when it has ended."""
    import socket

    def open_port():
        if pid(name) is None:
            raise RuntimeError('%s has ended; see %s/log/%s.out' % (name, HOME, name))
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(('127.0.0.1', int(port))) == 0
    until('%s to listen on port %s' % (name, port), seconds, open_port)


__all__ = ['names', 'pid', 'start', 'kill', 'ended', 'restart', 'cpu_seconds', 'exact_cpu_seconds', 'memory_mib', 'pause', 'wait_for_port']
