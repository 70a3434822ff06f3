//! Gathers instances that were made of like images. Off by default.
//!
//! - Raw number: for each property of the request's image, how many instances on the host have the
//!   same property with the same value, summed; with a setting each count is multiplied with the
//!   property's number, and properties that the setting does not name count nothing.
//! - Normalised: the smallest number becomes 0, the largest 1; hosts that are all alike get 0.
//! - Multiplier: `image_props_weight_multiplier`, default 0.0 (off); aggregates may set the same
//!   key in their metadata, but Nova does not even count while the configured one is 0.
//! - Positive gathers like images, negative spreads them.
//!
//! Source: Nova, `nova/scheduler/weights/image_props.py` (`ImagePropertiesWeigher`, no bounds).
//! Nova adds up in the order of a hash set; here it is the order of the columns.

use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError};

/// See the module's text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageProps {
    setting: Vec<(String, f64)>,
}

impl ImageProps {
    /// Properties with what each counts; none: each counts 1. The last of two equal names counts.
    #[must_use]
    pub fn new(setting: Vec<(String, f64)>) -> Self {
        Self { setting }
    }

    fn factor(&self, property: &str) -> f64 {
        if self.setting.is_empty() {
            return 1.0;
        }
        let named = self.setting.iter().rev().find(|(name, _)| name == property);
        named.map_or(0.0, |(_, factor)| *factor)
    }
}

impl Weigher for ImageProps {
    fn name(&self) -> &str {
        "image_props"
    }

    fn multiplier_key(&self) -> &str {
        "image_props_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        0.0
    }

    fn needs(&self) -> &[Column] {
        &[]
    }

    fn weigh(
        &self,
        _request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        hosts.check_room(out)?;
        out.fill(0.0);
        for column in hosts.details.image_properties {
            let factor = self.factor(&column.name);
            for (out, &count) in out.iter_mut().zip(&column.counts) {
                // What no instance has is not added at all: an infinite factor times nothing would
                // be NaN.
                if count > 0.0 {
                    *out += factor * count;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::Resources;
    use ebbtide_weigher_api::{Details, PropertyColumn};

    fn weigh(weigher: &ImageProps) -> Vec<f64> {
        let column = |name: &str, counts: &[f64]| PropertyColumn {
            name: name.to_owned(),
            counts: counts.to_vec(),
        };
        let columns = [
            column("hw_machine_type", &[2.0, 0.0]),
            column("os_type", &[1.0, 3.0]),
        ];
        let hosts = HostBatch {
            len: 2,
            columns: &Default::default(),
            preemptibles: None,
            details: Details {
                image_properties: &columns,
                ..Details::default()
            },
        };
        let resources = Resources::new();
        let request = RequestView {
            project_id: "p",
            resources: &resources,
            preemptible: false,
            group_policy: None,
            details: ebbtide_weigher_api::RequestDetails::default(),
        };
        let mut out = vec![f64::NAN; 2];
        weigher.weigh(&request, &hosts, &mut out).unwrap();
        out
    }

    #[test]
    fn every_common_property_counts_once_an_instance_unless_the_setting_says_otherwise() {
        assert_eq!(weigh(&ImageProps::default()), [3.0, 3.0]);
        let machine = ImageProps::new(vec![("hw_machine_type".to_owned(), 2.5)]);
        assert_eq!(weigh(&machine), [5.0, 0.0]);
        let infinite = ImageProps::new(vec![("hw_machine_type".to_owned(), f64::INFINITY)]);
        assert_eq!(weigh(&infinite), [f64::INFINITY, 0.0]);
    }
}
