//! The plugins in use.

use crate::{LivePluginError, PluginUser};
use ebbtide_plugins::{Plugin, PluginOverrides, PluginSet, Services, Sources, merge};
use ebbtide_runtime::{clock, ids, task};
use ebbtide_store::PluginStore;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The plugins in use, and where they come from.
pub(crate) struct ActivePlugins<F> {
    pub(crate) file: F,
    pub(crate) overrides: PluginOverrides,
    pub(crate) set: PluginSet,
}

impl<F: Clone> Clone for ActivePlugins<F> {
    fn clone(&self) -> Self {
        Self {
            file: self.file.clone(),
            overrides: self.overrides.clone(),
            set: self.set.clone(),
        }
    }
}

/// The plugins of a scheduler. Cheap to clone.
pub struct LivePlugins<U: PluginUser> {
    pub(crate) shared: Arc<Shared<U>>,
}

impl<U: PluginUser> Clone for LivePlugins<U> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

pub(crate) struct Shared<U: PluginUser> {
    pub(crate) user: U,
    active: Mutex<ActivePlugins<U::File>>,
    /// Where changes are kept: `None` is a scheduler without a database, and an empty cell one
    /// whose database is not open yet.
    pub(crate) store: Option<OnceLock<PluginStore>>,
    /// Allows one change at a time.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

/// Clock and random numbers for plugins with those permissions.
fn sources() -> Sources {
    Sources {
        clock: Some(Arc::new(|| {
            let millis = u64::try_from(clock::now().as_millis()).unwrap_or(0);
            millis.saturating_mul(1_000_000)
        })),
        randomness: Some(Arc::new(fill)),
    }
}

/// Random bytes, for plugins with that permission.
fn fill(bytes: &mut [u8]) {
    if let Err(error) = ids::fill(bytes) {
        tracing::error!("the system has no random numbers: {error}");
    }
}

/// Loads new plugins and prepares their use. Reads files and asks services.
fn prepare<U: PluginUser>(
    file: &U::File,
    overrides: &PluginOverrides,
    before: &PluginSet,
    services: Services,
) -> Result<(PluginSet, U::Prepared), LivePluginError> {
    let merged = merge(U::plugins(file), overrides)?;
    let set = PluginSet::load(&merged.entries, before, &sources(), services)?;
    let prepared = U::prepare(file, &merged, &set)?;
    Ok((set, prepared))
}

impl<U: PluginUser> Shared<U> {
    fn replace(
        &self,
        file: U::File,
        overrides: PluginOverrides,
        services: Services,
    ) -> Result<(), LivePluginError> {
        let before = self.active().set;
        let (set, prepared) = prepare::<U>(&file, &overrides, &before, services)?;
        self.user.apply(prepared)?;
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = ActivePlugins {
            file,
            overrides,
            set,
        };
        Ok(())
    }

    pub(crate) fn active(&self) -> ActivePlugins<U::File> {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.clone()
    }
}

impl<U: PluginUser> LivePlugins<U> {
    /// Reads and checks the plugins of a configuration, and makes what uses them. A service that
    /// is away may come later. `has_database`: changes will be kept, once [`Self::begin`] knows
    /// where.
    ///
    /// # Errors
    /// The first plugin that cannot be used; what uses them refuses them.
    pub fn load<E: From<LivePluginError>>(
        file: U::File,
        has_database: bool,
        user: impl FnOnce(U::Prepared) -> Result<U, E>,
    ) -> Result<Self, E> {
        let overrides = PluginOverrides::default();
        let before = PluginSet::default();
        let (set, prepared) = prepare::<U>(&file, &overrides, &before, Services::MayBeAway)?;
        Ok(Self {
            shared: Arc::new(Shared {
                user: user(prepared)?,
                active: Mutex::new(ActivePlugins {
                    file,
                    overrides,
                    set,
                }),
                store: has_database.then(OnceLock::new),
                changing: tokio::sync::Mutex::default(),
            }),
        })
    }

    /// Replaces the plugins in use, completely or, on any error, not at all. The caller holds
    /// [`Shared::changing`].
    pub(crate) async fn replace(
        &self,
        file: U::File,
        overrides: PluginOverrides,
        services: Services,
    ) -> Result<(), LivePluginError> {
        let shared = Arc::clone(&self.shared);
        let done = task::blocking(move || shared.replace(file, overrides, services)).await;
        done.unwrap_or_else(|error| {
            Err(LivePluginError::User {
                code: "EB-SERVICE-004",
                message: format!("the plugins: {error}"),
            })
        })
    }

    /// Takes another configuration into use, as `change` makes it of the present one. Services
    /// must answer.
    ///
    /// # Errors
    /// Those of `change`; a plugin cannot be used. Everything is as before then.
    pub async fn reload<E: From<LivePluginError>>(
        &self,
        change: impl FnOnce(&U::File) -> Result<U::File, E>,
    ) -> Result<(), E> {
        let _changing = self.shared.changing.lock().await;
        let active = self.shared.active();
        let file = change(&active.file)?;
        let done = self.replace(file, active.overrides, Services::MustAnswer);
        Ok(done.await?)
    }

    /// All plugins, in the operator's order.
    #[must_use]
    pub fn list(&self) -> Vec<Plugin> {
        self.shared.active().set.plugins().to_vec()
    }

    /// What uses them.
    #[must_use]
    pub fn user(&self) -> &U {
        &self.shared.user
    }

    /// Closes the database of changes.
    pub async fn close(&self) {
        if let Ok(store) = self.store() {
            store.close().await;
        }
    }

    pub(crate) fn store(&self) -> Result<&PluginStore, LivePluginError> {
        let cell = self.shared.store.as_ref();
        let cell = cell.ok_or(LivePluginError::NoDatabase)?;
        cell.get().ok_or(LivePluginError::DatabaseAway)
    }
}
