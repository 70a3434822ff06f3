//! `ebbtide-batch bag`: one bag by primary and backup maps, on servers that may hibernate.
//!
//! One loop: it looks at the cloud and at the tasks, writes down what [`BagRun`] made of it, and
//! does what follows. A program that is ended at any moment reads its journal and goes on.

mod rehearsal;
mod slurm;

use crate::service::fault::ServiceError;
use clap::Args;
use ebbtide_batch::BatchError;
use ebbtide_batch::BatchSettings;
use ebbtide_batch::maps::{
    AttemptSeen, BagDo, BagEntry, BagFact, BagLook, BagRun, BagSeen, BagWork, read, settle,
    unfinished,
};
use ebbtide_batch_service::faults::{Faults, log};
use ebbtide_batch_service::journal::RecordFile;
use ebbtide_batch_service::lines::LineFile;
use ebbtide_batch_service::pool::{PoolOptions, within};
use ebbtide_batch_service::{say, storage};
use ebbtide_burst::{BurstError, PoolServer, Status};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use rehearsal::Rehearsal;
use serde_json::Value;
use slurm::SlurmTasks;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) const HELP: &str = "\
The bag is TOML, or JSON with the same keys; docs/tenants/bags.md has all of them:

  name = \"render\"
  dir = \"/shared/render\"           # all nodes see it: done/, output/ and attempts/ come there
  command = \"./render $EBBTIDE_TASK\"
  rules = { deadline = \"6h\", boot = \"2m\", margin = \"2m\" }
  tasks = [{ name = \"frame\", count = 40, duration = \"20m\", memory_mb = 1000 }]

The types of servers are those of the configuration file. The command runs until the bag is done
and its servers are given back. Started again with the same file, it goes on where it was.

Examples:
  ebbtide-batch bag render.toml --dry-run
  ebbtide-batch bag render.toml
  ebbtide-batch bag render.toml --rehearse     # real servers, but nothing runs on them
  ebbtide-batch bag render.toml --cancel";

/// The journal in the state directory.
const JOURNAL: &str = "maps.jsonl";

/// What is to be done with a bag.
#[derive(Debug, Clone, Args)]
pub(crate) struct BagArgs {
    /// The bag
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the maps, and do nothing
    #[arg(long, conflicts_with_all = ["rehearse", "cancel"])]
    dry_run: bool,
    /// Take the servers of the plan, but run nothing on them and ask no Slurm: a task is done once
    /// its server was active for as long as the task takes
    #[arg(long)]
    rehearse: bool,
    /// Give the bag up: its tasks end, and its servers are given back
    #[arg(long)]
    cancel: bool,
}

/// What was seen of tasks.
#[derive(Debug, Default)]
struct TasksSeen {
    /// Nodes on which tasks can be started.
    ready: BTreeSet<String>,
    /// Tasks that are done, with the number of the attempt.
    done: BTreeMap<usize, u32>,
    attempts: BTreeMap<(usize, u32), AttemptSeen>,
}

/// Where tasks run.
enum Tasks<'a> {
    Slurm(SlurmTasks<'a>),
    Rehearsal(Rehearsal<'a>),
}

/// Runs a bag to its end.
///
/// # Errors
/// [`BatchError::Missed`]; what makes it impossible from the beginning, and a journal that cannot
/// be written. What else goes wrong is reported, written down, and tried again.
pub(crate) async fn run(
    settings: &BatchSettings,
    pool: &PoolOptions<'_>,
    args: &BagArgs,
) -> Result<(), CliError> {
    let refused = ServiceError::from;
    let text = std::fs::read_to_string(&args.file).map_err(storage("read", &args.file))?;
    let document = read(&text).map_err(|error| ServiceError::in_file(&args.file, error))?;
    if args.dry_run {
        // Prices of the file: a plan can be made without a cloud.
        let settled = settle(&document, settings, &BTreeMap::new()).map_err(refused)?;
        let work = BagWork::new(&settled, settings).map_err(refused)?;
        show(&work);
        return Ok(());
    }
    // The service and a bag share no nodes, and so no state directory.
    let mut record = RecordFile::open(&pool.state_dir)?;
    let (mut journal, kept) = LineFile::open(&pool.state_dir, JOURNAL)?;
    let kept = unfinished(&kept).map_err(refused)?;
    let cloud = within(pool.connect()).await?;
    let work = match kept.first().map(|entry| &entry.fact) {
        Some(BagFact::Begun {
            document: own,
            maps,
        }) => go_on(settings, &document, own, maps).map_err(refused)?,
        _ => {
            let prices = within(cloud.prices()).await?;
            let settled = settle(&document, settings, &prices).map_err(refused)?;
            BagWork::new(&settled, settings).map_err(refused)?
        }
    };
    let begun = kept.first().map_or_else(unix_millis, |entry| entry.at);
    let again = (settings.policy.launch_again_seconds * 1_000.0) as i64;
    let mut bag = BagRun::begin(&work, begun, again);
    for entry in &kept {
        bag.apply(entry).map_err(refused)?;
    }
    if kept.is_empty() {
        if args.cancel {
            say!("nothing to cancel: no bag of this state_dir runs");
            return Ok(());
        }
        show(&work);
        unused(&work, &within(cloud.servers()).await?)?;
        let fact = BagFact::Begun {
            document: work.document.clone(),
            maps: work.maps(),
        };
        write(&mut journal, &[BagEntry { at: begun, fact }])?;
    }
    if args.cancel {
        let entry = bag.cancel(unix_millis()).map_err(refused)?;
        write(&mut journal, &[entry])?;
    }
    let tasks = if args.rehearse {
        Tasks::Rehearsal(Rehearsal::open(&work, &pool.state_dir, begun)?)
    } else {
        Tasks::Slurm(SlurmTasks::new(settings, &pool.slurm, &work, begun)?)
    };
    let mut live = Live {
        bag,
        work: &work,
        cloud,
        tasks,
        faults: Faults::default(),
    };
    if live.serve(&mut journal, &mut record, settings).await? {
        return live.outcome();
    }
    say!("ended; the bag goes on, and is followed again when this is started again");
    Ok(())
}

/// The bag of the journal, if it is the one that is handed in.
fn go_on(
    settings: &BatchSettings,
    document: &Value,
    own: &Value,
    maps: &Value,
) -> Result<BagWork, BatchError> {
    let work = BagWork::new(own, settings)?;
    let name = work.work.name.clone();
    if !work.is_of(document) {
        return Err(BatchError::Unfinished { name });
    }
    if work.maps() != *maps {
        let problem = "this version plans it in another way: let the version that began it end it";
        return Err(BatchError::Work {
            key: format!("bag {name}"),
            problem: problem.to_owned(),
        });
    }
    Ok(work)
}

/// Nodes that have a server already would give a bag servers that it did not plan.
fn unused(work: &BagWork, servers: &[PoolServer]) -> Result<(), BurstError> {
    for (_, node) in work.nodes() {
        let there = |one: &&PoolServer| {
            one.node == node && !matches!(one.status, Status::Gone | Status::Going)
        };
        if let Some(one) = servers.iter().find(there) {
            return Err(BurstError::NoInstance {
                node: node.to_owned(),
                problem: format!("it has the server {} already; delete it first", one.id),
            });
        }
    }
    Ok(())
}

fn show(work: &BagWork) {
    let (bag, plan) = (&work.bag, &work.plan);
    say!(
        "bag {}: {} tasks, done after {} s if nothing hibernates, deadline {} s",
        work.work.name,
        bag.tasks().len(),
        plan.makespan(bag),
        bag.rules().deadline
    );
    for vm in work.maps().as_array().into_iter().flatten() {
        say!("{vm}");
    }
}

fn write(journal: &mut LineFile, entries: &[BagEntry]) -> Result<(), BurstError> {
    if entries.is_empty() {
        return Ok(());
    }
    journal.append(entries)?;
    journal.sync()
}

/// A bag at work.
struct Live<'a> {
    bag: BagRun<'a>,
    work: &'a BagWork,
    cloud: ServerPool,
    tasks: Tasks<'a>,
    faults: Faults,
}

impl Live<'_> {
    /// Looks until all servers are given back; false if it was told to end before.
    async fn serve(
        &mut self,
        journal: &mut LineFile,
        record: &mut RecordFile,
        settings: &BatchSettings,
    ) -> Result<bool, CliError> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let poll = Duration::from_secs_f64(settings.poll_seconds);
        loop {
            match self.look(journal, record).await? {
                Some(true) => {
                    write(journal, &[self.bag.given_back()])?;
                    return Ok(true);
                }
                Some(false) => self.faults.over("look"),
                None => {}
            }
            // A latest start is not waited for until the next look.
            let due = self.bag.wake_at().map(|at| at - unix_millis());
            let due = due.and_then(|ms| u64::try_from(ms).ok());
            let wait = due.map_or(poll, |ms| poll.min(Duration::from_millis(ms + 1)));
            tokio::select! {
                _ = terminate.recv() => return Ok(false),
                _ = interrupt.recv() => return Ok(false),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks once: whether nothing is left to do. `None` if the world could not be seen.
    async fn look(
        &mut self,
        journal: &mut LineFile,
        record: &mut RecordFile,
    ) -> Result<Option<bool>, CliError> {
        let seen = match self.see().await {
            Ok(seen) => seen,
            Err(error) => {
                self.faults.lasting(record, "look", &error)?;
                return Ok(None);
            }
        };
        let (servers, tasks) = &seen;
        let view = BagSeen {
            servers,
            ready: &|node| tasks.ready.contains(node),
            done: &|task| tasks.done.get(&task).copied(),
            attempt: &|task, number| {
                let seen = tasks.attempts.get(&(task, number));
                seen.copied().unwrap_or(AttemptSeen::Unknown)
            },
        };
        let made = self.bag.look(unix_millis(), &view);
        let made = made.map_err(ServiceError::from)?;
        // Nothing is done that does not stand in the journal.
        write(journal, &made.facts)?;
        self.carry_out(record, servers, made).await?;
        Ok(Some(self.bag.is_over(servers)))
    }

    async fn see(&mut self) -> Result<(Vec<PoolServer>, TasksSeen), CliError> {
        let servers = within(self.cloud.servers()).await?;
        let seen = match &mut self.tasks {
            Tasks::Slurm(tasks) => tasks.look(&self.bag, &servers).await?,
            Tasks::Rehearsal(tasks) => tasks.look(&self.bag, &servers, unix_millis())?,
        };
        Ok((servers, seen))
    }

    async fn carry_out(
        &mut self,
        record: &mut RecordFile,
        servers: &[PoolServer],
        made: BagLook,
    ) -> Result<(), CliError> {
        for entry in &made.facts {
            log(&self.describe(&entry.fact));
        }
        for error in made.problems {
            self.faults
                .note(record, &ServiceError::from(error).into())?;
        }
        let mut first = Ok(());
        for action in &made.actions {
            let done = self.act(action, servers).await;
            if let Err(error) = &done {
                log(&format!("{action:?}: not done: {error}"));
            }
            first = first.and(done);
        }
        match first {
            Err(error) => self.faults.lasting(record, "act", &error)?,
            Ok(()) if !made.actions.is_empty() => self.faults.over("act"),
            Ok(()) => {}
        }
        Ok(())
    }

    async fn act(&mut self, action: &BagDo, servers: &[PoolServer]) -> Result<(), CliError> {
        match (action, &mut self.tasks) {
            // slurmctld has to know first: its program creates the server.
            (BagDo::Create { node }, Tasks::Slurm(tasks)) => {
                tasks.power_up(node);
                Ok(())
            }
            (BagDo::Create { node }, Tasks::Rehearsal(_)) => {
                within(self.cloud.create(node)).await.map(drop)
            }
            (BagDo::GiveBack { server, .. }, _) => {
                let one = servers.iter().find(|one| one.id == *server);
                match one {
                    Some(one) => within(self.cloud.give_back(one)).await,
                    None => Ok(()),
                }
            }
            (BagDo::Start { task, number, node }, Tasks::Slurm(tasks)) => {
                Ok(tasks.start(*task, *number, node).await?)
            }
            (BagDo::Stop { task, number }, Tasks::Slurm(tasks)) => {
                Ok(tasks.stop(*task, *number).await?)
            }
            (BagDo::Start { .. }, Tasks::Rehearsal(_)) => Ok(()),
            (BagDo::Stop { task, number }, Tasks::Rehearsal(tasks)) => {
                tasks.stop(*task, *number);
                Ok(())
            }
        }
    }

    fn describe(&self, fact: &BagFact) -> String {
        let node = |vm| self.work.node(vm);
        let name = |task: usize| self.work.bag.tasks()[task].name.as_str();
        match fact {
            BagFact::Started { vm } => format!("{}: up", node(*vm)),
            BagFact::Hibernated { vm } => format!("{}: hibernates", node(*vm)),
            BagFact::Resumed { vm } => format!("{}: goes on", node(*vm)),
            BagFact::Interrupted { vm } => format!("{}: gone", node(*vm)),
            BagFact::Finished { task, vm } => format!("{}: done on {}", name(*task), node(*vm)),
            BagFact::Time => "the latest start of a backup".to_owned(),
            BagFact::Attempt { task, vm, number } => {
                format!("{}: attempt {number} on {}", name(*task), node(*vm))
            }
            BagFact::AttemptEnded { task, number, exit } => {
                format!("{}: attempt {number} ended, {exit:?}", name(*task))
            }
            BagFact::Begun { .. } => "begun".to_owned(),
            BagFact::Cancelled => "cancelled".to_owned(),
            BagFact::Over => "over: servers are given back".to_owned(),
            BagFact::GivenBack => "all servers are given back".to_owned(),
        }
    }

    /// What became of it.
    fn outcome(&self) -> Result<(), CliError> {
        let report = self.bag.report();
        let (took, deadline) = (report.took / 1_000, report.deadline / 1_000);
        say!(
            "bag {}: {} of {} tasks done after {took} s, deadline {deadline} s; {} hibernations, {} backups, {} tasks moved",
            self.work.work.name,
            report.done,
            report.tasks,
            report.hibernated,
            report.backups,
            report.moved
        );
        if report.met || self.bag.is_cancelled() {
            return Ok(());
        }
        Err(ServiceError::from(BatchError::Missed {
            name: self.work.work.name.clone(),
            done: report.done,
            tasks: report.tasks,
            took,
            deadline,
        })
        .into())
    }
}

/// Where a rehearsal keeps what is done.
fn rehearsal_path(dir: &Path) -> PathBuf {
    dir.join("rehearsal.json")
}
