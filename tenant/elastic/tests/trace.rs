//! Traces: what is read, and what is refused and how.

use ebbtide_elastic::{
    Cluster, Elastic, ElasticError, ElasticPolicy, NoWatch, Setup, Trace, TraceJob, simulate,
};
use ebbtide_lifetime::distributions::Uniform;
use proptest::prelude::*;
use std::sync::Arc;

fn read(text: &str) -> Result<Trace, ElasticError> {
    Trace::read(text.as_bytes())
}

#[test]
fn a_job_is_a_line_of_arrival_number_mean_and_durations() {
    let trace = read("7.527 2 15.5  14.25 16.75\n\n9 1 3e-6 0.000003\r\n").unwrap();
    let jobs = [
        TraceJob {
            arrival_us: 7_527_000,
            estimate_us: 15_500_000,
            tasks_us: vec![14_250_000, 16_750_000],
        },
        TraceJob {
            arrival_us: 9_000_000,
            estimate_us: 3,
            tasks_us: vec![3],
        },
    ];
    assert_eq!(trace.jobs(), jobs);
    assert_eq!((trace.tasks(), trace.span_us()), (3, 1_473_000));
    assert!(!trace.ends_without_newline());
    assert!(read("1 1 1 1").unwrap().ends_without_newline());
}

#[test]
fn bad_lines_are_refused_with_their_number_and_what_is_wrong() {
    for (line, problem) in [
        ("5", "the number of tasks is missing"),
        ("5 2", "the mean duration is missing"),
        (
            "5 2 1",
            "there are 0 durations for 2 tasks; was the file cut off?",
        ),
        (
            "5 2 1 1",
            "there are 1 durations for 2 tasks; was the file cut off?",
        ),
        ("5 2 1 1 1 1", "more durations than the 2 tasks"),
        ("5 0 1", "the number of tasks is \"0\""),
        ("5 -1 1", "the number of tasks is \"-1\""),
        ("5 1.5 1 1", "the number of tasks is \"1.5\""),
        ("NaN 1 1 1", "the arrival is \"NaN\""),
        ("inf 1 1 1", "the arrival is \"inf\""),
        ("-1 1 1 1", "the arrival is \"-1\""),
        ("5 1 nan 1", "the mean duration is \"nan\""),
        ("5 1 1 NaN", "a duration is \"NaN\""),
        ("5 1 1 -0.5", "a duration is \"-0.5\""),
        ("5 1 1 1e12", "a duration is \"1e12\""),
        ("job 1 1 1", "the arrival is \"job\""),
        ("5 99999999999999999999 1 1", "the number of tasks is"),
    ] {
        let error = read(&format!("1 1 1 1\n{line}\n")).unwrap_err();
        assert_eq!(error.code(), "EB-ELASTIC-002", "{line}");
        let text = error.to_string();
        assert!(
            text.starts_with("line 2: ") && text.contains(problem),
            "{text}"
        );
    }
    let error = Trace::read(b"1 1 1 1\n\xff\xfe 1 1 1\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2: this is no text; is it another format?"
    );
}

#[test]
fn more_work_than_can_be_counted_is_refused_with_its_line() {
    // Tasks of nearly ten years by the scheduler's estimate: their sum is above 64 bits of
    // microseconds.
    let line = format!("0 70000 300000000 {}\n", "1 ".repeat(70_000));
    let error = read(&format!("0 1 1 1\n{line}")).unwrap_err();
    assert_eq!(error.code(), "EB-ELASTIC-002", "{error}");
    let text = error.to_string();
    assert!(
        text.contains("line 2") && text.contains("in seconds?"),
        "{text}"
    );
}

#[test]
fn messages_are_short_however_long_the_line_is() {
    let error = read(&format!("{} 1 1 1\n", "9".repeat(100_000) + "x")).unwrap_err();
    assert!(error.to_string().len() < 200);
}

#[test]
fn jobs_have_to_come_in_the_order_of_their_arrival() {
    let error = read("5.5 1 1 1\n5.25 1 1 1\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2: this job arrives at 5.25 s, the one before it at 5.5 s"
    );
    assert_eq!(error.code(), "EB-ELASTIC-004");
    assert!(read("5 1 1 1\n5 1 1 1\n").is_ok());
}

