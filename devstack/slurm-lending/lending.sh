# Settings of `resume` and `suspend`, which slurmctld calls. A shell file: copy it to
# /etc/ebbtide/lending.sh, or name another one with EBBTIDE_LENDING.

# Who has the hosts while Slurm uses them. One name for one cluster: another owner is refused.
owner=slurm:${SLURM_CLUSTER_NAME:-cluster}
# No server keeps its grace period beyond this. Less than ResumeTimeout of slurm.conf, which also
# has to cover the hypervisor and the start of slurmd.
deadline=5m
# How long `resume` waits for a host, seconds.
patience=540
log=/var/log/slurm/lending.log

# How slurmd is started and stopped on a node, with SLURM's name of the node.
start_node() { ssh -o BatchMode=yes "$1" systemctl start slurmd; }
stop_node() { ssh -o BatchMode=yes "$1" systemctl stop slurmd; }

# The compute host of a node, as `ebbtide host list` names it.
host_of() { echo "$1"; }
