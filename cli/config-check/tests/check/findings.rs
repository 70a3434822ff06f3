//! One file for each thing that can be found.

use ebbtide_config::ConfigError;
use ebbtide_config_check::{Files, Finding, ConfigKind, Level, CheckReport, check, code};
use std::path::Path;

/// A machine on which there is one plugin.
struct Machine(u32);

impl Files for Machine {
    fn mode(&self) -> Option<u32> {
        Some(self.0)
    }

    fn mode_of(&self, path: &Path) -> Option<u32> {
        path.starts_with("/etc").then_some(0o100_644)
    }

    fn exists(&self, path: &Path) -> bool {
        path == Path::new("/p/there.wasm")
    }

    fn model(&self, key: &'static str, path: &Path) -> Result<(), ConfigError> {
        if path == Path::new("/p/model.json") {
            return Ok(());
        }
        Err(ConfigError::Wrong(format!("engine.{key} = {path:?}: no such file")))
    }
}

fn judged(kind: ConfigKind, text: &str) -> CheckReport {
    check(Path::new("f"), text, Some(kind), &Machine(0o100_640))
}

fn scheduler(text: &str) -> CheckReport {
    judged(ConfigKind::Scheduler, text)
}

const AGENT: &str = "host = \"h\"\nstate_dir = \"/tmp\"\ndriver.simulated.inventory = { VCPU = 8 }\n";
/// What a nova.conf has to have.
const NOVA: &str = "\
[api_database]
connection = mysql+pymysql://nova@db/nova_api
[database]
connection = mysql+pymysql://nova@db/nova_cell0
[placement]
auth_type = password
auth_url = http://keystone:5000/v3
username = nova
password = geheim
user_domain_name = Default
project_name = service
project_domain_name = Default
[ebbtide]
connection = mysql+pymysql://ebbtide@db/ebbtide
";

fn nova(text: &str) -> CheckReport {
    judged(ConfigKind::Nova, &format!("{NOVA}{text}"))
}

fn all(report: &CheckReport) -> Vec<(Level, &str, &str)> {
    report.findings.iter().map(|found| (found.level, found.code, found.key.as_str())).collect()
}

fn found<'a>(report: &'a CheckReport, code: &str) -> &'a Finding {
    report
        .findings
        .iter()
        .find(|finding| finding.code == code)
        .unwrap_or_else(|| panic!("no {code} among {:?}", report.findings))
}

#[test]
fn files_that_are_as_they_should_be_have_no_findings() {
    assert_eq!(all(&scheduler("")), []);
    assert_eq!(all(&scheduler("[engine]\npolicy = \"nova\"\n[region]\nmax_attempts = 5\n")), []);
    assert_eq!(all(&scheduler("[engine]\ncost_module = \"remaining_lifetime\"\nlifetime_model = \"/p/model.json\"\n")), []);
    assert_eq!(all(&scheduler("[engine]\nweighers = [{ name = \"interruption_risk\" }]\ninterruption_model = \"/p/model.json\"\n")), []);
    assert_eq!(all(&judged(ConfigKind::Agent, AGENT)), []);
    assert_eq!(all(&nova("")), []);
}

/// Level, code and key of what is found, line, and a word of what is said.
type Row = (&'static str, Level, &'static str, &'static str, usize, &'static str);

fn hold(judge: impl Fn(&str) -> CheckReport, rows: &[Row]) {
    for (text, level, code, key, line, word) in rows {
        let report = judge(text);
        let finding = report
            .findings
            .iter()
            .find(|finding| finding.code == *code && finding.key == *key)
            .unwrap_or_else(|| panic!("{text}: no {code} for {key:?} among {:#?}", report.findings));
        assert_eq!(finding.level, *level, "{text}: {finding:?}");
        assert_eq!(finding.at.map_or(0, |at| at.line), *line, "{text}: {finding:?}");
        let said = format!("{} {} {}", finding.what, finding.why, finding.next);
        assert!(said.contains(word), "{text}: {word:?} is not in {said}");
    }
}

