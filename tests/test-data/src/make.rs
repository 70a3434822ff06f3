//! The generators. Each writes the columns of the real file, with chance in the place of what was
//! measured.

use crate::random::SeededRng;
use crate::zstd::frame;
use std::fmt::Write;

/// All files that can be made.
pub(crate) const FILES: [&str; 8] = [
    "goog-preemption/preemptions.csv",
    "ec2-spot-2010/spot_2009-11_2010-11.csv.zst",
    "huawei-vmagent-requests/requests.csv",
    "huawei-vmagent-requests/placement_firstfit.csv.zst",
    "yahoo-hawk-subtraces/YH1_sub.tr.zst",
    "yahoo-hawk-subtraces/YH_synthetic_seed25.tr.zst",
    "google2011-subtrace-hawk/GOOG_subtrace.tr.zst",
    "spot-traces-skypilot/spot_traces_runs.csv",
];

const DAY: f64 = 86_400.0;
const HOUR: f64 = 3_600.0;

pub(crate) fn file(name: &str) -> Vec<u8> {
    match name {
        "goog-preemption/preemptions.csv" => lifetimes().into_bytes(),
        "ec2-spot-2010/spot_2009-11_2010-11.csv.zst" => frame(prices().as_bytes()),
        "huawei-vmagent-requests/requests.csv" => Requests::make().text().into_bytes(),
        "huawei-vmagent-requests/placement_firstfit.csv.zst" => {
            frame(Requests::make().first_fit().as_bytes())
        }
        "yahoo-hawk-subtraces/YH1_sub.tr.zst" => frame(jobs(1).as_bytes()),
        "yahoo-hawk-subtraces/YH_synthetic_seed25.tr.zst" => frame(jobs(25).as_bytes()),
        "google2011-subtrace-hawk/GOOG_subtrace.tr.zst" => frame(jobs(2011).as_bytes()),
        "spot-traces-skypilot/spot_traces_runs.csv" => availability().into_bytes(),
        other => panic!("there is no generator for a reduced {other}; it can make {FILES:?}"),
    }
}

/// A line of a table that is built in memory.
macro_rules! line {
    ($text:expr, $($arguments:tt)*) => {
        writeln!($text, $($arguments)*).unwrap_or_else(|_| unreachable!("memory takes all text"))
    };
}

/// Lives by the bathtub model with A = 0.45, τ₁ = 1 h, τ₂ = 0.8 h, b = 24 h; half of them stopped
/// by their owners.
fn lifetimes() -> String {
    let mut chance = SeededRng::of(1);
    let mut text = String::from(
        "name,zone,machine_type,preemptible,insert_start,insert_end,end_time,end_event,end_user,time_in_sec,day_of_week,hr_of_day,idle\n",
    );
    for n in 0..1_000 {
        let life = bathtub(chance.part());
        let stop = chance.between(0.0, 2.0 * 24.0);
        let (hours, event, user) = if life <= stop {
            (life, "preempted", "system")
        } else {
            (stop, "stop", "user")
        };
        let cpus = chance.one_of(&[2, 4, 8, 16, 32]);
        let zone = chance.one_of(&["us-central1-c", "us-east1-b", "us-west1-a"]);
        // Sixteen rows whose source lacked a column: an address stands in the place of the flag.
        let preemptible = if n % 63 == 7 { "10.0.0.1" } else { "true" };
        let asked = chance.between(0.0, 28.0) * DAY;
        let end = asked + 20.0 + hours * HOUR;
        let idle = if n % 43 == 3 { "idle" } else { "non-idle" };
        line!(
            text,
            "vm{n},{zone},n1-highcpu-{cpus},{preemptible},{},{},{},{event},{user},{:.3},{},{},{idle}",
            in_march(asked),
            in_march(asked + 20.0),
            in_march(end),
            hours * HOUR,
            // 1 March 2019 was a Friday.
            [
                "Friday",
                "Saturday",
                "Sunday",
                "Monday",
                "Tuesday",
                "Wednesday",
                "Thursday"
            ][whole(end / DAY) % 7],
            whole(end / HOUR) % 24
        );
    }
    text
}

