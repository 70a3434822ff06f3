//! Tenant operations and queries for the tests.

use super::world::{IDS, InputFailure, SimulatedRegion};
use crate::{
    AdoptServer, CountingIds, CreateServers, CreatedServers, DeleteServer, RegionError, RegionInput,
};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::{
    CloudEvent, Decision, Evacuation, EvacuationState, Flavor, PlacementRequest, Server, ServerId,
    ServerStatus,
};

impl SimulatedRegion {
    // ---- tenants ----

    pub(super) fn command<C: RegionInput>(&mut self, command: C) -> Result<C::Reply, RegionError> {
        match self.input(command) {
            Ok(reply) => Ok(reply),
            Err(InputFailure::ByRegion(error)) => Err(error),
            Err(InputFailure::NotWritten) => panic!("no commit was to fail here"),
        }
    }

    pub(super) fn new_id(&mut self) -> ServerId {
        ServerId(self.next_uuid())
    }

    /// The decision about a request, which changes nothing.
    pub(super) fn what_if(&mut self, request: &PlacementRequest) -> Result<Decision, RegionError> {
        let now = self.now;
        self.region
            .what_if(now, &mut CountingIds::after(IDS), request)
    }

    pub(super) fn request(&mut self, flavor: &Flavor, count: usize) -> PlacementRequest {
        let preemptible = flavor.extra_specs.contains_key("ebbtide:preemptible");
        PlacementRequest {
            server_ids: (0..count).map(|_| self.new_id()).collect(),
            project_id: if preemptible { "cattle" } else { "pets" }.to_owned(),
            flavor: flavor.clone(),
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        }
    }

    pub(super) fn ask(
        &mut self,
        request: PlacementRequest,
    ) -> Result<(Vec<Server>, Decision), RegionError> {
        let create = CreateServers {
            quota: None,
            max_price: None,
            name: "vm".to_owned(),
            request,
            external: false,
        };
        match self.command(create)? {
            CreatedServers::New { servers, decision } => Ok((servers, *decision)),
            CreatedServers::Repeated(servers) => panic!("made before: {servers:?}"),
        }
    }

    /// Requests one server, and processes everything that needs no time.
    pub(super) fn create(&mut self, flavor: &Flavor) -> ServerId {
        let id = self.claim(flavor);
        self.flush();
        id
    }

    /// Requests one server; nothing is sent yet.
    pub(super) fn claim(&mut self, flavor: &Flavor) -> ServerId {
        let request = self.request(flavor, 1);
        let (servers, _) = self.ask(request).expect("a right request");
        servers[0].id
    }

    /// Requests one server on a certain host.
    pub(super) fn create_on(&mut self, host: &str, flavor: &Flavor) -> ServerId {
        let mut request = self.request(flavor, 1);
        request.force_hosts = vec![host.to_owned()];
        let (servers, _) = self.ask(request).expect("a right request");
        self.flush();
        servers[0].id
    }

    pub(super) fn adopt(&self, host: &str, flavor: &Flavor, id: ServerId) -> AdoptServer {
        AdoptServer {
            id,
            name: "old".to_owned(),
            project_id: "cattle".to_owned(),
            flavor: flavor.clone(),
            group: None,
            host: host.to_owned(),
            launched_at: None,
            start_now: true,
        }
    }

    pub(super) fn delete(&mut self, id: ServerId) {
        self.command(DeleteServer(id)).expect("it is there");
    }

    // ---- queries ----

    /// A server as the database has it.
    pub(super) fn server(&self, id: ServerId) -> &Server {
        &self.database.servers[&id]
    }

    pub(super) fn status(&self, id: ServerId) -> ServerStatus {
        self.server(id).status
    }

    pub(super) fn place(&self, id: ServerId) -> Option<&str> {
        self.server(id).host.as_deref()
    }

    /// All evacuations of a victim, the oldest first.
    pub(super) fn evacuations(&self, victim: ServerId) -> Vec<&Evacuation> {
        let mut all: Vec<&Evacuation> = self
            .database
            .evacuations
            .values()
            .filter(|e| e.victim_id == victim)
            .collect();
        all.sort_by_key(|e| (e.claimed_at, e.id));
        all
    }

    /// The newest evacuation of a victim.
    pub(super) fn evacuation(&self, victim: ServerId) -> &Evacuation {
        self.evacuations(victim)
            .last()
            .copied()
            .expect("it was chosen as a victim")
    }

    pub(super) fn state(&self, victim: ServerId) -> EvacuationState {
        self.evacuation(victim).state
    }

    /// True if the server runs on the host where it should.
    pub(super) fn runs(&self, id: ServerId) -> bool {
        self.place(id).is_some_and(|host| self.hosts[host].runs(id))
    }

    /// Messages of a kind that wait in the outbox.
    pub(super) fn unsent(&self, kind: &str) -> usize {
        let bodies = self.database.outbox.iter().map(|m| {
            Message::from_bytes(&m.body)
                .expect("what we send can be read")
                .body
        });
        bodies
            .filter(|body| body.event_type().contains(kind))
            .count()
    }

    /// A report of a host, as its agent writes it.
    pub(super) fn report(&mut self, host: &str, body: Body) -> Message {
        Message {
            id: ebbtide_model::MessageId(self.next_uuid()),
            source: format!("/ebbtide/agent/{host}"),
            time: self.now,
            body,
        }
    }

    /// Reasons why the region ignored reports.
    pub(super) fn ignored(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                CloudEvent::Ignored(why) => Some(why.as_str()),
                _ => None,
            })
            .collect()
    }
}
