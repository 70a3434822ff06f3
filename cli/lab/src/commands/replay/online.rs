//! The replay against a running region.
//!
//! All events under way are futures of one task: no locks, and with one in flight a strict order.
//! What an event found out comes back as a [`Done`]; only the main loop counts.

use super::servers::Servers;
use super::{Job, ReplaySpeed, setup};
use crate::progress::ReplayProgress;
use ebbtide_client::{ClientError, Region};
use ebbtide_proto::v1;
use ebbtide_runtime::{clock, ids, task};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_simulator::{
    ClassSample, EventKind, Latencies, ReplayReport, Sample, Sampling, TraceEvent,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

/// How many deletions the final cleaning sends at once.
const CLEANERS: usize = 16;

/// What an event came to.
enum Done {
    Created(CreateReport),
    /// True if there was a running server to delete.
    Deleted(bool),
    Failed(CliError),
    Sampled(Sample),
}

/// What a create came to.
struct CreateReport {
    index: usize,
    line: u64,
    vm: String,
    host: Option<String>,
    waited: bool,
    latency: Duration,
}

/// What a delete needs to know of its create: the server's id, and whether it had a place.
type Handle = (String, bool);

/// One replay under way.
struct Replay<'a> {
    job: &'a Job,
    region: Region,
    servers: Servers,
    project: String,
    /// Namespace of the servers' ids: new for each run, so that a trace can be replayed twice.
    run: Uuid,
    report: ReplayReport,
    latencies: Latencies,
    ours: HashSet<String>,
    alive: HashMap<String, oneshot::Receiver<Handle>>,
    first_failure: Option<CliError>,
}

/// Replays. The second answer is why it ended early, if it did; there is a report all the same.
pub(super) async fn run(
    context: &mut Context,
    job: &Job,
) -> Result<(ReplayReport, Option<CliError>), CliError> {
    let mut region = context.region().await?;
    let summary = setup::check(&mut region, job).await?;
    let made = setup::flavors(&mut region, job).await?;
    let servers = Servers::watch(&region, &context.project).await;
    let mut report = job.blank_report(&context.endpoint);
    report.policy = summary.policy;
    report.cost_module = summary.cost_module;
    let mut replay = Replay {
        job,
        region,
        servers,
        project: context.project.clone(),
        run: ids::new(),
        report,
        latencies: Latencies::default(),
        ours: HashSet::new(),
        alive: HashMap::new(),
        first_failure: None,
    };
    let mut interrupts = interrupts();
    let mut progress = ReplayProgress::new(context, job.trace.events.len());
    let started = clock::instant();
    let ended = replay
        .drive(context, &mut progress, &mut interrupts.0, started)
        .await;
    progress.end();
    replay.report.wall_seconds = started.elapsed().as_secs_f64();
    replay.report.decision_latency = replay.latencies.summary();
    let mut problem = ended.err();
    if problem.is_none() {
        problem = replay.finish(context, made, &mut interrupts.0).await.err();
    }
    let failed = replay.report.failed;
    let problem = problem.or_else(|| {
        replay.first_failure.take().map(|error| {
            CliError::Disagrees(format!(
                "{failed} events failed, the first with {}",
                error.text("")
            ))
        })
    });
    Ok((replay.report, problem))
}

/// How often Ctrl-C was pressed; listens as long as the task is kept.
fn interrupts() -> (watch::Receiver<u32>, task::Task) {
    let (sender, receiver) = watch::channel(0);
    let listener = task::spawn("interrupts", async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            sender.send_modify(|count| *count += 1);
        }
    });
    (receiver, listener)
}

/// Waits for a Ctrl-C beyond the first `known` ones.
async fn interrupted(interrupts: &mut watch::Receiver<u32>, known: u32) {
    if interrupts.wait_for(|count| *count > known).await.is_err() {
        // The listener is gone, so no further interrupt can arrive.
        std::future::pending::<()>().await;
    }
}

