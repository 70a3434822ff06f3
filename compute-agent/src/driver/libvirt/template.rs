//! How a server becomes a domain: libvirt's XML with placeholders. Pure but for reading the file.

use super::names;
use super::settings::LibvirtSettings;
use crate::error::AgentError;
use ebbtide_model::message::Start;
use std::path::Path;

/// The domain XML of hosts whose operator has not written another one.
const BUILT_IN: &str = include_str!("domain.xml");

/// libvirt's namespace for what we note in a domain.
pub(super) const NAMESPACE: &str = "urn:ebbtide:instance:1";

/// What a template may name; the values are in [`Template::fill`].
const PLACEHOLDERS: [&str; 19] = [
    "domain",
    "uuid",
    "name",
    "project",
    "flavor",
    "metadata",
    "memory_mib",
    "vcpus",
    "disk",
    "disk_format",
    "disk_gib",
    "dir",
    "run_dir",
    "console",
    "notice_socket",
    "metadata_socket",
    "metadata_tap",
    "metadata_mac",
    "domain_type",
];

/// What a template must name, or the driver would not find its own servers.
const NEEDED: [&str; 5] = ["domain", "uuid", "metadata", "memory_mib", "vcpus"];

/// A checked template.
#[derive(Debug, Clone)]
pub(super) struct Template {
    text: String,
}

impl Template {
    /// The template in this file, or the built-in one.
    ///
    /// # Errors
    /// [`AgentError::Config`] that says what is wrong with it.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, AgentError> {
        let refused = |problem: String| AgentError::config("driver.libvirt.template", problem);
        let text = match path {
            None => BUILT_IN.to_owned(),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| refused(format!("cannot read {}: {error}", path.display())))?,
        };
        let template = Self { text };
        let used = template.placeholders().map_err(&refused)?;
        if let Some(unknown) = used.iter().find(|name| !PLACEHOLDERS.contains(name)) {
            return Err(refused(format!(
                "the placeholder {{{{{unknown}}}}} is unknown, there are {}",
                PLACEHOLDERS.join(", ")
            )));
        }
        if let Some(missing) = NEEDED.iter().find(|name| !used.contains(name)) {
            return Err(refused(format!(
                "the placeholder {{{{{missing}}}}} is missing"
            )));
        }
        Ok(template)
    }

    fn placeholders(&self) -> Result<Vec<&str>, String> {
        let mut found = Vec::new();
        let mut rest = self.text.as_str();
        while let Some((_, after)) = rest.split_once("{{") {
            let (name, behind) = after
                .split_once("}}")
                .ok_or_else(|| "a placeholder begins with {{ and does not end".to_owned())?;
            found.push(name.trim());
            rest = behind;
        }
        Ok(found)
    }

    /// The domain of one server.
    pub(super) fn fill(&self, settings: &LibvirtSettings, start: &Start, dir: &Path) -> String {
        let id = start.server_id;
        let in_dir = |name: &str| dir.join(name).display().to_string();
        let value = |name: &str| -> String {
            match name {
                "domain" => names::domain(id),
                "uuid" => id.to_string(),
                "name" => start.name.clone(),
                "project" => start.project_id.clone(),
                "flavor" => start.flavor.clone(),
                "memory_mib" => start.resources.amount("MEMORY_MB").to_string(),
                "vcpus" => start.resources.amount("VCPU").to_string(),
                "disk" => in_dir(names::DISK),
                "disk_format" => settings.disk_format.as_str().to_owned(),
                "disk_gib" => start.resources.amount("DISK_GB").to_string(),
                "dir" => dir.display().to_string(),
                "run_dir" => settings.run_dir.display().to_string(),
                "console" => in_dir(names::CONSOLE),
                "notice_socket" => names::notice_socket(&settings.run_dir, id)
                    .display()
                    .to_string(),
                "metadata_socket" => names::metadata_socket(&settings.run_dir, id)
                    .display()
                    .to_string(),
                "metadata_tap" => names::tap(id),
                "metadata_mac" => names::mac(id),
                "domain_type" => settings.domain_type.as_str().to_owned(),
                _ => String::new(),
            }
        };
        let mut filled = String::with_capacity(self.text.len() + 512);
        let mut rest = self.text.as_str();
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            let Some((name, behind)) = after.split_once("}}") else {
                break;
            };
            match name.trim() {
                "metadata" => filled.push_str(&metadata(start)),
                name => filled.push_str(&escaped(&value(name))),
            }
            rest = behind;
        }
        filled.push_str(rest);
        filled
    }
}

/// What people and tools find in the domain: whose it is and whether it may be evacuated.
fn metadata(start: &Start) -> String {
    format!(
        "<ebbtide:instance xmlns:ebbtide='{NAMESPACE}' preemptible='{}' name='{}' project='{}' flavor='{}'/>",
        if start.preemptible { "yes" } else { "no" },
        escaped(&start.name),
        escaped(&start.project_id),
        escaped(&start.flavor),
    )
}

/// Text as it may stand in XML, in attributes too. Characters that XML does not know at all become
/// question marks: a tenant chooses the names.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\'' => safe.push_str("&apos;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('?'),
            c => safe.push(c),
        }
    }
    safe
}
