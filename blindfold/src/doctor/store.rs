//! The store on this disk, read beside its role.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use blindfold_committee::store_role;
use blindfold_protocol::ChainConfig;
use blindfold_runtime::blocking;
use blindfold_store::{Heads, SqlStore, Store, StoreError, StoreUrl};
use tokio::time::timeout;

use super::{
    Patience,
    finding::{Area, Finding, Level},
    local::Local,
    subject::{AccountUse, StoreSubject},
};

/// A store that was opened beside its role.
pub(super) struct OpenedStore {
    pub store: Arc<dyn Store>,
    pub heads: Heads,
    bound_to: [Option<String>; 2],
}

/// A store's file as SQLite is to open it. Where a role has it open, or was killed, a log lies beside it. Without one it was
/// closed in order, and SQLite would make a log just to read: it is told that nobody writes.
fn untouched(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    match path.to_str().filter(|_| !Path::new(&log).exists()) {
        Some(path) => {
            let escaped = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            format!("file:{escaped}?immutable=1").into()
        }
        None => path.to_owned(),
    }
}

/// Reads a store that a role may be writing.
async fn read_store(url: &StoreUrl) -> Result<OpenedStore, StoreError> {
    let opened = match url {
        StoreUrl::Sqlite(path) => {
            let path = path.clone();
            let opened = blocking(move || SqlStore::open_reader(untouched(&path))).await;
            opened.map_err(|_| StoreError::Closed)??
        }
        server @ StoreUrl::Postgres(_) => server.open_reader().await?,
    };
    opened.check_usable().await?;
    let store: Arc<dyn Store> = Arc::new(opened);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let bound_to = [store.meta("deployment").await?.map(text), store.meta("role").await?.map(text)];
    Ok(OpenedStore { heads: store.heads().await?, store, bound_to })
}

/// The store: whether it can be read, whose it is, and how far it is.
pub(super) async fn look(
    subject: &StoreSubject,
    local: &Local,
    patience: Patience,
) -> (Option<OpenedStore>, Vec<Finding>) {
    let StoreSubject { setting, url, role, of_signer } = subject;
    let url = match url {
        Ok(url) => url,
        Err(fault) => {
            let finding = Finding::error(Area::Store, *setting, fault, "correct the setting that it names");
            return (None, vec![finding]);
        }
    };
    let shown = match url {
        StoreUrl::Sqlite(path) => path.display().to_string(),
        server @ StoreUrl::Postgres(_) => server.to_string(),
    };
    let signs = || local.accounts.iter().find(|account| account.is_for == AccountUse::Signs);
    let role = match role {
        Some(role) => Some((*role).to_owned()),
        None if *of_signer => signs().map(|account| blindfold_signer::role_of(account.address)),
        None => local.member.as_ref().map(|key| store_role(key.member)),
    };
    if matches!(url, StoreUrl::Sqlite(path) if !path.exists()) {
        let next = if *of_signer {
            "for a new signer: tell it from which number on it signs (`blindfold signer begin`); else correct the setting"
        } else {
            "nothing, if this role has not run yet: its first start makes the store; else correct the setting"
        };
        return (
            None,
            vec![Finding::not_checked(Area::Store, *setting, format!("there is no {shown}"), next)],
        );
    }
    let read = timeout(Duration::from_millis(patience.answer_ms), read_store(url)).await;
    let silent = || StoreError::Failed("no answer in time".to_owned());
    let opened = match read.unwrap_or_else(|_| Err(silent())) {
        Ok(opened) => opened,
        Err(fault) => {
            let next = match &fault {
                StoreError::NewerSchema { .. } => "use the program that the role runs with",
                StoreError::OlderSchema { .. } => "start the role with an empty folder in this setting",
                StoreError::Retired(_) => "see \"Backup and restore\" in docs/operate.md",
                _ if matches!(url, StoreUrl::Postgres(_)) => {
                    "see that the server runs and takes this user; \"Records on a PostgreSQL server\" in docs/operate.md"
                }
                StoreError::Stopped(_) | StoreError::Corrupt { .. } => {
                    "the disk or the files are damaged: see \"Backup and restore\" in docs/operate.md before starting the role"
                }
                _ => "run this as the role's user; if it goes on, see \"Files\" in docs/operate.md",
            };
            return (None, vec![Finding::error(Area::Store, *setting, format!("{shown}: {fault}"), next)]);
        }
    };
    let mut findings = vec![bound(setting, &opened, local.chain.as_deref(), role.as_deref())];
    if *of_signer {
        findings.push(of_signed(opened.store.as_ref(), &opened.heads).await);
        let usable = findings.iter().all(|finding| finding.level != Level::Error);
        return (usable.then_some(opened), findings);
    }
    let Heads { sealed, certified, hinted_through, block, posted, .. } = opened.heads;
    let or_none = |number: Option<u64>| number.map_or("none".to_owned(), |number| number.to_string());
    let found = format!(
        "sealed {}, certified {}, hinted {}, posted {}; block {}",
        or_none(sealed.map(|(number, _)| number)),
        or_none(certified),
        or_none(hinted_through),
        or_none(posted),
        or_none(block.map(|(number, _)| number)),
    );
    findings.push(Finding::ok(Area::Store, "heads", found));
    let usable = findings.iter().all(|finding| finding.level != Level::Error);
    (usable.then_some(opened), findings)
}

/// What a signer has signed, and from where on it knows.
async fn of_signed(store: &dyn Store, heads: &Heads) -> Finding {
    let subject = "signed";
    match blindfold_signer::first_number(store).await {
        Ok(Some(first)) => {
            let newest = heads.acknowledged.map_or("none".to_owned(), |number| number.to_string());
            Finding::ok(Area::Store, subject, format!("from number {first} on; newest {newest}"))
        }
        Ok(None) => {
            let next = "see \"The signer\" in docs/operate.md before `blindfold signer begin`: the key may have signed";
            Finding::error(Area::Store, subject, "the signer does not know what its key has signed", next)
        }
        Err(fault) => Finding::error(Area::Store, subject, fault, "see \"Files\" in docs/operate.md"),
    }
}

fn bound(setting: &str, opened: &OpenedStore, chain: Option<&ChainConfig>, role: Option<&str>) -> Finding {
    let [deployment, bound_role] = &opened.bound_to;
    let (Some(deployment), Some(bound_role)) = (deployment, bound_role) else {
        let next = "nothing: the role binds it at its next start";
        return Finding::warning(Area::Store, setting, "the store is bound to no deployment yet", next);
    };
    let expected = chain.map(|chain| {
        // As `Store::bind` writes it.
        format!("{} on L1 chain {}", chain.deployment.inbox, chain.deployment.l1_chain_id)
    });
    let next = format!("name this role's own folder in `{setting}`, or an empty one");
    if let Some(expected) = expected.filter(|expected| expected != deployment) {
        let found = format!("this is the store of deployment {deployment}, not of {expected}");
        return Finding::error(Area::Store, setting, found, next);
    }
    if let Some(role) = role.filter(|role| role != bound_role) {
        return Finding::error(
            Area::Store,
            setting,
            format!("this is the store of {bound_role}, not of {role}"),
            next,
        );
    }
    Finding::ok(Area::Store, setting, format!("opens: {bound_role} of {deployment}"))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
