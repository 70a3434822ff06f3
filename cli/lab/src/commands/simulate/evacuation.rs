//! `ebbtide-lab simulate evacuation`: seeds over all cores, until one breaks a promise.

use super::tables::{self, SeedFailure, Totals};
use crate::progress::ReplayProgress;
use clap::Args;
use ebbtide_evacuation_simulator::{
    DEFAULT_STEPS, MAX_STEPS, Mutation, SeedResult, Simulator, StepPositions, WorldKind,
};
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

/// Every so many seeds are run twice, to see that the same happens.
const TWICE_EVERY: u64 = 64;

pub(super) const HELP: &str = "\
Each seed is a script for two worlds of a few hosts, driven by the real state machines of scheduler and
agent: the standalone region (a database, schedulers of which one leads) and OpenStack mode (Placement, a
ledger, schedulers that are all active). Tenants ask, delete, release, cancel; meanwhile parts are
killed, paused and cut off, messages come twice, late and in another order, disks are full, hypervisors
hang, agents lie. After each step all promises are checked; in the end faults stop, and everything has
to end. The last line says how many promises were broken; exit code 1 unless none.

A seed that breaks a promise is made as small as possible and told as a story. It can be run again,
the same in every detail, with --seed, --steps and --only. docs/development/evacuation-protocol.md
says what is modelled.

--break shows that it bites: it breaks one rule on purpose. `--break list` names them.

Examples:
  ebbtide-lab simulate evacuation --seeds 1000
  ebbtide-lab simulate evacuation --seed 4711 --seeds 1 --steps 10000
  ebbtide-lab simulate evacuation --break notice-before-commit
  ebbtide-lab simulate evacuation --world region --seed 17 --steps 400 --only 3,12-14,90
  ebbtide-lab simulate evacuation --seeds 1000 -o json | jq '.evacuations'";

/// Options of `simulate evacuation`.
#[derive(Debug, Clone, Args)]
pub struct EvacuationArgs {
    /// How many seeds
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub seed: u64,
    /// Steps of each script
    #[arg(long, default_value_t = DEFAULT_STEPS as u64, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=MAX_STEPS as u64))]
    pub steps: u64,
    /// Only this world: region or nova [default: both]
    #[arg(long, value_name = "WORLD")]
    pub world: Option<WorldKind>,
    /// Only these steps of one seed, told as a story: 3,12-14,90
    #[arg(long, value_name = "STEPS", requires = "world")]
    pub only: Option<StepPositions>,
    /// Break a rule on purpose; "list" names them
    #[arg(long = "break", value_name = "RULE")]
    pub breaks: Option<String>,
    /// Seeds at the same time; all cores by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}

/// One world of one seed, done.
struct Done {
    seed: u64,
    world: WorldKind,
    outcome: SeedResult,
}

/// Simulates and shows.
pub(super) fn run(context: &mut Context, args: &EvacuationArgs) -> Result<(), CliError> {
    if args.breaks.as_deref() == Some("list") {
        return tables::rules(context);
    }
    let mutation: Option<Mutation> = args
        .breaks
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(CliError::Usage)?;
    let simulator = Simulator::new().ok_or_else(|| CliError::Refused {
        problem: "the engine refuses its own defaults".to_owned(),
        next: "this is a defect of this build".to_owned(),
    })?;
    let simulator = match mutation {
        Some(mutation) => simulator.breaking(mutation),
        None => simulator,
    };
    let steps = usize::try_from(args.steps).unwrap_or(MAX_STEPS);
    if let (Some(places), Some(world)) = (&args.only, args.world) {
        let outcome = simulator.replay(world, args.seed, steps, places);
        return tables::story(context, args.seed, world, steps, places, &outcome);
    }
    let worlds: Vec<WorldKind> = match (args.world, mutation) {
        (Some(world), _) => vec![world],
        (None, Some(mutation)) => vec![mutation.world()],
        (None, None) => WorldKind::ALL.to_vec(),
    };
    let begin = clock::instant();
    let mut totals = run_all(context, args, &simulator, &worlds, steps);
    totals.seconds = begin.elapsed().as_secs_f64();
    let failure = totals.first.take().and_then(|(seed, world)| {
        context.output.say(&format!(
            "seed {seed} breaks a promise in the world {}; making it small",
            world.as_str()
        ));
        let shrunk = simulator.shrink(world, seed, steps)?;
        Some(SeedFailure {
            seed,
            world,
            steps,
            shrunk,
            breaks: mutation,
        })
    });
    tables::all(context, args, &totals, failure.as_ref())
}

/// Hands seeds to threads until there are none, or one of them has broken a promise.
fn run_all(
    context: &mut Context,
    args: &EvacuationArgs,
    simulator: &Simulator,
    worlds: &[WorldKind],
    steps: usize,
) -> Totals {
    let threads = args
        .threads
        .and_then(|n| usize::try_from(n).ok())
        .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
        .unwrap_or(1);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut totals = Totals::default();
    let count = usize::try_from(args.seeds).unwrap_or(usize::MAX);
    let mut progress = ReplayProgress::of(context, count, "seeds");
    std::thread::scope(|scope| {
        let (done, results) = mpsc::sync_channel::<Done>(threads * 4);
        for _ in 0..threads {
            let done = done.clone();
            let (next, stop) = (&next, &stop);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= args.seeds || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let seed = args.seed.wrapping_add(n);
                    for world in worlds {
                        let outcome = if n.is_multiple_of(TWICE_EVERY) {
                            simulator.run_twice(*world, seed, steps)
                        } else {
                            simulator.run(*world, seed, steps)
                        };
                        if outcome.violation.is_some() {
                            stop.store(true, Ordering::Relaxed);
                        }
                        let world = *world;
                        // Sending fails only if the command itself is ending.
                        if done
                            .send(Done {
                                seed,
                                world,
                                outcome,
                            })
                            .is_err()
                        {
                            return;
                        }
                    }
                }
            });
        }
        drop(done);
        while let Ok(Done {
            seed,
            world,
            outcome,
        }) = results.recv()
        {
            totals.add(seed, world, &outcome);
            let seeds = totals.worlds / worlds.len().max(1);
            let message = format!(
                "{} evacuations, {} faults, violations: {}",
                totals.ends.total(),
                totals.faults.total(),
                totals.violations
            );
            progress.set(context, seeds, &message);
        }
    });
    progress.end();
    totals.seeds = (totals.worlds / worlds.len().max(1)) as u64;
    totals
}
