//! The scheduler's keys of `[engine]` and `[[plugins]]`.

use super::Key;
use super::Type::{List, Number, Path, Switch, Table, Text, Whole, Words};

const FAILURE: &[&str] = &["ignore", "refuse"];
const ROW: &str = "[[engine.weighers]]\nname = \"ram\"\n";
const SERVICE: &str =
    "[[plugins]]\nname = \"forecast\"\naddress = \"https://forecast.example:7480\"\n";
const PLUGIN: &str =
    "[[plugins]]\nname = \"spread_racks\"\nfile = \"/etc/ebbtide/plugins/spread_racks.wasm\"\n";

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key::new("engine.policy", Words(&["tiered", "nova", "first-fit"]), "\"tiered\"", "\"nova\"", "How hosts that passed the filters are ordered. tiered: hosts with room first, then those whose room is becoming free, then by the exact cost of an eviction; weighers decide among equals. nova: Nova's weights alone; what an eviction costs counts only through weighers. first-fit: in the order of registration, no weighing."),
    Key::new("engine.weighers[].name", Text, "", "\"ram\"", "A weigher in use, built in (docs/plugins/weighers.md) or a plugin's. Weights are added up in the order of the list; a weigher that is named twice counts twice. A list of your own replaces the default one: soft_affinity, soft_anti_affinity, cpu, disk, io_ops, num_instances, ram, preemption_needed, eviction_cost.").required().sighup().with(ROW),
    Key::new("engine.weighers[].multiplier", Number, "", "2.0", "How much it counts; by default what the weigher itself says. Its numbers are normalised to 0…1 first. A negative multiplier turns it round. The metadata of a host's aggregates (NAME_weight_multiplier) can override it.").sighup().with(ROW),
    Key::new("engine.weighers[].on_failure", Words(FAILURE), "", "\"refuse\"", "What is done when it fails; by default as plugin_failure.").sighup().with(ROW),
    Key::new("engine.cost_module", Text, "\"partial_hour\"", "\"revenue\"", "What the loss of a victim costs: partial_hour, num_instances, oldest_first, newest_first, priority_class, revenue, lowest_bid, fairness, remaining_lifetime (docs/plugins/cost-modules.md), or a plugin's name. The sufficient set of victims with the least sum goes.").sighup(),
    Key::new("engine.period_seconds", Whole, "3600", "60", "Length of a billing period, for partial_hour, revenue, fairness and the weigher partial_hour_sum.").unit("seconds").range(1.0, 31_622_400.0),
    Key::new("engine.horizon_seconds", Whole, "31536000", "2592000", "Age from which on instances are all equally old, for oldest_first. Longer than your instances live.").unit("seconds").range(1.0, 1e9),
    Key::new("engine.fairness_seconds", Whole, "600", "1200", "What each further victim of the same project costs more than the one before it, for fairness.").unit("seconds").range(1.0, 1e6),
    Key::new("engine.lifetime_model", Path, "", "\"/etc/ebbtide/work.json\"", "How long preemptible instances run without interruption, for the cost module remaining_lifetime, which needs it: a file as ebbtide-lab model fit --end stopped --output json writes it, for all and by flavor, zone or both. Read with the configuration.").sighup(),
    Key::new("engine.interruption_model", Path, "", "\"/etc/ebbtide/interruptions.json\"", "How soon preemptible instances are interrupted, for the weigher interruption_risk, which needs it: a file as ebbtide-lab model fit --method mle --output json writes it, for all and by flavor, zone or both. Read with the configuration.").sighup(),
    Key::new("engine.risk_horizon_seconds", Whole, "3600", "14400", "How long a preemptible instance is thought to run whose flavor does not say it (ebbtide:expected_seconds), for interruption_risk.").unit("seconds").range(1.0, 31_536_000.0).sighup(),
    Key::new("engine.host_subset_size", Whole, "1", "3", "Choose at random among so many of the best hosts (Nova's option). With tiered only among hosts that are equal but for their weights, with first-fit not at all.").range(1.0, f64::INFINITY),
    Key::new("engine.shuffle_best_same_weighed_hosts", Switch, "false", "true", "Shuffle the hosts that share the best weight (Nova's option)."),
    Key::new("engine.plugin_failure", Words(FAILURE), "\"ignore\"", "\"refuse\"", "What is done when a weigher or cost module fails. ignore: go on without it for this request (every victim costs 1) and say so in the explanation. refuse: refuse the request.").sighup(),
    Key::new("engine.cost_module_failure", Words(FAILURE), "", "\"refuse\"", "What is done when the cost module fails; by default as plugin_failure.").sighup(),
    Key::new("engine.max_solver_nodes", Whole, "200000", "1000000", "Nodes of the victim search that one request may spend in all before it stops with a proven gap; a node takes 1 to 10 µs.").unit("nodes").range(1.0, f64::INFINITY),
    Key::new("engine.explain_hosts", Whole, "10", "50", "How many of the best hosts an explanation lists.").range(0.0, 1000.0),
    Key::new("engine.explain_dropped", Whole, "5", "20", "How many of the hosts that each filter dropped an explanation names.").range(0.0, 1000.0),
    Key::new("shadow.policy", Words(&["tiered", "nova", "first-fit"]), "", "\"nova\"", "Another way to decide that is only looked at: with any key of [shadow] set, every decision is made a second time without effect, and ebbtide plugin shadow-report shows where it would have been another. This one: instead of engine.policy.").sighup(),
    Key::new("shadow.weighers[].name", Text, "", "\"ram\"", "In shadow: a weigher in use. A list here takes the place of engine.weighers.").required().sighup().with("[[shadow.weighers]]\nname = \"ram\"\n"),
    Key::new("shadow.weighers[].multiplier", Number, "", "2.0", "In shadow: how much it counts; by default what the weigher itself says.").sighup().with("[[shadow.weighers]]\nname = \"ram\"\n"),
    Key::new("shadow.weighers[].on_failure", Words(FAILURE), "", "\"refuse\"", "In shadow: what is done when it fails; by default as plugin_failure.").sighup().with("[[shadow.weighers]]\nname = \"ram\"\n"),
    Key::new("shadow.cost_module", Text, "", "\"revenue\"", "In shadow: instead of engine.cost_module.").sighup(),
    Key::new("plugins[].name", Text, "", "\"spread_racks\"", "The plugin's name: in engine.weighers or engine.cost_module, in explanations, and before _weight_multiplier in the metadata of aggregates. Small letters, digits and _; unique.").required().sighup().with(PLUGIN),
    Key::new("plugins[].file", Path, "", "\"/etc/ebbtide/plugins/spread_racks.wasm\"", "The WebAssembly component. The scheduler does not start if it cannot be read. A plugin has either a file or an address.").sighup().with("[[plugins]]\nname = \"spread_racks\"\n"),
    Key::new("plugins[].address", Text, "", "\"unix:/run/ebbtide/forecast.sock\"", "Where the service is that has it, instead of a file: http://HOST:PORT, https://HOST:PORT or unix:/PATH. If it does not answer when the scheduler starts, the plugin is missing until it does; with on_failure = refuse the scheduler does not start.").sighup().with("[[plugins]]\nname = \"forecast\"\n"),
    Key::new("plugins[].plugin", Text, "", "\"forecast_v2\"", "With an address: what the service calls it; by default its name.").sighup().with(SERVICE),
    Key::new("plugins[].deadline_ms", Whole, "100", "50", "With an address: how long one call may take. Decisions wait for it.").unit("milliseconds").range(1.0, 60_000.0).sighup().with(SERVICE),
    Key::new("plugins[].in_flight", Whole, "8", "2", "With an address: how many calls there may be at a time; one more fails at once.").unit("calls").range(1.0, 1024.0).sighup().with(SERVICE),
    Key::new("plugins[].ca_file", Path, "", "\"/etc/ebbtide/ca.pem\"", "With https: whom to trust, in PEM; by default those whom the system trusts.").sighup().with(SERVICE),
    Key::new("plugins[].certificate_file", Path, "", "\"/etc/ebbtide/client.pem\"", "With https: the certificate that says who the scheduler is, in PEM, with key_file.").sighup().with("[[plugins]]\nname = \"forecast\"\naddress = \"https://forecast.example:7480\"\nkey_file = \"/etc/ebbtide/client.key\"\n"),
    Key::new("plugins[].key_file", Path, "", "\"/etc/ebbtide/client.key\"", "With https: the key of that certificate, in PEM.").sighup().with("[[plugins]]\nname = \"forecast\"\naddress = \"https://forecast.example:7480\"\ncertificate_file = \"/etc/ebbtide/client.pem\"\n"),
    Key::new("plugins[].shadow", Switch, "false", "true", "In shadow: it is asked about every request and decides nothing; ebbtide plugin shadow-report shows what it would have changed.").sighup().with(PLUGIN),
    Key::new("plugins[].enabled", Switch, "true", "false", "Whether it is used. It is read and checked all the same.").sighup().with(PLUGIN),
    Key::new("plugins[].multiplier", Number, "", "2.0", "How much a weigher counts, unless engine.weighers or an aggregate says something else; by default what it says itself.").sighup().with(PLUGIN),
    Key::new("plugins[].on_failure", Words(FAILURE), "", "\"refuse\"", "What is done when it fails; by default as engine.plugin_failure.").sighup().with(PLUGIN),
    Key::new("plugins[].memory_mb", Whole, "64", "128", "Memory that one call may take.").unit("MiB").range(1.0, 4096.0).sighup().with(PLUGIN),
    Key::new("plugins[].work_million", Whole, "20", "100", "Work of one call, whatever the number of hosts; a unit is about one instruction.").unit("million units").range(1.0, 100_000.0).sighup().with(PLUGIN),
    Key::new("plugins[].work_per_row", Whole, "20000", "50000", "Work for each host or candidate besides.").unit("units").sighup().with(PLUGIN),
    Key::new("plugins[].grants", List, "", "[\"clock\"]", "What it gets beyond its input: clock, randomness. By default nothing; with either its answers may differ from call to call.").sighup().with(PLUGIN),
    Key::new("plugins[].settings", Table, "", "{ key = \"rack\" }", "What its author lets the operator set; all text.").sighup().with(PLUGIN),
];
