//! AggregateImagePropertiesIsolation (`aggregate_image_properties_isolation.py`).

use super::contract::{Context, Filter};
use super::values;
use crate::fault::NovaException;
use crate::model::{HostState, ImageProps, RequestSpec};

/// For every key of the host's aggregates that is an image property: if the image has it and it is
/// true, its text is among the aggregates' values. Booleans read `True` and `False`.
pub struct AggregateImagePropertiesIsolation;

impl Filter for AggregateImagePropertiesIsolation {
    fn name(&self) -> &'static str {
        "AggregateImagePropertiesIsolation"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn on_rebuild(&self) -> bool {
        true
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let options = context.options;
        let namespace = options
            .aggregate_image_properties_isolation_namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty());
        let keys = values::keys(host);
        let prefix = match (
            namespace,
            &options.aggregate_image_properties_isolation_separator,
        ) {
            (Some(_), None) if keys.is_empty() => return Ok(true),
            (Some(_), None) => {
                return Err(NovaException::new(
                    "TypeError",
                    "the separator of the namespace is null",
                ));
            }
            (Some(namespace), Some(separator)) => format!("{namespace}{separator}"),
            (None, _) => String::new(),
        };
        let Some(image) = &spec.image else {
            return Ok(true);
        };
        Ok(keys
            .into_iter()
            .filter(|key| key.starts_with(&prefix) && ImageProps::is_known(key))
            .filter_map(|key| image.properties.get(key).map(|property| (key, property)))
            .filter(|(_, property)| property.truth())
            .all(|(key, property)| values::split(host, key).contains(&property.text().as_str())))
    }
}
