//! `ebbtide bag`: bags of tasks with a deadline, run by Slurm.

use clap::{Args, Subcommand};
use ebbtide_burst::BurstError;
use ebbtide_burst::lanes::{Lane, LaneNotice, Signal, by_begin, lanes, script};
use ebbtide_shell::Context;
use ebbtide_shell::bag::options::{BagOptions, BagPlan};
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_slurm::Slurm;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What sbatch may take: it waits for slurmctld, which may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const HELP: &str = "\
Plans the bag as `plan bag` does, and makes job arrays of both maps. A lane is a core of an instance of
the plan: tasks that run one after another on one processor. The primary array runs now, on preemptible
nodes, and is put back into the queue if a node is lost. Backup arrays wait until the latest start of
their tasks and run what is not done by then on nodes that stay; what is done is left out. The deadline
is met if these nodes are free when a backup begins: Slurm is not asked to reserve them.

The command is run by `sh -c` once for each task, with EBBTIDE_TASK (its name) and EBBTIDE_BAG_DIR in its
environment. DIR has to be seen by all nodes: DIR/done/TASK is there once TASK is done, DIR/log says
what ran where. If the node of a task has notice, the task goes on until the node goes, and begins again
elsewhere; a command that can save its work on SIGUSR1 (or --notice-signal, if burst.toml says otherwise) is
told with --pass-notice (the shell that runs it is: let the command begin with `exec`, or trap the signal).

Examples:
  ebbtide bag submit docs/tenants/bags/example.toml --dir /shared/bag --command ./render
  ebbtide bag submit bag.toml --dir /shared/bag --command ./work --partition short --backup-partition long
  ebbtide bag submit bag.toml --dir bag --command true --dry-run -o json | jq .arrays";

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum BagCommand {
    /// Run a bag as job arrays of Slurm, with backup capacity for its deadline
    #[command(after_help = HELP)]
    Submit(Box<SubmitArgs>),
}

/// A signal that lanes can hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum SignalChoice {
    /// SIGUSR1
    Usr1,
    /// SIGUSR2
    Usr2,
    /// SIGHUP
    Hup,
    /// SIGCONT
    Cont,
}

impl SignalChoice {
    fn signal(self) -> Signal {
        match self {
            Self::Usr1 => Signal::Usr1,
            Self::Usr2 => Signal::Usr2,
            Self::Hup => Signal::Hup,
            Self::Cont => Signal::Cont,
        }
    }
}

/// Options of `bag submit`.
#[derive(Debug, Clone, Args)]
pub struct SubmitArgs {
    /// Which bag, and how
    #[command(flatten)]
    pub bag: BagOptions,
    /// A new directory that all nodes see, for scripts, marks and the log
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// What is done for each task
    #[arg(long, value_name = "COMMAND")]
    pub command: String,
    /// The partition of the primary array [default: Slurm's]
    #[arg(long, value_name = "PARTITION")]
    pub partition: Option<String>,
    /// Features that nodes of the primary array must have
    #[arg(long, value_name = "FEATURES")]
    pub constraint: Option<String>,
    /// Features that they should have, such as fits_6h
    #[arg(long, value_name = "FEATURES")]
    pub prefer: Option<String>,
    /// The partition of backup arrays [default: Slurm's]
    #[arg(long, value_name = "PARTITION")]
    pub backup_partition: Option<String>,
    /// Features that nodes of backup arrays must have
    #[arg(long, value_name = "FEATURES")]
    pub backup_constraint: Option<String>,
    /// slurm.conf, if it is not where Slurm looks for it
    #[arg(long, env = "SLURM_CONF", value_name = "FILE")]
    pub slurm_conf: Option<PathBuf>,
    /// Send the command the signal when its node has notice: it saves its work, and its task begins
    /// again
    #[arg(long)]
    pub pass_notice: bool,
    /// The signal by which batch scripts hear of a notice: slurm.checkpoint_signal of burst.toml
    #[arg(long, value_enum, default_value_t = SignalChoice::Usr1, value_name = "SIGNAL", ignore_case = true)]
    pub notice_signal: SignalChoice,
    /// Write the scripts and show what would be submitted
    #[arg(long)]
    pub dry_run: bool,
}

/// A job array.
struct Array {
    side: &'static str,
    lanes: usize,
    tasks: usize,
    begin: u64,
    seconds: u64,
    script: PathBuf,
    arguments: Vec<String>,
    job: Option<String>,
}

/// Does it.
///
/// # Errors
/// [`CliError::Bag`], [`CliError::BagFile`] for bags that cannot be planned, [`CliError::Burst`]
/// for those that cannot be submitted.
pub async fn run(context: &mut Context, command: &BagCommand) -> Result<(), CliError> {
    let BagCommand::Submit(args) = command;
    let planned = args.bag.planned()?;
    if let Some(note) = planned.note() {
        context.output.say(&note);
    }
    let BagPlan { bag, plan, .. } = planned;
    let lanes = lanes(&bag, &plan)?;
    let dir = std::path::absolute(&args.dir)?;
    for sub in [dir.clone(), dir.join("done")] {
        std::fs::create_dir_all(&sub).map_err(|error| storage("make", &sub, &error))?;
    }
    if std::fs::read_dir(dir.join("done"))?.next().is_some() {
        let problem = format!("{} is of another bag: tasks are done there", dir.display());
        return Err(BurstError::Lanes { problem }.into());
    }
    let mut arrays = Vec::new();
    let sides = [("primary", &lanes.primary), ("backup", &lanes.backup)];
    for (side, lanes) in sides {
        for (begin, group) in by_begin(lanes) {
            arrays.push(array(args, &dir, side, begin, &group, arrays.len())?);
        }
    }
    if !args.dry_run {
        let slurm = Slurm {
            conf: args.slurm_conf.clone(),
            bin_dir: None,
            timeout: PATIENCE,
        };
        submit(&slurm, &mut arrays).await?;
    }
    show(context, args, bag.rules().deadline, &arrays)
}

