//! Following servers until they have arrived somewhere.
//!
//! The event stream makes it quick, asking the region now and then makes it sure: a stream may
//! break, lag, or hide what happens to other tenants' victims. The stream is never believed alone
//! for the end: what is shown at the end was asked for.

use ebbtide_client::{Events, Region};
use ebbtide_proto::v1::{self, watch_event::Event};
use ebbtide_shell::Context;
use ebbtide_shell::backoff::PollBackoff;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::render::{plural, relative, span};
use ebbtide_shell::resolve;
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often the region is asked while the stream works.
const POLL_WITH_EVENTS: Duration = Duration::from_secs(3);
/// How often it is asked where there is no stream.
const POLL_ALONE: Duration = Duration::from_millis(500);

/// Asks for one server until its status is one of those that `arrived` says.
///
/// # Errors
/// [`CliError::WaitTimeout`], or what the region says.
pub async fn until(
    context: &mut Context,
    region: &mut Region,
    id: &str,
    limit: Duration,
    arrived: impl Fn(&str) -> bool,
) -> Result<v1::Server, CliError> {
    let mut last = v1::Server {
        id: id.to_owned(),
        ..Default::default()
    };
    let mut patience = PollBackoff::default();
    let asking = async {
        loop {
            last = match get(region, id).await {
                Ok(server) => server,
                Err(error) if error.is_passing() => {
                    patience.pause(context, &error).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            patience.answered(context, "");
            if arrived(&last.status) {
                return Ok::<(), CliError>(());
            }
            tokio::time::sleep(POLL_ALONE).await;
        }
    };
    match tokio::time::timeout(limit, asking).await {
        Ok(done) => done.map(|()| last),
        Err(_) => Err(timeout(&last, limit)),
    }
}

fn timeout(server: &v1::Server, limit: Duration) -> CliError {
    let name = if server.name.is_empty() {
        &server.id
    } else {
        &server.name
    };
    CliError::WaitTimeout {
        name: name.clone(),
        status: server.status.clone(),
        seconds: limit.as_secs(),
    }
}

async fn get(region: &mut Region, id: &str) -> Result<v1::Server, CliError> {
    let request = v1::GetServerRequest { id: id.to_owned() };
    let answer = region.servers.get_server(request).await;
    let answer = answer.map_err(|status| CliError::from(status).hint(resolve::SERVER_HINT))?;
    Ok(answer.into_inner().server.unwrap_or_default())
}

/// True once waiting for `active` makes no more sense.
fn is_over(status: &str) -> bool {
    !matches!(status, "waiting" | "building" | "reserved")
}

/// Follows new servers until each is active or has failed, and tells the progress.
///
/// # Errors
/// [`CliError::NotActive`] for the first that failed, [`CliError::WaitTimeout`], or what the region
/// says.
pub async fn until_active(
    context: &mut Context,
    region: &mut Region,
    servers: &mut [v1::Server],
    mut events: Option<Events>,
    limit: Duration,
) -> Result<(), CliError> {
    let mut progress = Progress::new(context);
    let result = tokio::time::timeout(
        limit,
        follow(context, region, servers, &mut events, &mut progress),
    )
    .await;
    progress.end();
    match result {
        Ok(done) => done?,
        Err(_) => {
            let late = servers.iter().find(|server| !is_over(&server.status));
            return late.map_or(Ok(()), |server| Err(timeout(server, limit)));
        }
    }
    for server in servers.iter().filter(|server| server.status != "active") {
        // It may be a victim already; then it has been active.
        if server.status == "evacuating" {
            continue;
        }
        let why = match server.fault_message.as_str() {
            "" => String::new(),
            message => format!(": {message}"),
        };
        return Err(CliError::NotActive {
            name: server.name.clone(),
            status: server.status.clone(),
            why,
        });
    }
    Ok(())
}

async fn follow(
    context: &mut Context,
    region: &mut Region,
    servers: &mut [v1::Server],
    events: &mut Option<Events>,
    progress: &mut Progress,
) -> Result<(), CliError> {
    let mut leaving: BTreeMap<String, v1::Evacuation> = BTreeMap::new();
    let mut patience = PollBackoff::default();
    let mut ask = true;
    loop {
        if ask {
            match look(region, servers).await {
                Ok(found) => leaving = found,
                // The servers go on without us; so do we, until the time is over.
                Err(error) if error.is_passing() => {
                    patience.pause(context, &error).await;
                    continue;
                }
                Err(error) => return Err(error),
            }
            // The old stream has ended with the region that it came from.
            if patience.answered(context, "") {
                *events = Events::open(region, &context.project).await;
            }
        }
        progress.tell(context, servers, &leaving);
        if servers.iter().all(|server| is_over(&server.status)) {
            return Ok(());
        }
        let pause = if events.is_some() {
            POLL_WITH_EVENTS
        } else {
            POLL_ALONE
        };
        ask = match events.as_mut() {
            Some(stream) => tokio::select! {
                event = stream.next() => match event {
                    Some(event) => take(event, servers, &mut leaving),
                    None => {
                        *events = None;
                        true
                    }
                },
                () = tokio::time::sleep(pause) => true,
            },
            None => {
                tokio::time::sleep(pause).await;
                true
            }
        };
    }
}

/// Asks for those that are not there yet, and for what they wait for.
async fn look(
    region: &mut Region,
    servers: &mut [v1::Server],
) -> Result<BTreeMap<String, v1::Evacuation>, CliError> {
    for server in servers.iter_mut().filter(|server| !is_over(&server.status)) {
        *server = get(region, &server.id).await?;
    }
    evacuations(region, servers).await
}

/// Takes note of an event; true if the region should be asked.
fn take(
    event: Event,
    servers: &mut [v1::Server],
    leaving: &mut BTreeMap<String, v1::Evacuation>,
) -> bool {
    match event {
        Event::Server(changed) => {
            let ours = servers.iter_mut().find(|server| server.id == changed.id);
            let Some(server) = ours else { return false };
            // Asked for again before it counts as the end: the answer has every field. Also if it
            // goes back: events that are older than the last answer come after it.
            let ask = is_over(&changed.status) || way(&changed.status) < way(&server.status);
            if !ask {
                *server = changed;
            }
            ask
        }
        Event::Evacuation(changed) => {
            if servers
                .iter()
                .any(|server| server.id == changed.preemptor_id)
            {
                if is_final(&changed.state) {
                    leaving.remove(&changed.id);
                } else if leaving
                    .get(&changed.id)
                    .is_none_or(|known| gone(known) <= gone(&changed))
                {
                    leaving.insert(changed.id.clone(), changed);
                }
            }
            false
        }
        Event::Lagged(_) => true,
        Event::Decision(_) | Event::Host(_) => false,
    }
}

/// How far a server that is not there yet has come.
fn way(status: &str) -> u8 {
    match status {
        "waiting" => 0,
        "building" => 1,
        _ => 2,
    }
}

/// How far an evacuation has come: it never goes back.
fn gone(evacuation: &v1::Evacuation) -> usize {
    let times = [&evacuation.notified_at, &evacuation.draining_at];
    times.iter().filter(|time| !time.is_empty()).count()
}

fn is_final(state: &str) -> bool {
    matches!(state, "evacuated" | "spared" | "failed")
}

/// The evacuations that the waiting ones wait for.
async fn evacuations(
    region: &mut Region,
    servers: &[v1::Server],
) -> Result<BTreeMap<String, v1::Evacuation>, CliError> {
    let mut leaving = BTreeMap::new();
    for server in servers.iter().filter(|server| server.status == "waiting") {
        let request = v1::ListEvacuationsRequest {
            server_id: server.id.clone(),
            active_only: true,
            ..Default::default()
        };
        let found = region
            .servers
            .list_evacuations(request)
            .await?
            .into_inner()
            .evacuations;
        leaving.extend(
            found
                .into_iter()
                .map(|evacuation| (evacuation.id.clone(), evacuation)),
        );
    }
    Ok(leaving)
}

/// A spinner on a terminal, else a line for each change.
struct Progress {
    spinner: Option<ProgressBar>,
    told: BTreeSet<String>,
}

impl Progress {
    fn new(context: &Context) -> Self {
        let spinner = context.output.may_draw().then(|| {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        Self {
            spinner,
            told: BTreeSet::new(),
        }
    }

    fn tell(
        &mut self,
        context: &mut Context,
        servers: &[v1::Server],
        leaving: &BTreeMap<String, v1::Evacuation>,
    ) {
        let now = context.output.now();
        let lines = servers.iter().map(|server| {
            let evacuations: Vec<&v1::Evacuation> = leaving
                .values()
                .filter(|e| e.preemptor_id == server.id)
                .collect();
            (line(server, &evacuations), evacuations)
        });
        if let Some(spinner) = &self.spinner {
            let text: Vec<String> = lines
                .map(|(line, evacuations)| match last_deadline(&evacuations) {
                    Some(deadline) => {
                        format!("{line}, the last deadline {}", relative(deadline, now))
                    }
                    None => line,
                })
                .collect();
            spinner.set_message(text.join("; "));
            return;
        }
        for (line, evacuations) in lines {
            if self.told.insert(line.clone()) {
                let more = match (last_deadline(&evacuations), grace(&evacuations)) {
                    (Some(deadline), _) => {
                        format!(", the last deadline {}", relative(deadline, now))
                    }
                    (None, Some(seconds)) => {
                        format!(", grace period {}", span(u64::from(seconds)))
                    }
                    (None, None) => String::new(),
                };
                context.output.say(&format!("{line}{more}"));
            }
        }
    }

    fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// The latest end of a grace period, as far as one is known.
fn last_deadline<'a>(evacuations: &[&'a v1::Evacuation]) -> Option<&'a str> {
    let deadlines = evacuations.iter().map(|e| e.deadline_at.as_str());
    deadlines.filter(|deadline| !deadline.is_empty()).max()
}

/// The longest grace period, in seconds.
fn grace(evacuations: &[&v1::Evacuation]) -> Option<u32> {
    evacuations.iter().map(|e| e.grace_seconds).max()
}

/// Where a server is, in words that change only when something has happened.
fn line(server: &v1::Server, evacuations: &[&v1::Evacuation]) -> String {
    let name = &server.name;
    let host = if server.host.is_empty() {
        "its host"
    } else {
        &server.host
    };
    match server.status.as_str() {
        "waiting" if !evacuations.is_empty() => {
            let mut states: BTreeMap<&str, usize> = BTreeMap::new();
            for evacuation in evacuations {
                *states.entry(evacuation.state.as_str()).or_default() += 1;
            }
            let states: Vec<String> = states
                .iter()
                .map(|(state, count)| format!("{count} {state}"))
                .collect();
            format!(
                "{name}: waiting for {} on {host}: {}",
                plural(evacuations.len(), "evacuation"),
                states.join(", ")
            )
        }
        "waiting" => format!("{name}: waiting for capacity on {host}"),
        "building" => format!("{name}: building on {host}"),
        "active" => format!("{name}: active on {host}"),
        other => format!("{name}: {other}"),
    }
}
