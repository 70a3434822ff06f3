//! A planned bag as job arrays of Slurm.
//!
//! A *lane* is a core of an instance of the plan: tasks that run one after another on one
//! processor. All lanes of the primary map are the elements of one array on preemptible nodes. All
//! lanes of the backup map are the elements of another array on on-demand nodes, and each begins at
//! its latest start (equation 3 of the paper). A lane skips finished tasks. If both lanes finish a
//! task, the first result counts. So a lane that is cut and restarted continues with the task that
//! was cut, and a backup whose tasks are done in time ends at once and needs its node only briefly.

use crate::error::BurstError;
use ebbtide_bag::{Bag, Plan};
use std::fmt::Write as _;

/// Tasks that run one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Place in the plan: `vm1.2` is the second core of the first instance, `backup1.1` a core of a
    /// backup.
    pub name: String,
    /// Names of its tasks.
    pub tasks: Vec<String>,
    /// Memory of the largest of them.
    pub memory_mb: u64,
    /// Duration of the tasks on this type, seconds.
    pub seconds: u64,
    /// When the lane begins, seconds after the submission.
    pub begin: u64,
}

/// The lanes of both maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    /// On preemptible nodes; they begin at once. Lanes of the primary map that the plan buys on
    /// demand are among the backups, and begin at once too.
    pub primary: Vec<Lane>,
    /// On on-demand nodes.
    pub backup: Vec<Lane>,
}

/// The greatest number of lanes of an array: Slurm's MaxArraySize is 1001 by default.
pub const MOST_LANES: usize = 1_000;

/// The lanes of a plan.
///
/// # Errors
/// [`BurstError::Lanes`] for names that a shell list cannot contain, and for more lanes than an
/// array can have.
pub fn lanes(bag: &Bag, plan: &Plan) -> Result<Lanes, BurstError> {
    let refuse = |problem: String| BurstError::Lanes { problem };
    for task in bag.tasks() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+:=@".contains(c);
        let name = &task.name;
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(refuse(format!(
                "task {name:?}: names of tasks become names of files; letters, digits and -_.+:=@ only"
            )));
        }
    }
    let lane = |name: String, ty: usize, core: &Vec<usize>, begin: u64| Lane {
        name,
        tasks: core.iter().map(|&t| bag.tasks()[t].name.clone()).collect(),
        memory_mb: core
            .iter()
            .map(|&t| bag.tasks()[t].memory_mb)
            .max()
            .unwrap_or(0),
        seconds: core.iter().filter_map(|&t| bag.runtime(t, ty)).sum(),
        begin,
    };
    let mut lanes = Lanes {
        primary: Vec::new(),
        backup: Vec::new(),
    };
    let mut number = 0;
    for (at, planned) in plan.vms.iter().enumerate() {
        for (core, tasks) in planned.vm.cores.iter().enumerate() {
            let name = format!("vm{}.{}", at + 1, core + 1);
            let made = lane(name, planned.vm.ty, tasks, 0);
            match planned.vm.market {
                ebbtide_bag::Market::Preemptible => lanes.primary.push(made),
                ebbtide_bag::Market::OnDemand => lanes.backup.push(made),
            }
        }
        for backup in &planned.backups {
            number += 1;
            let begin = backup.latest_start(bag);
            for (core, tasks) in backup.cores.iter().enumerate() {
                let name = format!("backup{number}.{}", core + 1);
                lanes.backup.push(lane(name, backup.ty, tasks, begin));
            }
        }
    }
    let all = [&mut lanes.primary, &mut lanes.backup];
    for side in all {
        side.retain(|lane| !lane.tasks.is_empty());
        if side.len() > MOST_LANES {
            let problem = format!(
                "{} cores work on it at a time, and an array has at most {MOST_LANES} elements: split the bag",
                side.len()
            );
            return Err(refuse(problem));
        }
    }
    Ok(lanes)
}

/// Groups the lanes of one side by begin, because a Slurm array has one begin.
#[must_use]
pub fn by_begin(lanes: &[Lane]) -> Vec<(u64, Vec<&Lane>)> {
    let mut groups: std::collections::BTreeMap<u64, Vec<&Lane>> = std::collections::BTreeMap::new();
    for lane in lanes {
        groups.entry(lane.begin).or_default().push(lane);
    }
    groups.into_iter().collect()
}

