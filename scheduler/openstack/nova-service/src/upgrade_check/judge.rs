//! What the facts mean for a scheduler that is to start.

use super::{CheckInput, CheckResult, NovaFacts, UpgradeFacts, Verdict};
use ebbtide_bus::QueueUse;
use ebbtide_model::flavor::{MAX_LIFETIME_SECONDS, PREEMPTIBLE, is_preemptible};
use ebbtide_model::{FlavorProperties, Resources, Seconds};
use ebbtide_nova_db::{FlavorSpecs, NovaRelease};
use ebbtide_store::SchemaState;
use std::collections::BTreeMap;

/// Names that a detail lists at most; the rest is a number.
const MOST_NAMES: usize = 5;

/// Judges each part, in the order in which a scheduler needs them.
#[must_use]
pub fn judge(facts: &UpgradeFacts) -> Vec<CheckResult> {
    let mut results = vec![configuration(&facts.configuration)];
    match &facts.nova {
        Ok(nova) => results.extend([
            cells(nova),
            release(nova, facts.deciding_as, facts.release_is_named),
            computes(nova),
        ]),
        Err(error) => results.push(failure("Nova's databases", error.clone(), DATABASES)),
    }
    results.push(differences(&facts.differences));
    results.push(placement(&facts.placement));
    results.extend(facts.compute.as_ref().map(compute));
    results.push(messages(&facts.messages));
    results.push(ledger(facts.ledger.as_ref()));
    if let Some(agents) = &facts.agents {
        results.push(self::agents(agents));
    }
    if let Ok(nova) = &facts.nova {
        results.extend([
            flavors(&nova.flavors, facts.default_grace),
            schedulers(nova),
        ]);
    }
    results
}

const DATABASES: &str =
    "correct [api_database] and [database] connection, or bring the database up";

fn success(check: &'static str, details: impl Into<String>) -> CheckResult {
    CheckResult {
        check,
        result: Verdict::Success,
        details: details.into(),
        next: None,
    }
}

fn warning(check: &'static str, details: impl Into<String>, next: &'static str) -> CheckResult {
    CheckResult {
        check,
        result: Verdict::Warning,
        details: details.into(),
        next: Some(next),
    }
}

fn failure(check: &'static str, details: impl Into<String>, next: &'static str) -> CheckResult {
    CheckResult {
        check,
        result: Verdict::Failure,
        details: details.into(),
        next: Some(next),
    }
}