#[test]
fn what_the_scheduler_would_refuse_is_an_error_with_its_place() {
    use Level::{Error, Warning};
    hold(scheduler, &[
        ("[engine\n", Error, code::SYNTAX, "", 1, "TOML"),
        ("\n[engine]\npolciy = \"nova\"\n", Error, code::UNKNOWN, "engine.polciy", 3, "did you mean engine.policy?"),
        ("[databse]\nurl = \"x\"\n", Error, code::UNKNOWN, "databse", 1, "did you mean database?"),
        ("[engine]\nnotice_attempts = 3\n", Error, code::UNKNOWN, "engine.notice_attempts", 2, "region.notice_attempts"),
        ("[[engine.weighers]]\nname = \"ram\"\nmultipler = 1\n", Error, code::UNKNOWN, "engine.weighers[0].multipler", 3, "multiplier?"),
        ("[region]\nnotice_attempts = 0\n", Error, code::VALUE, "region.notice_attempts", 2, "use 1 to 100"),
        ("[database]\nmax_connections = \"many\"\n", Error, code::VALUE, "database.max_connections", 2, "invalid type"),
        ("[engine]\npolicy = \"novaa\"\n", Error, code::VALUE, "engine.policy", 2, "tiered"),
        ("[engine]\nweighers = [{ name = \"ramm\" }]\n", Error, code::VALUE, "engine.weighers[0].name", 2, "ramm"),
        ("[engine]\ncost_module = \"cheap\"\n", Error, code::VALUE, "engine.cost_module", 2, "cheap"),
        ("[log]\nfilter = \"ebbtide=loud\"\n", Error, code::VALUE, "log.filter", 2, "loud"),
        ("[grpc]\nlisten = \"0.0.0.0:1\"\n", Error, code::VALUE, "grpc.listen", 2, "loopback"),
        ("[[plugins]]\nname = \"p\"\nfile = \"/p/not.wasm\"\n", Error, code::PLUGIN_FILE, "plugins[0].file", 3, "/p/not.wasm"),
        ("[[plugins]]\nname = \"P\"\nfile = \"/p/there.wasm\"\n", Error, code::VALUE, "plugins[0].name", 2, "small letters"),
        ("[[plugins]]\nname = \"p\"\nfile = \"not.wasm\"\n", Warning, code::PLUGIN_FILE, "plugins[0].file", 3, "whole path"),
        ("[engine]\nlifetime_model = \"/p/not.json\"\n", Error, code::MODEL_FILE, "engine.lifetime_model", 2, "even if nothing uses it"),
        ("[engine]\ninterruption_model = \"not.json\"\n", Warning, code::MODEL_FILE, "engine.interruption_model", 2, "whole path"),
    ]);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = "[region]\nnotice_attempts = 0\nmax_attempts = 0\n[engine]\nhost_subset_size = 0\nx = 1\n[limits]\nburst = 0.0\n[database]\nmax_connections = true\n";
    let report = scheduler(text);
    let errors: Vec<&str> = report.findings.iter().filter(|found| found.level == Level::Error).map(|found| found.key.as_str()).collect();
    assert_eq!(
        errors,
        ["region.notice_attempts", "region.max_attempts", "engine.host_subset_size", "engine.x", "limits.burst", "database.max_connections"]
    );
}

