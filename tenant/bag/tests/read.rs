//! Bags as people write them.

use ebbtide_bag::read::{FileOverrides, Format, bag};
use ebbtide_bag::{Bag, BagError, Checkpoints};

const TYPES: &str = r#"
types = [{ name = "v", vcpus = 2, memory_mb = 8000, on_demand = 0.235, preemptible = "0.07" }]
"#;

fn read(rules: &str, tasks: &str) -> Result<Bag, BagError> {
    let text = format!("rules = {{ {rules} }}\ntasks = [{{ {tasks} }}]\n{TYPES}");
    bag(&text, Format::Toml, FileOverrides::default())
}

#[test]
fn several_tasks_of_one_entry_are_numbered() {
    let tasks = "name = \"a\", memory_mb = 1, duration = \"30m\", count = 3";
    let found = read("deadline = \"1h\"", tasks).unwrap();
    let names: Vec<&str> = found
        .tasks()
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    assert_eq!(names, ["a-1", "a-2", "a-3"]);
    let tasks = "name = \"a\", memory_mb = 1, durations = [60, \"2m\", \"0.05h\"]";
    let found = read("deadline = \"1h\"", tasks).unwrap();
    let seconds: Vec<u64> = found.tasks().iter().map(|task| task.seconds).collect();
    assert_eq!(seconds, [60, 120, 180]);
}

#[test]
fn prices_are_exact_and_what_is_not_said_is_the_papers() {
    let found = read(
        "deadline = \"1h\"",
        "name = \"a\", memory_mb = 1, duration = 60",
    )
    .unwrap();
    let ty = &found.types()[0];
    assert_eq!(ty.on_demand.unwrap().micros(), 235_000);
    assert_eq!(ty.preemptible.unwrap().micros(), 70_000);
    assert_eq!(ty.slowdown, 1.0);
    let rules = found.rules();
    assert_eq!(
        (rules.slot, rules.boot, rules.margin, rules.share),
        (3600, 0, 0, 0.5)
    );
}

#[test]
fn how_often_to_save_a_state_follows_from_how_long_instances_live() {
    let task = |checkpoints: &str| {
        format!(
            "name = \"a\", memory_mb = 1, duration = \"10h\", checkpoints = {{ {checkpoints} }}"
        )
    };
    // sqrt(2 · 1 min · 8 h) = 31 min.
    let found = read(
        "deadline = \"30h\", lifetime = \"8h\"",
        &task("takes = \"1m\""),
    )
    .unwrap();
    let seconds = (2.0 * 60.0 * 8.0 * 3600.0_f64).sqrt().round() as u64;
    let expected = Checkpoints {
        interval: seconds,
        cost: 60,
    };
    assert_eq!(found.tasks()[0].checkpoints, Some(expected));
    // What is written counts.
    let written = read(
        "deadline = \"30h\", lifetime = \"8h\"",
        &task("takes = \"1m\", every = \"1h\""),
    );
    assert_eq!(
        written.unwrap().tasks()[0].checkpoints.unwrap().interval,
        3600
    );
    for (rules, checkpoints, says) in [
        ("deadline = \"30h\"", "takes = \"1m\"", "lifetime"),
        (
            "deadline = \"30h\", lifetime = \"8h\"",
            "takes = 0",
            "above zero",
        ),
        (
            "deadline = \"30h\", lifetime = 0",
            "takes = \"1m\"",
            "above zero",
        ),
    ] {
        let error = read(rules, &task(checkpoints)).unwrap_err();
        assert_eq!(error.code(), "EB-BAG-011", "{error}");
        assert!(
            error.to_string().contains(says) && error.to_string().contains("\"a\""),
            "{error}"
        );
    }
}

#[test]
fn the_smallest_deadline_replaces_that_of_the_text() {
    let text = format!(
        "rules = {{ deadline = 1, boot = 30, margin = 10 }}\ntasks = [{{ name = \"a\", memory_mb = 1, duration = 600 }}]\n{TYPES}"
    );
    let instead = FileOverrides {
        smallest: true,
        ..FileOverrides::default()
    };
    let found = bag(&text, Format::Toml, instead).unwrap();
    assert_eq!(found.rules().deadline, 640);
    let told = bag(&text, Format::Toml, FileOverrides::default()).unwrap_err();
    assert_eq!(
        told.code(),
        "EB-BAG-001",
        "the margin is longer than the deadline: {told}"
    );
}
