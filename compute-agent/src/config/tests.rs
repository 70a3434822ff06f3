//! A configuration is taken as it was meant, or refused with the name of the key.

use super::*;

const GOOD: &str = r#"
host = "host-a"
state_dir = "/tmp/agent"
[bus]
urls = ["amqps://u:secret@b1/", "amqps://u:secret@b2/"]
[driver.simulated]
inventory = { VCPU = 8, MEMORY_MB = { total = 8192, reserved = 512, allocation_ratio = 1.5 } }
"#;

fn with(line: &str) -> Result<Config, AgentError> {
    Config::from_table(format!("{GOOD}{line}").parse().unwrap())
}

fn problem(line: &str) -> String {
    with(line).unwrap_err().to_string()
}

fn setting(key: &str, value: &str) -> Override {
    Override {
        key: key.to_owned(),
        value: value.to_owned(),
        origin: "--set".to_owned(),
    }
}

fn overridden(overrides: &[Override]) -> Result<Config, AgentError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), GOOD).unwrap();
    Config::read(Some(file.path()), overrides)
}

#[test]
fn a_short_configuration_is_enough() {
    let config = with("").unwrap();
    assert_eq!(config.driver.kind, "simulated");
    assert_eq!(config.evacuation, AgentPolicy::default());
    assert_eq!(config.amqp().unwrap().brokers.len(), 2);
    let agent = config.agent_config().unwrap();
    assert_eq!(agent.heartbeat_interval, Duration::from_secs(10));
}

#[test]
fn every_mistake_is_named_by_its_key() {
    for (line, named) in [
        ("[agnet]\nx = 1", "agnet: it is unknown"),
        ("[agent]\nheartbeat = 1", "agent.heartbeat: unknown field"),
        (
            "[agent]\nheartbeat_seconds = 0",
            "agent.heartbeat_seconds: 0 is out of range",
        ),
        (
            "[agent]\nheartbeat_seconds = \"often\"",
            "agent.heartbeat_seconds: invalid type",
        ),
        ("[agent]\nprefetch = 1", "agent.prefetch: 1 is out of range"),
        (
            "[agent]\npoll_seconds = nan",
            "agent.poll_seconds: NaN is out of range",
        ),
        (
            "[evacuation]\nact_tries = 0",
            "evacuation.act_tries: 0 is out of range",
        ),
        (
            "[evacuation]\nact_trys = 1",
            "evacuation.act_trys: unknown field",
        ),
        (
            "[log]\nformat = \"xml\"",
            "log.format: unknown value, expected `text`",
        ),
        ("[log]\nfilter = \"ebbtide=loud\"", "log.filter"),
        ("[driver.simulatd]\nx = 1", "driver.simulatd: it is unknown"),
    ] {
        let problem = problem(line);
        assert!(problem.contains(named), "{line:?}: {problem}");
    }
    for (key, value, named) in [
        (
            "driver.kind",
            "vmware",
            "driver.kind: \"vmware\" is unknown, use one of libvirt, nova, simulated",
        ),
        ("bus.queue_type", "fast", "bus.queue_type"),
        ("bus.prefix", "a.b", "bus.prefix"),
        ("host", "höst", "host: host name"),
        ("state_dir", "", "state_dir: it is empty"),
        ("bus", "7", "bus: expected a table, found integer"),
        ("host.name", "x", "a part of it is not a table (--set)"),
        ("..", "x", "it is no key"),
    ] {
        let problem = overridden(&[setting(key, value)]).unwrap_err().to_string();
        assert!(problem.contains(named), "{key}={value}: {problem}");
    }
}

#[test]
fn a_password_is_in_no_message() {
    let error = overridden(&[setting("bus.urls", "amqp//u:secret@b1/")]).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(error.to_string().contains("bus.urls"), "{error}");
    assert!(!format!("{:?}", with("").unwrap()).contains("secret"));
}

#[test]
fn what_is_missing_is_named() {
    let missing = |text: &str| Config::from_table(text.parse().unwrap()).unwrap_err();
    let error = missing("").to_string();
    assert!(
        error.contains("driver.simulated.inventory: it is missing"),
        "{error}"
    );
}

#[test]
fn a_host_without_a_name_is_called_as_its_machine() {
    let text = "[driver.simulated]\ninventory = { VCPU = 4 }";
    let config = Config::from_table(text.parse().unwrap()).unwrap();
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(config.host, name.trim_end());
    assert_eq!(config.state_dir, Path::new("/var/lib/ebbtide-agent"));
}

#[test]
fn later_settings_win_and_the_environment_is_understood() {
    let environment = [
        ("EBBTIDE_AGENT__HOST", "17"),
        ("EBBTIDE_AGENT__AGENT__HEARTBEAT_SECONDS", "2.5"),
        ("EBBTIDE_AGENT__BUS__URLS", "amqps://other/"),
        ("EBBTIDE_AGENT__EVACUATION__ESCALATE_TO_TERMINATE", "true"),
        ("EBBTIDE__HOST", "not ours"),
    ];
    let environment = environment.map(|(n, v)| (n.to_owned(), v.to_owned()));
    let mut overrides = overrides_from(environment.into_iter());
    assert_eq!(overrides.len(), 4);
    overrides.push(setting("agent.heartbeat_seconds", "3"));
    let config = overridden(&overrides).unwrap();
    assert_eq!(config.host, "17");
    assert_eq!(config.agent.heartbeat_seconds, 3.0);
    assert_eq!(config.amqp().unwrap().brokers.len(), 1);
    assert!(config.evacuation.escalate_to_terminate);
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_named_with_the_place() {
    let error = Config::read(Some(Path::new("/nowhere/agent.toml")), &[]).unwrap_err();
    assert!(error.to_string().contains("/nowhere/agent.toml"), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "host = \"a\"\n[bus\n").unwrap();
    let error = Config::read(Some(file.path()), &[]).unwrap_err();
    assert_eq!(error.code(), "EB-AGENT-002");
    assert!(error.to_string().contains("line 2"), "{error}");
}

#[test]
fn no_error_shows_the_password_of_a_url_in_the_file() {
    for text in [
        "[bus]\nurls = \"amqp://u:geheim@b1",
        "host = \"h\"\nstate_dir = \"/x\"\n[bus]\nqueue_type = [\"amqp://u:geheim@b1\"]",
        "host = \"h\"\nstate_dir = \"/x\"\n[bus]\ninsecure = \"amqp://u:geheim@b1\"",
        "host = \"h\"\nstate_dir = \"/x\"\n[fence.options]\npassword = \"geheim\"\npassword = 1",
        "host = \"h\"\nstate_dir = \"/x\"\n[fence]\noptions = { password = \"geheim\" ]",
        "host = \"h\"\nstate_dir = \"/x\"\n[fence]\noptions = \"geheim\"",
        "host = \"h\"\nstate_dir = \"/x\"\n[bus]\nurls = \"amqp://u:ab geheim@b1\" x",
        "host = \"h\"\nstate_dir = \"/x\"\n[log]\nfilter = \"amqp://u:geheim@b1/\"",
    ] {
        let error = Config::parse(Path::new("agent.toml"), text, &[]).unwrap_err();
        assert!(!error.to_string().contains("geheim"), "{error}");
    }
}