/// `1 host`, `2 hosts`.
fn count(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// The first few names, and how many more there are.
fn names<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(MOST_NAMES).map(T::as_ref).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn configuration(errors: &[String]) -> CheckResult {
    match errors {
        [] => success("Configuration", "a scheduler starts with it"),
        errors => failure(
            "Configuration",
            errors.join("; "),
            "`ebbtide-manage config check FILE` names file and line",
        ),
    }
}

fn cells(nova: &NovaFacts) -> CheckResult {
    let check = "Nova's databases";
    let all = count(nova.cells, "cell");
    if nova.cells == 0 {
        return failure(
            check,
            "no cell is enabled",
            "`nova-manage cell_v2 list_cells` shows the cells",
        );
    }
    match nova.silent_cells.first() {
        None => success(check, format!("{all}, all answer")),
        Some((cell, error)) => {
            let silent = nova.silent_cells.len();
            let details = format!("{silent} of {all} do not answer, for example {cell}: {error}");
            warning(check, details, DATABASES)
        }
    }
}

fn release(nova: &NovaFacts, deciding_as: u32, is_named: bool) -> CheckResult {
    let check = "Release of Nova";
    let next = "set [ebbtide] nova_release to the major version of the cloud's Nova";
    let Some(shown) = nova.release else {
        let details = format!(
            "no service of Nova has a record yet; the scheduler decides as Nova {deciding_as} until one has"
        );
        return warning(check, details, next);
    };
    let version = shown.service_version;
    let details =
        format!("services of version {version}; the scheduler decides as Nova {deciding_as}");
    // Services of several releases can have the same version.
    if NovaRelease::of_major(deciding_as).service_version != shown.service_version {
        let details = format!("{details}, and the records show Nova {}", shown.major());
        return warning(check, details, "correct or unset [ebbtide] nova_release");
    }
    match shown.doubt().filter(|_| !is_named) {
        None => success(check, details),
        Some(doubt) => warning(check, doubt, next),
    }
}

fn computes(nova: &NovaFacts) -> CheckResult {
    let check = "Compute services";
    let found = nova.oldest_compute;
    if found == 0 {
        return warning(
            check,
            "there is no nova-compute yet",
            "register computes; until then every request gets NoValidHost",
        );
    }
    let needed = nova
        .release
        .unwrap_or_else(|| NovaRelease::of_version(0))
        .oldest_compute;
    let hosts = count(nova.computes.len(), "host");
    if found >= needed {
        return success(check, format!("{hosts}, the oldest of version {found}"));
    }
    let details =
        format!("a nova-compute has version {found}, and this release needs at least {needed}");
    let next = "upgrade it, or set [workarounds] disable_compute_service_check_for_ffu";
    match nova.tolerates_old_computes {
        true => warning(check, details, next),
        false => failure(check, details, next),
    }
}

fn differences(notes: &CheckInput<Vec<String>>) -> CheckResult {
    let check = "Options of nova-scheduler";
    match notes {
        Ok(notes) if notes.is_empty() => {
            success(check, "all that nova.conf sets have their effect")
        }
        Ok(notes) => warning(
            check,
            notes.join("; "),
            "docs/openstack/openstack.md says what is supported",
        ),
        Err(error) => failure(
            check,
            error.clone(),
            "docs/openstack/openstack.md says what is supported",
        ),
    }
}

fn placement(version: &CheckInput<String>) -> CheckResult {
    match version {
        Ok(version) => success("Placement", format!("answers up to microversion {version}")),
        Err(error) => failure(
            "Placement",
            error.clone(),
            "correct section [placement], or bring Keystone and Placement up",
        ),
    }
}

fn compute(asked: &CheckInput<()>) -> CheckResult {
    let check = "Nova's API";
    match asked {
        Ok(()) => success(
            check,
            "the user of [placement] may start and unshelve servers",
        ),
        Err(error) => warning(
            check,
            format!("no server comes back by itself, and no owner is warned early: {error}"),
            "give the user of [placement] the role admin, or set [ebbtide] comeback = false",
        ),
    }
}

fn messages(requests: &CheckInput<Option<QueueUse>>) -> CheckResult {
    let check = "Message broker";
    match requests {
        Ok(None) => success(check, "answers; no scheduler has declared its queue yet"),
        Ok(Some(used)) => success(
            check,
            format!(
                "answers; {} {}, {}",
                count(used.messages as usize, "request"),
                if used.messages == 1 { "waits" } else { "wait" },
                count(used.consumers as usize, "scheduler"),
            ),
        ),
        Err(error) => failure(
            check,
            error.clone(),
            "correct [DEFAULT] transport_url, or bring RabbitMQ up",
        ),
    }
}

fn ledger(state: Option<&CheckInput<SchemaState>>) -> CheckResult {
    let check = "Ledger";
    match state {
        None => warning(
            check,
            "[ebbtide] connection is not set: no server is ever preempted",
            "make a database and set [ebbtide] connection (docs/openstack/openstack.md#install)",
        ),
        Some(Err(error)) => failure(
            check,
            error.clone(),
            "correct [ebbtide] connection, or bring the database up",
        ),
        Some(Ok(SchemaState::Empty)) => success(
            check,
            "reachable and empty: the first start makes its tables",
        ),
        Some(Ok(SchemaState::Current)) => success(check, "reachable, its tables are current"),
        Some(Ok(SchemaState::Older { pending })) => success(
            check,
            format!(
                "reachable; the next start applies {}",
                count(*pending, "migration")
            ),
        ),
        Some(Ok(SchemaState::Newer { found })) => failure(
            check,
            format!("a newer program has migrated it ({found})"),
            "start that version, or restore the database from before the upgrade",
        ),
    }
}

fn agents(queues: &CheckInput<BTreeMap<String, Option<QueueUse>>>) -> CheckResult {
    let check = "Agents";
    let queues = match queues {
        Ok(queues) => queues,
        Err(error) => {
            return failure(
                check,
                error.clone(),
                "correct [ebbtide] bus_url, or bring the broker up",
            );
        }
    };
    let without: Vec<&String> = queues
        .iter()
        .filter(|(_, used)| used.is_none_or(|used| used.consumers == 0))
        .map(|(host, _)| host)
        .collect();
    let all = count(queues.len(), "compute host");
    match without.len() {
        0 => success(check, format!("{all}, each with an agent")),
        n => warning(
            check,
            format!("{n} of {all} have no agent: {}", names(&without)),
            "install ebbtide-agent there; until then no server of these hosts can be evacuated",
        ),
    }
}

fn flavors(flavors: &[FlavorSpecs], grace: Seconds) -> CheckResult {
    let check = "Flavors";
    let preemptible = flavors
        .iter()
        .filter(|flavor| is_preemptible(flavor.extra_specs.get(PREEMPTIBLE).map(String::as_str)))
        .count();
    let problems = flavors.iter().filter_map(|flavor| problem(flavor, grace));
    let wrong: Vec<String> = problems.collect();
    let all = format!(
        "{}, {preemptible} of them preemptible",
        count(flavors.len(), "flavor")
    );
    match wrong.len() {
        0 if preemptible == 0 => success(check, format!("{all}: no server will be preempted")),
        0 => success(check, all),
        _ => warning(
            check,
            format!("{all}; {}", names(&wrong)),
            "`openstack flavor set` corrects a key; servers that run keep the old flavor",
        ),
    }
}

/// What Ebbtide does not understand of a flavor, or cannot do.
fn problem(flavor: &FlavorSpecs, default_grace: Seconds) -> Option<String> {
    let specs = flavor.extra_specs.iter();
    let specs = specs.map(|(key, value)| (key.as_str(), value.as_str()));
    let mut read = FlavorProperties::of(Resources::new());
    let name = &flavor.name;
    match read.read_terms(specs) {
        Err(error) => Some(format!("{name}: {error}")),
        Ok(()) => {
            let (lifetime, grace) = (read.max_lifetime?, read.grace.unwrap_or(default_grace));
            (lifetime <= grace).then(|| {
                format!(
                    "{name}: {MAX_LIFETIME_SECONDS} is not longer than the grace period \
                     ({grace}) and has no effect (EB-DOOR-012)"
                )
            })
        }
    }
}

fn schedulers(nova: &NovaFacts) -> CheckResult {
    let check = "Schedulers";
    let up: Vec<&String> = nova.schedulers_up.iter().collect();
    match (nova.schedulers.len(), up.len()) {
        (0, _) => success(check, "none has a record yet"),
        (all, 0) => success(check, format!("none of {} is up", count(all, "record"))),
        (all, _) => success(
            check,
            format!(
                "up of {}: {}; records do not tell Nova's from ours",
                count(all, "record"),
                names(&up)
            ),
        ),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