/// All arrays or none: without its backups a primary array is no promise.
async fn submit(slurm: &Slurm, arrays: &mut [Array]) -> Result<(), CliError> {
    // Backups first: they wait anyway, and the primary array begins at once.
    for at in (0..arrays.len()).rev() {
        let arguments: Vec<&str> = arrays[at].arguments.iter().map(String::as_str).collect();
        match slurm.run("sbatch", &arguments).await {
            // "12", or "12;cluster".
            Ok(said) => {
                let job = said.trim().split(';').next().unwrap_or_default();
                arrays[at].job = Some(job.to_owned());
            }
            Err(error) => {
                for job in arrays.iter().filter_map(|array| array.job.as_deref()) {
                    slurm.run("scancel", &[job]).await?;
                }
                return Err(error.into());
            }
        }
    }
    Ok(())
}

fn storage(what: &'static str, path: &Path, error: &std::io::Error) -> CliError {
    CliError::Burst(BurstError::Storage {
        what,
        path: path.display().to_string(),
        problem: error.to_string(),
    })
}

fn array(
    args: &SubmitArgs,
    dir: &Path,
    side: &'static str,
    begin: u64,
    lanes: &[&Lane],
    number: usize,
) -> Result<Array, CliError> {
    let path = dir.join(format!("{side}-{number}.sh"));
    let place = dir.display().to_string();
    let notice = LaneNotice {
        signal: args.notice_signal.signal(),
        pass_on: args.pass_notice,
    };
    let text = script(&place, lanes, &args.command, notice);
    std::fs::write(&path, text).map_err(|error| storage("write", &path, &error))?;
    let memory = lanes.iter().map(|lane| lane.memory_mb).max().unwrap_or(0);
    let seconds = lanes.iter().map(|lane| lane.seconds).max().unwrap_or(0);
    let mut arguments = vec![
        "--parsable".to_owned(),
        format!("--array=1-{}", lanes.len()),
        format!("--job-name=bag-{side}"),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        "--ntasks=1".to_owned(),
        "--cpus-per-task=1".to_owned(),
        format!("--mem={}M", memory.max(1)),
        format!("--output={place}/{side}-%A_%a.out"),
    ];
    if begin > 0 {
        arguments.push(format!("--begin=now+{begin}"));
    }
    let (partition, constraint) = match side {
        "primary" => (&args.partition, &args.constraint),
        _ => (&args.backup_partition, &args.backup_constraint),
    };
    arguments.extend(partition.iter().map(|one| format!("--partition={one}")));
    arguments.extend(constraint.iter().map(|one| format!("--constraint={one}")));
    if side == "primary" {
        arguments.extend(args.prefer.iter().map(|one| format!("--prefer={one}")));
    }
    arguments.push(path.display().to_string());
    Ok(Array {
        side,
        lanes: lanes.len(),
        tasks: lanes.iter().map(|lane| lane.tasks.len()).sum(),
        begin,
        seconds,
        script: path,
        arguments,
        job: None,
    })
}

fn show(
    context: &mut Context,
    args: &SubmitArgs,
    deadline: u64,
    arrays: &[Array],
) -> Result<(), CliError> {
    if context.output.format() == Format::Json {
        let all: Vec<Json> = arrays
            .iter()
            .map(|array| {
                let words: Vec<Json> = array
                    .arguments
                    .iter()
                    .map(|one| Json::from(one.as_str()))
                    .collect();
                Json::object([("side", Json::from(array.side))])
                    .with("job", array.job.as_deref().map_or(Json::Null, Json::from))
                    .with("lanes", array.lanes as u64)
                    .with("tasks", array.tasks as u64)
                    .with("begin_seconds", array.begin)
                    .with("longest_seconds", array.seconds)
                    .with("script", array.script.display().to_string())
                    .with("sbatch", words)
            })
            .collect();
        let json = Json::object([("dir", Json::from(args.dir.display().to_string()))])
            .with("deadline_seconds", deadline)
            .with("submitted", !args.dry_run)
            .with("arrays", all);
        return context.output.json(&json);
    }
    let columns = [
        text("side", "Side"),
        text("job", "Job"),
        number("lanes", "Lanes"),
        number("tasks", "Tasks"),
        number("begin", "Begins"),
        number("seconds", "Longest lane"),
    ];
    let rows: Vec<Vec<TableCell>> = arrays
        .iter()
        .map(|array| {
            let begin = match array.begin {
                0 => "now".to_owned(),
                seconds => format!("in {seconds} s"),
            };
            vec![
                TableCell::new(array.side),
                TableCell::new(array.job.as_deref().unwrap_or("-")),
                TableCell::new(array.lanes),
                TableCell::new(array.tasks),
                TableCell::new(begin).value(array.begin),
                TableCell::new(format!("{} s", array.seconds)).value(array.seconds),
            ]
        })
        .collect();
    context.output.table(&columns, &rows)?;
    let verb = if args.dry_run { "would be" } else { "is" };
    context.output.say(&format!(
        "the deadline {verb} in {deadline} s; {}/done has a file for each task that is done",
        args.dir.display()
    ));
    Ok(())
}
