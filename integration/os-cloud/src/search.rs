//! Where the files are: the places of openstacksdk, in its order. The first file that can be read
//! counts.

use crate::document::Document;
use crate::error::OsCloudError;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// No such file is larger.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

const SUFFIXES: [&str; 3] = ["yaml", "yml", "json"];

/// What is known of the process and its user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The variables whose names begin with `OS_`.
    pub variables: BTreeMap<String, String>,
    /// The user's home, for `~`.
    pub home: Option<PathBuf>,
    /// The folders of the files besides what variables name, in their order.
    pub folders: Vec<PathBuf>,
}

impl Environment {
    /// The environment of this process. `config_home` is the user's folder for configuration.
    #[must_use]
    pub fn of_process(config_home: Option<&Path>) -> Self {
        // A variable that is no text cannot be meant for us.
        let all = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name, value.into_string().ok()?))
        });
        let of_openstack = all.filter(|(name, _)| name.starts_with("OS_"));
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let in_home = home.as_ref().map(|home| home.join(".config/openstack"));
        let mut folders = vec![PathBuf::from(".")];
        for folder in [config_home.map(|home| home.join("openstack")), in_home] {
            folders.extend(folder.filter(|folder| !folders.contains(folder)));
        }
        folders.push("/etc/openstack".into());
        Self {
            variables: of_openstack.collect(),
            home,
            folders,
        }
    }

    /// A variable with a value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name).map(String::as_str);
        value.filter(|value| !value.trim().is_empty())
    }
}

/// A file and what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloudFile {
    pub(crate) path: PathBuf,
    pub(crate) document: Document,
}

/// The files of clouds that there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloudFiles {
    pub(crate) clouds: Option<CloudFile>,
    pub(crate) secure: Option<CloudFile>,
    pub(crate) public: Option<CloudFile>,
    /// Where a clouds.yaml was looked for.
    pub(crate) looked: Vec<PathBuf>,
}

impl CloudFiles {
    /// Finds and reads them.
    ///
    /// # Errors
    /// [`OsCloudError::File`] for one that cannot be understood.
    pub fn read(environment: &Environment) -> Result<Self, OsCloudError> {
        let candidates = |variable: &str, name: &str| {
            let named = environment.get(variable).map(PathBuf::from);
            let folders = environment.folders.iter();
            let usual = folders.flat_map(|folder| {
                SUFFIXES.map(move |suffix| folder.join(format!("{name}.{suffix}")))
            });
            named.into_iter().chain(usual).collect::<Vec<PathBuf>>()
        };
        let looked = candidates("OS_CLIENT_CONFIG_FILE", "clouds");
        Ok(Self {
            clouds: first(&looked)?,
            secure: first(&candidates("OS_CLIENT_SECURE_FILE", "secure"))?,
            public: first(&candidates("", "clouds-public"))?,
            looked,
        })
    }
}

fn first(candidates: &[PathBuf]) -> Result<Option<CloudFile>, OsCloudError> {
    for path in candidates {
        let wrong = |problem: String| OsCloudError::File {
            path: path.clone(),
            problem,
        };
        let text = match text(path) {
            Ok(text) => text,
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => {
                    continue;
                }
                _ => return Err(wrong(error.to_string())),
            },
        };
        let document = Document::parse(&text).map_err(wrong)?;
        let path = path.clone();
        return Ok(Some(CloudFile { path, document }));
    }
    Ok(None)
}

fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut limited = std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1);
    limited.read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let problem = "it is too large for what it should be";
        return Err(std::io::Error::other(problem));
    }
    Ok(text)
}
