//! Before the first event: is the region as it must be, and are the flavors there?

use super::Job;
use ebbtide_client::Region;
use ebbtide_model::flavor::{GRACE_SECONDS, PREEMPTIBLE};
use ebbtide_proto::v1;
use ebbtide_shell::errors::CliError;
use ebbtide_simulator::{EventKind, VmSize};
use std::collections::{BTreeSet, HashMap};

/// Refuses a region that cannot do what is asked of it.
pub(super) async fn check(
    region: &mut Region,
    job: &Job,
) -> Result<v1::RegionSummaryResponse, CliError> {
    let answer = region
        .scheduler
        .region_summary(v1::RegionSummaryRequest {})
        .await?;
    let summary = answer.into_inner();
    if summary.hosts_up == 0 {
        return Err(CliError::Refused {
            problem: "no host of the region is up".to_owned(),
            next: "`ebbtide host list` shows the hosts; start agents first".to_owned(),
        });
    }
    if job.recorded.is_some() && summary.policy != "first-fit" {
        return Err(CliError::Refused {
            problem: format!(
                "the region's ranking policy is {:?}, but the placements were recorded with first-fit",
                summary.policy
            ),
            next: "start the scheduler with policy = \"first-fit\" in [engine], or leave --expect-placements out"
                .to_owned(),
        });
    }
    Ok(summary)
}

/// The flavors of all VMs of the trace.
fn needed(job: &Job) -> BTreeSet<(VmSize, bool)> {
    let creates = job
        .trace
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Create);
    creates
        .map(|event| (event.shape, job.share.contains(&event.vm)))
        .collect()
}

/// Makes the flavors that are missing; answers with their names.
pub(super) async fn flavors(region: &mut Region, job: &Job) -> Result<Vec<String>, CliError> {
    let answer = region.admin.list_flavors(v1::ListFlavorsRequest {}).await?;
    let there: HashMap<String, v1::Flavor> = answer
        .into_inner()
        .flavors
        .into_iter()
        .map(|f| (f.name.clone(), f))
        .collect();
    let mut made = Vec::new();
    for (shape, preemptible) in needed(job) {
        let name = shape.flavor_name(preemptible);
        if let Some(flavor) = there.get(&name) {
            same(flavor, shape, preemptible)?;
            continue;
        }
        let extra_specs = if preemptible {
            HashMap::from([
                (PREEMPTIBLE.to_owned(), "true".to_owned()),
                (
                    GRACE_SECONDS.to_owned(),
                    job.args.grace.unwrap_or(0).to_string(),
                ),
            ])
        } else {
            HashMap::new()
        };
        let flavor = v1::Flavor {
            name: name.clone(),
            vcpus: shape.vcpus,
            ram_mb: shape.ram_mb,
            extra_specs,
            ..Default::default()
        };
        let request = v1::CreateFlavorRequest {
            flavor: Some(flavor),
        };
        match region.admin.create_flavor(request).await {
            Ok(_) => made.push(name),
            // Another replay was quicker.
            Err(status) if status.code() == tonic::Code::AlreadyExists => {}
            Err(status) => return Err(status.into()),
        }
    }
    Ok(made)
}

fn same(flavor: &v1::Flavor, shape: VmSize, preemptible: bool) -> Result<(), CliError> {
    let is = (
        flavor.vcpus,
        flavor.ram_mb,
        flavor.disk_gb,
        flavor.preemptible,
    );
    if is == (shape.vcpus, shape.ram_mb, 0, preemptible) {
        return Ok(());
    }
    Err(CliError::Refused {
        problem: format!(
            "flavor {:?} is there, but it is not {shape}, no disk",
            flavor.name
        ),
        next: format!("`ebbtide flavor delete {}`, or rename it", flavor.name),
    })
}