#[test]
fn a_trace_without_jobs_is_refused() {
    for text in ["", "\n", "  \n\n"] {
        let error = read(text).unwrap_err();
        assert_eq!(
            (error.code(), error),
            ("EB-ELASTIC-003", ElasticError::Empty)
        );
    }
    assert_eq!(Trace::new(vec![]), Err(ElasticError::Empty));
    for tasks_us in [vec![], vec![u64::MAX]] {
        let job = TraceJob {
            arrival_us: 0,
            estimate_us: 1,
            tasks_us,
        };
        let error = Trace::new(vec![job]).unwrap_err();
        assert_eq!(error.code(), "EB-ELASTIC-002");
    }
}

#[test]
fn clusters_that_cannot_be_are_refused() {
    let trace = read("1 1 1 1\n").unwrap();
    let usual = Cluster::default;
    let wrong = [
        (
            Cluster {
                servers: 0,
                ..usual()
            },
            "the number of servers is 0",
        ),
        (
            Cluster {
                servers: 2_000_000,
                ..usual()
            },
            "the number of servers is 2000000",
        ),
        (
            Cluster {
                short_only: 0,
                ..usual()
            },
            "for short jobs only is 0",
        ),
        (
            Cluster {
                short_only: 4_001,
                ..usual()
            },
            "for short jobs only is 4001",
        ),
        (
            Cluster {
                probe_ratio: 0,
                ..usual()
            },
            "probes for a task is 0",
        ),
        (
            Cluster {
                probe_ratio: 101,
                ..usual()
            },
            "probes for a task is 101",
        ),
        (
            Cluster {
                min_probes: 10_001,
                ..usual()
            },
            "least number of probes is 10001",
        ),
        (
            Cluster {
                cutoff_us: u64::MAX,
                ..usual()
            },
            "the cutoff",
        ),
        (
            Cluster {
                network_us: u64::MAX,
                ..usual()
            },
            "a message takes",
        ),
    ];
    for (cluster, problem) in wrong {
        let setup = Setup {
            cluster,
            elastic: None,
            seed: 1,
        };
        let error = simulate(&trace, &setup, &mut NoWatch).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        assert_eq!(error.code(), "EB-ELASTIC-001");
    }
}

#[test]
fn preemptible_servers_that_cannot_be_are_refused() {
    let trace = read("1 1 1 1\n").unwrap();
    let elastic = |short_only| Elastic::new(ElasticPolicy::new(short_only, 3.0, 0.5).unwrap());
    let wrong = [
        (elastic(79), "N of the policy is 79"),
        (
            Elastic {
                provisioning_us: u64::MAX,
                ..elastic(80)
            },
            "the provisioning delay",
        ),
        (
            Elastic {
                lifetime: Some(Arc::new(Uniform::new(24.0).unwrap())),
                provisioning_us: 999_999,
                ..elastic(80)
            },
            "the provisioning delay is 999999 µs; it has to be a second or more",
        ),
        (
            Elastic {
                life_scale: 0.0,
                ..elastic(80)
            },
            "the scale of lives is 0",
        ),
        (
            Elastic {
                life_scale: f64::NAN,
                ..elastic(80)
            },
            "the scale of lives is NaN",
        ),
    ];
    for (elastic, problem) in wrong {
        let setup = Setup {
            cluster: Cluster::default(),
            elastic: Some(elastic),
            seed: 1,
        };
        let error = simulate(&trace, &setup, &mut NoWatch).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

proptest! {
    #[test]
    fn a_trace_that_was_written_is_read_as_it_was(
        jobs in prop::collection::vec((0u64..1_000_000_000, 0u64..100_000_000_000, prop::collection::vec(0u64..100_000_000_000, 1..5)), 1..10),
    ) {
        let mut jobs: Vec<TraceJob> = jobs
            .into_iter()
            .map(|(arrival_us, estimate_us, tasks_us)| TraceJob { arrival_us, estimate_us, tasks_us })
            .collect();
        jobs.sort_by_key(|job| job.arrival_us);
        let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let lines = jobs.iter().map(|job| {
            let tasks: Vec<String> = job.tasks_us.iter().map(|us| seconds(*us)).collect();
            format!("{} {} {} {}\n", seconds(job.arrival_us), tasks.len(), seconds(job.estimate_us), tasks.join(" "))
        });
        let text: String = lines.collect();
        prop_assert_eq!(read(&text).unwrap(), Trace::new(jobs).unwrap());
        // Cut at any byte it is refused, or the last line is seen to have no end.
        for end in (1..text.len()).step_by(7) {
            if text.as_bytes()[end - 1] == b'\n' {
                continue;
            }
            match read(&text[..end]) {
                Ok(trace) => prop_assert!(trace.ends_without_newline()),
                Err(error) => prop_assert!(matches!(error, ElasticError::Line { .. } | ElasticError::Unsorted { .. }), "{}", error),
            }
        }
    }
}
