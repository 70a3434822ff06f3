//! What weighers in shadow would have chosen.

use crate::kit::{NOW, cloud_of, host_name, request};
use ebbtide_nova::model::Options;
use ebbtide_nova::weighing::Plugins;
use ebbtide_nova_cloud::{
    ClaimResult, Cloud, CloudSettings, SchedulingAction, SchedulingRecord, ShadowRanking,
};
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError};
use std::sync::Arc;

/// Prefers hosts with few free VCPUs, and cannot weigh for a request of four.
struct Pack;

impl Weigher for Pack {
    fn name(&self) -> &str {
        "pack"
    }

    fn multiplier_key(&self) -> &str {
        "pack_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreeVcpus]
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        if request.resources.amount("VCPU") == 4 {
            return Err(WeigherError::Other("four are too many".to_owned()));
        }
        for (out, free) in out.iter_mut().zip(hosts.column(Column::FreeVcpus)?) {
            *out = -free;
        }
        Ok(())
    }
}

fn in_shadow() -> Option<Plugins> {
    let pack: Arc<dyn Weigher> = Arc::new(Pack);
    Some(Plugins::new(vec![(pack, 1e6)]))
}

/// Decides; every claim is taken.
fn decided(cloud: &Cloud, vcpus: i64, many: u128) -> SchedulingRecord {
    let (mut spec, call) = request(vcpus, many);
    let asked = cloud.ask(&mut spec).unwrap();
    let candidates = cloud.candidates(&asked).unwrap();
    let mut scheduling = cloud.decide(spec, call, &candidates, NOW, None).unwrap();
    while let SchedulingAction::Claim(_) = scheduling.next() {
        scheduling.claimed(ClaimResult::Taken);
    }
    scheduling.into_record()
}

#[test]
fn a_weigher_in_shadow_says_what_it_would_have_chosen_and_decides_nothing() {
    let mut cloud = cloud_of(&[4, 16, 8], Options::default(), CloudSettings::default());
    assert_eq!(decided(&cloud, 2, 1).in_shadow(), None);
    cloud.set_shadow(in_shadow());
    let record = decided(&cloud, 2, 1);
    let compared = ShadowRanking {
        decided: Some(host_name(1)),
        shadow: Ok(Some(host_name(0))),
    };
    assert_eq!(record.in_shadow(), Some(compared));
    assert_eq!(
        record.explain(&mut Vec::new())[0].ranking[0].host,
        host_name(1)
    );
    cloud.set_shadow(None);
    assert_eq!(decided(&cloud, 2, 1).in_shadow(), None);
}

#[test]
fn a_host_that_the_filters_drop_is_not_chosen_in_shadow_either() {
    let mut cloud = cloud_of(&[4, 16, 8], Options::default(), CloudSettings::default());
    cloud.set_shadow(in_shadow());
    let ranking = decided(&cloud, 6, 1).in_shadow().unwrap();
    assert_eq!(ranking.shadow, Ok(Some(host_name(2))));
    let none = decided(&cloud, 32, 1).in_shadow().unwrap();
    assert_eq!((none.decided, none.shadow), (None, Ok(None)));
}

#[test]
fn several_servers_are_not_compared_and_a_failure_is_told() {
    let mut cloud = cloud_of(&[4, 16, 8], Options::default(), CloudSettings::default());
    cloud.set_shadow(in_shadow());
    assert_eq!(decided(&cloud, 2, 2).in_shadow(), None);
    let failed = decided(&cloud, 4, 1).in_shadow().unwrap();
    assert!(failed.shadow.is_err(), "{failed:?}");
}