impl Replay<'_> {
    /// Sends all events. Stops at Ctrl-C, and at errors after which nothing can work.
    async fn drive(
        &mut self,
        context: &mut Context,
        progress: &mut ReplayProgress,
        interrupts: &mut watch::Receiver<u32>,
        started: Instant,
    ) -> Result<(), CliError> {
        let job = self.job;
        let mut sampling: Sampling = job.sampling;
        let mut under_way: FuturesUnordered<BoxFuture<'static, Done>> = FuturesUnordered::new();
        let most = job.args.in_flight as usize;
        let first = job.trace.span().0;
        let mut creates = 0;
        for event in &job.trace.events {
            let due = match job.args.speed_up {
                ReplaySpeed::Max => Duration::ZERO,
                ReplaySpeed::Times(times) => Duration::from_secs_f64((event.at - first) / times),
            };
            loop {
                let early = due.saturating_sub(started.elapsed());
                if early.is_zero() && under_way.len() < most {
                    break;
                }
                tokio::select! {
                    biased;
                    () = interrupted(interrupts, 0) => break,
                    Some(done) = under_way.next(), if !under_way.is_empty() => self.count(done)?,
                    () = tokio::time::sleep(early), if !early.is_zero() => {}
                }
            }
            if *interrupts.borrow() > 0 {
                self.report.interrupted = true;
                break;
            }
            if sampling.due(event.at) {
                let looking = sample(self.region.clone(), event.at);
                if most == 1 {
                    // In order means that the event has not happened yet when we look.
                    let seen = looking.await;
                    self.count(seen)?;
                } else {
                    under_way.push(Box::pin(looking));
                }
            }
            under_way.push(match event.kind {
                EventKind::Create => {
                    creates += 1;
                    self.create(event, creates - 1)
                }
                EventKind::Delete => self.delete(event),
            });
            self.report.events += 1;
            self.report.trace_seconds = event.at - first;
            let message = format!(
                "{} placed, {} refused",
                self.report.placed, self.report.refused
            );
            progress.set(
                context,
                usize::try_from(self.report.events).unwrap_or(0),
                &message,
            );
        }
        loop {
            // What is under way is waited for: the report shall be true. A second Ctrl-C ends that
            // too.
            let next = tokio::select! {
                next = under_way.next() => next,
                () = interrupted(interrupts, 1) => None,
            };
            match next {
                Some(done) => self.count(done)?,
                None => break,
            }
        }
        let last = first + self.report.trace_seconds;
        let last = sample(self.region.clone(), last).await;
        self.count(last)
    }

    /// Counts what an event came to. An error only where nothing can work any more.
    fn count(&mut self, done: Done) -> Result<(), CliError> {
        let report = &mut self.report;
        match done {
            Done::Created(created) => {
                report.creates += 1;
                self.latencies.add(created.latency);
                match &created.host {
                    Some(_) => report.placed += 1,
                    None => report.refused += 1,
                }
                report.waited += u64::from(created.waited);
                if let (Some(recorded), Some(comparison)) =
                    (&self.job.recorded, &mut report.placements)
                {
                    recorded.compare(
                        comparison,
                        created.index,
                        created.line,
                        &created.vm,
                        created.host.as_deref(),
                    );
                }
            }
            Done::Deleted(true) => report.deletes += 1,
            Done::Deleted(false) => report.deletes_without_server += 1,
            Done::Sampled(sample) => {
                let at = report
                    .samples
                    .partition_point(|s| s.at_seconds <= sample.at_seconds);
                report.samples.insert(at, sample);
            }
            Done::Failed(error @ CliError::Client(ClientError::Unreachable { .. })) => {
                return Err(error);
            }
            Done::Failed(error) => {
                report.failed += 1;
                self.first_failure.get_or_insert(error);
            }
        }
        Ok(())
    }

    fn create(&mut self, event: &TraceEvent, index: usize) -> BoxFuture<'static, Done> {
        // By line, because a VM may come again after its delete.
        let key = format!("{}:{}", event.line, event.vm);
        let id = Uuid::new_v5(&self.run, key.as_bytes()).to_string();
        self.ours.insert(id.clone());
        let (sender, receiver) = oneshot::channel();
        self.alive.insert(event.vm.clone(), receiver);
        let flavor = event.shape.flavor_name(self.job.share.contains(&event.vm));
        let request = v1::CreateServersRequest {
            max_price: String::new(),
            name: format!("replay-{}", event.vm),
            request: Some(v1::PlacementRequest {
                count: 1,
                project_id: self.project.clone(),
                flavor,
                server_ids: vec![id.clone()],
                ..Default::default()
            }),
        };
        let mut region = self.region.clone();
        let (line, vm) = (event.line, event.vm.clone());
        Box::pin(async move {
            let asked = clock::instant();
            let answer = match region.servers.create_servers(request).await {
                Ok(answer) => answer.into_inner(),
                Err(status) => return Done::Failed(status.into()),
            };
            let latency = asked.elapsed();
            let placement = answer
                .decision
                .and_then(|decision| decision.placements.into_iter().next());
            let waited = placement.as_ref().is_some_and(|p| p.waits_for_room);
            let host = placement.map(|p| p.host);
            // If the trace never deletes the VM there is no receiver. Then the clean-up queries the
            // region later.
            let _ = sender.send((id, host.is_some()));
            Done::Created(CreateReport {
                index,
                line,
                vm,
                host,
                waited,
                latency,
            })
        })
    }

    fn delete(&mut self, event: &TraceEvent) -> BoxFuture<'static, Done> {
        let handle = self.alive.remove(&event.vm);
        let mut region = self.region.clone();
        let servers = self.servers.clone();
        Box::pin(async move {
            // A create that failed has dropped its sender: there is nothing to delete.
            let Some(Ok((id, placed))) = (match handle {
                Some(handle) => Some(handle.await),
                None => None,
            }) else {
                return Done::Deleted(false);
            };
            match delete_and_wait(&mut region, &servers, &id).await {
                Ok(there) => Done::Deleted(there && placed),
                Err(error) => Done::Failed(error),
            }
        })
    }

    /// Counts the preempted and deletes what is left.
    async fn finish(
        &mut self,
        context: &mut Context,
        made: Vec<String>,
        interrupts: &mut watch::Receiver<u32>,
    ) -> Result<(), CliError> {
        self.report.preempted = self.servers.preempted(&mut self.region, &self.ours).await?;
        if self.job.args.keep {
            let kept = self.alive.len();
            context.output.say(&format!(
                "kept {kept} servers of this replay and its flavors"
            ));
            return Ok(());
        }
        let known = *interrupts.borrow();
        let left: Vec<String> = self
            .alive
            .drain()
            .filter_map(|(_, mut handle)| handle.try_recv().ok())
            .map(|(id, _)| id)
            .collect();
        context
            .output
            .say(&format!("deleting {} servers that are left", left.len()));
        let (region, servers) = (&self.region, &self.servers);
        let cleaning = async {
            let mut failures = futures::stream::iter(left)
                .map(|id| {
                    let mut region = region.clone();
                    async move { delete_and_wait(&mut region, servers, &id).await.err() }
                })
                .buffer_unordered(CLEANERS)
                .filter_map(std::future::ready);
            let mut first = None;
            while let Some(error) = failures.next().await {
                first.get_or_insert(error);
            }
            let mut region = region.clone();
            for id in made {
                region
                    .admin
                    .delete_flavor(v1::DeleteFlavorRequest { id })
                    .await?;
            }
            first.map_or(Ok(()), Err)
        };
        tokio::select! {
            done = cleaning => done,
            () = interrupted(interrupts, known) => {
                Err(CliError::Interrupted("while deleting; some servers of the replay are left".to_owned()))
            }
        }
    }
}

