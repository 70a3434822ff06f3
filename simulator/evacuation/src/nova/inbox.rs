//! What agents say: acknowledged once it is in the ledger.

use super::ledger::LedgerWrite;
use super::world::NovaWorld;
use ebbtide_model::message::{Body, Message};
use ebbtide_preemption::PreemptionInput;
use uuid::Uuid;

impl NovaWorld {
    /// A scheduler reads a report. True if it was dealt with.
    pub(super) fn read_report(&mut self, who: usize) -> bool {
        if !self.schedulers[who].works() || !self.broker.up {
            return false;
        }
        let Some(message) = self.broker.reports.pop_front() else {
            return false;
        };
        self.event_log.fold_id(message.id.0);
        self.log_report(&message);
        let about = matches!(
            message.body,
            Body::Draining(_) | Body::Evacuated(_) | Body::EvacuationFailed(_) | Body::Spared(_)
        );
        if about && !self.deal_with(who, &message.body) {
            self.schedulers[who].rests = true;
            self.broker.reports.push_front(message);
            return false;
        }
        true
    }

    fn log_report(&mut self, message: &Message) {
        let Some(server) = message.body.server_id() else {
            return;
        };
        let kind = message.body.event_type();
        self.log(|s| format!("an agent reports: {kind} of {}", s.of(server.0)));
    }

    /// False if it has to come again.
    fn deal_with(&mut self, who: usize, body: &Body) -> bool {
        let server = body.server_id();
        let here = self.schedulers[who]
            .driven
            .iter()
            .find(|(_, d)| d.record.victims.iter().any(|v| Some(v.server) == server))
            .map(|(id, _)| *id);
        match here {
            Some(id) => {
                let driven = self.schedulers[who].driven.get(&id);
                if driven.is_some_and(|d| d.record.is_about_earlier_record(body)) {
                    self.spare_stranger(body);
                }
                self.feed(who, id, &PreemptionInput::Report(body)).is_ok()
            }
            None => self.write_elsewhere(who, body),
        }
    }

    /// Handles a report about a record that this scheduler does not drive.
    fn write_elsewhere(&mut self, who: usize, body: &Body) -> bool {
        let server = body.server_id();
        let open = self
            .ledger
            .rows
            .iter()
            .find(|(_, row)| row.record.victims.iter().any(|v| Some(v.server) == server));
        let Some((id, row)) = open.map(|(id, row)| (*id, row.clone())) else {
            if !self.broker.up {
                return false;
            }
            self.spare_stranger(body);
            return true;
        };
        self.write_into(who, id, row.version, row.record, body)
    }

    fn write_into(
        &mut self,
        who: usize,
        id: Uuid,
        version: u64,
        before: ebbtide_preemption::Preemption,
        body: &Body,
    ) -> bool {
        if before.is_about_earlier_record(body) {
            self.spare_stranger(body);
        }
        let mut record = before.clone();
        let policy = self.policy.clone();
        if !record.feed(&PreemptionInput::Report(body), self.clock(who), &policy) {
            return true;
        }
        let written = self.ledger.update(id, version, &record);
        if matches!(written, LedgerWrite::Updated(_)) {
            self.check_row(&before, &record);
            return true;
        }
        self.note_lost_answer(&before, &record);
        false
    }
}