/// A signal that informs a lane of a notice. Signals that end lanes for other reasons, or that a
/// shell keeps from its commands, are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signal {
    /// SIGUSR1, the controller's default.
    #[default]
    Usr1,
    /// SIGUSR2.
    Usr2,
    /// SIGHUP.
    Hup,
    /// SIGCONT.
    Cont,
}

impl Signal {
    /// Its name for `trap` and `kill`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Usr1 => "USR1",
            Self::Usr2 => "USR2",
            Self::Hup => "HUP",
            Self::Cont => "CONT",
        }
    }
}

/// What a lane does on a notice.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneNotice {
    /// The signal: `slurm.checkpoint_signal` of the controller.
    pub signal: Signal,
    /// Whether the command receives the signal too.
    pub pass_on: bool,
}

/// The batch script of an array: element N runs the N-th lane. `dir` is a directory that all nodes
/// share. `sh -c` runs `command` for each task, with EBBTIDE_TASK in its environment. The command
/// receives the signal only if `notice.pass_on` is set, because most commands end on such a signal.
#[must_use]
pub fn script(dir: &str, lanes: &[&Lane], command: &str, notice: LaneNotice) -> String {
    let mut text = String::from(
        "#!/bin/sh\n# Written by `ebbtide bag submit`: one lane of a bag, its tasks one after another.\n",
    );
    let _ = writeln!(text, "dir={}\ncommand={}", quoted(dir), quoted(command));
    text.push_str("case $SLURM_ARRAY_TASK_ID in\n");
    for (at, lane) in lanes.iter().enumerate() {
        // Task names contain no characters that are special to a shell.
        let _ = writeln!(text, "{}) tasks='{}' ;;", at + 1, lane.tasks.join(" "));
    }
    text.push_str(
        r#"*) echo "no lane $SLURM_ARRAY_TASK_ID" >&2; exit 1 ;;
esac
child=
"#,
    );
    let signal = notice.signal.name();
    let _ = if notice.pass_on {
        writeln!(
            text,
            "# A notice: what runs saves its work; the lane goes on when it is started again, with the task that is not done.\n\
             trap 'noticed=1; [ -z \"$child\" ] || kill -{signal} \"$child\"' {signal}"
        )
    } else {
        writeln!(
            text,
            "# A notice: the lane goes on when it is started again, with the task that is not done.\ntrap : {signal}"
        )
    };
    text.push_str(
        r#"# The lane is put back: nothing new is begun.
trap 'exit 143' TERM
failed=0
for task in $tasks; do
    while [ ! -e "$dir/done/$task" ]; do
        echo "$(date +%s) start $task ${SLURM_JOB_ID} ${SLURMD_NODENAME} ${SLURM_RESTART_COUNT:-0}" >>"$dir/log"
        # A notice counts for the task that heard it.
        noticed=
        EBBTIDE_TASK=$task EBBTIDE_BAG_DIR=$dir sh -c "$command" &
        child=$!
        while :; do
            wait "$child"; code=$?
            # A signal ends the wait, not the task.
            kill -0 "$child" 2>/dev/null && continue
            # Both may end at once: then the task's own code is still to be had.
            wait "$child" 2>/dev/null; again=$?
            [ "$again" -eq 127 ] || code=$again
            break
        done
        child=
        # Ended from outside, as when the node is lost: the lane will be started again.
        case $code in 137 | 143) exit "$code" ;; esac
        if [ "$code" -ne 0 ]; then
            # Ended because it was told to save its work: it goes on from there, here until the node goes, or wherever the lane is started again.
            [ -n "$noticed" ] && continue
            echo "$(date +%s) failed $task ${SLURM_JOB_ID} exit code $code" >>"$dir/log"
            failed=1
            break
        fi
        # Both sides may finish it: a link is made once, and the first is the one that counts.
        result=$dir/done/.$task.$SLURM_JOB_ID
        echo "${SLURM_JOB_ID} ${SLURMD_NODENAME}" >"$result"
        ln "$result" "$dir/done/$task" 2>/dev/null && echo "$(date +%s) done $task ${SLURM_JOB_ID} ${SLURMD_NODENAME}" >>"$dir/log"
        rm -f "$result"
        # A disk that takes no mark: as good as not done, and no reason to work for ever.
        [ -e "$dir/done/$task" ] || { failed=1; break; }
    done
done
exit $failed
"#,
    );
    text
}

/// Quotes a text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
