//! What the two modules that use lifetime models gain, measured by what a trace says about how long
//! each VM would have run: models are fitted to one replay, and used in replays of other traces.

// All of this file is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(
    clippy::print_stdout,
    reason = "the figures of docs/plugins/weighers.md and docs/plugins/cost-modules.md"
)]

use ebbtide_engine::{EngineConfig, RankingPolicy, WeigherConfig};
use ebbtide_lifetime::fit::{Estimator, Family, fit};
use ebbtide_lifetime::life_tables::table;
use ebbtide_lifetime::{Observation, Observations};
use ebbtide_model::{LifeTables, Seconds};
use ebbtide_simulator::offline::{OfflineOptions, replay};
use ebbtide_simulator::{LifeTotals, PreemptibleShare, ReadOptions, ReplayReport, Trace, VmEnd};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const HOUR: f64 = 3600.0;
const HOSTS: u32 = 12;
const HOST_CPU: u32 = 40;
const DAYS: f64 = 4.0;

/// Chance from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// A cloud in which half of the VMs are short work, with days and nights, and a load that is this
/// share of its CPUs on the average.
fn busy(seed: u64, load: f64) -> Trace {
    let mut chance = Chance(seed);
    // Mean life and share of each kind: minutes, hours, days.
    let kinds = [(1200.0, 0.6), (4.0 * HOUR, 0.3), (40.0 * HOUR, 0.1)];
    let sizes = [(1, 0.4), (2, 0.3), (4, 0.2), (8, 0.1)];
    let mean_life: f64 = kinds.iter().map(|(mean, share)| mean * share).sum();
    let mean_size: f64 = sizes
        .iter()
        .map(|(size, share)| f64::from(*size) * share)
        .sum();
    let rate = load * f64::from(HOSTS * HOST_CPU) / mean_life / mean_size;
    let mut events: Vec<(f64, String)> = Vec::new();
    let (mut now, mut number) = (0.0, 0);
    loop {
        now += chance.exponential(1.0 / (rate * 1.4));
        if now > DAYS * 24.0 * HOUR {
            break;
        }
        let day = 1.0 + 0.4 * (std::f64::consts::TAU * now / (24.0 * HOUR)).sin();
        if chance.unit() > day / 1.4 {
            continue;
        }
        let mut pick = chance.unit();
        let size = sizes.iter().find(|(_, share)| {
            pick -= share;
            pick < 0.0
        });
        let size = size.map_or(8, |size| size.0);
        let mut pick = chance.unit();
        let kind = kinds.iter().find(|(_, share)| {
            pick -= share;
            pick < 0.0
        });
        let life = chance.exponential(kind.map_or(1200.0, |kind| kind.0));
        number += 1;
        events.push((now, format!("create,v{number},{size},{size},{now:.3}")));
        let end = now + life;
        events.push((end, format!("delete,v{number},{size},{size},{end:.3}")));
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = "event,vm,cpu,mem_gb,time_s\n".to_owned();
    for (at, line) in &events {
        if *at <= DAYS * 24.0 * HOUR {
            writeln!(text, "{line}").unwrap();
        }
    }
    Trace::parse(text.as_bytes(), Path::new("busy"), ReadOptions::default()).unwrap()
}

fn run(trace: &Trace, seed: u64, engine: EngineConfig) -> ReplayReport {
    let options = OfflineOptions {
        hosts: (0..HOSTS).map(|host| format!("h{host}")).collect(),
        host_cpu: HOST_CPU,
        host_mem_gb: HOST_CPU * 2,
        engine,
        preemptible: PreemptibleShare::new(0.5, seed).unwrap(),
        grace: Seconds(30),
        sample_every: None,
        short_seconds: HOUR,
    };
    let clock = || Duration::ZERO;
    replay(trace, &options, None, &clock, &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap()
}

fn plain() -> EngineConfig {
    EngineConfig {
        policy: RankingPolicy::Tiered,
        ..EngineConfig::default()
    }
}

/// A model of the lives whose ends are these; the others would have gone on.
fn model(lives: &LifeTotals, ends: VmEnd) -> LifeTables {
    let seen = lives.each.iter().map(|lived| Observation {
        hours: lived.seconds / HOUR,
        ended: lived.ended == ends,
    });
    let seen = Observations::new(seen, f64::INFINITY).unwrap();
    let fitted = fit(Family::Weibull, Estimator::MaximumLikelihood, &seen).unwrap();
    LifeTables::new(table(fitted.model.as_ref()).unwrap(), Vec::new())
}

fn with_the_weigher(engine: EngineConfig, interruptions: &LifeTables) -> EngineConfig {
    let mut engine = EngineConfig {
        interruptions: Some(interruptions.clone()),
        ..engine
    };
    engine
        .weighers
        .push(WeigherConfig::named("interruption_risk"));
    engine
}

fn with_the_module(engine: EngineConfig, lifetimes: &LifeTables) -> EngineConfig {
    EngineConfig {
        cost_module: "remaining_lifetime".to_owned(),
        lifetimes: Some(lifetimes.clone()),
        ..engine
    }
}

/// Added up over several seeds.
#[derive(Debug, Default)]
struct Sum {
    short: u64,
    interrupted: u64,
    lost: f64,
    refused: u64,
}

fn sum(seeds: std::ops::Range<u64>, load: f64, engine: &EngineConfig) -> Sum {
    let mut sum = Sum::default();
    for seed in seeds {
        let report = run(&busy(seed, load), seed, engine.clone());
        let lives = report.lives.unwrap();
        println!(
            "seed {seed}, load {load}, {}: short work {} of {} interrupted ({:.2} %), long {} of {}, lost {:.0} VM-hours, {:.0} CPU-hours, refused {}",
            engine.cost_module,
            lives.short_interrupted,
            lives.short,
            100.0 * lives.short_share(),
            lives.long_interrupted,
            lives.long,
            lives.lost_hours,
            lives.lost_cpu_hours,
            report.refused
        );
        sum.short += lives.short;
        sum.interrupted += lives.short_interrupted;
        sum.lost += lives.lost_cpu_hours;
        sum.refused += report.refused;
    }
    println!("{sum:?}\n");
    sum
}

#[test]
fn with_the_weigher_a_third_less_of_the_short_work_is_interrupted_and_no_request_is_refused_for_it()
{
    let learned = run(&busy(1, 1.0), 1, plain()).lives.unwrap();
    let interruptions = model(&learned, VmEnd::Preempted);
    for load in [1.1, 1.3] {
        let without = sum(11..17, load, &plain());
        let with = sum(11..17, load, &with_the_weigher(plain(), &interruptions));
        assert!(with.interrupted * 3 < without.interrupted * 2, "{load}");
        assert!(with.refused <= without.refused, "{load}");
    }
}

#[test]
fn by_remaining_lifetime_less_life_is_lost_than_by_the_default() {
    let learned = run(&busy(1, 1.0), 1, plain()).lives.unwrap();
    let lifetimes = model(&learned, VmEnd::Stopped);
    for load in [1.1, 1.3] {
        let without = sum(11..17, load, &plain());
        let with = sum(11..17, load, &with_the_module(plain(), &lifetimes));
        assert!(with.lost < 0.75 * without.lost, "{load}");
    }
}

#[test]
fn both_together_lose_less_life_and_interrupt_less_short_work_than_the_cost_module_alone() {
    let learned = run(&busy(1, 1.0), 1, plain()).lives.unwrap();
    let lifetimes = model(&learned, VmEnd::Stopped);
    let module = with_the_module(plain(), &lifetimes);
    let interruptions = model(
        &run(&busy(1, 1.0), 1, module.clone()).lives.unwrap(),
        VmEnd::Preempted,
    );
    let alone = sum(11..17, 1.1, &module);
    let both = sum(11..17, 1.1, &with_the_weigher(module, &interruptions));
    assert!(both.interrupted < alone.interrupted);
    assert!(both.lost < 1.05 * alone.lost);
}
