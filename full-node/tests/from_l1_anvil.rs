//! Following from L1 alone, through the contracts on anvil: what was posted, forced and deposited there.

mod common;

use blindfold_rpc::RunningRole;
use std::path::PathBuf;
use std::sync::Arc;

use blindfold_chain::{Executor, ExecutorDeps, HintIntake, L1Reader, Tracker};
use blindfold_full_node::{FullNode, FullNodeConfig, FullNodeDeps, Source};
use blindfold_kit::*;
use blindfold_l1::{
    AnvilConfig, CodedBatch, DEFAULT_PUBLISHER_BOND_WEI, DataPlace, DeployConfig, HintPosting, L1Client,
    L1Writer, L2Call, ManagedAnvil, NewEpoch, NewMember, deploy, dev_key,
};
use blindfold_protocol::{
    Address, B256, BatchHeader, Bytes, Canonical, ChainConfig, HintEntry, U256, Verdict,
};
use common::executed;

const L1_CHAIN_ID: u64 = 31_337;

/// Anvil, installed first where it is missing. Fails, never skips, without it.
async fn anvil() -> ManagedAnvil {
    let contracts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../contracts");
    if AnvilConfig::installed(&contracts).is_err() {
        let script = contracts.join("../scripts/contracts");
        let status =
            std::process::Command::new(script).arg("setup").status().expect("scripts/contracts runs");
        assert!(status.success(), "scripts/contracts setup failed");
    }
    let config = AnvilConfig::installed(&contracts).expect("scripts/contracts setup installs anvil");
    ManagedAnvil::spawn(&config).await.expect("anvil starts")
}

