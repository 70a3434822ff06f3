//! Random requests, most of which make sense: they follow a model of their own.

use ebbtide_placement_model::{Model, ModelRequest};
use serde_json::{Value, json};
use uuid::Uuid;

/// One request, as it is recorded.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) version: (u32, u32),
    pub(crate) body: Value,
}

impl RecordedRequest {
    pub(crate) fn line(&self) -> Value {
        let (major, minor) = self.version;
        json!({"method": self.method, "path": self.path, "version": format!("{major}.{minor}"), "body": self.body})
    }

    pub(crate) fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            method: self.method,
            path: &self.path,
            version: self.version,
            body: (!self.body.is_null()).then_some(&self.body),
        }
    }
}

const CLASSES: [&str; 3] = ["VCPU", "MEMORY_MB", "DISK_GB"];
const TRAITS: [&str; 3] = ["HW_CPU_X86_AVX2", "CUSTOM_GOLD", "CUSTOM_SILVER"];
const PROVIDERS: u128 = 3;
const CONSUMERS: u128 = 5;

pub(crate) fn provider(n: u128) -> Uuid {
    Uuid::from_u128(0xa000_0000_0000_4000_8000_0000_0000_0000 + n)
}

pub(crate) fn consumer(n: u128) -> Uuid {
    Uuid::from_u128(0xc000_0000_0000_4000_8000_0000_0000_0000 + n)
}

pub(crate) fn aggregate(n: u128) -> Uuid {
    Uuid::from_u128(0xe000_0000_0000_4000_8000_0000_0000_0000 + n)
}

/// Chance from a seed (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    fn provider(&mut self) -> Uuid {
        provider(u128::from(self.below(PROVIDERS as u64)))
    }

    fn consumer(&mut self) -> Uuid {
        consumer(u128::from(self.below(CONSUMERS as u64)))
    }
}

/// A sequence of requests; the same seed gives the same one.
pub(crate) fn sequence(seed: u64, length: usize) -> Vec<RecordedRequest> {
    let mut chance = Chance(seed);
    let mut model = Model::new();
    let mut all: Vec<RecordedRequest> = Vec::new();
    for name in &TRAITS[1..] {
        all.push(put(format!("/traits/{name}"), (1, 6), Value::Null));
    }
    for n in 0..PROVIDERS {
        let body = json!({"name": format!("host{n}"), "uuid": provider(n)});
        all.push(asked(
            "POST",
            "/resource_providers".to_owned(),
            (1, 36),
            body,
        ));
    }
    for asked in &all {
        model.ask(asked.request());
    }
    while all.len() < length {
        let next = one(&mut chance, &model);
        model.ask(next.request());
        all.push(next);
    }
    all.extend(everything());
    all
}

/// Reads everything.
fn everything() -> Vec<RecordedRequest> {
    let mut all = vec![get("/resource_providers".to_owned(), (1, 36))];
    for n in 0..PROVIDERS {
        let of = |what: &str| format!("/resource_providers/{}/{what}", provider(n));
        all.push(get(of("inventories"), (1, 36)));
        all.push(get(of("usages"), (1, 36)));
        all.push(get(of("traits"), (1, 6)));
        all.push(get(of("aggregates"), (1, 19)));
        all.push(get(of("allocations"), (1, 28)));
    }
    let consumers = (0..CONSUMERS).map(|n| get(format!("/allocations/{}", consumer(n)), (1, 28)));
    all.extend(consumers);
    all
}

fn asked(method: &'static str, path: String, version: (u32, u32), body: Value) -> RecordedRequest {
    RecordedRequest {
        method,
        path,
        version,
        body,
    }
}

fn get(path: String, version: (u32, u32)) -> RecordedRequest {
    asked("GET", path, version, Value::Null)
}

fn put(path: String, version: (u32, u32), body: Value) -> RecordedRequest {
    asked("PUT", path, version, body)
}

