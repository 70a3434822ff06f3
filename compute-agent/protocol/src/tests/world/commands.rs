//! What the scheduler and the owner say.

use super::*;

impl SimulatedHost {
    pub(in crate::tests) fn notice_with(
        &mut self,
        e: u8,
        s: u8,
        behaviour: InterruptionBehaviour,
        attempt: u32,
    ) -> Message {
        let begin_before = self.now.plus(Seconds(60));
        self.send(Body::Notice(Notice {
            evacuation_id: evacuation(e),
            server_id: server(s),
            behaviour,
            grace_seconds: GRACE,
            attempt,
            begin_before,
        }))
    }

    pub(in crate::tests) fn notice(&mut self, e: u8, s: u8) -> Message {
        self.notice_with(e, s, InterruptionBehaviour::Terminate, 1)
    }

    pub(in crate::tests) fn spare(&mut self, e: u8, s: u8) -> Message {
        self.send(Body::Spare(Spare {
            evacuation_id: evacuation(e),
            server_id: server(s),
        }))
    }

    pub(in crate::tests) fn release(&mut self, e: u8, s: u8) -> Message {
        self.released.insert(evacuation(e));
        self.send(Body::Release(Release {
            evacuation_id: evacuation(e),
            server_id: server(s),
        }))
    }

    pub(in crate::tests) fn start(&mut self, s: u8) -> Message {
        self.start_with(s, 0, false)
    }

    /// Lets a server go on with what was kept of it.
    pub(in crate::tests) fn resume(&mut self, s: u8, attempt: u32) -> Message {
        self.start_with(s, attempt, true)
    }

    fn start_with(&mut self, s: u8, attempt: u32, resume: bool) -> Message {
        let mut resources = Resources::new();
        resources.set(ResourceClass::vcpu(), 2).unwrap();
        *self.starts.entry(server(s)).or_default() += 1;
        self.send(Body::Start(Start {
            server_id: server(s),
            name: format!("server-{s}"),
            project_id: "p".to_owned(),
            flavor: "m1".to_owned(),
            resources,
            preemptible: true,
            attempt,
            resume,
            storage: None,
        }))
    }

    pub(in crate::tests) fn delete(&mut self, s: u8) -> Message {
        self.send(Body::Delete(Delete {
            server_id: server(s),
            storage: None,
        }))
    }
}