/// Deletes a server and waits until its room is free. False if it was gone already.
async fn delete_and_wait(
    region: &mut Region,
    servers: &Servers,
    id: &str,
) -> Result<bool, CliError> {
    let request = v1::DeleteServerRequest { id: id.to_owned() };
    match region.servers.delete_server(request).await {
        Ok(answer) => match answer
            .into_inner()
            .server
            .unwrap_or_default()
            .status
            .as_str()
        {
            "preempted" => Ok(false),
            "deleted" => Ok(true),
            _ => servers.gone(region, id).await.map(|()| true),
        },
        Err(status) if status.code() == tonic::Code::NotFound => Ok(false),
        Err(status) => {
            // Refused because it is gone already, as a preempted one is? Then there is nothing to
            // complain about.
            let error = CliError::from(status);
            if servers.ask(region, id).await? {
                Ok(false)
            } else {
                Err(error)
            }
        }
    }
}

/// Looks at both states.
async fn sample(mut region: Region, at_seconds: f64) -> Done {
    match region
        .scheduler
        .region_summary(v1::RegionSummaryRequest {})
        .await
    {
        Ok(answer) => {
            let class = |usage: v1::ResourceUsage| ClassSample {
                resource_class: usage.resource_class,
                capacity: usage.capacity,
                normal: usage.normal,
                preemptible: usage.preemptible,
                leaving: usage.leaving,
            };
            let classes = answer
                .into_inner()
                .resources
                .into_iter()
                .map(class)
                .collect();
            Done::Sampled(Sample {
                at_seconds,
                classes,
            })
        }
        Err(status) => Done::Failed(status.into()),
    }
}
