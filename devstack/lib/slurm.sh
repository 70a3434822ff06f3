#!/usr/bin/env bash
# A Slurm cluster on one machine, for tests and the demonstration: munged, slurmctld, nodes that
# stay, and nodes of the cloud that are there when
# a line says so. Root only. Debian's packages (`ensure_packages slurm`).
#
#   bash devstack/lib/slurm.sh serve DIR PORT STAYING CLOUD [LINE...]   in the foreground, until it
#   is killed
#
# - DIR gets everything: slurm.conf, logs, `ready` once the nodes that stay answer. PORT and those
#   behind it are used on 127.0.0.1.
# - STAYING nodes s1, s2 ... and CLOUD nodes c1, c2 ... of two processors each. LINEs go to the end
#   of slurm.conf; NodeName lines of the cloud may be among them.
# - DIR/instances says which nodes of the cloud are there: a line "ID NODE" each. The follower of a
#   region writes it, as a whole (by rename). A node is started when its line
#   comes, and killed without warning, with all that runs on it, when it goes: that is what a
#   preemption looks like from inside. A line "ID NODE frozen" stops all its processes, as a
#   hibernation does, until the word is gone.
# - All of it lives in a process namespace of its own and ends with the process that was started.
set -eu

if [ "${1:-}" = serve ]; then
    shift
    # --kill-child: whatever kills this process kills all of the cluster.
    exec unshare --pid --mount --uts --fork --kill-child=KILL --mount-proc bash "$0" inside "$@"
fi
[ "${1:-}" = inside ] || { echo "usage: $0 serve DIR PORT STAYING CLOUD [LINE...]" >&2; exit 2; }
dir=$2 port=$3 staying=$4 cloud=$5
shift 5
export PATH=/usr/sbin:/usr/bin:/sbin:/bin SLURM_CONF=$dir/slurm.conf dir
mkdir -p "$dir"/{log,state,spool,vm,munge}
chmod 755 "$dir"
chmod 711 "$dir/munge"
: >"$dir/instances"
rm -f "$dir/ready"
hostname controller

# Node names lead to this machine, here and in the nodes.
{ cat /etc/hosts; echo "127.0.0.1 controller"; for k in $(seq "$staying"); do echo "127.0.0.1 s$k"; done; for k in $(seq "$cloud"); do echo "127.0.0.1 c$k"; done; } >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts

head -c 1024 /dev/urandom >"$dir/munge/key"
chmod 400 "$dir/munge/key"
{
    cat <<CONF
ClusterName=burst
SlurmctldHost=controller(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
# Jobs that lost their node may start again once old credentials have expired.
AuthInfo=socket=$dir/munge/socket,cred_expire=10
# Each node listens on its own port of one address.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdSpoolDir=$dir/spool/%n
SlurmdPidFile=$dir/vm/%n.slurmd.pid
SlurmdLogFile=$dir/log/slurmd.%n.log
LogTimeFormat=iso8601_ms
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=5,bf_interval=5,batch_sched_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PriorityType=priority/basic
MessageTimeout=5
TCPTimeout=2
KillWait=2
UnkillableStepTimeout=20
BatchStartTimeout=10
SlurmdTimeout=60
MinJobAge=600
# Nodes of the cloud are seen while they are away.
PrivateData=cloud
MaxNodeCount=256
CONF
    for k in $(seq "$staying"); do echo "NodeName=s$k NodeHostname=s$k NodeAddr=127.0.0.1 Port=$((port + k)) CPUs=2 RealMemory=4000 Weight=1 Feature=stays"; done
    for k in $(seq "$cloud"); do echo "NodeName=c$k NodeHostname=c$k NodeAddr=127.0.0.1 Port=$((port + staying + k)) CPUs=2 RealMemory=4000 Weight=100 Feature=${FEATURES:-cloud} State=CLOUD"; done
    echo "PartitionName=long Nodes=s[1-$staying] MaxTime=INFINITE State=UP"
    echo "PartitionName=short Nodes=s[1-$staying],c[1-$cloud] Default=YES MaxTime=INFINITE State=UP"
    printf '%s\n' "$@"
} >"$dir/slurm.conf"

munged --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" --num-threads=2
# In this script's directory of logs; slurmctld leaves its terminal by itself.
slurmctld -c -f "$SLURM_CONF"

# machine NODE KEY: namespaces of its own, with slurmd and all its jobs inside. -b: it was started
# just now.
machine() {
    mkdir -p "$dir/spool/$1"
    unshare --pid --mount --uts --fork --kill-child=KILL --mount-proc bash -c '
        hostname "$1"
        slurmd -D -b -f "$SLURM_CONF" & slurmd=$!
        # slurmd does not wait for what its jobs leave behind; a shell does.
        wait $slurmd' machine "$1" >>"$dir/log/vm.$1.out" 2>&1 &
    echo $! >"$dir/vm/$2.pid"
}
# Sends a signal to all processes of a machine.
all_of() {
    local first
    first=$(pgrep -P "$(cat "$dir/vm/$2.pid")" | head -n 1) || return 0
    pkill "-$1" --ns "$first" --nslist pid . || true
}
for k in $(seq "$staying"); do machine "s$k" "s$k"; done
until [ "$(sinfo -h -p long -o '%T %D' 2>/dev/null | awk '$1 == "idle" { print $2 }')" = "$staying" ]; do sleep 0.1; done
date +%s >"$dir/ready"

# Follows DIR/instances.
declare -A there=() frozen=()
while :; do
    declare -A wanted=() freezes=()
    while read -r id node word; do
        wanted[$id]=$node
        freezes[$id]=$word
    done <"$dir/instances"
    for id in "${!there[@]}"; do
        if [ -z "${wanted[$id]:-}" ]; then
            kill -KILL "$(cat "$dir/vm/$id.pid")" 2>/dev/null || true
            echo "$(date +%s.%N) ${there[$id]} killed, instance $id" >>"$dir/log/machines"
            unset "there[$id]" "frozen[$id]"
        elif [ "${freezes[$id]:-}" != "${frozen[$id]:-}" ]; then
            frozen[$id]=${freezes[$id]:-}
            if [ -n "${frozen[$id]}" ]; then all_of STOP "$id"; else all_of CONT "$id"; fi
            echo "$(date +%s.%N) ${there[$id]} ${frozen[$id]:-thawed}, instance $id" >>"$dir/log/machines"
        fi
    done
    for id in "${!wanted[@]}"; do
        # A server that is being deleted may still be there beside its successor: two slurmds of one
        # node cannot share its port.
        if [ -z "${there[$id]:-}" ] && [[ " ${there[*]} " != *" ${wanted[$id]} "* ]]; then
            there[$id]=${wanted[$id]}
            machine "${wanted[$id]}" "$id"
            echo "$(date +%s.%N) ${wanted[$id]} started, instance $id" >>"$dir/log/machines"
        fi
    done
    sleep 0.1
done
