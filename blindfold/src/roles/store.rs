//! Where a role keeps its records.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use blindfold_store::{SqlStore, StoreUrl};
use serde::{Deserialize, Serialize};

/// Name of the SQLite file in a role's folder.
const FILE: &str = "chain.sqlite";

/// Where a role keeps its records: by default in a SQLite file in its folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// `sqlite:PATH` or `postgres://user@host:port/database`; none: the file `chain.sqlite` in the role's folder.
    pub url: Option<String>,
    /// File whose first line is the password of the PostgreSQL user.
    pub password_file: Option<PathBuf>,
}

impl StoreSettings {
    /// Where that is, for the role that has this folder.
    ///
    /// # Errors
    /// What is no URL of a store; a password file that cannot be read.
    pub fn at(&self, data_dir: &Path) -> Result<StoreUrl> {
        let url = match &self.url {
            None => store_in(data_dir),
            Some(url) => url.parse().context("store.url")?,
        };
        with_password(url, self.password_file.as_deref()).context("store.password_file")
    }

    /// Opens it, to write; makes the role's folder.
    ///
    /// # Errors
    /// When folder or store cannot be opened, or another process has the store.
    pub async fn open(&self, data_dir: &Path) -> Result<Arc<SqlStore>> {
        fs::create_dir_all(data_dir).with_context(|| format!("data_dir = {}", data_dir.display()))?;
        let url = self.at(data_dir)?;
        let store = url.open().await.with_context(|| format!("store.url = {url}"))?;
        tracing::info!(%url, "store opened");
        Ok(Arc::new(store))
    }
}

/// The store of a role that has this folder and names no other place.
fn store_in(data_dir: &Path) -> StoreUrl {
    StoreUrl::Sqlite(data_dir.join(FILE))
}

/// Reads where a store is as the command line names it: a role's folder, or the store's URL.
///
/// # Errors
/// What is no URL of a store; a password file that cannot be read.
pub fn store_named(place: &str, password_file: Option<&Path>) -> Result<StoreUrl> {
    let is_url = ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| place.starts_with(scheme));
    let url = if is_url { place.parse()? } else { store_in(Path::new(place)) };
    with_password(url, password_file)
}

fn with_password(url: StoreUrl, file: Option<&Path>) -> Result<StoreUrl> {
    let Some(file) = file else { return Ok(url) };
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok(match url {
        StoreUrl::Postgres(url) => {
            StoreUrl::Postgres(url.with_password(text.lines().next().unwrap_or_default().as_bytes()))
        }
        file @ StoreUrl::Sqlite(_) => file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_without_a_setting_keeps_its_records_in_its_folder() {
        let settings = StoreSettings::default();
        assert_eq!(settings.at(Path::new("a/b")).unwrap(), StoreUrl::Sqlite("a/b/chain.sqlite".into()));
        assert_eq!(store_named("a/b", None).unwrap(), StoreUrl::Sqlite("a/b/chain.sqlite".into()));
    }

    #[test]
    fn a_url_and_its_password_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "secret\nmore").unwrap();
        let url = "postgres://me@host/chain".to_owned();
        let settings = StoreSettings { url: Some(url), password_file: Some(file) };
        let StoreUrl::Postgres(with) = settings.at(folder.path()).unwrap() else { panic!("a server") };
        let plain: blindfold_store::PostgresUrl = "postgres://me@host/chain".parse().unwrap();
        assert_eq!(with, plain.with_password(b"secret"));
        assert_eq!(format!("{with} {with:?}"), "postgres://me@host:5432/chain postgres://me@host:5432/chain");
        let missing = StoreSettings { password_file: Some("/nowhere".into()), ..StoreSettings::default() };
        let error = format!("{:#}", missing.at(folder.path()).unwrap_err());
        assert!(error.contains("store.password_file") && error.contains("/nowhere"), "{error}");
        let wrong = StoreSettings { url: Some("mysql://a".to_owned()), ..StoreSettings::default() };
        assert!(format!("{:#}", wrong.at(folder.path()).unwrap_err()).contains("store.url"));
    }
}
