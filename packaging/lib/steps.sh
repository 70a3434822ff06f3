#!/usr/bin/env bash
# The steps of ./packaging/test inside of a root: bash steps.sh STEP. Those that
# docs/operate/install.md shows print their commands.
set -euo pipefail
cd /root
# shellcheck source=packaging/lib/installed.sh
. ./installed.sh

# Prints a command and runs it.
shown() { printf '# %s\n' "$1"; eval "$1"; }
# until_true SECONDS COMMAND…
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || { echo "still not true: $*" >&2; return 1; }
        sleep 0.1
    done
}
fail() { echo "packaging/test: $*" >&2; exit 1; }

# What is there besides what the kernel, the journal, apt, and the services of others write.
files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp -o -path /root \
        -o -path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/mysql \
        -o -path /var/lib/rabbitmq -o -path /var/lib/systemd -o -path '/etc/*-' -o -path /etc/.pwd.lock \
        -o -path /var/lib/private \) -prune -o -print | sort
}

before() {
    # The test's own texts have passwords in them.
    chmod 700 /root
    files >/root/files.before
    getent passwd | cut -d: -f1 | sort >/root/users.before
    getent group | cut -d: -f1 | sort >/root/groups.before
}

install() { # DIRECTORY
    shown "apt-get install -qq -y --allow-downgrades ./$1/{ebbtide-,python3-ebbtideclient}*.deb >/root/apt.log 2>&1" || { cat /root/apt.log; return 1; }
    local unit
    for unit in ebbtide-scheduler.service ebbtide-agent.service ebbtide-nova-scheduler.service ebbtide-batch.service; do
        [ "$(systemctl is-enabled "$unit" || true)" = disabled ] || fail "$unit is enabled"
        ! systemctl -q is-active "$unit" || fail "$unit was started"
    done
    [ "$(stat -c '%a %U' /etc/ebbtide/credentials/scheduler)" = "700 root" ] || fail "others can read credentials"
    local package
    for package in $(dpkg-query -W -f '${Package}\n' 'ebbtide-*' 'python3-ebbtide*'); do
        [ -z "$(dpkg --verify "$package")" ] || { dpkg --verify "$package"; fail "dpkg --verify $package"; }
    done
    openstack preemptible server list --help | grep '^usage: openstack preemptible server list' >/dev/null || fail "openstack does not know preemptible"
}

# The documented configuration of a region on one machine, with the simulated hypervisor.
configure() {
    shown 'systemctl start rabbitmq-server'
    shown 'rabbitmqctl -q add_user ebbtide swordfish && rabbitmqctl -q set_permissions ebbtide ".*" ".*" ".*"'
    shown 'for of in scheduler agent; do echo "[\"amqp://ebbtide:swordfish@127.0.0.1:5672/%2f\"]" >/etc/ebbtide/credentials/$of/bus.urls; done'
    printf '%s\n' "# cat >>/etc/ebbtide/agent.toml <<END" '[driver]' 'kind = "simulated"' '[driver.simulated]' \
        'inventory = { VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }' '[http]' 'listen = "127.0.0.1:7472"' END
    cat >>/etc/ebbtide/agent.toml <<END
[driver]
kind = "simulated"
[driver.simulated]
inventory = { VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }
[http]
listen = "127.0.0.1:7472"
END
    shown 'systemctl enable -q --now ebbtide-scheduler ebbtide-agent'
    shown 'systemctl is-active ebbtide-scheduler ebbtide-agent'
}

preempt() {
    until_true 60 ebbtide host show node1
    shown 'ebbtide flavor create m1.large --vcpus 8 --ram 8000 --disk 20'
    shown 'ebbtide flavor create spot.large --vcpus 4 --ram 4000 --disk 20 --preemptible --grace 2'
    shown 'ebbtide server create --flavor spot.large --count 2 --wait spot'
    shown 'ebbtide server create --flavor m1.large --wait urgent'
    shown 'ebbtide evacuation list'
    ebbtide server show urgent | grep -i active >/dev/null || fail "urgent is not active"
    ebbtide server delete urgent
}

