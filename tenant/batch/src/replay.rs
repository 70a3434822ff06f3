//! The same members on on-demand servers: what a report compares with.
//!
//! Each member takes as long as it worked in the end. A server is started for a member that finds
//! none, up to `most` at a time; it comes up after `boot`, runs members as long as some wait, and
//! is given back when it has been idle for `spare`. Members run in the order of their stages, and
//! stages after those that they wait for. On-demand servers are never taken.

use crate::book::{HOUR_MS, WorkBook};
use crate::work::MemberId;

/// What servers there are in a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayRules {
    /// Processors of a server.
    pub vcpus: u32,
    /// Memory of a server, MB.
    pub memory_mb: u64,
    /// What an hour costs, millionths.
    pub hourly: u64,
    /// Servers at a time.
    pub most: usize,
    /// How long a server takes to come up, milliseconds. That is paid.
    pub boot: i64,
    /// How long an idle server is kept, milliseconds. That is paid, too.
    pub spare: i64,
}

/// Result of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    /// From the submission to the end of the last member, milliseconds.
    pub makespan: i64,
    /// What the servers cost, millionths.
    pub cost: u64,
    /// Servers that were started.
    pub servers: usize,
}

#[derive(Debug, Clone)]
struct Server {
    started: i64,
    up: i64,
    /// What runs there: until when, processors, memory.
    running: Vec<(i64, u32, u64)>,
}

/// Runs the members of a work that are done on on-demand servers. Members that are not done take
/// `unknown` each.
#[must_use]
pub fn replay(book: &WorkBook, rules: &ReplayRules, unknown: i64) -> Replay {
    let mut servers: Vec<Server> = Vec::new();
    let (mut paid, mut started) = (0i64, 0usize);
    let stages = book.work.stages.len();
    let mut ends = vec![0i64; stages];
    // The order in which a scheduler with the same queue would take them.
    let mut begins: Vec<(i64, MemberId)> = Vec::new();
    for stage in 0..stages {
        let after = &book.work.stages[stage].after;
        let from = after.iter().map(|before| ends[*before]).max().unwrap_or(0);
        begins.clear();
        for index in 0..book.members[stage].len() {
            begins.push((from, MemberId { stage, index }));
        }
        for (ready, id) in &begins {
            let takes = book.member(*id).length().unwrap_or(unknown).max(0);
            let (cpus, memory) = (
                book.work.stages[stage].cpus,
                book.work.stages[stage].memory_mb,
            );
            let (at, server) = first_room(&mut servers, rules, *ready, cpus, memory, &mut paid);
            let server = server.unwrap_or_else(|| {
                servers.push(Server {
                    started: at - rules.boot,
                    up: at,
                    running: Vec::new(),
                });
                started += 1;
                servers.len() - 1
            });
            servers[server].running.push((at + takes, cpus, memory));
            ends[stage] = ends[stage].max(at + takes);
        }
    }
    let makespan = ends.into_iter().max().unwrap_or(0);
    for server in &servers {
        paid += last_end(server) - server.started;
    }
    Replay {
        makespan,
        cost: (paid as f64 / HOUR_MS * rules.hourly as f64).round() as u64,
        servers: started,
    }
}

fn last_end(server: &Server) -> i64 {
    let ends = server.running.iter().map(|(end, ..)| *end);
    ends.max().unwrap_or(server.up)
}

/// The earliest time at which a member has room, and the server; `None` for a new server. Servers
/// that are idle for too long by then are given back.
fn first_room(
    servers: &mut Vec<Server>,
    rules: &ReplayRules,
    ready: i64,
    cpus: u32,
    memory: u64,
    paid: &mut i64,
) -> (i64, Option<usize>) {
    servers.retain(|server| {
        let idle = last_end(server);
        let gone = idle + rules.spare < ready;
        if gone {
            *paid += idle + rules.spare - server.started;
        }
        !gone
    });
    let room_from = |server: &Server| {
        let mut times: Vec<i64> = server.running.iter().map(|(end, ..)| *end).collect();
        times.push(ready.max(server.up));
        times.sort_unstable();
        let free_at = |at: i64| {
            let running = server.running.iter().filter(|(end, ..)| *end > at);
            let used = running.fold((0u32, 0u64), |(c, m), (_, cpus, memory)| {
                (c + cpus, m + memory)
            });
            used.0 + cpus <= rules.vcpus && used.1 + memory <= rules.memory_mb
        };
        let earliest = ready.max(server.up);
        times.into_iter().find(|at| *at >= earliest && free_at(*at))
    };
    let best = servers
        .iter()
        .enumerate()
        .filter_map(|(at, server)| Some((room_from(server)?, at)))
        .min();
    let new = ready + rules.boot;
    match best {
        Some((at, server)) if at <= new || servers.len() >= rules.most => (at, Some(server)),
        _ => (new, None),
    }
}
