//! A file with plugins and nothing else, for schedulers whose own configuration has another form.

use crate::{PluginConfig, PluginError};
use ebbtide_model::toml_text;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginFile {
    #[serde(default)]
    plugins: Vec<PluginConfig>,
}

/// Reads `[[plugins]]` of a TOML file.
///
/// # Errors
/// What is wrong with it, with line and column.
pub fn read_file(path: &Path) -> Result<Vec<PluginConfig>, PluginError> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| PluginError::Read {
        name: name(),
        path: path.to_owned(),
        source,
    })?;
    let file: PluginFile =
        toml::from_str(&text).map_err(|error: toml::de::Error| PluginError::Config {
            name: name(),
            key: "[[plugins]]".into(),
            problem: toml_text::problem(&text, error.span(), error.message()),
        })?;
    Ok(file.plugins)
}
