//! Checkpoint plans at one-minute steps: the goal is under one second for 24 hours.

#![allow(clippy::unwrap_used)] // A benchmark that cannot plan has nothing to measure.

use criterion::{Criterion, criterion_group, criterion_main};
use ebbtide_lifetime::distributions::Bathtub;
use ebbtide_lifetime::plan::checkpoint::{CheckpointOptions, EquationReading, Planner};

fn plans(criterion: &mut Criterion) {
    let model = Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap();
    let mut group = criterion.benchmark_group("checkpoint-plan");
    group.sample_size(10);
    // The paper's reading has no plan for a job that does not fit into a life.
    for (reading, hours) in [
        (EquationReading::Corrected, 5.0),
        (EquationReading::Corrected, 24.0),
        (EquationReading::Paper, 22.0),
    ] {
        let options = CheckpointOptions {
            reading,
            ..CheckpointOptions::default()
        };
        group.bench_function(
            format!("{reading:?} {hours}h at one-minute steps"),
            |bencher| {
                bencher.iter(|| {
                    Planner::new(&model, hours, 0.0, &options)
                        .unwrap()
                        .schedule()
                });
            },
        );
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
