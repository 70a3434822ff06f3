//! `ebbtide-manage config`: keys explained, files judged.

use crate::run::alone;
use std::io::Write;

/// A file that only its owner reads.
fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Runs `config check` and takes the file's own name out of the answer.
async fn check(text: &str, more: &[&str]) -> crate::run::Ran {
    let file = file(text);
    let path = file.path().to_str().unwrap();
    let args: Vec<&str> = ["config", "check", path]
        .iter()
        .chain(more)
        .copied()
        .collect();
    let mut ran = alone(&args).await;
    for text in [&mut ran.out, &mut ran.err] {
        *text = text.replace(path, "FILE");
    }
    ran
}

const MISREAD: &str = "\
[engine]
policy = \"nova\"
polciy = 3
cost_module = \"revenue\"
weighers = [
  { name = \"ram\", multiplier = -1.0 },
  { name = \"io_ops\", multiplier = 1.0 },
  { name = \"cpu\", multiplier = 40 },
]
[region]
max_attempts = 0
";

/// `devstack/lib/openstack/config.sh` with its variables filled in, and two slips.
const NOVA: &str = "\
[DEFAULT]
debug = true
my_ip = 127.0.0.1
transport_url = rabbit://nova:nova@127.0.0.1:5672/
report_interval = 3
osapi_compute_workers = 2
[api_database]
connection = mysql+pymysql://stack:stack@127.0.0.1:3306/nova_api?charset=utf8
[database]
connection = mysql+pymysql://stack:stack@127.0.0.1:3306/nova_cell1?charset=utf8
[scheduler]
workers = 1
[placement]
auth_type = password
auth_url = http://127.0.0.1:5000/v3
project_domain_name = Default
user_domain_name = Default
project_name = service
username = nova
password = nova
region_name = RegionOne
[quota]
instances = -1
[filter_scheduler]
io_ops_weight_multiplier = 1.0
ram_weight_multipler = 2.0
[keystone_authtoken]
username = nova
password = nova
[ebbtide]
connection = mysql+pymysql://stack:stack@127.0.0.1:3306/ebbtide
";

#[tokio::test]
async fn a_file_that_can_be_misread_is_judged_in_every_format() {
    let table = check(MISREAD, &["--effective"]).await;
    assert_eq!(table.code, 1);
    insta::assert_snapshot!("config_check_misread", table.all());
    let json = check(MISREAD, &["--effective", "-o", "json"]).await;
    assert_eq!(json.code, 1);
    let json = json.json();
    assert_eq!(
        (
            &json["errors"],
            &json["warnings"],
            &json["kind"],
            &json["guessed"]
        ),
        (&2.into(), &4.into(), &"scheduler".into(), &true.into())
    );
    assert_eq!(
        (&json["findings"][0]["code"], &json["findings"][0]["line"]),
        (&"EB-CHECK-002".into(), &3.into())
    );
    assert_eq!(json["effective"]["weighers"][2]["layer"], "ordinary");
    let value = check(MISREAD, &["-o", "value"]).await;
    assert_eq!(
        value.out.lines().next(),
        Some("error EB-CHECK-002 3 engine.polciy")
    );
}

#[tokio::test]
async fn novas_own_file_is_read_too() {
    let ran = check(NOVA, &["--effective"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    insta::assert_snapshot!("config_check_nova", ran.all());
}

#[tokio::test]
async fn warnings_are_errors_only_if_that_is_asked_for() {
    let warned = "[engine]\nhorizon_seconds = 60\n";
    assert_eq!(check(warned, &[]).await.code, 0);
    let strict = check(warned, &["--strict"]).await;
    assert_eq!(strict.code, 1);
    assert!(
        strict.err.contains("EB-CLI-015") && strict.err.contains("--strict"),
        "{}",
        strict.err
    );
    let fine = check("", &["--strict", "--kind", "scheduler"]).await;
    assert_eq!(
        (fine.code, fine.out.as_str(), fine.err.as_str()),
        (0, "nothing to object to\n", "")
    );
    let missing = alone(&["config", "check", "/nowhere/scheduler.toml"]).await;
    assert_eq!(missing.code, 1);
    assert!(
        missing.err.contains("EB-CLI-011") && missing.err.contains("/nowhere/scheduler.toml"),
        "{}",
        missing.err
    );
}

#[tokio::test]
async fn an_agent_has_no_order_of_hosts() {
    let agent = "host = \"h\"\nstate_dir = \"/tmp\"\ndriver.simulated.inventory = { VCPU = 8 }\n";
    let ran = check(agent, &["--effective"]).await;
    assert_eq!(ran.code, 0);
    assert!(
        ran.out.contains("an agent orders no hosts") && ran.err.contains("the agent's TOML"),
        "{}",
        ran.all()
    );
}

#[tokio::test]
async fn keys_are_explained() {
    let one = alone(&["config", "explain", "region.notice_attempts"]).await;
    insta::assert_snapshot!("config_explain_one", one.all());
    let several = alone(&["config", "explain", "weighers"]).await;
    insta::assert_snapshot!("config_explain_several", several.all());
    // However it is written.
    for nova in [
        "[filter_scheduler] ram_weight_multiplier",
        "filter_scheduler.ram_weight_multiplier",
        "ram_weight_multiplier",
        "RAM_weight_multiplier",
    ] {
        let json = alone(&["config", "explain", nova, "-o", "json"])
            .await
            .json();
        assert_eq!(
            (&json["key"], &json["default"]),
            (
                &"[filter_scheduler] ram_weight_multiplier".into(),
                &"1.0".into()
            ),
            "{nova}"
        );
    }
    let place = alone(&["config", "explain", "plugins[3].memory_mb", "-o", "json"])
        .await
        .json();
    assert_eq!(
        (&place["maximum"], &place["unit"], &place["applies"]),
        (&4096.0.into(), &"MiB".into(), &"SIGHUP".into())
    );
    let kinds = alone(&[
        "config",
        "explain",
        "bus.prefix",
        "--kind",
        "agent",
        "-o",
        "json",
    ])
    .await
    .json();
    assert_eq!(kinds["environment"], "EBBTIDE_AGENT__BUS__PREFIX");
    let all = alone(&["config", "explain", "-o", "json"]).await.json();
    assert!(all.as_array().unwrap().len() > 250, "{all}");
    let agent = alone(&[
        "config", "explain", "--kind", "agent", "-o", "value", "-c", "kind",
    ])
    .await;
    assert!(
        agent.out.lines().all(|kind| kind == "agent"),
        "{}",
        agent.out
    );
}

#[tokio::test]
async fn a_key_that_does_not_exist_is_answered_with_the_nearest() {
    let ran = alone(&["config", "explain", "region.notice_atempts"]).await;
    assert_eq!(ran.code, 4);
    assert!(
        ran.err.contains("EB-CLI-004") && ran.err.contains("did you mean region.notice_attempts"),
        "{}",
        ran.err
    );
    let ran = alone(&["config", "explain", "zzzz"]).await;
    assert!(!ran.err.contains("did you mean"), "{}", ran.err);
}

#[tokio::test]
async fn the_page_of_all_keys_is_what_the_command_prints() {
    let page =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/configuration.md");
    let ran = alone(&["config", "explain", "--output", "markdown"]).await;
    assert_eq!(ran.code, 0);
    assert!(
        std::fs::read_to_string(page).unwrap() == ran.out,
        "docs/reference/configuration.md is not current; write it with `ebbtide-manage config explain --output markdown`"
    );
}

#[tokio::test]
async fn any_table_can_be_had_as_markdown() {
    let ran = alone(&["config", "explain", "weighers", "--output", "markdown"]).await;
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        lines[0].starts_with("| File") && lines[1].starts_with("|--"),
        "{}",
        ran.out
    );
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with('|') && line.ends_with('|')),
        "{}",
        ran.out
    );
}
