//! The batch service in simulation, with the values that docs/tenants/papers.md quotes.

use ebbtide_lifetime::batch::{BatchService, ReuseRule};
use ebbtide_lifetime::distributions::{Bathtub, Exponential, Uniform};

const MINUTE: f64 = 1.0 / 60.0;

/// The paper's experiment: 100 jobs of 14 minutes on 64 CPUs each, on 32 instances of 32 CPUs.
fn nanoconfinement() -> BatchService {
    BatchService {
        instances: 32,
        per_job: 2,
        jobs: 100,
        length: 14.0 * MINUTE,
        bags: 1,
        boot: 0.0,
        spare: 1.0,
        reuse: ReuseRule::ByModel,
    }
}

/// The refit of n1-highcpu-32.
fn large() -> Bathtub {
    Bathtub::new(0.6904, 0.7613, 1.276, 25.67, 24.0).unwrap()
}

fn pooled() -> Bathtub {
    Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap()
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

#[test]
fn on_demand_a_bag_takes_whole_rounds_and_pays_only_for_work() {
    let service = nanoconfinement();
    let run = service.run_on_demand().unwrap();
    // 16 jobs at one time: seven rounds.
    assert_eq!(run.bags.len(), 1);
    assert!((run.bags[0].hours - 7.0 * 14.0 * MINUTE).abs() < 1e-9);
    assert!((run.paid - 200.0 * 14.0 * MINUTE).abs() < 1e-9);
    assert_eq!((run.bags[0].preemptions, run.launched), (0, 32));
    let booting = BatchService {
        boot: 2.0 * MINUTE,
        ..service
    };
    let later = booting.run_on_demand().unwrap();
    assert!((later.bags[0].hours - run.bags[0].hours - 2.0 * MINUTE).abs() < 1e-9);
    assert!((later.paid - run.paid - 64.0 * MINUTE).abs() < 1e-9);
}

#[test]
fn on_demand_nothing_is_paid_between_bags_and_after_the_last_job() {
    let service = BatchService {
        bags: 3,
        length: 4.0,
        ..nanoconfinement()
    };
    let run = service.run_on_demand().unwrap();
    assert_eq!(run.bags.len(), 3);
    assert!((run.paid - 3.0 * 200.0 * 4.0).abs() < 1e-6, "{}", run.paid);
}

#[test]
fn every_instance_hour_is_work_a_failed_attempt_or_idle() {
    for (seed, model) in [(1, large()), (2, pooled()), (3, large())] {
        let service = BatchService {
            bags: 3,
            boot: MINUTE,
            ..nanoconfinement()
        };
        let run = service.run(&model, seed).unwrap();
        let work = 3.0 * 200.0 * 14.0 * MINUTE;
        let lost: f64 = run.bags.iter().map(|bag| bag.lost).sum();
        assert!(lost > 0.0 && run.paid > work + lost, "{run:?}");
        let preemptions: u32 = run.bags.iter().map(|bag| bag.preemptions).sum();
        assert!(run.launched <= 32 + preemptions, "{run:?}");
        assert_eq!(service.run(&model, seed).unwrap(), run);
    }
}

#[test]
fn figure_9_is_as_the_page_says() {
    // The list prices of n1-highcpu-32 in us-central1: 1.1344 and 0.24 dollars.
    let discount = 1.1344 / 0.24;
    assert_eq!(rounded(discount, 2), 4.73);
    // Length, jobs and bags; overhead, preemptions of a bag, increase by each in per cent; cost
    // ratio.
    for (length, jobs, bags, expected) in EXPECTED {
        let service = BatchService {
            length: length * MINUTE,
            jobs,
            bags,
            boot: MINUTE,
            ..nanoconfinement()
        };
        let seen = service.compare(&large(), 100, 1).unwrap();
        let figures = [
            rounded(100.0 * seen.overhead(), 1),
            rounded(seen.preemptions, 1),
            rounded(100.0 * seen.per_preemption, 2),
            rounded(seen.cost_ratio(discount), 2),
        ];
        assert_eq!(figures, expected, "{length} min, {jobs} jobs, {bags} bags");
        let counted: u32 = seen.rows.iter().map(|row| row.bags).sum();
        assert_eq!(counted, 100 * bags);
    }
}

const EXPECTED: [(f64, u32, u32, [f64; 4]); 5] = [
    (14.0, 100, 1, [18.8, 36.9, 0.52, 4.0]),
    (9.0, 100, 1, [14.9, 26.1, 0.58, 4.15]),
    (12.5, 100, 1, [17.7, 34.0, 0.53, 4.03]),
    (14.0, 1_000, 1, [3.7, 73.3, 0.05, 4.28]),
    (14.0, 100, 10, [1.7, 7.3, 0.42, 3.96]),
];

#[test]
fn the_model_saves_what_old_instances_would_lose() {
    let service = BatchService {
        instances: 8,
        per_job: 1,
        jobs: 30,
        length: 6.0,
        bags: 4,
        ..nanoconfinement()
    };
    let by_model = service.compare(&pooled(), 10, 1).unwrap();
    let always = BatchService {
        reuse: ReuseRule::Always,
        ..service
    };
    let always = always.compare(&pooled(), 10, 1).unwrap();
    assert!(by_model.overhead() * 3.0 < always.overhead());
    assert!(by_model.preemptions * 1.5 < always.preemptions);
    assert!(by_model.cost_ratio(4.0) > always.cost_ratio(4.0));
    assert_eq!(by_model.on_demand_hours, always.on_demand_hours);
}

#[test]
fn spares_are_paid_for_their_time_only() {
    // Nothing ends before 24 h, so the only difference is what stays after the last job.
    let model = Exponential::new(1e-9, 24.0).unwrap();
    let service = BatchService {
        length: 4.0,
        jobs: 16,
        ..nanoconfinement()
    };
    let run = service.run(&model, 1).unwrap();
    assert!((run.paid - 32.0 * 5.0).abs() < 1e-6, "{}", run.paid);
    let without = BatchService {
        spare: 0.0,
        ..service
    };
    let run = without.run(&model, 1).unwrap();
    assert!((run.paid - 32.0 * 4.0).abs() < 1e-6, "{}", run.paid);
}

#[test]
fn clusters_and_jobs_that_cannot_be_are_refused() {
    let service = nanoconfinement();
    for wrong in [
        BatchService { jobs: 0, ..service },
        BatchService { bags: 0, ..service },
        BatchService {
            per_job: 0,
            ..service
        },
        BatchService {
            per_job: 33,
            ..service
        },
        BatchService {
            length: 0.0,
            ..service
        },
        BatchService {
            boot: -1.0,
            ..service
        },
        BatchService {
            spare: f64::NAN,
            ..service
        },
        BatchService {
            instances: 2_000_000,
            ..service
        },
        BatchService {
            length: 24.0,
            ..service
        },
    ] {
        let error = wrong.run(&large(), 1).unwrap_err();
        assert_eq!(error.code(), "EB-LIFETIME-006", "{wrong:?}");
    }
    // Two instances, one of which always ends before the job does.
    let hopeless = BatchService {
        instances: 2,
        jobs: 1,
        length: 0.999_999,
        ..service
    };
    let error = hopeless.run(&Uniform::new(1.0).unwrap(), 1).unwrap_err();
    assert_eq!(error.code(), "EB-LIFETIME-006");
}
