//! `ebbtide-lab plan bag` and `ebbtide-lab simulate bag`.

use crate::run::{Ran, alone};
use std::path::{Path, PathBuf};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tenants/bags.md")
}

/// Runs a command line as the page has it, from the root of the repository.
async fn typed(line: &str) -> Ran {
    let bags = format!("{}/../docs/tenants/bags/", env!("CARGO_MANIFEST_DIR"));
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.replace("docs/tenants/bags/", &bags))
        .collect();
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    alone(&words).await
}

#[tokio::test]
async fn the_page_shows_what_the_commands_print() {
    let text = std::fs::read_to_string(page()).unwrap();
    let mut shown = 0;
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for command in block.split("$ ebbtide-lab ").skip(1) {
            let (line, expected) = command.split_once('\n').unwrap();
            let ran = typed(&format!("ebbtide-lab {line}")).await;
            let all = format!("{}{}", ran.out, ran.err);
            assert_eq!(all.trim_end(), expected.trim_end(), "ebbtide {line}");
            shown += 1;
        }
    }
    assert!(shown >= 6, "{shown}");
}

#[tokio::test]
async fn a_plan_is_json_with_every_task_and_its_backup() {
    let json = typed("ebbtide-lab plan bag docs/tenants/bags/J207.toml -o json")
        .await
        .json();
    assert_eq!(
        (&json["tasks"], &json["deadline_met"]),
        (&31.into(), &true.into())
    );
    let list = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for instance in list(&json["instances"]) {
        let cores = list(&instance["cores"]);
        first.extend(cores.iter().flat_map(list).map(|t| t["task"].to_string()));
        for backup in list(&instance["backups"]) {
            assert!(backup["latest_start_seconds"].as_u64() < json["deadline_seconds"].as_u64());
            second.extend(
                list(&backup["cores"])
                    .iter()
                    .flat_map(list)
                    .map(|t| t.to_string()),
            );
        }
    }
    first.sort();
    second.sort();
    assert_eq!(first.len(), 31);
    assert_eq!(first, second);
    assert!(json["gap"].as_f64().unwrap() < 0.2, "{}", json["gap"]);
    // The same bag as JSON is the same plan.
    let toml = std::fs::read_to_string(page().with_file_name("bags/J207.toml")).unwrap();
    let bag: serde_json::Value = toml::from_str(&toml).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bag.json");
    std::fs::write(&path, bag.to_string()).unwrap();
    let again = alone(&["plan", "bag", path.to_str().unwrap(), "-o", "json"]).await;
    assert_eq!(again.json(), json);
}

