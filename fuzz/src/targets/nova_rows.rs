//! Rows of Nova's databases: one column a line, in the order of `ComputeColumns::texts`; the whole
//! text as the flavor of an instance. What cannot be taken in is Nova's error, never ours.

use ebbtide_nova::hosts::Ratios;
use ebbtide_nova_db::{ComputeColumns, InstanceFlavor};

const RATIOS: Ratios = Ratios {
    cpu: 4.0,
    ram: 1.0,
    disk: 1.0,
};

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(fault) = InstanceFlavor::from_json(text) {
        assert!(!fault.class.is_empty());
    }
    let mut lines = text.split('\n');
    let mut columns = ComputeColumns {
        id: 1,
        uuid: Some("u".to_owned()),
        host: Some("h".to_owned()),
        nodename: Some("n".to_owned()),
        numbers: [Some(8); 9],
        ..ComputeColumns::default()
    };
    for column in &mut columns.texts {
        *column = lines.next().map(str::to_owned);
    }
    // A node that was never updated is read otherwise.
    let mut new = columns.clone();
    new.numbers[6] = None;
    for columns in [columns, new] {
        let uuid = columns.uuid.clone();
        let node = columns.take_in(&RATIOS);
        assert_eq!(node.uuid, uuid);
        if let Ok(row) = &node.row {
            assert_eq!((row.vcpus, row.cpu_allocation_ratio), (8, 4.0));
        }
    }
}
