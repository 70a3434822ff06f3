use crate::books::ServerBook;
use ebbtide_model::{
    Comeback, Flavor, FlavorId, MessageId, SavedState, Seconds, Server, ServerId, ServerStatus,
    Timestamp,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const GRACE: Seconds = Seconds(30);

#[derive(Debug, Clone)]
enum Operation {
    Put(Box<Server>, i64),
    Started(ServerId, i64),
    Limit(String, i64),
    Rest(ServerId, i64),
    ForgetRests(i64),
    Extend(String, i64),
    /// Ignored unless the server is to be started or deleted, as in the region.
    Sent(ServerId, MessageId),
    Waits(ServerId),
    Published(MessageId),
    Deleted(ServerId, i64),
    ForgetDeleted(i64),
}

fn id(n: u128) -> ServerId {
    ServerId(Uuid::from_u128(n))
}

fn at(n: i64) -> Timestamp {
    Timestamp::from_millis(n * 1000)
}

fn host(n: i64) -> String {
    format!("host-{n}")
}

/// A flavor with a maximum lifetime, or without one.
fn flavor(limited: bool) -> Flavor {
    let lifetime = ("ebbtide:max_lifetime_seconds".to_owned(), "40".to_owned());
    Flavor {
        id: FlavorId(Uuid::from_u128(u128::from(limited))),
        name: "f".to_owned(),
        vcpus: 1,
        ram_mb: 1,
        disk_gb: 0,
        extra_specs: [("ebbtide:preemptible".to_owned(), "true".to_owned())]
            .into_iter()
            .chain(limited.then_some(lifetime))
            .collect(),
    }
}

fn status() -> impl Strategy<Value = ServerStatus> {
    prop_oneof![
        4 => Just(ServerStatus::Waiting),
        2 => Just(ServerStatus::Building),
        3 => Just(ServerStatus::Active),
        1 => Just(ServerStatus::Evacuating),
        1 => Just(ServerStatus::Deleting),
        2 => Just(ServerStatus::Stopped),
        1 => Just(ServerStatus::Hibernated),
        1 => Just(ServerStatus::Error),
        1 => Just(ServerStatus::Reserved),
        1 => Just(ServerStatus::Preempted),
        1 => Just(ServerStatus::Deleted),
    ]
}

fn comeback() -> impl Strategy<Value = Option<Comeback>> {
    let resumed_at = proptest::option::of((0i64..5).prop_map(at));
    proptest::option::of(resumed_at.prop_map(|resumed_at| Comeback {
        saved_state: SavedState::Stopped,
        since: at(0),
        not_before: at(1),
        preempted: 1,
        tries: 0,
        reason: None,
        resumed_at,
        storage: None,
    }))
}

fn server() -> impl Strategy<Value = Server> {
    let place = (proptest::option::of(0i64..3), 0u8..3);
    let life = (any::<bool>(), proptest::option::of(0i64..5), comeback());
    (0u128..6, place, status(), 0i64..3, life).prop_map(
        |(n, (on, project), status, created, (limited, launched, comeback))| Server {
            id: id(n),
            name: "s".to_owned(),
            project_id: format!("project-{project}"),
            flavor: flavor(limited),
            group_id: None,
            availability_zone: None,
            host: on.map(host),
            status,
            external: false,
            decision_id: None,
            evacuation_id: None,
            created_at: at(created),
            launched_at: launched.map(at),
            ended_at: None,
            fault: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            refused_hosts: Vec::new(),
            max_price: None,
            left_hosts: BTreeMap::new(),
            last_message_at: None,
            reported_at: None,
            starts: 1,
            comeback,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let any_id = || (0u128..6).prop_map(id);
    let message = || (0u128..4).prop_map(|n| MessageId(Uuid::from_u128(n)));
    prop_oneof![
        8 => (server(), 0i64..5).prop_map(|(s, n)| Operation::Put(Box::new(s), n)),
        2 => (any_id(), 0i64..5).prop_map(|(id, n)| Operation::Started(id, n)),
        1 => (0i64..3, 0i64..5).prop_map(|(h, n)| Operation::Limit(host(h), n)),
        1 => (any_id(), 0i64..5).prop_map(|(id, n)| Operation::Rest(id, n)),
        1 => (0i64..5).prop_map(Operation::ForgetRests),
        1 => (0i64..3, 0i64..5).prop_map(|(h, n)| Operation::Extend(host(h), n)),
        2 => (any_id(), message()).prop_map(|(id, m)| Operation::Sent(id, m)),
        1 => any_id().prop_map(Operation::Waits),
        1 => message().prop_map(Operation::Published),
        1 => (any_id(), 0i64..5).prop_map(|(id, n)| Operation::Deleted(id, n)),
        1 => (0i64..5).prop_map(Operation::ForgetDeleted),
    ]
}

/// What a search through all records says.
#[derive(Default)]
struct Model {
    servers: BTreeMap<ServerId, Server>,
    patience: BTreeMap<ServerId, i64>,
    started: BTreeMap<ServerId, i64>,
    rests: BTreeMap<ServerId, i64>,
}

impl Model {
    fn put(&mut self, server: &Server, patience: i64) {
        let claim = |s: &Server| (s.status, s.host.clone(), s.created_at);
        let waits = server.status == ServerStatus::Waiting && server.host.is_some();
        let waited = self.servers.get(&server.id).map(claim) == Some(claim(server));
        if !waits {
            self.patience.remove(&server.id);
        } else if !waited {
            self.patience.insert(server.id, patience);
        }
        if server.status.is_gone() {
            self.servers.remove(&server.id);
            self.started.remove(&server.id);
            self.rests.remove(&server.id);
        } else {
            self.servers.insert(server.id, server.clone());
        }
    }

    fn on(&self, host: &str) -> impl Iterator<Item = &Server> {
        let there = self.servers.values();
        there.filter(move |s| s.host.as_deref() == Some(host))
    }

    /// Servers that wait on a host, the oldest request first.
    fn claims(&self, host: &str) -> Vec<ServerId> {
        let waiting = self.on(host).filter(|s| s.status == ServerStatus::Waiting);
        let order: BTreeSet<_> = waiting.map(|s| (s.created_at, s.id)).collect();
        order.into_iter().map(|(_, id)| id).collect()
    }

    fn is_called(&self, id: ServerId) -> bool {
        let asked = [ServerStatus::Building, ServerStatus::Deleting];
        self.servers
            .get(&id)
            .is_some_and(|s| asked.contains(&s.status))
    }
}

fn apply(book: &mut ServerBook, model: &mut Model, operation: Operation) {
    match operation {
        Operation::Put(server, patience) => {
            model.put(&server, patience);
            book.put(*server, at(patience));
        }
        Operation::Started(id, n) if book.contains_key(&id) => {
            assert_eq!(
                book.note_started(id, at(n)),
                model.started.insert(id, n).is_none()
            );
        }
        Operation::Started(..) => {}
        Operation::Limit(host, n) => {
            let ids: Vec<ServerId> = model.on(&host).map(|s| s.id).collect();
            for id in ids {
                model.started.entry(id).and_modify(|at| *at = n.min(*at));
            }
            book.limit_started(&host, at(n));
        }
        Operation::Rest(id, n) => {
            let until = model.rests.entry(id).or_insert(n);
            *until = n.max(*until);
            book.rest_at_least(id, at(n));
        }
        Operation::ForgetRests(n) => {
            model.rests.retain(|_, until| *until > n);
            book.forget_rests(at(n));
        }
        Operation::Extend(host, n) => {
            for id in model.claims(&host) {
                model.patience.insert(id, n);
            }
            book.extend_claims(&host, at(n));
        }
        Operation::Sent(id, message) => {
            // Each message is about one server.
            book.calls_mut().published(message, at(0));
            if model.is_called(id) {
                book.calls_mut().sent(id, message, at(0));
            }
        }
        Operation::Waits(id) if model.is_called(id) => book.calls_mut().waits(id, at(0)),
        Operation::Waits(_) => {}
        Operation::Published(message) => book.calls_mut().published(message, at(1)),
        Operation::Deleted(id, n) => book.deleted_mut().add(id, at(n)),
        Operation::ForgetDeleted(n) => book.deleted_mut().forget(at(n)),
    }
}

proptest! {
    #[test]
    fn the_indexes_of_servers_follow_from_the_records(
        operations in proptest::collection::vec(operation(), 0..60),
    ) {
        let mut book = ServerBook::new(GRACE);
        let mut model = Model::default();
        for operation in operations {
            apply(&mut book, &mut model, operation);
            prop_assert_eq!(book.audit(), Ok(()));
            prop_assert_eq!(book.len(), model.servers.len());
            for n in 0..6 {
                let id = id(n);
                prop_assert_eq!(book.get(&id), model.servers.get(&id));
                prop_assert_eq!(book.started_at(id), model.started.get(&id).copied().map(at));
                prop_assert_eq!(book.rests_until(id), model.rests.get(&id).copied().map(at));
            }
            for n in 0..3 {
                let project = format!("project-{n}");
                let of = model.servers.values().filter(|s| s.project_id == project);
                prop_assert_eq!(book.count_of(&project) as usize, of.count());
                let host = host(n);
                let there: Vec<&Server> = book.on(&host).collect();
                prop_assert_eq!(there, model.on(&host).collect::<Vec<_>>());
                let claims = model.claims(&host);
                prop_assert_eq!(book.claims().on(&host).collect::<Vec<_>>(), claims.clone());
                prop_assert_eq!(book.claims().contains(&host), !claims.is_empty());
                let mut late = claims;
                late.retain(|id| model.patience[id] <= 2);
                prop_assert_eq!(book.claims().overdue(&host, at(2)), late);
                let queue = book.resume_queue();
                let waiting = model.on(&host).filter(|s| s.waits_to_come_back());
                let waiting: Vec<ServerId> = waiting.map(|s| s.id).collect();
                prop_assert_eq!(queue.waiting_at(&host).collect::<Vec<_>>(), waiting);
            }
        }
    }
}
