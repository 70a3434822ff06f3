//! Which cloud is meant, and what it has.

use crate::document::{CloudEntry, Region, is_text_key};
use crate::error::OsCloudError;
use crate::search::{CloudFiles, Environment};
use crate::settings::Settings;
use ebbtide_openstack::{AdapterOptions, AuthOptions};

/// The name of the cloud that `OS_*` variables describe, unless `OS_CLOUD_NAME` has another.
pub const ENVIRONMENT_CLOUD: &str = "envvars";

/// The type of our service in a catalog.
pub const SERVICE_TYPE: &str = "preemption";

/// What the user named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloudSelector<'a> {
    pub name: Option<&'a str>,
    pub region: Option<&'a str>,
}

/// A cloud that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudConfig {
    pub name: String,
    /// Keystone and the credentials.
    pub auth: AuthOptions,
    /// How the service `preemption` is found.
    pub adapter: AdapterOptions,
    /// How Nova is found.
    pub compute: AdapterOptions,
    /// How Glance is found.
    pub image: AdapterOptions,
    /// How Neutron is found.
    pub network: AdapterOptions,
}

impl CloudConfig {
    /// Finds the cloud that is meant; `None` if neither an option nor a variable names one.
    ///
    /// # Errors
    /// Those of [`resolve`], and of reading the files.
    pub fn find(
        environment: &Environment,
        wanted: CloudSelector<'_>,
    ) -> Result<Option<Self>, OsCloudError> {
        let named = wanted.name.or_else(|| environment.get("OS_CLOUD"));
        let files = match named {
            Some(_) => CloudFiles::read(environment)?,
            None => CloudFiles::default(),
        };
        resolve(&files, environment, wanted)
    }
}

/// The same with files that were read before.
///
/// # Errors
/// [`OsCloudError`] that says what is missing and where it was looked for.
pub fn resolve(
    files: &CloudFiles,
    environment: &Environment,
    wanted: CloudSelector<'_>,
) -> Result<Option<CloudConfig>, OsCloudError> {
    let of_environment = environment
        .get("OS_CLOUD_NAME")
        .unwrap_or(ENVIRONMENT_CLOUD);
    let is_described = ["OS_AUTH_URL", "OS_AUTH_TYPE"]
        .iter()
        .any(|name| environment.get(name).is_some());
    let name = match wanted.name.or_else(|| environment.get("OS_CLOUD")) {
        Some(name) => name,
        None if is_described => of_environment,
        None => return Ok(None),
    };
    let region = wanted.region.or_else(|| environment.get("OS_REGION_NAME"));
    let (entry, place) = match named(files, name)? {
        Some(found) => found,
        None if name == of_environment && is_described => {
            (variables(environment), "OS_ variables".to_owned())
        }
        None => return Err(no_such_cloud(files, name)),
    };
    let entry = in_region(entry, name, region)?;
    let mut settings = Settings::of(entry);
    settings.add_secrets(|key| {
        let name = format!("OS_{}", key.to_uppercase());
        environment.get(&name).map(str::to_owned)
    });
    settings.complete(environment.home.as_deref());
    let failed = |error| OsCloudError::of_cloud(name, error);
    let auth = AuthOptions::from_lookup(&place, |key| {
        let key = match key {
            "timeout" => "api_timeout",
            key => key,
        };
        settings.get(key).map(str::to_owned)
    });
    let service = |service_type: &str| {
        let mut adapter = AdapterOptions::new(service_type);
        adapter.valid_interfaces = vec!["public".to_owned()];
        let adapter = adapter.read(&place, |key| {
            let of_service = settings.get(&format!("{service_type}_{key}"));
            let for_all = || match key {
                "interface" | "region_name" => settings.get(key),
                "endpoint_override" => settings.get(&format!("{service_type}_endpoint")),
                _ => None,
            };
            of_service.or_else(for_all).map(str::to_owned)
        });
        adapter.map_err(failed)
    };
    Ok(Some(CloudConfig {
        name: name.to_owned(),
        auth: auth.map_err(failed)?,
        adapter: service(SERVICE_TYPE)?,
        compute: service("compute")?,
        image: service("image")?,
        network: service("network")?,
    }))
}

