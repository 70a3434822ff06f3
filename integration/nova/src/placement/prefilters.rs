//! The request pre-filters (`nova/scheduler/request_filter.py`), in Nova's order.

use super::resources::Resources;
use super::traits::{IMAGE_TYPES, OF_PROPERTIES};
use super::{QueryContext, Request};
use crate::fault::NovaException;
use crate::release::Feature;
use std::collections::BTreeSet;

impl Request<'_> {
    fn require(&mut self, name: impl Into<String>) {
        self.root.required.insert(name.into());
    }

    /// Requires one of some aggregates, beside what is required already.
    fn require_aggregates(&mut self, uuids: &[&str]) {
        let destination = self.destination.get_or_insert_default();
        destination
            .aggregates
            .get_or_insert_default()
            .push(uuids.join(","));
    }

    fn needs_image(&self) -> Result<(), NovaException> {
        match self.spec.image {
            Some(_) => Ok(()),
            None => Err(NovaException::new(
                "AttributeError",
                "the request has no image",
            )),
        }
    }

    /// Runs all pre-filters.
    ///
    /// # Errors
    /// RequestFilterFailed, and what reading image and flavor raises.
    pub(super) fn prefilter(&mut self, world: &QueryContext<'_>) -> Result<(), NovaException> {
        self.tenant_aggregate(world)?;
        if self.options.query_placement_for_availability_zone {
            self.availability_zone(world);
        }
        self.image_type()?;
        self.root
            .forbidden
            .insert("COMPUTE_STATUS_DISABLED".to_owned());
        self.isolated_aggregates(world)?;
        self.image_metadata()?;
        self.accelerators()?;
        let release = self.options.release;
        if release.has(Feature::PackedVirtqueue) {
            self.needs_image()?;
            if self.constraints().packed_virtqueue()? {
                self.require("COMPUTE_NET_VIRTIO_PACKED");
            }
        }
        if self.options.query_placement_for_routed_network_aggregates {
            // The networks of a case are none, so only the destination comes into being.
            self.destination.get_or_insert_default();
        }
        self.encryption()?;
        if release.has(Feature::Sound) && self.constraints().sound_model()? == Some("virtio") {
            self.require("COMPUTE_SOUND_MODEL_VIRTIO");
        }
        if release.has(Feature::TpmSecretSecurity) {
            self.tpm_secret()?;
        }
        self.owner(world);
        Ok(())
    }

    fn tenant_aggregate(&mut self, world: &QueryContext<'_>) -> Result<(), NovaException> {
        if !self.options.limit_tenants_to_placement_aggregate {
            return Ok(());
        }
        let project = self.spec.project_id.as_ref();
        let owned = |(key, value): (&String, &String)| {
            key.starts_with("filter_tenant_id") && project.is_none_or(|project| value == project)
        };
        let uuids: BTreeSet<&str> = world
            .aggregates
            .iter()
            .filter(|aggregate| aggregate.metadata.iter().any(owned))
            .map(|aggregate| aggregate.uuid.as_str())
            .collect();
        if !uuids.is_empty() {
            self.require_aggregates(&uuids.into_iter().collect::<Vec<_>>());
        } else if self.options.placement_aggregate_required_for_tenants {
            return Err(NovaException::new(
                "RequestFilterFailed",
                "no hosts are available for the tenant",
            ));
        }
        Ok(())
    }

    fn availability_zone(&mut self, world: &QueryContext<'_>) {
        let Some(zone) = self
            .spec
            .availability_zone
            .as_ref()
            .filter(|zone| !zone.is_empty())
        else {
            return;
        };
        let uuids: Vec<&str> = world
            .aggregates
            .iter()
            .filter(|aggregate| aggregate.metadata.get("availability_zone") == Some(zone))
            .map(|aggregate| aggregate.uuid.as_str())
            .collect();
        if !uuids.is_empty() {
            self.require_aggregates(&uuids);
        }
    }

    fn image_type(&mut self) -> Result<(), NovaException> {
        if !self.options.query_placement_for_image_type_support || self.spec.is_bfv {
            return Ok(());
        }
        self.needs_image()?;
        let Some(format) = &self.image.disk_format else {
            return Err(NovaException::new(
                "NotImplementedError",
                "the image's disk format is not set",
            ));
        };
        let format = format.to_uppercase();
        if IMAGE_TYPES.contains(&format.as_str()) {
            self.require(format!("COMPUTE_IMAGE_TYPE_{format}"));
        }
        Ok(())
    }

    fn isolated_aggregates(&mut self, world: &QueryContext<'_>) -> Result<(), NovaException> {
        if !self.options.enable_isolated_aggregate_filtering {
            return Ok(());
        }
        let resources = Resources::read(self, true)?;
        let required: BTreeSet<&String> = resources.required_traits().collect();
        let foreign = |(key, value): (&String, &String)| {
            let name = key.strip_prefix("trait:").map(str::to_owned);
            value == "required" && name.is_some_and(|name| !required.contains(&name))
        };
        let isolated: Vec<String> = world
            .aggregates
            .iter()
            .filter(|aggregate| aggregate.metadata.iter().any(foreign))
            .map(|aggregate| aggregate.uuid.clone())
            .collect();
        if !isolated.is_empty() {
            self.destination
                .get_or_insert_default()
                .forbidden_aggregates
                .extend(isolated);
        }
        Ok(())
    }

    /// All traits of the image's properties, or none of them if one does not exist.
    fn image_metadata(&mut self) -> Result<(), NovaException> {
        if !self.options.image_metadata_prefilter {
            return Ok(());
        }
        self.needs_image()?;
        let mut names = Vec::new();
        for (property, prefix, ends) in OF_PROPERTIES {
            if let Some(value) = self.image.properties.text(property) {
                let end = value.replace('-', "_").to_uppercase();
                if !ends.contains(&end.as_str()) {
                    return Ok(());
                }
                names.push(format!("{prefix}_{end}"));
            }
        }
        self.root.required.extend(names);
        Ok(())
    }

    fn accelerators(&mut self) -> Result<(), NovaException> {
        let Some(extra_specs) = &self.spec.flavor.extra_specs else {
            return Err(NovaException::new(
                "ObjectActionError",
                "the flavor came without extra specs",
            ));
        };
        if extra_specs
            .get("accel:device_profile")
            .is_some_and(|profile| !profile.is_empty())
        {
            self.require("COMPUTE_ACCELERATORS");
        }
        Ok(())
    }

    fn encryption(&mut self) -> Result<(), NovaException> {
        if !self.constraints().ephemeral_encryption()? {
            return Ok(());
        }
        self.require("COMPUTE_EPHEMERAL_ENCRYPTION");
        if let Some(format) = self
            .constraints()
            .ephemeral_encryption_format()?
            .map(str::to_uppercase)
        {
            self.require(format!("COMPUTE_EPHEMERAL_ENCRYPTION_{format}"));
        }
        Ok(())
    }

    fn tpm_secret(&mut self) -> Result<(), NovaException> {
        if self.constraints().vtpm()?.is_none() {
            return Ok(());
        }
        let name = match self.constraints().tpm_secret_security() {
            "user" => "COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER",
            "host" => "COMPUTE_SECURITY_TPM_SECRET_SECURITY_HOST",
            "deployment" => "COMPUTE_SECURITY_TPM_SECRET_SECURITY_DEPLOYMENT",
            other => {
                return Err(NovaException::new(
                    "RequestFilterFailed",
                    format!("TPM secret security {other:?} is not supported"),
                ));
            }
        };
        self.require(name);
        Ok(())
    }

    /// Hosts and PCI devices have to be Nova's own, once all computes say so (service version 73).
    fn owner(&mut self, world: &QueryContext<'_>) {
        if world.min_compute_version < 73 {
            return;
        }
        self.require("OWNER_NOVA");
        // Requests of ports have no alias.
        let of_flavor = |request: &&crate::model::PciRequest| request.alias_name.is_some();
        let ids: BTreeSet<&str> = self
            .spec
            .pci_requests
            .iter()
            .flatten()
            .filter(of_flavor)
            .filter_map(|request| request.request_id.as_deref())
            .filter(|id| !id.is_empty())
            .collect();
        for group in &mut self.groups {
            let suffix = group.suffix.as_deref().unwrap_or_default();
            let prefix = suffix.rsplit_once('-').map_or(suffix, |(prefix, _)| prefix);
            if !suffix.is_empty() && ids.contains(prefix) {
                group.required.insert("OWNER_NOVA".to_owned());
            }
        }
    }
}