health() {
    shown 'curl -sS http://127.0.0.1:7471/healthz; echo'
    shown 'curl -sS http://127.0.0.1:7471/readyz; echo'
    shown 'curl -sS http://127.0.0.1:7472/healthz; echo'
    shown 'curl -sS http://127.0.0.1:7472/readyz; echo'
    curl -sSf http://127.0.0.1:7471/metrics | grep ^ebbtide_ >/dev/null || fail "the scheduler has no metrics"
    curl -sSf http://127.0.0.1:7472/metrics | grep ^ebbtide_ >/dev/null || fail "the agent has no metrics"
}

# The batch service on this region, as a rehearsal: there is no Slurm here.
batch() {
    ! systemctl start ebbtide-batch 2>/dev/null || fail "the batch service starts without a cloud"
    systemctl reset-failed ebbtide-batch
    sed -i '/^state_dir/i rehearse = true' /etc/ebbtide/batch.toml
    cat >>/etc/ebbtide/batch.toml <<END
[region]
endpoint = "http://127.0.0.1:7470"
project = "batch"
[[types]]
name = "spot"
nodes = "c[1-4]"
flavor = "spot.large"
market = "preemptible"
vcpus = 4
memory_mb = 4000
price = "0.03"
maps = true
END
    head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >/etc/ebbtide/credentials/batch/token_file
    shown 'systemctl enable -q --now ebbtide-batch'
    until_true 60 curl -sSf http://127.0.0.1:7473/readyz
    shown 'curl -sS http://127.0.0.1:7473/readyz'
    curl -sSf http://127.0.0.1:7473/metrics | grep '^ebbtide_batch_ready 1' >/dev/null || fail "the batch service has no metrics"
    # The credential is the token of callers, over the socket as well.
    [ "$(curl -sS -o /dev/null -w '%{http_code}' --unix-socket /run/ebbtide-batch/socket http://b/v1/works)" = 401 ] || fail "the credential is not used"
    shown 'curl -sS --unix-socket /run/ebbtide-batch/socket -H "Authorization: Bearer $(cat /etc/ebbtide/credentials/batch/token_file)" http://b/v1/status; echo'
    [ "$(stat -c '%a %U' /run/ebbtide-batch/socket /var/lib/ebbtide-batch)" = "$(printf '660 ebbtide-batch\n770 ebbtide-batch')" ] || fail "modes: $(stat -c '%a %U' /run/ebbtide-batch/socket /var/lib/ebbtide-batch)"
}