/// A cloud of the files with its profile below and secure.yaml above, and where it is from.
fn named(files: &CloudFiles, name: &str) -> Result<Option<(CloudEntry, String)>, OsCloudError> {
    let mut document = files
        .clouds
        .as_ref()
        .map(|f| f.document.clone())
        .unwrap_or_default();
    if let Some(secure) = &files.secure {
        document.merge(secure.document.clone());
    }
    let Some(entry) = document.clouds.unwrap_or_default().remove(name) else {
        return Ok(None);
    };
    let entry = entry.unwrap_or_default();
    let profile = entry.top.get("profile").or_else(|| entry.top.get("cloud"));
    let entry = match profile.cloned() {
        None => entry,
        Some(profile) => {
            let public = files.public.as_ref();
            let public = public.and_then(|f| f.document.public_clouds.as_ref());
            let known = public.and_then(|clouds| clouds.get(&profile)).cloned();
            let Some(known) = known else {
                return Err(OsCloudError::NoSuchProfile {
                    cloud: name.to_owned(),
                    profile,
                });
            };
            let mut below = known.unwrap_or_default();
            below.merge(entry);
            below
        }
    };
    let file = files.clouds.as_ref().or(files.secure.as_ref());
    let place = file.map(|f| f.path.display().to_string());
    Ok(Some((entry, place.unwrap_or_default())))
}

fn no_such_cloud(files: &CloudFiles, name: &str) -> OsCloudError {
    let found = [&files.clouds, &files.secure];
    let found: Vec<_> = found.into_iter().flatten().collect();
    let mut known: Vec<String> = found
        .iter()
        .filter_map(|f| f.document.clouds.as_ref())
        .flat_map(|clouds| clouds.keys().cloned())
        .collect();
    known.sort();
    known.dedup();
    OsCloudError::NoSuchCloud {
        name: name.to_owned(),
        known,
        found: found.iter().map(|f| f.path.clone()).collect(),
        looked: files.looked.clone(),
    }
}

/// The cloud as variables describe it.
fn variables(environment: &Environment) -> CloudEntry {
    let texts = environment.variables.iter().filter_map(|(name, value)| {
        let key = name.strip_prefix("OS_")?.to_lowercase();
        is_text_key(&key).then(|| (key, value.clone()))
    });
    CloudEntry {
        top: texts.collect(),
        ..CloudEntry::default()
    }
}

/// What holds in the region that is meant: the one that was named, or the first one.
fn in_region(
    mut entry: CloudEntry,
    cloud: &str,
    wanted: Option<&str>,
) -> Result<CloudEntry, OsCloudError> {
    let regions = entry.regions.take().unwrap_or_default();
    let names = |regions: &[Region]| regions.iter().map(|r| r.name.clone()).collect();
    let no_such = |region: &str, known: Vec<String>| OsCloudError::NoSuchRegion {
        cloud: cloud.to_owned(),
        region: region.to_owned(),
        known,
    };
    let region = match (wanted, regions.as_slice()) {
        (None, []) => return Ok(entry),
        (Some(wanted), []) => {
            if let Some(only) = entry.top.get("region_name").filter(|own| *own != wanted) {
                return Err(no_such(wanted, vec![only.clone()]));
            }
            Region {
                name: wanted.to_owned(),
                ..Region::default()
            }
        }
        (None, [first, ..]) => first.clone(),
        (Some(wanted), known) => {
            let found = known.iter().find(|region| region.name == wanted);
            found.ok_or_else(|| no_such(wanted, names(known)))?.clone()
        }
    };
    entry.merge(region.values);
    entry.top.insert("region_name".to_owned(), region.name);
    Ok(entry)
}
