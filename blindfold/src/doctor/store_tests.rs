//! What is said of stores.

use std::fs;

use alloy_primitives::{Address, B256};
use blindfold_protocol::Deployment;
use tempfile::TempDir;

use super::*;
use crate::doctor::local::OpenedAccount;
use crate::test_chain::chain;

/// A store of this deployment and role that was closed in order, in a folder of its own.
async fn stored(deployment: &Deployment, role: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chain.sqlite");
    let store = SqlStore::open(&path).unwrap();
    store.bind(deployment, role).await.unwrap();
    store.close().await;
    (dir, path)
}

fn names(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

async fn look_at(path: &Path, chain: ChainConfig, role: &'static str) -> (bool, Vec<Finding>) {
    look_as(path, Local { chain: Some(Arc::new(chain)), ..Local::default() }, Some(role)).await
}

/// Without a role it is a signer's.
async fn look_as(path: &Path, local: Local, role: Option<&'static str>) -> (bool, Vec<Finding>) {
    let url = Ok(StoreUrl::Sqlite(path.to_owned()));
    let subject = StoreSubject { setting: "data_dir", url, role, of_signer: role.is_none() };
    let (opened, findings) = look(&subject, &local, Patience { answer_ms: 10_000 }).await;
    (opened.is_some(), findings)
}

#[tokio::test]
async fn a_signers_store_is_its_keys_and_has_begun() {
    let key = Address::repeat_byte(7);
    let (_dir, path) = stored(&chain().deployment, &blindfold_signer::role_of(key)).await;
    let of = |address| {
        let account = OpenedAccount { setting: "signing_key", is_for: AccountUse::Signs, address };
        Local { chain: Some(Arc::new(chain())), accounts: vec![account], ..Local::default() }
    };
    let (usable, findings) = look_as(&path, of(key), None).await;
    assert!(!usable && findings[0].level == Level::Ok, "{findings:?}");
    assert_eq!(findings[1].found, "the signer does not know what its key has signed");
    let store = SqlStore::open(&path).unwrap();
    store.put_meta("signer.first_number", &7u64.to_be_bytes()).await.unwrap();
    store.put_acknowledged(9, B256::ZERO, 1).await.unwrap();
    store.close().await;
    let (usable, findings) = look_as(&path, of(key), None).await;
    assert!(usable, "{findings:?}");
    assert_eq!(findings[1].found, "from number 7 on; newest 9");
    let (usable, findings) = look_as(&path, of(Address::repeat_byte(8)), None).await;
    assert!(!usable && findings[0].found.contains("this is the store of signer-0x0707"), "{findings:?}");
}

#[tokio::test]
async fn a_store_is_read_beside_its_role_and_left_as_it_was() {
    let (dir, path) = stored(&chain().deployment, "full_node").await;
    let before = fs::read(&path).unwrap();
    let (usable, findings) = look_at(&path, chain(), "full_node").await;
    assert!(usable, "{findings:?}");
    assert_eq!(findings[1].found, "sealed none, certified none, hinted none, posted none; block none");
    assert_eq!(names(&dir), ["chain.sqlite", "chain.sqlite.lock"]);
    assert!(fs::read(&path).unwrap() == before);

    let role = SqlStore::open(&path).unwrap();
    assert!(look_at(&path, chain(), "full_node").await.0, "the role has it open");
    role.close().await;
}

#[tokio::test]
async fn a_store_of_another_deployment_or_role_is_told() {
    let (_dir, path) = stored(&chain().deployment, "full_node").await;
    let mut other = chain();
    other.deployment.l1_chain_id += 1;
    let (usable, findings) = look_at(&path, other, "full_node").await;
    assert!(!usable && findings[0].level == Level::Error, "{findings:?}");
    assert!(findings[0].found.starts_with("this is the store of deployment 0x"), "{findings:?}");
    assert!(findings[0].next.as_ref().is_some_and(|next| next.contains("`data_dir`")));
    let (_, findings) = look_at(&path, chain(), "coprocessor").await;
    assert_eq!(findings[0].found, "this is the store of full_node, not of coprocessor");
}

#[tokio::test]
async fn a_store_that_is_not_there_or_none_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let missing = look_at(&dir.path().join("chain.sqlite"), chain(), "full_node").await.1;
    assert_eq!(missing[0].level, Level::NotChecked);
    let path = dir.path().join("chain.sqlite");
    fs::write(&path, "no store").unwrap();
    let none = look_at(&path, chain(), "full_node").await.1;
    assert_eq!(none[0].level, Level::Error);
    assert_eq!(names(&dir), ["chain.sqlite"]);
}