#[tokio::test]
async fn what_the_contracts_hold_gives_the_same_blocks() {
    let anvil = anvil().await;
    let (governor, user) = (dev_key(1).unwrap(), dev_key(4).unwrap());
    let mut config = DeployConfig::new(L1_CHAIN_ID, governor.address(), sequencer_key().address());
    config.timing.challenge_window = 4;
    config.deposits_without_outlet = true;
    let addresses = deploy(anvil.url(), &dev_key(0).unwrap(), config).await.unwrap();
    anvil.mine(4).await.unwrap();
    let mut config = addresses.client_config(anvil.url());
    config.poll_interval_ms = 0;
    (config.request_timeout_ms, config.confirmation_timeout_ms) = (300_000, 300_000);
    config.beacon_url = Some(anvil.url().to_owned());
    let client = L1Client::connect(config).await.unwrap();
    let chain = Arc::new(ChainConfig {
        deployment: addresses.deployment(),
        registry: addresses.registry,
        fee_vault: addresses.fee_vault,
        forced_queue: addresses.forced_queue,
        hint_registry: addresses.hint_registry,
        hint_verifier: addresses.hint_verifier,
        deposit_portal: addresses.deposit_portal,
        output_registry: addresses.output_registry,
        genesis_l1_origin: client.finalized().await.unwrap().number,
        ..(*chain_config()).clone()
    });

    // A committee, three deposits of which one block takes one each, and a forced transaction.
    let member = |key: &blindfold_bte::bls::SecretKey| NewMember {
        key: key.public_key(),
        possession: key.prove_possession(),
    };
    let epoch = NewEpoch {
        last: LAST_NUMBER,
        max_batch: MAX_BATCH,
        threshold: THRESHOLD,
        parameters_hash: epoch().parameters_hash,
        continues: 0,
        encryption_key: committee().parameters.encryption_key(),
        h1: committee().bls[0].public_key(),
        parameters_location: "parameters.bin".into(),
        members: committee().bls.iter().map(member).collect(),
    };
    L1Writer::new(client.clone(), governor).register_epoch(&epoch).await.unwrap();
    let writer = L1Writer::new(client.clone(), user);
    for mint in 1..=3 {
        let call = L2Call {
            to: Some(Address::repeat_byte(0xcc)),
            mint: U256::from(mint),
            value: U256::ZERO,
            gas: 5_000_000,
            data: Bytes::new(),
        };
        writer.deposit_transaction(&call).await.unwrap();
        // The portal admits no more in one L1 block.
        anvil.mine(1).await.unwrap();
    }
    writer.deposit(payer(1).address(), RICH).await.unwrap();
    writer.force_transaction(50_000, &transaction(1, 1)).await.unwrap();
    anvil.mine(4).await.unwrap();

    // The truth: sealed and executed here, posted once.
    let l1: Arc<dyn L1Reader> = Arc::new(client.clone());
    let tracker = Tracker::open(Arc::clone(&chain), memory(), Arc::clone(&l1)).await.unwrap();
    let deps = ExecutorDeps {
        tracker: tracker.clone(),
        parameters: parameter_set(),
        backend: backend(),
        client: ScriptedExecution::new(),
        l1: Arc::clone(&l1),
    };
    let executor = Executor::start(deps).await.unwrap();
    let origin = client.finalized().await.unwrap();
    let (mut batches, mut last) = (Vec::new(), None);
    let (mut hints, mut release) = (Vec::new(), None);
    for second in 0..4 {
        let (ms, forced) = ((origin.timestamp + second) * 1_000, usize::from(second == 0));
        // An envelope, whose hints the node has to find in a blob.
        let envelope = envelope_with(1, 2, |fields| fields.deployment = chain.deployment).encode();
        let items = if second == 1 { vec![envelope] } else { vec![] };
        let checked = check(&chain, &blindfold_kit::epoch(), &items);
        let items = items.into_iter().zip(checked).collect();
        let sealed = tracker.seal(ms, forced, items, &origin, &signer_of(&tracker)).await.unwrap();
        let codes = sealed.verdicts.iter().map(Verdict::code).collect();
        batches.push(CodedBatch { sealed: (*sealed.batch).clone(), codes });
        let opened = open_batch(&sealed.batch, &sealed.verdicts);
        if second == 1 {
            release = Some(opened.0);
        }
        hints.push(opened.1);
        last = Some(sealed);
    }
    assert!(matches!(hints[1].entries[..], [HintEntry::Key(_)]), "accepted");
    let header = last.unwrap().batch.header;
    let certify = |header: &BatchHeader| committee().certify(&chain.deployment, header, &[1, 2, 4]);
    let certificate = certify(&header);
    tracker.accept_certificate(&certificate).await.unwrap();
    let intake = HintIntake::new(tracker.clone(), parameter_set(), backend(), executor.opened());
    intake.submit(release, hints[1].clone()).await.unwrap();
    // Somebody posts two headers first, without data: the node has to find it in the transaction that comes after.
    let front: Vec<BatchHeader> = batches[..2].iter().map(|batch| batch.sealed.header).collect();
    let somebody = L1Writer::new(client.clone(), dev_key(6).unwrap());
    somebody.post_headers(&front, &[], &certify(&front[1])).await.unwrap();
    writer.post(&batches, &certificate).await.unwrap();
    anvil.mine(4).await.unwrap();
    let runs = client.posted_runs(0, client.finalized().await.unwrap().number).await.unwrap();
    let publisher = L1Writer::new(client.clone(), dev_key(5).unwrap()).with_data_in(DataPlace::Blobs);
    publisher.deposit_publisher_bond(DEFAULT_PUBLISHER_BOND_WEI).await.unwrap();
    publisher.post_hints(&runs[0].0, &HintPosting::of(&hints[..2])).await.unwrap();
    // The rest has no item that takes a blob.
    let in_calldata = publisher.clone().with_data_in(DataPlace::Calldata);
    in_calldata.post_hints(&runs[1].0, &HintPosting::of(&hints[2..])).await.unwrap();
    anvil.mine(4).await.unwrap();

    let posted: Arc<dyn L1Reader> = Arc::new(client.clone());
    let execution = ScriptedExecution::new();
    let config = FullNodeConfig {
        rpc_addr: ([127, 0, 0, 1], 0).into(),
        admin_addr: ([127, 0, 0, 1], 0).into(),
        source: Source::L1,
        sequencer_urls: Default::default(),
        members: Vec::new(),
        hint_deadline_ms: NEVER_MS,
        member_timeout_ms: 5_000,
        member_poll_interval_ms: 50,
        keep_batches: None,
        inbound: Default::default(),
    };
    let deps = FullNodeDeps {
        chain,
        store: memory(),
        l1,
        client: Arc::clone(&execution) as _,
        parameters: parameter_set(),
        backend: backend(),
        watch: None,
        posted: Some(posted),
        settlement: Some(Arc::new(client.clone())),
    };
    let node = FullNode::start(config, deps).await.unwrap();
    executed(&node, 3).await;
    // The hints in the blob are the node's own, so what they open is safe; final when they are.
    let mut marked = node.executor().watch_status();
    let number = |block: Option<(u64, B256)>| block.map(|(number, _)| number);
    let safe = marked.wait_for(|status| number(status.safe) == Some(3));
    let status = within("the safe block", safe).await.unwrap().clone();
    assert_eq!(status.block.map(|block| block.hash), status.safe.map(|(_, hash)| hash));
    assert_eq!(number(status.finalized), None);
    publisher.finalize_hints(1).await.unwrap();
    publisher.finalize_hints(2).await.unwrap();
    anvil.mine(4).await.unwrap();
    let last = marked.wait_for(|status| number(status.finalized) == Some(3));
    assert_eq!(within("the final block", last).await.unwrap().finalized, status.safe);
    let mut truth = executor.watch_status();
    let reached = truth.wait_for(|status| status.block.is_some_and(|block| block.number == 3));
    within("the truth's blocks", reached).await.unwrap();
    assert_eq!(node.executor().status().block, executor.status().block);
    // What is minted is what the portal was given, in its order, one deposit a block.
    let start = node.tracker().config().genesis_l1_origin;
    let deposits = client.bridge_deposits(start, origin.number).await.unwrap();
    let lists: Vec<Vec<Bytes>> =
        execution.executed.lock().iter().map(|inputs| inputs.l1_deposits.clone()).collect();
    let expected: Vec<Vec<Bytes>> = deposits.into_iter().map(|deposit| vec![deposit.raw]).collect();
    assert_eq!((lists.len(), lists), (3, expected));
    node.shutdown().await;
}
