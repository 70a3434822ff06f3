//! The paper's jobs and instance types, and random bags.

#![allow(dead_code)] // Each test uses some of it.

use ebbtide_bag::{Bag, BagError, Checkpoints, InstanceType, Rules, Task};
use ebbtide_model::Money;
use proptest::prelude::*;
use serde_json::Value;

pub const JOBS: [&str; 4] = ["J207", "J402", "J819", "J595"];

pub fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/000_bot.json")).unwrap()
}

pub fn money(value: &Value) -> Money {
    value.to_string().parse().unwrap()
}

fn megabytes(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1024.0).ceil() as u64
}

pub fn table_vi() -> Vec<InstanceType> {
    let vectors = vectors();
    let types = vectors["table_VI"].as_array().unwrap().iter();
    types
        .map(|t| InstanceType {
            name: t["type"].as_str().unwrap().to_owned(),
            vcpus: t["vcpus"].as_u64().unwrap() as u32,
            memory_mb: megabytes(&t["mem_gb"]),
            on_demand: Some(money(&t["ondemand_usd_h"])),
            preemptible: Some(money(&t["spot_usd_h"])),
            slowdown: t["slowdown"].as_f64().unwrap(),
        })
        .collect()
}

/// A job of Table V, with the vectors' list of tasks and the paper's rules.
pub fn job(name: &str) -> Bag {
    let vectors = vectors();
    let job = &vectors["synthetic"][name];
    let tasks = job["synthetic_seconds"].as_array().unwrap().iter();
    let tasks = tasks
        .enumerate()
        .map(|(at, seconds)| Task {
            name: format!("{name}-{at}"),
            seconds: seconds.as_u64().unwrap(),
            memory_mb: megabytes(&job["mem_gb"]),
            checkpoints: None,
        })
        .collect();
    let rules = Rules {
        deadline: job["deadline_h"].as_u64().unwrap() * 3600,
        ..Rules::default()
    };
    Bag::new(tasks, table_vi(), rules).unwrap()
}

fn a_type() -> impl Strategy<Value = (u32, u64, u64, u64, f64)> {
    (1u32..6, 4u64..40, 1u64..400, 5u64..60, 0.2f64..2.0)
}

/// Bags that can be done in time: up to so many tasks with deadlines from the smallest possible one
/// to five times that.
pub fn bags(most: usize) -> impl Strategy<Value = Bag> {
    let tasks = prop::collection::vec(
        (1u64..20_000, 0u64..4, prop::option::of(1u64..4000)),
        1..=most,
    );
    let types = prop::collection::vec(a_type(), 1..4);
    (
        tasks,
        types,
        0u64..200,
        1.0f64..5.0,
        0.1f64..1.0,
        prop::sample::select(vec![1u64, 60, 3600]),
    )
        .prop_map(|(tasks, types, boot, slack, share, slot)| {
            let tasks: Vec<Task> = tasks
                .into_iter()
                .enumerate()
                .map(|(at, (seconds, memory, interval))| Task {
                    name: format!("t{at}"),
                    seconds,
                    memory_mb: memory,
                    checkpoints: interval.map(|interval| Checkpoints {
                        interval,
                        cost: interval / 50,
                    }),
                })
                .collect();
            let types: Vec<InstanceType> = types
                .into_iter()
                .enumerate()
                .map(
                    |(at, (vcpus, memory_mb, price, percent, slowdown))| InstanceType {
                        name: format!("v{at}"),
                        vcpus,
                        memory_mb,
                        on_demand: Some(Money::from_micros(price * 1000)),
                        preemptible: Some(Money::from_micros(price * percent * 10)),
                        slowdown,
                    },
                )
                .collect();
            let rules = Rules {
                deadline: 1,
                slot,
                boot,
                share,
                ..Rules::default()
            };
            let least = match Bag::new(tasks.clone(), types.clone(), rules) {
                Err(BagError::Infeasible { seconds, .. }) => seconds,
                Ok(_) => 1,
                Err(other) => panic!("{other}"),
            };
            let deadline = (least as f64 * slack) as u64;
            Bag::new(tasks, types, Rules { deadline, ..rules }).unwrap()
        })
}
