//! The configuration file: `~/.config/ebbtide/config.toml`, or the one that `EBBTIDE_CONFIG` names.
//!
//! Flags come before environment variables, those before the file, the file before the defaults.

use crate::errors::CliError;
use crate::io::{ColorChoice, Format};
use ebbtide_model::toml_text;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The project of a caller that names none.
pub const DEFAULT_PROJECT: &str = "default";

/// Contents of the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address of the region.
    pub endpoint: Option<String>,
    /// An OpenStack of clouds.yaml, in place of an endpoint.
    pub os_cloud: Option<String>,
    /// Whose servers.
    pub project: Option<String>,
    /// Roots of the region's certificate.
    pub ca: Option<PathBuf>,
    /// Your certificate.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
    /// A file with your token.
    pub token_file: Option<PathBuf>,
    /// Default format.
    pub output: Option<Format>,
    /// Default use of colours.
    pub color: Option<ColorChoice>,
}

/// Reads the file. A file that was named must be there; the default one may be missing.
///
/// # Errors
/// [`CliError::Config`] with the key that is wrong.
pub fn load(named: Option<&Path>, config_home: Option<&Path>) -> Result<Config, CliError> {
    let default = config_home.map(|home| home.join("ebbtide").join("config.toml"));
    let Some(path) = named.map(Path::to_path_buf).or(default) else {
        return Ok(Config::default());
    };
    let wrong = |problem: String| CliError::Config {
        path: path.clone(),
        problem,
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text).map_err(|error: toml::de::Error| {
            wrong(toml_text::problem(&text, error.span(), error.message()))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            Ok(Config::default())
        }
        Err(error) => Err(wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_in_the_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        std::fs::write(&path, "endpiont = \"x\"\n").unwrap();
        let error = load(Some(&path), None).unwrap_err();
        assert!(error.to_string().contains("endpiont"), "{error}");
        assert_eq!(error.exit_code(), crate::errors::USAGE);
    }

    #[test]
    fn only_a_named_file_must_be_there() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(
            load(None, Some(directory.path())).unwrap(),
            Config::default()
        );
        assert!(load(Some(&directory.path().join("none")), None).is_err());
    }
}