#[test]
fn weighers_that_do_not_do_what_they_seem_to() {
    use Level::{Note, Warning};
    let list = |rows: &str| format!("[engine]\npolicy = \"nova\"\nweighers = [\n{rows},\n{{ name = \"preemption_needed\" }},\n{{ name = \"eviction_cost\" }}]\n");
    let rows: [(&str, Level, &str, &str, usize, &str); 13] = [
        ("{ name = \"io_ops\", multiplier = 1.0 }", Warning, code::INVERTED, "engine.weighers[0].multiplier", 4, "prefers hosts that are busy"),
        ("{ name = \"ram\", multiplier = -1.0 },\n{ name = \"cpu\" }", Warning, code::INVERTED, "engine.weighers[0].multiplier", 4, "less free memory (packs)"),
        ("{ name = \"ram\", multiplier = -1.0 },\n{ name = \"cpu\", multiplier = -1 }", Note, code::INVERTED, "engine.weighers[0].multiplier", 4, "packing seems to be meant"),
        ("{ name = \"soft-affinity\", multiplier = -1.0 }", Warning, code::INVERTED, "engine.weighers[0].multiplier", 4, "apart"),
        ("{ name = \"soft_anti_affinity\", multiplier = -1.0 }", Warning, code::INVERTED, "engine.weighers[0].multiplier", 4, "gathers"),
        ("{ name = \"ram\", multiplier = 0.0 }", Warning, code::ZERO, "engine.weighers[0].multiplier", 4, "take it out"),
        ("{ name = \"num_instances\" }", Note, code::ZERO, "engine.weighers[0]", 4, "does not switch it on"),
        ("{ name = \"ram\", multiplier = 60 },\n{ name = \"cpu\", multiplier = 5 }", Warning, code::DROWNS, "engine.weighers[0].multiplier", 4, "9 %"),
        ("{ name = \"ram\" },\n{ name = \"ram\", multiplier = 2 }", Warning, code::TWICE, "engine.weighers[1].multiplier", 5, "multiplier 3"),
        ("{ name = \"pci\" }", Warning, code::NO_EFFECT, "engine.weighers[0]", 4, "all hosts are alike"),
        ("{ name = \"partial_hour_sum\" }", Warning, code::UNFIT, "engine.weighers[0]", 4, "eviction_cost"),
        ("{ name = \"ram\", multiplier = 20000 }", Warning, code::OUTVOTED, "engine.weighers[1]", 5, "has to evict"),
        ("{ name = \"ram\", multiplier = 2000 }", Warning, code::OUTVOTED, "engine.weighers[2]", 6, "a dear eviction"),
    ];
    for (weighers, level, code, key, line, word) in rows {
        hold(|_| scheduler(&list(weighers)), &[(weighers, level, code, key, line, word)]);
    }
    hold(scheduler, &[
        ("[engine]\nweighers = [{ name = \"preemption_needed\", multiplier = -1 }]\n", Warning, code::INVERTED, "engine.weighers[0].multiplier", 2, "evicted although there is free capacity"),
        ("[engine]\nweighers = [{ name = \"eviction_cost\", multiplier = -1 }]\n", Warning, code::INVERTED, "engine.weighers[0].multiplier", 2, "costs most"),
        ("[engine]\nweighers = [{ name = \"ram\", multiplier = 0 }]\n", Warning, code::ZERO, "engine.weighers[0].multiplier", 2, "no weigher counts"),
        ("[engine]\nweighers = [{ name = \"eviction_cost\", multiplier = 5 }]\n", Note, code::NO_EFFECT, "engine.weighers[0].multiplier", 2, "under the policy tiered"),
        ("[engine]\npolicy = \"first-fit\"\nweighers = [{ name = \"ram\" }]\n", Warning, code::NO_EFFECT, "engine.weighers", 3, "asks no weigher"),
        ("[engine]\npolicy = \"nova\"\ncost_module = \"revenue\"\nweighers = [{ name = \"ram\" }]\n", Warning, code::EVICTION_IGNORED, "engine.weighers", 4, "another host has room"),
        ("[engine]\npolicy = \"nova\"\nweighers = [{ name = \"ram\" }, { name = \"preemption_needed\" }]\n", Warning, code::EVICTION_IGNORED, "engine.weighers", 3, "does not count between hosts"),
    ]);
    // As many as the others and ten times as many are two things.
    let fair = scheduler(&list("{ name = \"ram\", multiplier = 45 },\n{ name = \"cpu\", multiplier = 5 }"));
    assert!(fair.findings.iter().all(|finding| finding.code != code::DROWNS), "{:?}", fair.findings);
    // Which way a plugin pulls is not known, whatever its name.
    let named = "[engine]\nweighers = [{ name = \"io_ops\", multiplier = 1 }]\n[[plugins]]\nname = \"io_ops\"\nfile = \"/p/there.wasm\"\n";
    assert!(scheduler(named).findings.iter().all(|finding| finding.code != code::INVERTED));
    // A plugin that says by itself how much it counts may be louder.
    let plugin = list("{ name = \"ram\", multiplier = 60 },\n{ name = \"p\" }") + "[[plugins]]\nname = \"p\"\nfile = \"/p/there.wasm\"\n";
    let plugin = scheduler(&plugin);
    assert!(plugin.findings.iter().all(|finding| finding.code != code::DROWNS), "{:?}", plugin.findings);
}

