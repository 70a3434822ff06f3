//! What virsh prints, what a guest agent answers, what a guest says on its channel.

use ebbtide_agent::driver::libvirt::{GuestMessage, Snapshot, returned, understood};
use ebbtide_model::message::HostedState;

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(snapshot) = Snapshot::read(&text) {
        assert!(snapshot.cpus > 0 && snapshot.memory_mib > 0);
        for domain in snapshot.servers.values() {
            let runs = domain.state() == HostedState::Running;
            assert!(
                runs || domain.holds().is_empty(),
                "what does not run holds nothing"
            );
        }
        // No more of them than lines that name one.
        let named = text.matches("Domain: '").count();
        assert!(snapshot.servers.len() + snapshot.foreign.len() <= named);
    }
    if let Ok(value) = returned(&text) {
        let _ = value.as_i64();
    }
    for line in text.lines() {
        if let Some(GuestMessage::Heard(id) | GuestMessage::Released(id)) = understood(line) {
            let canonical = format!("ACK {id}");
            assert_eq!(understood(&canonical), Some(GuestMessage::Heard(id)));
        }
    }
}