security() {
    local unit value
    for unit in ebbtide-scheduler ebbtide-scheduler@a ebbtide-agent ebbtide-nova-scheduler ebbtide-batch; do
        value=$(systemd-analyze security --no-pager "$unit.service" | sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p')
        echo "$unit.service: $value"
        awk -v value="$value" 'BEGIN { exit !(value != "" && value <= 2.0) }' || fail "systemd-analyze security of $unit: $value"
    done
}

# A stopped process does not answer the watchdog: systemd ends it and starts it again.
watchdog() { # UNIT SECONDS
    local pid before
    mkdir -p "/run/systemd/system/$1.service.d"
    printf '[Service]\nWatchdogSec=%s\n' "$2" >"/run/systemd/system/$1.service.d/test.conf"
    systemctl daemon-reload
    systemctl restart "$1"
    pid=$(systemctl show -P MainPID "$1") before=$(systemctl show -P NRestarts "$1")
    kill -STOP "$pid"
    local began=$SECONDS
    restarted() { [ "$(systemctl show -P NRestarts "$1")" -gt "$2" ] && systemctl -q is-active "$1"; }
    until_true 120 restarted "$1" "$before"
    echo "$1: stopped by SIGSTOP, active again after $((SECONDS - began)) s (WatchdogSec=$2 for the test)"
    rm -r "/run/systemd/system/$1.service.d"
    systemctl daemon-reload
    systemctl restart "$1"
}

# Two schedulers on one MariaDB instead of one on SQLite.
several() {
    systemctl disable -q --now ebbtide-scheduler
    shown 'systemctl start mariadb'
    shown "mariadb -e \"CREATE DATABASE ebbtide; CREATE USER ebbtide@localhost IDENTIFIED BY 'swordfish'; GRANT ALL ON ebbtide.* TO ebbtide@localhost\""
    shown 'echo "mysql://ebbtide:swordfish@127.0.0.1:3306/ebbtide" >/etc/ebbtide/credentials/scheduler/database.url'
    local name port=7470
    for name in a b; do
        printf '[grpc]\nlisten = "127.0.0.1:%s"\n[http]\nlisten = "127.0.0.1:%s"\n' "$port" $((port + 1)) >"/etc/ebbtide/scheduler-$name.toml"
        port=$((port + 10))
    done
    shown 'tail -n 4 /etc/ebbtide/scheduler-?.toml'
    shown 'systemctl enable -q --now ebbtide-scheduler@a ebbtide-scheduler@b'
    shown 'systemctl is-active ebbtide-scheduler@a ebbtide-scheduler@b'
    # A fresh database: the agent's servers of the other one are not in it.
    systemctl stop ebbtide-agent
    rm -rf /var/lib/ebbtide-agent
    systemctl start ebbtide-agent
    until_true 60 ebbtide host show node1
    ebbtide flavor create m1.large --vcpus 8 --ram 8000 --disk 20 >/dev/null
    ebbtide flavor create spot.large --vcpus 4 --ram 4000 --disk 20 --preemptible --grace 2 >/dev/null
}

# either COMMAND…: by the first scheduler, or by the other if that one cannot be reached (exit 3).
either() {
    local status=0
    ebbtide --endpoint http://127.0.0.1:7470 "$@" && return
    status=$?
    [ "$status" = 3 ] || return "$status"
    echo "the other scheduler answers: $1 $2 ${!#}" >>/root/other.log
    ebbtide --endpoint http://127.0.0.1:7480 "$@"
}

# A full host, a normal server that preempts, its deletion, again, until /root/stop is there.
load() {
    local round=0
    rm -f /root/stop /root/load.failed /root/rounds
    : >/root/other.log
    until [ -e /root/stop ]; do
        round=$((round + 1))
        either server create --flavor spot.large --count 2 --wait --wait-timeout 120 "spot-$round" &&
            either server create --flavor m1.large --wait --wait-timeout 120 "urgent-$round" &&
            either server delete --wait "urgent-$round" || { echo "round $round" >>/root/load.failed; break; }
        echo "$round" >/root/rounds
    done >/root/load.log 2>&1
}

evacuations() { ebbtide evacuation list | grep -c "^| [0-9a-f-]* *|.*| $1" || true; }

begin_load() {
    evacuations evacuated >/root/evacuated.before
    bash steps.sh load >/dev/null 2>&1 &
    until_true 120 test -s /root/rounds
}

upgrade() { # DIRECTORY
    local began at
    began=$(cat /root/rounds) at=$SECONDS
    shown "apt-get install -qq -y ./$1/{ebbtide-,python3-ebbtideclient}*.deb >/root/apt.log 2>&1" || { cat /root/apt.log; return 1; }
    echo "upgrade took $((SECONDS - at)) s, to $(dpkg-query -W -f '${Version}' ebbtide-scheduler)"
    enough() { [ -e /root/load.failed ] || [ "$(cat /root/rounds)" -ge $((began + 6)) ]; }
    until_true 240 enough
    touch /root/stop
    ended() { ! pgrep -f 'steps.sh load' >/dev/null; }
    until_true 240 ended
    [ ! -e /root/load.failed ] || { tail -n 20 /root/load.log; fail "a request was lost in $(cat /root/load.failed)"; }
    local rounds evacuated
    rounds=$(cat /root/rounds)
    evacuated=$(($(evacuations evacuated) - $(cat /root/evacuated.before)))
    echo "$rounds rounds, $((rounds * 3)) requests, none failed; evacuated: $evacuated of $((rounds * 2)) victims; $(wc -l </root/other.log) requests answered by the other scheduler"
    [ "$evacuated" = $((rounds * 2)) ] && [ "$(evacuations .)" = "$(evacuations evacuated)" ] || { ebbtide evacuation list; fail "an evacuation was lost"; }
    local unit
    for unit in ebbtide-scheduler@a ebbtide-scheduler@b ebbtide-agent; do
        systemctl -q is-active "$unit" || fail "$unit does not run after the upgrade"
        [ "$(systemctl show -P NRestarts "$unit")" = 0 ] || fail "$unit has crashed"
    done
}

downgrade() { # DIRECTORY
    ! apt-get install -y --allow-downgrades ./"$1"/ebbtide-scheduler_*.deb >/root/apt.log 2>&1 || fail "a downgrade was not refused"
    grep -A 2 '^ebbtide-scheduler: version' /root/apt.log || { cat /root/apt.log; fail "a downgrade was not explained"; }
    systemctl -q is-active ebbtide-scheduler@a ebbtide-scheduler@b || fail "a refused downgrade has stopped the schedulers"
    [ -z "$(dpkg --audit)" ] || { dpkg --audit; fail "a refused downgrade has left a broken package"; }
}

# In place of nova-scheduler, on a machine without Nova and then without its services.
nova() {
    ! systemctl start ebbtide-nova-scheduler 2>/root/nova.log || fail "it starts without nova.conf"
    shown 'systemctl start ebbtide-nova-scheduler || true'
    journalctl -q -o cat -u ebbtide-nova-scheduler | tail -n 2
    useradd --system nova
    mkdir /etc/nova
    printf '[DEFAULT]\ntransport_url = rabbit://ebbtide:marlinspike@127.0.0.1:5672/\n[database]\nconnection = mysql+pymysql://nova:x@127.0.0.1:3306/nova\n[api_database]\nconnection = mysql+pymysql://nova:x@127.0.0.1:3306/nova_api\n' >/etc/nova/nova.conf
    systemctl start --no-block ebbtide-nova-scheduler
    # The name that health checks look for; the process ends soon, and is started again.
    called() { pgrep -f '^nova-scheduler --config-file /etc/nova/nova.conf'; }
    until_true 60 called
    named() { journalctl -q -o cat -u ebbtide-nova-scheduler | grep 'EB-' >/dev/null; }
    until_true 60 named
    journalctl -q -o cat -u ebbtide-nova-scheduler | grep 'EB-' | tail -n 2 | cut -c 1-300
    systemctl stop ebbtide-nova-scheduler
    systemctl reset-failed ebbtide-nova-scheduler 2>/dev/null || true
    # What Nova's packages own, which the unit makes where it is missing.
    rmdir /var/log/nova
    userdel nova
    rm -r /etc/nova
}

purge() {
    left >left
    local sign
    for sign in '^ebbtide-agent install ok' '^ebbtide-agent.service ' '^/etc/ebbtide$'; do
        grep -q "$sign" left || { cat left; fail "what is there is not seen: $sign"; }
    done
    shown "apt-get purge -qq -y 'ebbtide-*' python3-ebbtideclient >/root/apt.log 2>&1" || { cat /root/apt.log; return 1; }
    rm -f /etc/ebbtide/scheduler-?.toml
    rmdir --ignore-fail-on-non-empty /etc/ebbtide 2>/dev/null || true
    files | diff /root/files.before - | grep '^>' | grep -v -e /etc/systemd/system/multi-user.target.wants/mariadb || true
    [ -z "$(files | diff /root/files.before - | grep '^>' || true)" ] || fail "purge leaves files"
    getent passwd | cut -d: -f1 | sort | diff /root/users.before - || fail "purge leaves a user"
    getent group | cut -d: -f1 | sort | diff /root/groups.before - || fail "purge leaves a group"
    left >left
    [ ! -s left ] || { cat left; fail "purge leaves something"; }
    echo "nothing is left: no file, no user, no group, no unit, no process"
}

"$@"