#[test]
fn keys_of_the_scheduler_that_are_probably_not_meant_so() {
    use Level::{Note, Warning};
    const OPEN: &str = "[auth]\nallow_unauthenticated = true\n[grpc]\nlisten = \"0.0.0.0:1\"\ninsecure = true\n";
    hold(scheduler, &[
        ("[engine]\ncost_module = \"num_instances\"\nperiod_seconds = 60\n", Warning, code::NO_EFFECT, "engine.period_seconds", 3, "billing period"),
        ("[engine]\nhorizon_seconds = 60\n", Warning, code::NO_EFFECT, "engine.horizon_seconds", 2, "oldest_first"),
        ("[engine]\nfairness_seconds = 60\n", Warning, code::NO_EFFECT, "engine.fairness_seconds", 2, "fairness"),
        ("[engine]\nrisk_horizon_seconds = 60\n", Warning, code::NO_EFFECT, "engine.risk_horizon_seconds", 2, "interruption_risk"),
        ("[engine]\npolicy = \"first-fit\"\nhost_subset_size = 3\n", Warning, code::NO_EFFECT, "engine.host_subset_size", 3, "first"),
        ("[engine]\npolicy = \"first-fit\"\nshuffle_best_same_weighed_hosts = true\n", Warning, code::NO_EFFECT, "engine.shuffle_best_same_weighed_hosts", 3, "weighs nothing"),
        ("[engine]\nplugin_failure = \"refuse\"\ncost_module_failure = \"refuse\"\n", Warning, code::NO_EFFECT, "engine.cost_module_failure", 3, "says the same"),
        ("[database]\nkeep_days = 60\nkeep_minutes = 50000\n", Warning, code::NO_EFFECT, "database.keep_days", 2, "keep_minutes"),
        ("[database]\nurl = \"mysql://u@h/d\"\nsqlite_max_pages = 9\n", Warning, code::NO_EFFECT, "database.sqlite_max_pages", 3, "no SQLite"),
        ("[bus]\nagent_user = \"a-{host}\"\n", Warning, code::NO_EFFECT, "bus.agent_user", 2, "user-id"),
        ("[bus]\nagent_users = { a = [\"*\"] }\n", Warning, code::NO_EFFECT, "bus.agent_users", 2, "user-id"),
        ("[bus]\ninsecure = true\n", Warning, code::NO_EFFECT, "bus.insecure", 2, "this machine"),
        ("[bus]\ninsecure = true\nurls = [\"amqp://u:p@mq1/\"]\n", Warning, code::OPEN, "bus.insecure", 2, "plain text"),
        ("[bus]\nurls = [\"amqps://u:p@mq1/\"]\n", Warning, code::OPEN, "bus.agent_identity", 1, "believed"),
        ("[grpc]\ninsecure = true\n", Warning, code::NO_EFFECT, "grpc.insecure", 2, "loopback"),
        ("[http]\ninsecure = true\n", Warning, code::NO_EFFECT, "http.insecure", 2, "loopback"),
        ("[auth]\nallow_unauthenticated = true\n", Warning, code::NO_EFFECT, "auth.allow_unauthenticated", 2, "outside"),
        ("[auth]\nopen_metrics = true\n", Warning, code::NO_EFFECT, "auth.open_metrics", 2, "anyway"),
        (OPEN, Warning, code::OPEN, "grpc.insecure", 5, "without TLS"),
        (OPEN, Warning, code::OPEN, "auth.allow_unauthenticated", 2, "operator"),
        ("[region.comeback]\nenabled = false\nat_once = 2\n", Warning, code::NO_EFFECT, "region.comeback.at_once", 3, "no server comes back"),
        ("[[plugins]]\nname = \"p\"\nfile = \"/p/there.wasm\"\nenabled = false\n", Note, code::NO_EFFECT, "plugins[0].enabled", 4, "not enabled"),
        ("[[plugins]]\nname = \"ram\"\nfile = \"/p/there.wasm\"\n", Warning, code::ELSEWHERE, "plugins[0].name", 2, "takes the place"),
        ("[[plugins]]\nname = \"p\"\nfile = \"/p/there.wasm\"\ngrants = [\"clock\"]\n", Note, code::ELSEWHERE, "plugins[0].grants", 4, "clock"),
    ]);
}