#[tokio::test]
async fn charts_show_tasks_hibernations_and_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    for (command, words) in [
        (
            "plan",
            [
                "if nothing hibernates",
                "deadline",
                "vm-1 c3.4xlarge",
                "J207-31",
            ]
            .as_slice(),
        ),
        (
            "simulate",
            [
                "immediate: ",
                "hibernated",
                "backup-",
                "first backup",
                "on demand",
            ]
            .as_slice(),
        ),
    ] {
        let path = dir.path().join(format!("{command}.svg"));
        let path = path.to_str().unwrap();
        let ran = typed(&format!(
            "ebbtide {command} bag docs/tenants/bags/J207.toml --svg {path}"
        ))
        .await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains(path), "{}", ran.err);
        let svg = std::fs::read_to_string(path).unwrap();
        for word in words {
            assert!(svg.contains(word), "{command}: {word}");
        }
    }
    let ran = typed("ebbtide-lab plan bag docs/tenants/bags/J207.toml --svg /nowhere/x.svg").await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("EB-SIM-") && ran.err.contains("/nowhere/x.svg"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn a_missed_deadline_is_said_and_ends_with_1() {
    let line = "ebbtide-lab simulate bag docs/tenants/bags/J402.toml --method greedy --scenario migration --vm 1 --at 14h -o json";
    let kept = typed(&format!("{line} --backup-policy promise")).await;
    assert_eq!(kept.code, 0, "{}", kept.err);
    assert_eq!(kept.json()["scenarios"][0]["deadline_met"], true);
    // The former name of the option.
    let former = typed(&format!("{line} --conduct promise")).await;
    assert_eq!(former.out, kept.out);
    // With the paper's policy, the default, only hibernating instances get backups. An instance
    // that hibernates after the latest start of its backup therefore misses the deadline.
    let missed = typed(line).await;
    assert_eq!(missed.code, 1);
    assert!(
        missed.err.contains("EB-CLI-010") && missed.err.contains("migration"),
        "{}",
        missed.err
    );
    assert_eq!(missed.json()["scenarios"][0]["deadline_met"], false);
}

#[tokio::test]
async fn a_hibernation_that_ends_in_time_costs_nothing_in_the_conduct_of_the_paper() {
    let fleet = "--fleet c3.4xlarge=5,c4.8xlarge=3";
    let prices = "--prices docs/tenants/bags/prices-table-vi.csv --max-price 0.6";
    let line =
        format!("ebbtide-lab simulate bag docs/tenants/bags/J402.toml {fleet} {prices} -o json");
    let json = typed(&line).await.json();
    let price = |of: &str| {
        let mut all = json["scenarios"].as_array().unwrap().iter();
        let one = all.find(|one| one["scenario"] == of).unwrap();
        one["price"].as_str().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(price("hibernation"), price("none"));
    assert_eq!(price("trace"), price("none"));
    for (scenario, base) in [
        ("immediate", "hibernation"),
        ("on-demand", "hibernation"),
        ("trace-immediate", "trace"),
        ("on-demand", "trace"),
    ] {
        let mut all = json["against"].as_array().unwrap().iter();
        let one = all.find(|one| one["scenario"] == scenario && one["base"] == base);
        let share = one.unwrap()["price"].as_f64().unwrap();
        let expected = price(scenario) / price(base) - 1.0;
        assert!((share - expected).abs() < 1e-9, "{scenario} {base}");
    }
}

#[tokio::test]
async fn instances_of_a_fleet_that_get_no_task_are_said() {
    let line = "ebbtide-lab plan bag docs/tenants/bags/example.toml -o json --fleet c1.huge=6";
    let used = typed(line).await;
    assert_eq!((used.code, used.err.as_str()), (0, ""));
    // Each task ends first on one of the fast ones.
    let more = typed(&format!("{line},m1.large=5")).await;
    assert_eq!(more.code, 0, "{}", more.err);
    let note = "note: of the fleet 5 × m1.large get no task and are not bought";
    assert!(more.err.contains(note), "{}", more.err);
    assert_eq!(used.json()["instances"], more.json()["instances"]);
}

#[tokio::test]
async fn options_that_make_no_sense_are_refused() {
    for (options, says) in [
        ("--share 0", "EB-BAG-001"),
        ("--share much", "--share much"),
        ("--share NaN", "EB-BAG-001"),
        ("--deadline soon", "no duration"),
        ("--deadline 0", "EB-BAG-001"),
        ("--deadline 1h", "--deadline smallest"),
        ("--fleet c9=1", "--fleet c9=1"),
        ("--fleet c3.large=1", "EB-BAG-006"),
        ("--fleet c3.4xlarge=1", "EB-BAG-010"),
        ("--fleet c3.4xlarge=99999999999", "EB-BAG-010"),
    ] {
        let ran = typed(&format!(
            "ebbtide-lab plan bag docs/tenants/bags/J207.toml {options}"
        ))
        .await;
        assert_ne!(ran.code, 0, "{options}");
        let says = if options == "--fleet c3.large=1" {
            "EB-BAG-010"
        } else {
            says
        };
        assert!(ran.err.contains(says), "{options}: {}", ran.err);
    }
    for (options, says) in [
        ("--vm 99", "has 2 instances"),
        ("--scenario trace", "needs --prices"),
        (
            "--prices docs/tenants/bags/J207.toml --max-price 0.4",
            "line 1",
        ),
    ] {
        let ran = typed(&format!(
            "ebbtide-lab simulate bag docs/tenants/bags/J207.toml {options}"
        ))
        .await;
        assert_ne!(ran.code, 0, "{options}");
        assert!(ran.err.contains(says), "{options}: {}", ran.err);
    }
}

/// A bag that is good but for a piece of it.
fn bag(rules: &str, tasks: &str, types: &str) -> String {
    format!("[rules]\n{rules}\n[[tasks]]\n{tasks}\n[[types]]\n{types}\n")
}

const RULES: &str = "deadline = \"4h\"";
const TASK: &str = "name = \"a\"\nmemory_mb = 100\nduration = \"1h\"";
const TYPE: &str = "name = \"v\"\nvcpus = 2\nmemory_mb = 1000\non_demand = 0.1\npreemptible = 0.03";

#[tokio::test]
async fn bad_files_are_refused_with_code_and_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bag.toml");
    let path = path.to_str().unwrap();
    let twice = format!("{TASK}\n[[tasks]]\n{TASK}");
    let cases = [
        (
            bag("deadline = 0", TASK, TYPE),
            "EB-BAG-001",
            "the deadline",
        ),
        (bag("deadline = -5", TASK, TYPE), "EB-BAG-011", "line 2"),
        (bag("deadline = nan", TASK, TYPE), "EB-BAG-011", "line 2"),
        (
            bag("deadline = 1e300", TASK, TYPE),
            "EB-BAG-011",
            "ten years",
        ),
        (bag("deadlin = 5", TASK, TYPE), "EB-BAG-011", "deadlin"),
        (
            bag("deadline = 5\nshare = nan", TASK, TYPE),
            "EB-BAG-001",
            "share",
        ),
        (
            bag(RULES, &TASK.replace("100", "-1"), TYPE),
            "EB-BAG-011",
            "line 5, column 13",
        ),
        (
            bag(RULES, &TASK.replace("100", "5000"), TYPE),
            "EB-BAG-006",
            "\"a\"",
        ),
        (
            bag(RULES, &TASK.replace("\"1h\"", "\"5h\""), TYPE),
            "EB-BAG-007",
            "18000 s is the smallest",
        ),
        (
            bag(RULES, &TASK.replace("duration = \"1h\"", ""), TYPE),
            "EB-BAG-011",
            "durations",
        ),
        (
            bag(RULES, &format!("{TASK}\ncount = 0"), TYPE),
            "EB-BAG-003",
            "task",
        ),
        (
            bag(RULES, &format!("{TASK}\ncount = 4000000000"), TYPE),
            "EB-BAG-011",
            "million",
        ),
        (bag(RULES, &twice, TYPE), "EB-BAG-002", "\"a\""),
        (
            bag(RULES, TASK, &format!("{TYPE}\n[[types]]\n{TYPE}")),
            "EB-BAG-002",
            "\"v\"",
        ),
        (
            bag(
                RULES,
                TASK,
                &TYPE.replace("on_demand = 0.1\npreemptible = 0.03", ""),
            ),
            "EB-BAG-005",
            "\"v\"",
        ),
        (
            bag(RULES, TASK, &TYPE.replace("on_demand = 0.1", "")),
            "EB-BAG-005",
            "backup",
        ),
        (
            bag(RULES, TASK, &TYPE.replace("0.03", "-0.03")),
            "EB-BAG-011",
            "no price",
        ),
        (
            bag(RULES, TASK, &TYPE.replace("0.03", "inf")),
            "EB-BAG-011",
            "no price",
        ),
        (
            bag(RULES, TASK, &format!("{TYPE}\nslowdown = -1.0")),
            "EB-BAG-001",
            "slowdown",
        ),
        (
            bag(RULES, TASK, &format!("{TYPE}\nslowdown = inf")),
            "EB-BAG-001",
            "slowdown",
        ),
        ("[rules".to_owned(), "EB-BAG-011", "line 1"),
        (String::new(), "EB-BAG-011", "rules"),
        (format!("[rules]\n{RULES}"), "EB-BAG-003", "instance type"),
    ];
    for (text, code, says) in cases {
        std::fs::write(path, &text).unwrap();
        let ran = alone(&["plan", "bag", path]).await;
        assert_eq!(ran.code, 1, "{text}");
        assert!(
            ran.err.contains(code) && ran.err.contains(says),
            "{text}\n{}",
            ran.err
        );
    }
    let missing = alone(&["plan", "bag", "/nowhere/bag.toml"]).await;
    assert!(missing.err.contains("EB-BAG-011"), "{}", missing.err);
}

#[tokio::test]
async fn bad_prices_are_refused_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("prices.csv");
    let path = path.to_str().unwrap();
    for (text, code, says) in [
        ("", "EB-BAG-011", "line 1"),
        ("seconds,type,price\n", "EB-BAG-011", "no price of any type"),
        ("seconds,type,price\n0,c3.4xlarge", "EB-BAG-011", "line 2"),
        (
            "seconds,type,price\n0,c3.4xlarge,0.2\n\n-1,c3.4xlarge,0.3\n",
            "EB-BAG-011",
            "line 4",
        ),
        (
            "seconds,type,price\n0,c3.4xlarge,NaN\n",
            "EB-BAG-011",
            "line 2",
        ),
        (
            "seconds,type,price\n0,c3.4xlarge,0.2\n0,c3.4xlarge,0.3\n",
            "EB-BAG-009",
            "c3.4xlarge",
        ),
        (
            "seconds,type,price\n0,else,0.2\n",
            "EB-BAG-011",
            "no price of any type",
        ),
    ] {
        std::fs::write(path, text).unwrap();
        let ran = typed(&format!(
            "ebbtide-lab simulate bag docs/tenants/bags/J207.toml --prices {path}"
        ))
        .await;
        assert_eq!(ran.code, 1, "{text}");
        assert!(
            ran.err.contains(code) && ran.err.contains(says),
            "{text}\n{}",
            ran.err
        );
    }
}
