//! A disk in memory: what was committed outlives its stores, as on a disk.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::time::Duration;

use blindfold_store::{Condition, Disk, DiskFault, SqlStore, Store, StoreError};
use common::*;

#[tokio::test(start_paused = true)]
async fn what_was_committed_outlives_the_store_and_its_caller() {
    let disk = Disk::new().unwrap();
    let store = SqlStore::on(&disk);
    store.put_envelope(envelope(1)).await.unwrap();
    // Committed, and ended before its caller heard of it.
    let hour = Duration::from_secs(3_600);
    disk.set_condition(Condition { after_commit: hour, ..Condition::default() });
    tokio::time::timeout(hour / 2, store.put_envelope(envelope(2))).await.unwrap_err();
    // Ended before it was committed.
    disk.set_condition(Condition { before_commit: hour, ..Condition::default() });
    tokio::time::timeout(hour / 2, store.put_envelope(envelope(3))).await.unwrap_err();
    disk.set_condition(Condition::default());
    assert_eq!(disk.commits(), 2);

    let next = SqlStore::on(&disk);
    assert_eq!(next.pending_envelopes().await.unwrap(), [envelope(1), envelope(2)]);
    assert_eq!(store.put_envelope(envelope(4)).await, Err(StoreError::Closed), "the disk is another's");
    assert_eq!(store.pending_envelopes().await, Err(StoreError::Closed));
}

#[tokio::test]
async fn an_older_image_is_an_older_disk() {
    let disk = Disk::new().unwrap();
    SqlStore::on(&disk).put_envelope(envelope(1)).await.unwrap();
    let older = disk.image().unwrap();
    SqlStore::on(&disk).put_envelope(envelope(2)).await.unwrap();
    disk.restore(&older).unwrap();
    let store = SqlStore::on(&disk);
    assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(1)]);
    store.put_envelope(envelope(3)).await.unwrap();
    assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(1), envelope(3)]);
    assert!(disk.restore(b"no image").is_err());
    assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(1), envelope(3)]);
}

#[tokio::test]
async fn a_full_disk_may_be_emptied_and_a_broken_one_ends_its_store() {
    let disk = Disk::new().unwrap();
    let store = SqlStore::on(&disk);
    let set = |fault| disk.set_condition(Condition { fault, ..Condition::default() });
    set(Some(DiskFault::Full));
    assert!(matches!(store.put_envelope(envelope(1)).await, Err(StoreError::Failed(_))));
    set(None);
    store.put_envelope(envelope(1)).await.unwrap();
    set(Some(DiskFault::Broken));
    assert!(matches!(store.put_envelope(envelope(2)).await, Err(StoreError::Stopped(_))));
    set(None);
    assert!(matches!(store.put_envelope(envelope(2)).await, Err(StoreError::Stopped(_))));
    assert!(store.stopped().await.contains("disk I/O error"));
    assert_eq!(store.pending_envelopes().await.unwrap(), [envelope(1)], "reading goes on");
    SqlStore::on(&disk).put_envelope(envelope(2)).await.unwrap();
}