#[test]
fn a_secret_in_a_file_that_everybody_can_read() {
    let secret = "[database]\nurl = \"mysql://u:geheim@h/d\"\n";
    let readable = |text: &str, kind, mode| {
        let report = check(Path::new("f"), text, Some(kind), &Machine(mode));
        report.findings.iter().find(|found| found.code == code::READABLE).cloned()
    };
    let told = readable(secret, ConfigKind::Scheduler, 0o100_644).unwrap();
    assert_eq!((told.level, told.key.as_str(), told.at.unwrap().line), (Level::Warning, "database.url", 2));
    assert!(told.what.contains("644") && !format!("{told:?}").contains("geheim"), "{told:?}");
    assert_eq!(readable(secret, ConfigKind::Scheduler, 0o100_640), None);
    assert_eq!(readable("", ConfigKind::Scheduler, 0o100_644), None);
    let nova = readable(NOVA, ConfigKind::Nova, 0o100_644).unwrap();
    assert_eq!(nova.key, "[placement] password");
    let agent = format!("{AGENT}bus.urls = \"amqp://agent:geheim@127.0.0.1/\"\n");
    assert_eq!(readable(&agent, ConfigKind::Agent, 0o100_644).unwrap().key, "bus.urls");
}

#[test]
fn a_private_key_that_everybody_can_read() {
    let tls = |key: &str| format!("[grpc.tls]\ncertificate = \"/c.pem\"\nkey = \"{key}\"\n");
    let told = |text: &str| {
        let found = scheduler(text).findings.into_iter().find(|found| found.code == code::READABLE);
        found.map(|found| (found.level, found.key, found.at.unwrap().line))
    };
    let warning = (Level::Warning, "grpc.tls.key".to_owned(), 3);
    assert_eq!(told(&tls("/etc/key.pem")), Some(warning));
    assert_eq!(told(&tls("/somewhere/key.pem")), None);
}

#[test]
fn no_value_is_shown_of_a_key_that_takes_another_kind() {
    let report = scheduler("[limits]\nburst = \"ge heim\"\n");
    let shown = format!("{:?}", report.findings);
    assert!(shown.contains("limits.burst") && !shown.contains("heim"), "{shown}");
}

#[test]
fn a_url_in_the_place_of_a_name_does_not_show_its_password() {
    let text = "[[engine.weighers]]\nname = \"mysql://u:geheim@h/d\"\nmultiplier = 0.0\n";
    let report = check(Path::new("f"), text, Some(ConfigKind::Scheduler), &Machine(0o100_600));
    assert!(!report.findings.is_empty());
    assert!(!format!("{:?}", report.findings).contains("geheim"), "{:?}", report.findings);
}