/// The time at which this part of all lives has ended.
fn bathtub(part: f64) -> f64 {
    let ended = |t: f64| 0.45 * (1.0 - (-t).exp() + ((t - 24.0) / 0.8).exp());
    let (mut low, mut high) = (0.0, 24.5);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if ended(middle) < part {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// A moment after the beginning of March 2019.
fn in_march(seconds: f64) -> String {
    let ms = whole(seconds * 1_000.0);
    let (day, ms) = (ms / 86_400_000, ms % 86_400_000);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    format!(
        "2019-03-{:02}T{hour:02}:{minute:02}:{:02}.{:03}-08:00",
        1 + day,
        ms / 1_000 % 60,
        ms % 1_000
    )
}

// Small numbers that are never negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> usize {
    number as usize
}

/// Four types whose prices wander about a level, with hours in which they are three times as high.
fn prices() -> String {
    let mut chance = SeededRng::of(2);
    let mut text = String::from("region,os,instance_type,unix_ts_utc,price_usd_per_hour\n");
    for (region, kind, level) in [
        ("ap-southeast-1", "c1.medium", 0.08),
        ("eu-west-1", "m1.xlarge", 0.30),
        ("us-east-1", "m1.small", 0.03),
        ("us-west-1", "m2.2xlarge", 0.58),
    ] {
        let mut at = 1_271_800_000.0;
        let end = at + 200.0 * DAY;
        let mut dear_until = 0.0;
        while at < end {
            if chance.part() < 0.01 {
                dear_until = at + chance.between(1.0, 12.0) * HOUR;
            }
            let times = if at < dear_until { 3.0 } else { 1.0 };
            let price = level * times * chance.between(0.92, 1.08);
            line!(text, "{region},linux,{kind},{},{price:.3}", whole(at));
            at += chance.between(0.5, 4.0) * HOUR;
        }
    }
    text
}

struct Event {
    create: bool,
    vm: usize,
    cpu: u32,
    mem: u32,
    at: f64,
}

/// Requests that fill ten hosts of 40 CPUs and 90 GB, and a little more.
struct Requests(Vec<Event>);

impl Requests {
    fn make() -> Self {
        let mut chance = SeededRng::of(3);
        let mut events = Vec::new();
        let mut now = 0.0;
        for vm in 0..700 {
            now += chance.pause(120.0);
            let (cpu, mem) = chance.one_of(&[(2, 4), (4, 8), (8, 16), (8, 32), (16, 32)]);
            // Few at first, so that a long beginning has room for all.
            let life = if vm < 150 { HOUR } else { 2.2 * HOUR };
            let end = now + chance.between(0.3, 1.7) * life;
            for (create, at) in [(true, now), (false, end)] {
                events.push(Event {
                    create,
                    vm,
                    cpu,
                    mem,
                    at,
                });
            }
        }
        events.sort_by(|a, b| a.at.total_cmp(&b.at));
        Self(events)
    }

    fn text(&self) -> String {
        let mut text = String::from("seq,event,vm,cpu,mem_gb,time_s,cpu_mul,is_double_numa\n");
        for (seq, event) in self.0.iter().enumerate() {
            let Event {
                vm, cpu, mem, at, ..
            } = event;
            line!(text, "{seq},{},{vm},{cpu},{mem},{at:.3},1,0", word(event));
        }
        text
    }

    /// What a plain first fit does with them, up to the first request for which there is no room.
    fn first_fit(&self) -> String {
        let mut text = String::from("seq,event,vm,action");
        for host in 0..10 {
            let (server, numa) = (host / 2, host % 2);
            write!(text, ",s{server}n{numa}_cpu,s{server}n{numa}_mem")
                .unwrap_or_else(|_| unreachable!("memory takes all text"));
        }
        text.push('\n');
        let mut free = [(40_u32, 90_u32); 10];
        let mut places = vec![None; self.0.len()];
        for (seq, event) in self.0.iter().enumerate() {
            let place = if event.create {
                free.iter()
                    .position(|(cpu, mem)| event.cpu <= *cpu && event.mem <= *mem)
            } else {
                places[event.vm]
            };
            let Some(place) = place else { break };
            let (cpu, mem) = &mut free[place];
            if event.create {
                (*cpu, *mem) = (*cpu - event.cpu, *mem - event.mem);
                places[event.vm] = Some(place);
            } else {
                (*cpu, *mem) = (*cpu + event.cpu, *mem + event.mem);
            }
            let states: Vec<String> = free
                .iter()
                .map(|(cpu, mem)| format!("{cpu},{mem}"))
                .collect();
            line!(
                text,
                "{seq},{},{},{place},{}",
                word(event),
                event.vm,
                states.join(",")
            );
        }
        text
    }
}

fn word(event: &Event) -> &'static str {
    if event.create { "create" } else { "delete" }
}

/// Jobs of a small cluster: one in ten is long and wide, the others are short.
fn jobs(seed: u64) -> String {
    let mut chance = SeededRng::of(seed);
    let mut text = String::new();
    let mut now = 0.0;
    for _ in 0..400 {
        now += chance.pause(20.0);
        let (tasks, mean) = if chance.below(10) == 0 {
            (20 + chance.below(40), chance.between(300.0, 900.0))
        } else {
            (2 + chance.below(6), chance.between(2.0, 40.0))
        };
        write!(text, "{now:.3} {tasks} {mean:.4}")
            .unwrap_or_else(|_| unreachable!("memory takes all text"));
        for _ in 0..tasks {
            let seconds = mean * chance.between(0.8, 1.2);
            write!(text, " {seconds:.4}").unwrap_or_else(|_| unreachable!("memory takes all text"));
        }
        text.push('\n');
    }
    text
}

/// Ten days of three zones, every ten minutes: periods with and without spot servers.
fn availability() -> String {
    let folder = "availability/1-node/made-up";
    let mut chance = SeededRng::of(34);
    let mut text = String::from("kind,file,gap_s,start_tick,ticks,value\n");
    for (zone, without) in [("a", 2.0), ("b", 12.0), ("c", 60.0)] {
        let (mut start, mut value) = (0, 0);
        while start < 1_440 {
            let mean = if value == 0 { without } else { 24.0 };
            let ticks = (1 + whole(chance.pause(mean))).min(1_440 - start);
            line!(
                text,
                "availability,{folder}/zone-{zone}.json,600,{start},{ticks},{value}"
            );
            start += ticks;
            value = 1 - value;
        }
    }
    text
}
