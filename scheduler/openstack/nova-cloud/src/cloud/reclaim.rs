//! Hosts that an outside owner takes back.

use super::Cloud;
use super::instances::CloudInstance;
use ebbtide_engine::{Budgets, EngineError, HostEviction};
use ebbtide_model::{Reclaim, ServerId, StayReason, Timestamp};
use uuid::Uuid;

impl Cloud {
    /// The host of the nova-compute of a host in the API's lists.
    #[must_use]
    pub fn service_host(&self, name: &str) -> Option<String> {
        let place = self.named.get(name)?;
        Some(self.host_at(*place).host)
    }

    /// The hosts of the API's lists that belong to a nova-compute, in order.
    fn names_of(&self, service_host: &str) -> Vec<&str> {
        let nodes = self.nodes_of.get(service_host).into_iter().flatten();
        let places = nodes.filter_map(|uuid| self.nodes.get(uuid)?.place);
        let names = places.filter_map(|place| self.names.get(place));
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The (first) host of the API's lists that belongs to a nova-compute.
    #[must_use]
    pub fn name_of_service(&self, service_host: &str) -> Option<String> {
        self.names_of(service_host)
            .first()
            .map(|name| (*name).to_owned())
    }

    /// Whether the nova-compute of a host is disabled.
    #[must_use]
    pub fn is_disabled(&self, service_host: &str) -> bool {
        let service = self.services.get(service_host);
        service.is_some_and(|service| service.disabled)
    }

    /// What becomes of the servers of a reclaimed host. `silent`: its agent is not heard, so that
    /// no server gets a notice.
    ///
    /// # Errors
    /// The cost module fails, and its failures are not to be ignored.
    pub fn reclaim_plan(
        &self,
        service_host: &str,
        reclaim: &Reclaim,
        budgets: &Budgets,
        silent: bool,
        now: Timestamp,
    ) -> Result<HostEviction, EngineError> {
        let hold = |id: ServerId| {
            let instance = self.instances.get(&id.0)?;
            instance
                .stay_reason()
                .or_else(|| silent.then_some(StayReason::HostSilent))
        };
        let mut all = HostEviction::default();
        let mut reclaim = reclaim.clone();
        for name in self.names_of(service_host) {
            let table = &self.victims;
            let of_node = self
                .engine
                .empty_host(table, name, budgets, &reclaim, now, hold)?;
            for (id, cost) in &of_node.leave {
                reclaim.charge(*id, *cost);
            }
            all.leave.extend(of_node.leave);
            all.stay.extend(of_node.stay);
        }
        all.stay.extend(self.others_on(service_host));
        all.stay.sort_by_key(|(id, _)| *id);
        Ok(all)
    }

    /// The servers of a host that are not in the victims' table and are not leaving: normal ones,
    /// and preemptible ones that hold nothing in Placement yet.
    fn others_on(&self, service_host: &str) -> Vec<(ServerId, StayReason)> {
        let on_host = self
            .instances
            .iter()
            .filter(|(_, instance)| instance.record.host.as_deref() == Some(service_host));
        let others = on_host.filter(|(uuid, _)| {
            let id = ServerId(**uuid);
            self.victims.instance(id).is_none() && !self.leaving.contains(*uuid)
        });
        let named = others.map(|(uuid, instance)| {
            let why = match instance.terms {
                None => StayReason::Normal,
                Some(_) => StayReason::Starting,
            };
            (ServerId(*uuid), why)
        });
        named.collect()
    }

    /// Whether a server may still leave a reclaimed host: it is there, not leaving, and nothing of
    /// its own keeps it.
    #[must_use]
    pub fn may_be_reclaimed(&self, uuid: Uuid, service_host: &str) -> bool {
        let instance = self.instances.get(&uuid);
        self.may_leave(uuid, service_host)
            && instance.is_some_and(|it| it.terms.is_some() && it.stay_reason().is_none())
    }
}

impl CloudInstance {
    /// What keeps a preemptible server on its host, whatever its protected time and budgets say.
    fn stay_reason(&self) -> Option<StayReason> {
        if self.has_stopped() {
            Some(StayReason::Kept)
        } else if !self.is_free_to_go() {
            Some(StayReason::Busy)
        } else if self.record.launched_at.is_none() {
            Some(StayReason::Starting)
        } else {
            None
        }
    }
}