#[test]
fn what_the_agent_would_refuse_and_what_is_probably_not_meant() {
    use Level::{Error, Note, Warning};
    hold(|text| judged(ConfigKind::Agent, &format!("{AGENT}{text}")), &[
        ("[agent]\nheartbeat_secnds = 3\n", Error, code::UNKNOWN, "agent.heartbeat_secnds", 5, "heartbeat_seconds?"),
        ("[agent]\nheartbeat_seconds = 0\n", Error, code::VALUE, "agent.heartbeat_seconds", 5, "0.1 to 3600"),
        ("[agent]\nprefetch = \"x\"\n", Error, code::VALUE, "agent.prefetch", 5, "invalid type"),
        ("driver.simulated.inventori = 3\n", Error, code::UNKNOWN, "driver.simulated.inventori", 4, "inventory?"),
        ("driver.libvirt.uriii = 3\n", Warning, code::UNKNOWN, "driver.libvirt.uriii", 4, "nothing of this table is read"),
        ("driver.libvirt.uri = \"qemu:///x\"\n", Note, code::NO_EFFECT, "driver.libvirt", 4, "driver.kind is \"simulated\""),
        ("[agent]\nheartbeat_seconds = 30\n", Warning, code::TIMES, "agent.heartbeat_seconds", 5, "use 20"),
        ("[evacuation]\nescalate_to_terminate = true\n", Warning, code::ELSEWHERE, "evacuation.escalate_to_terminate", 5, "lost"),
        ("[fence]\ntries = 5\n", Warning, code::NO_EFFECT, "fence.tries", 5, "fence.command"),
        ("[bus]\ninsecure = true\n", Warning, code::NO_EFFECT, "bus.insecure", 5, "this machine"),
        ("[bus]\ninsecure = true\nurls = \"amqp://a:b@mq/\"\n", Warning, code::OPEN, "bus.insecure", 5, "plain text"),
    ]);
    let missing = judged(ConfigKind::Agent, "");
    assert_eq!(found(&missing, code::VALUE).key, "");
    let what = &found(&missing, code::VALUE).what;
    assert!(what.contains("driver.simulated.inventory"), "{what}");
}

