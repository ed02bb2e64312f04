use blindfold_protocol::{Address, Deployment};
use blindfold_servers::Postgres;
use blindfold_store::PendingEnvelope;

use super::*;

fn store(place: &Path) -> StoreArgs {
    StoreArgs { store: place.display().to_string(), password_file: None }
}

/// A folder with the records of a role.
async fn with_records(folder: &Path, role: &str) {
    let store = store_named(&folder.display().to_string(), None).unwrap();
    let store = opened_empty(&store).await.unwrap();
    store.bind(&Deployment { l1_chain_id: 1, inbox: Address::ZERO }, role).await.unwrap();
    store.put_meta(VOTES_AFTER_KEY, &0u64.to_be_bytes()).await.unwrap();
    let envelope = PendingEnvelope { id: Default::default(), bytes: vec![7], arrived_ms: 1, seal_by: None };
    store.put_envelope(envelope).await.unwrap();
    store.close().await;
}

async fn votes_after(folder: &Path) -> Option<Vec<u8>> {
    let store = store_named(&folder.display().to_string(), None).unwrap().open_reader().await.unwrap();
    store.meta(VOTES_AFTER_KEY).await.unwrap()
}

#[tokio::test]
async fn a_restored_member_does_not_know_what_it_voted_for() {
    for (role, expected) in [("member-2", vec![]), ("full-node", vec![0; 8])] {
        let folder = tempfile::tempdir().unwrap();
        let (here, there, file) =
            (folder.path().join("here"), folder.path().join("there"), folder.path().join("backup.db"));
        with_records(&here, role).await;
        run(StoreCommand::Backup { store: store(&here), out: file.clone(), json: true }).await.unwrap();
        run(StoreCommand::Verify { store: store(&file), json: false }).await.unwrap();
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "the backup is one file, also when it was looked at: {names:?}");
        run(StoreCommand::Restore { backup: file, store: store(&there), json: false }).await.unwrap();
        assert_eq!(votes_after(&here).await, Some(vec![0; 8]));
        assert_eq!(votes_after(&there).await, Some(expected), "{role}");
    }
}

/// Also of a backup that another build made. It may move, which leaves one.
#[tokio::test]
async fn no_copy_of_what_a_signer_signed_is_made_or_used() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let (here, there, file) = (place("here"), place("there"), place("backup.db"));
    with_records(&here, &blindfold_signer::role_of(Address::ZERO)).await;
    let said = async |command| run(command).await.unwrap_err().to_string();
    let refused = said(StoreCommand::Backup { store: store(&here), out: file.clone(), json: true }).await;
    assert!(refused.contains("sign those numbers twice") && refused.contains("signer begin"), "{refused}");
    assert!(!file.exists());
    let (source, target) = (StoreUrl::Sqlite(here.join("chain.sqlite")), StoreUrl::Sqlite(file.clone()));
    let (source, target) = (source.open_reader().await.unwrap(), target.open().await.unwrap());
    transfer(&source, &target, &Purpose::Backup, &|_| ()).await.unwrap();
    source.close().await;
    target.close().await;
    let refused = said(StoreCommand::Restore { backup: file, store: store(&there), json: true }).await;
    assert!(refused.contains("sign those numbers twice"), "{refused}");
    assert!(!there.exists(), "nothing was made");
    let (from, to) = (here.display().to_string(), there.display().to_string());
    run(StoreCommand::Copy { from, to, from_password_file: None, to_password_file: None, json: true })
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_not_there_or_in_the_way_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (nowhere, here, file) =
        (folder.path().join("nowhere"), folder.path().join("here"), folder.path().join("backup.db"));
    let said = async |command| run(command).await.unwrap_err().to_string();
    let backup = |at: &Path| StoreCommand::Backup { store: store(at), out: file.clone(), json: false };
    assert!(said(backup(&nowhere)).await.contains("there is no store at"));
    assert!(
        said(StoreCommand::Verify { store: store(&nowhere), json: false })
            .await
            .contains("there is no store at")
    );
    assert!(!nowhere.exists(), "nothing was made of it");
    with_records(&here, "sequencer").await;
    run(backup(&here)).await.unwrap();
    assert!(said(backup(&here)).await.contains("it exists already"));
    let restore = StoreCommand::Restore { backup: file.clone(), store: store(&here), json: false };
    assert!(format!("{:#}", run(restore).await.unwrap_err()).contains("the target is not empty"));
    let copy = |to: &Path| StoreCommand::Copy {
        from: here.display().to_string(),
        to: to.display().to_string(),
        from_password_file: None,
        to_password_file: None,
        json: false,
    };
    assert!(said(copy(&here)).await.contains("the same store"));
    let held = StoreUrl::Sqlite(here.join("chain.sqlite")).open().await.unwrap();
    assert!(said(copy(&nowhere)).await.contains("the role has to be stopped"));
    held.close().await;
}

#[tokio::test]
async fn records_move_to_a_server_and_back() {
    let Some(server) = Postgres::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (here, back) = (folder.path().join("here"), folder.path().join("back"));
    with_records(&here, "sequencer").await;
    let url = server.fresh().unwrap();
    let copy = |from: &str, to: &str| StoreCommand::Copy {
        from: from.to_owned(),
        to: to.to_owned(),
        from_password_file: None,
        to_password_file: None,
        json: true,
    };
    let (first, last) = (here.display().to_string(), back.display().to_string());
    run(copy(&first, &url)).await.unwrap();
    run(copy(&url, &last)).await.unwrap();
    let moved = store_named(&last, None).unwrap().open().await.unwrap();
    assert_eq!(moved.pending_envelopes().await.unwrap().len(), 1);
    moved.bind(&Deployment { l1_chain_id: 1, inbox: Address::ZERO }, "sequencer").await.unwrap();
    let left = store_named(&first, None).unwrap().open().await.unwrap();
    let refused =
        left.bind(&Deployment { l1_chain_id: 1, inbox: Address::ZERO }, "sequencer").await.unwrap_err();
    assert!(refused.to_string().contains("was moved to postgres://"), "{refused}");
}

#[tokio::test]
async fn only_a_stopped_full_nodes_records_are_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let (node, sequencer) = (folder.path().join("node"), folder.path().join("sequencer"));
    with_records(&node, blindfold_full_node::ROLE).await;
    with_records(&sequencer, blindfold_sequencer::ROLE).await;
    let prune = |at: &Path, dry_run| StoreCommand::Prune {
        store: store(at),
        keep_batches: MIN_KEPT_BATCHES,
        dry_run,
        json: false,
    };
    for dry_run in [true, false] {
        run(prune(&node, dry_run)).await.unwrap();
        let refused = run(prune(&sequencer, dry_run)).await.unwrap_err();
        assert!(format!("{refused:#}").contains("can be accused on L1 at any time"), "{refused:#}");
    }
    let running = StoreUrl::Sqlite(node.join("chain.sqlite")).open().await.unwrap();
    run(prune(&node, true)).await.unwrap();
    let refused = format!("{:#}", run(prune(&node, false)).await.unwrap_err());
    assert!(
        refused.contains("stop the node first") && refused.contains("full_node.keep_batches"),
        "{refused}"
    );
    running.close().await;
}