fn one(chance: &mut Chance, model: &Model) -> RecordedRequest {
    let at = chance.provider();
    let of = |what: &str| format!("/resource_providers/{at}/{what}");
    match chance.below(100) {
        0..8 => put(of("inventories"), (1, 36), inventories(chance, model, at)),
        8..12 => {
            let traits: Vec<&str> = TRAITS.into_iter().filter(|_| chance.percent(50)).collect();
            let generation = generation_of(chance, model, at);
            put(
                of("traits"),
                (1, 6),
                json!({"traits": traits, "resource_provider_generation": generation}),
            )
        }
        12..15 => {
            let all = (0..2).map(aggregate);
            let aggregates: Vec<Uuid> = all.filter(|_| chance.percent(50)).collect();
            let generation = generation_of(chance, model, at);
            let body =
                json!({"aggregates": aggregates, "resource_provider_generation": generation});
            put(of("aggregates"), (1, 19), body)
        }
        15..40 => {
            let consumer = chance.consumer();
            let empty = chance.percent(8);
            let body = claim(chance, model, consumer, empty);
            put(format!("/allocations/{consumer}"), (1, 36), body)
        }
        40..60 => {
            let mut body = serde_json::Map::new();
            for _ in 0..=chance.below(3) {
                let consumer = chance.consumer();
                let empty = chance.percent(40);
                body.insert(consumer.to_string(), claim(chance, model, consumer, empty));
            }
            asked(
                "POST",
                "/allocations".to_owned(),
                (1, 36),
                Value::Object(body),
            )
        }
        60..65 => asked(
            "DELETE",
            format!("/allocations/{}", chance.consumer()),
            (1, 0),
            Value::Null,
        ),
        65..70 => get(format!("/allocations/{}", chance.consumer()), (1, 28)),
        70..75 => get(of("allocations"), (1, 28)),
        75..79 => get(of("usages"), (1, 36)),
        79..82 => get(of("inventories"), (1, 36)),
        82..84 => get(format!("/resource_providers/{at}"), (1, 14)),
        84..86 => get(
            format!("/resource_providers?member_of={}", aggregate(0)),
            (1, 36),
        ),
        86..87 => asked(
            "DELETE",
            format!("/resource_providers/{at}"),
            (1, 36),
            Value::Null,
        ),
        87..88 => asked(
            "POST",
            "/resource_providers".to_owned(),
            (1, 36),
            json!({"name": format!("again-{at}"), "uuid": at}),
        ),
        _ => get(question(chance), (1, 36)),
    }
}

fn question(chance: &mut Chance) -> String {
    let mut query = format!("resources=VCPU%3A{}", 1 + chance.below(4));
    if chance.percent(60) {
        query = format!("{query}%2CMEMORY_MB%3A{}", 256 * (1 + chance.below(4)));
    }
    if chance.percent(30) {
        query = format!("{query}&required={}", TRAITS[chance.below(3) as usize]);
    }
    if chance.percent(20) {
        query = format!("{query}&member_of=in%3A{},{}", aggregate(0), aggregate(1));
    }
    format!("/allocation_candidates?{query}")
}

/// Mostly the right one.
fn generation_of(chance: &mut Chance, model: &Model, provider: Uuid) -> u64 {
    let known = model.provider(provider).map_or(0, |known| known.generation);
    if chance.percent(85) {
        known
    } else {
        known + chance.below(3)
    }
}

fn inventories(chance: &mut Chance, model: &Model, at: Uuid) -> Value {
    let mut all = serde_json::Map::new();
    for (class, unit) in CLASSES.into_iter().zip([1, 256, 1]) {
        if chance.percent(15) {
            continue;
        }
        let total = unit * (4 + chance.below(8));
        let mut inventory = json!({"total": total});
        if chance.percent(30) {
            inventory["reserved"] = json!(unit * chance.below(14));
        }
        if chance.percent(30) {
            inventory["allocation_ratio"] = json!([0.5, 1.5, 2.0, 16.0][chance.below(4) as usize]);
        }
        if chance.percent(30) {
            inventory["max_unit"] = json!(unit * (1 + chance.below(4)));
        }
        if chance.percent(15) {
            inventory["step_size"] = json!(unit * 2);
        }
        if chance.percent(15) {
            inventory["min_unit"] = json!(unit * 2);
        }
        all.insert(class.to_owned(), inventory);
    }
    json!({"inventories": all, "resource_provider_generation": generation_of(chance, model, at)})
}

fn claim(chance: &mut Chance, model: &Model, consumer: Uuid, empty: bool) -> Value {
    let known = model.consumer(consumer).map(|known| known.generation);
    let generation = match chance.below(100) {
        0..75 => json!(known),
        75..88 => json!(known.map_or(0, |known| known + 1)),
        _ => Value::Null,
    };
    let mut allocations = serde_json::Map::new();
    if !empty {
        for _ in 0..=u64::from(chance.percent(20)) {
            let mut resources = serde_json::Map::new();
            for (class, unit) in CLASSES.into_iter().zip([1, 256, 1]) {
                if chance.percent(75) || resources.is_empty() {
                    resources.insert(class.to_owned(), json!(unit * (1 + chance.below(4))));
                }
            }
            if chance.percent(2) {
                resources.insert("CUSTOM_UNHEARD".to_owned(), json!(1));
            }
            let at = if chance.percent(2) {
                provider(77)
            } else {
                chance.provider()
            };
            allocations.insert(at.to_string(), json!({"resources": resources}));
        }
    }
    let owner = chance.below(2);
    json!({
        "allocations": allocations,
        "project_id": format!("project{owner}"),
        "user_id": format!("user{owner}"),
        "consumer_generation": generation,
    })
}