#[test]
fn options_of_nova_conf_that_are_probably_not_meant() {
    use Level::{Error, Note, Warning};
    // The line of an option below the fourteen of NOVA and its section.
    const L: usize = 16;
    hold(nova, &[
        ("nonsense\n", Error, code::SYNTAX, "", 15, "oslo.config"),
        ("room_timeout = 0\n", Error, code::VALUE, "[ebbtide] room_timeout", 15, "room_timeout"),
        ("room_timeut = 5\n", Warning, code::UNKNOWN, "[ebbtide] room_timeut", 15, "room_timeout?"),
        ("[filter_scheduler]\nram_weight_multiplier = much\n", Error, code::VALUE, "[filter_scheduler] ram_weight_multiplier", L, "number"),
        ("[libvirt]\ncpu_mode = x\n", Warning, code::VALUE, "[libvirt] cpu_mode", L, "Ebbtide does not read it"),
        ("[filter_scheduler]\nenabled_filters = NoFilter\n", Error, code::VALUE, "[filter_scheduler] enabled_filters", L, "NoFilter"),
        ("metrics_listen = here\n", Error, code::VALUE, "[ebbtide] metrics_listen", 15, "metrics_listen"),
        ("api_listen = here\n", Error, code::VALUE, "[ebbtide] api_listen", 15, "ADDRESS:PORT"),
        ("api_listen = 127.0.0.1:7472\n", Error, code::VALUE, "[keystone_authtoken] auth_type", 15, "no API without"),
        ("cost_module = cheap\n", Error, code::VALUE, "[ebbtide] cost_module", 15, "cheap"),
        ("[filter_scheduler]\nram_weight_multipler = 2\n", Warning, code::UNKNOWN, "[filter_scheduler] ram_weight_multipler", L, "ram_weight_multiplier?"),
        ("[DEFAULT]\nram_weight_multiplier = 2\n", Warning, code::UNKNOWN, "[DEFAULT] ram_weight_multiplier", L, "[filter_scheduler] ram_weight_multiplier"),
        ("[DEFAULT]\nosapi_compute_wrkrs = 2\n", Note, code::UNKNOWN, "[DEFAULT] osapi_compute_wrkrs", L, "a release between"),
        ("agents = agent-1\n", Warning, code::DEPRECATED, "[ebbtide] agents", 15, "whatever stands here"),
        ("[filter_schedular]\nram_weight_multiplier = 2\n", Warning, code::UNKNOWN, "[filter_schedular]", L, "[filter_scheduler]?"),
        ("[DEFAULT]\nscheduler_default_filters = A\n", Warning, code::DEPRECATED, "[DEFAULT] scheduler_default_filters", L, "enabled_filters"),
        ("[DEFAULT]\nnotification_driver = noop\n", Warning, code::DEPRECATED, "[DEFAULT] notification_driver", L, "still counts"),
        ("[scheduler]\nworkers = 2\n", Note, code::NO_EFFECT, "[scheduler] workers", L, "threads"),
        ("[quota]\ncores = 2\nram = 3\n", Note, code::NO_EFFECT, "[quota]", L, "2 options"),
        ("[filter_scheduler]\nio_ops_weight_multiplier = 1.0\n", Warning, code::INVERTED, "[filter_scheduler] io_ops_weight_multiplier", L, "prefers hosts that are busy"),
        ("[filter_scheduler]\nram_weight_multiplier = -1.0\n", Warning, code::INVERTED, "[filter_scheduler] ram_weight_multiplier", L, "less free memory (packs)"),
        ("[filter_scheduler]\nbuild_failure_weight_multiplier = -1.0\n", Warning, code::INVERTED, "[filter_scheduler] build_failure_weight_multiplier", L, "broken hosts attract"),
        ("[filter_scheduler]\ncross_cell_move_weight_multiplier = -1.0\n", Warning, code::INVERTED, "[filter_scheduler] cross_cell_move_weight_multiplier", L, "other cells"),
        ("[filter_scheduler]\nio_ops_weight_multiplier = 0\n", Note, code::ZERO, "[filter_scheduler] io_ops_weight_multiplier", L, "multiplier 0"),
        ("[filter_scheduler]\nram_weight_multiplier = 1000\n", Warning, code::DROWNS, "[filter_scheduler] ram_weight_multiplier", L, "drowns"),
        ("[filter_scheduler]\nram_weight_multiplier = 2\n", Note, code::ELSEWHERE, "[filter_scheduler] ram_weight_multiplier", L, "smallest value"),
        ("[filter_scheduler]\nmax_io_ops_per_host = 4\n", Warning, code::NO_EFFECT, "[filter_scheduler] max_io_ops_per_host", L, "IoOpsFilter"),
        ("[filter_scheduler]\nisolated_hosts = a\n", Warning, code::NO_EFFECT, "[filter_scheduler] isolated_hosts", L, "IsolatedHostsFilter"),
        ("[filter_scheduler]\nenabled_filters = AvailabilityZoneFilter, ComputeFilter\n", Note, code::NO_EFFECT, "[filter_scheduler] enabled_filters", L, "AvailabilityZoneFilter"),
        ("[metrics]\nweight_setting = a=1, b\n", Warning, code::VALUE, "[metrics] weight_setting", L, "1 of the 2"),
        ("[metrics]\nweight_multiplier = 2\n", Warning, code::NO_EFFECT, "[metrics] weight_multiplier", L, "no metric"),
        ("[filter_scheduler]\nimage_props_weight_setting = a=1\n", Warning, code::NO_EFFECT, "[filter_scheduler] image_props_weight_setting", L, "is off"),
        ("[DEFAULT]\nservice_down_time = 5\n", Warning, code::TIMES, "[DEFAULT] service_down_time", L, "two and a half"),
        ("room_timeout = 2000\n", Warning, code::TIMES, "[ebbtide] room_timeout", 15, "conductor"),
        ("preemption = false\n", Note, code::NO_EFFECT, "[ebbtide] preemption", 15, "no server is preempted"),
        ("preemption = false\ndefault_grace = 60\n", Warning, code::NO_EFFECT, "[ebbtide] default_grace", 16, "no server is preempted"),
        ("[placement]\ninsecure = true\n", Warning, code::OPEN, "[placement] insecure", L, "password"),
    ]);
    // What other services of any supported release read is one note, however much it is.
    let shared = nova("[DEFAULT]\nenabled_apis = osapi_compute\nosapi_compute_workers = 2\n[wsgi]\nkeep_alive = true\n[vnc]\nenabled = false\n[oslo_policy]\npolicy_file = x\n");
    let words: Vec<&str> = shared.findings.iter().map(|finding| finding.what.as_str()).collect();
    assert_eq!(words, ["5 options are for Nova's other services, in [DEFAULT], [oslo_policy], [vnc], [wsgi]"]);
    let bare = judged(ConfigKind::Nova, "[DEFAULT]\ndebug = true\n");
    let words: Vec<&str> = bare.findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(words.iter().any(|what| what.contains("[api_database] connection")) || bare.count(Level::Error) > 0, "{words:?}");
}

#[test]
fn the_kind_is_guessed_from_what_is_in_the_file() {
    let guess = |name: &str, text: &str| ebbtide_config_check::guess(Path::new(name), text).0;
    assert_eq!(guess("x", "[engine]\npolicy = \"nova\"\n"), ConfigKind::Scheduler);
    assert_eq!(guess("x", "host = \"h\"\n[bus]\n"), ConfigKind::Agent);
    assert_eq!(guess("x", "[driver.libvirt]\n"), ConfigKind::Agent);
    assert_eq!(guess("x", NOVA), ConfigKind::Nova);
    assert_eq!(guess("nova.conf", "[database]\nconnection = x\n"), ConfigKind::Nova);
    assert_eq!(guess("x.toml", "[database]\nurl = \"x\"\n"), ConfigKind::Scheduler);
    for kind in ConfigKind::ALL {
        assert_eq!(guess("x", &ebbtide_config_check::sample(kind)), kind);
    }
    assert_eq!(guess("x", "\n# nothing\n"), ConfigKind::Scheduler);
    assert_eq!(guess("x", ""), ConfigKind::Scheduler);
    assert_eq!(guess("x.conf", "?"), ConfigKind::Nova);
}

#[test]
fn the_effective_weights_are_told_in_order_and_in_words() {
    let report = scheduler("[engine]\npolicy = \"nova\"\nweighers = [{ name = \"ram\" }, { name = \"io-ops\", multiplier = -2 }, { name = \"num_instances\" }]\n");
    let effective = report.effective.unwrap();
    let rows: Vec<(&str, f64, &str, &str)> = effective.weighers.iter().map(|share| (share.name.as_str(), share.multiplier, share.from, share.says.as_str())).collect();
    assert_eq!(
        rows,
        [
            ("ram", 1.0, "default", "prefers hosts with more free memory (spreads); weight 1 of 3 in all"),
            ("io-ops", -2.0, "file", "prefers hosts with fewer servers being built, resized or moved; weight 2 of 3 in all"),
            ("num_instances", 0.0, "default", "is off: the multiplier is 0"),
        ]
    );
    assert!(effective.order.iter().any(|line| line.contains("partial_hour")), "{:?}", effective.order);
    // As the engine has them.
    let defaults = scheduler("").effective.unwrap();
    let names: Vec<&str> = defaults.weighers.iter().map(|share| share.name.as_str()).collect();
    let engine: Vec<String> = ebbtide_engine::default_weighers().into_iter().map(|weigher| weigher.name).collect();
    assert_eq!(names, engine);
    assert!(scheduler("[engine]\npolicy = \"first-fit\"\n").effective.unwrap().weighers.is_empty());
    assert_eq!(scheduler("[engine\n").effective, None);
}

#[test]
fn a_file_of_the_batch_service_is_sent_to_its_own_program() {
    let text = "state_dir = \"/var/lib/batch\"\n[slurm]\npartition = \"batch\"\n[region]\nproject = \"batch\"\n";
    let report = check(Path::new("batch.toml"), text, None, &Machine(0o100_640));
    assert_eq!(all(&report), [(Level::Error, code::UNKNOWN, "slurm")]);
    assert!(report.findings[0].next.contains("ebbtide-batch check"));
}
