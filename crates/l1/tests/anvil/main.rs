//! The contracts on a real node: anvil, with the hard fork of the target chain.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod archive;
mod blobs;
mod by_hand;
mod disputes;
mod fees;
mod forced;
mod hints;
mod in_front;
mod opened;
mod stage;
mod stakes;

use alloy_primitives::{U64, U256};
use alloy_sol_types::SolCall;
use blindfold_bte::bls::SecretKey;
use blindfold_l1::{
    AnvilConfig, AnvilError, BrokenOff, CodedBatch, CommitteeSettings, DataError, DeployConfig, DeployPlan,
    HintPosting, L1Client, L1Config, L1Contracts, L1Error, L1Writer, MAX_RUN_HINT_BYTES, ManagedAnvil,
    NewEpoch, NewMember, PostedBatch, PostedEntry, PostedHead, PostedRun, Recovery, RunError,
    contracts::BlindedInbox, deploy, dev_key,
};
use blindfold_protocol::{Address, B256, Bytes, Canonical, Certificate, SigningKey, certificate};
use serde_json::json;

use stage::{
    CHAIN_ID, GOVERNOR, POSTER, Stage, USER, anvil, contracts, deploy_config, encryption_key, key, plain,
    reverted,
};

#[tokio::test]
async fn epochs_and_keys_are_read_back() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    assert_eq!(client.epochs().await.unwrap().as_slice(), []);
    assert_eq!(client.encryption_key(1).await, Err(L1Error::UnknownEpoch(1)));

    let writer = stage.writer(GOVERNOR).await;
    let new = stage.epoch(100, encryption_key());
    writer.register_epoch(&new).await.unwrap();
    assert_eq!(client.epochs().await.unwrap().as_slice(), [], "not final yet");
    stage.anvil.mine(4).await.unwrap();
    writer.register_epoch(&stage.epoch(200, encryption_key())).await.unwrap();
    stage.anvil.mine(4).await.unwrap();

    let records = client.epoch_records().await.unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].parameters_location, new.parameters_location);
    let epoch = &records[0].epoch;
    assert_eq!((epoch.epoch, epoch.first, epoch.last), (1, 1, 100));
    assert_eq!((epoch.max_batch, epoch.threshold), (new.max_batch, new.threshold));
    assert_eq!(epoch.parameters_hash, new.parameters_hash);
    let keys: Vec<_> = stage.members.iter().map(SecretKey::public_key).collect();
    assert_eq!(epoch.members, keys);
    assert_eq!(records[1].epoch.first, 101);
    assert_eq!(client.encryption_key(1).await.unwrap(), new.encryption_key);

    reverted(stage.writer(USER).await.register_epoch(&new).await, "NotGovernor");
    let mut forged = stage.epoch(300, encryption_key());
    forged.members[2].possession = forged.members[1].possession;
    reverted(writer.register_epoch(&forged).await, "BadProofOfPossession { member: 3 }");
}

/// Another committee with shares of the same key: neither key nor h₁ is given again.
#[tokio::test]
async fn an_epoch_continues_the_key_of_an_earlier_one() {
    let stage = Stage::new().await;
    let writer = stage.writer(GOVERNOR).await;
    let first = stage.epoch(100, encryption_key());
    writer.register_epoch(&first).await.unwrap();
    let others: Vec<SecretKey> = (10..15u8).map(|j| SecretKey::generate(&[j; 32]).unwrap()).collect();
    let member =
        |secret: &SecretKey| NewMember { key: secret.public_key(), possession: secret.prove_possession() };
    let continued = NewEpoch {
        continues: 1,
        members: others.iter().map(member).collect(),
        parameters_hash: B256::repeat_byte(0x78),
        ..stage.epoch(200, encryption_key())
    };
    writer.register_epoch(&continued).await.unwrap();
    // What is continued may be a continuation itself.
    writer.register_epoch(&NewEpoch { last: 300, continues: 2, ..continued.clone() }).await.unwrap();
    stage.anvil.mine(4).await.unwrap();

    let client = stage.client().await;
    let epochs = client.epochs().await.unwrap();
    let found = epochs.as_slice();
    assert_eq!(found.iter().map(|epoch| epoch.continues).collect::<Vec<_>>(), [0, 1, 2]);
    for epoch in found {
        assert_eq!(epoch.encryption_key_hash, found[0].encryption_key_hash);
        assert_eq!(client.encryption_key(epoch.epoch).await.unwrap(), first.encryption_key);
    }
    assert_eq!(found[1].members, others.iter().map(SecretKey::public_key).collect::<Vec<_>>());
    assert_eq!(found[1].parameters_hash, continued.parameters_hash);

    for wrong in [
        NewEpoch { last: 400, continues: 4, ..continued.clone() },
        NewEpoch { last: 400, max_batch: 8, ..continued.clone() },
    ] {
        reverted(writer.register_epoch(&wrong).await, "BadContinuation");
    }
}

#[tokio::test]
async fn an_end_that_moves_and_scheduled_rules_are_read_again() {
    let stage = Stage::new().await;
    stage.register(1_000_000).await;
    let writer = stage.writer(GOVERNOR).await;
    writer.register_epoch(&stage.epoch(2_000_000, encryption_key())).await.unwrap();
    stage.anvil.mine(4).await.unwrap();
    let client = stage.client().await;
    let epochs = client.epochs().await.unwrap();
    assert_eq!((epochs.at(900_000).unwrap().epoch, epochs.rules_at(900_000)), (1, 1));
    let counts = epochs.as_slice().iter().map(|epoch| epoch.counts_from).collect::<Vec<_>>();
    assert!(counts[1] >= counts[0] + u64::from(stage::EPOCH_NOTICE), "{counts:?}");

    reverted(writer.end_epoch(1, 705_599).await, "ChangeTooSoon { firstNumber: 705599, earliest: 705600 }");
    writer.end_epoch(1, 800_000).await.unwrap();
    writer.schedule_rules(850_000, 2).await.unwrap();
    assert_eq!(client.epochs().await.unwrap().as_slice(), epochs.as_slice(), "not final yet");
    stage.anvil.mine(4).await.unwrap();
    let epochs = client.epochs().await.unwrap();
    assert_eq!([800_000, 800_001].map(|number| epochs.at(number).unwrap().epoch), [1, 2]);
    assert_eq!([849_999, 850_000].map(|number| epochs.rules_at(number)), [1, 2]);

    // The committee says nothing for as long as a header may take.
    reverted(writer.announce_silence().await, "NotSilent");
    stage.anvil.mine(u64::from(stage::TIMING.posting_deadline) + 1).await.unwrap();
    writer.announce_silence().await.unwrap();
    stage.anvil.mine(u64::from(stage::TIMING.answer_window) + 1).await.unwrap();
    stage.writer(USER).await.end_first_epoch().await.unwrap();
    stage.anvil.mine(4).await.unwrap();
    let epochs = client.epochs().await.unwrap();
    assert_eq!((epochs.as_slice()[0].last, epochs.at(1).unwrap().epoch), (0, 2));
}

/// Rule L-4.
#[tokio::test]
async fn runs_are_posted_and_read_back() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = stage.writer(POSTER).await;
    let client = writer.client();
    let head = client.posted_head().await.unwrap();
    assert_eq!((head.number, head.hash), (0, stage.deployment().genesis_hash()));

    let first = stage.batches(None, &[100]);
    let first_certificate = stage.certify(&epochs, &first[0].sealed.header);
    let sent = writer.post(&first, &first_certificate).await.unwrap();
    assert!(sent.gas_used < 300_000, "{}", sent.gas_used);
    let second = stage.batches(Some(&first[0].sealed.header), &[0, 500, 40, 40, 40]);
    let last = second.last().unwrap().sealed.header;
    let second_certificate = stage.certify(&epochs, &last);
    writer.post(&second, &second_certificate).await.unwrap();
    let head = client.posted_head().await.unwrap();
    assert_eq!((head.number, head.hash, head.timestamp_ms), (6, last.hash(), last.timestamp_ms));
    assert_eq!(client.final_posted_head().await.unwrap().number, 0);

    writer.post(&second, &second_certificate).await.unwrap();
    // The same header, as of a later block.
    let is_head = |found: PostedHead| PostedHead { block: head.block, ..found } == head;
    assert!(is_head(client.posted_head().await.unwrap()), "its data, once more");

    stage.anvil.mine(4).await.unwrap();
    assert!(is_head(client.final_posted_head().await.unwrap()));
    let through = client.finalized().await.unwrap().number;
    let postings = client.postings(0, through).await.unwrap();
    assert_eq!(postings.len(), 2);
    assert_eq!(postings[0].transaction, sent.transaction);
    assert_eq!(postings[0].l1_block, sent.block);
    assert_eq!(postings[0].data.whole(), Ok(plain(&first)));
    assert_eq!(postings[1].data.whole(), Ok(plain(&second)));
    assert_eq!(postings[1].certificate, Some(second_certificate));
    certificate::verify(&second_certificate, epochs.at(6).unwrap(), &stage.deployment()).unwrap();
    assert_eq!(client.postings(sent.block, through).await.unwrap().len(), 1);
}

/// 1,100 items may take 71,508 bytes of hints: two such headers do not fit one transaction of hints (L-6).
#[tokio::test]
async fn what_is_posted_is_cut_into_runs_whose_hints_fit_a_transaction() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = stage.writer(POSTER).await;
    let client = writer.client();
    let mut batches: Vec<CodedBatch> = Vec::new();
    for items in [1_100, 800, 1_100] {
        let codes = vec![1; items];
        let parent = batches.last().map(|batch| batch.sealed.header);
        let sealed = stage.coded(parent.as_ref(), vec![vec![3]; items], &codes, |_| {});
        batches.push(CodedBatch { sealed, codes });
    }
    let headers: Vec<_> = batches.iter().map(|batch| batch.sealed.header).collect();
    let certificate = stage.certify(&epochs, &headers[2]);
    let sent = writer.post(&batches, &certificate).await.unwrap();
    let through = stage.finalize().await;

    let postings = client.postings(0, through).await.unwrap();
    assert_eq!(postings.len(), 1, "one transaction");
    assert_eq!((postings[0].numbers(), &postings[0].headers), ((1, 3), &headers));
    assert_eq!((postings[0].certificate, postings[0].l1_block), (Some(certificate), sent.block));
    assert!(postings[0].data.whole() == Ok(plain(&batches)), "{:?}", postings[0].data.fault);
    let runs = &postings[0].runs;
    assert_eq!(runs.iter().map(|run| (run.first, run.last)).collect::<Vec<_>>(), [(1, 2), (3, 3)]);
    assert_eq!(&client.recent_runs(0, through).await.unwrap(), runs);
    for (run, headers) in runs.iter().zip([&headers[..2], &headers[2..]]) {
        assert_eq!(client.headers_of(run).await.unwrap(), PostedRun::new(headers.to_vec(), sent.block));
    }
    // The worst that the first may take is what the contract reckons with.
    let worst = |items: usize| PostedBatch {
        entries: vec![PostedEntry { kind: 2, key: [0; 16] }; items],
        singletons: vec![[0; 48]; items],
    };
    let hints = HintPosting { batches: vec![worst(1_100), worst(800)] };
    assert_eq!(hints.encode().len(), 5 + 2 * 8 + 65 * 1_900);
    let call = BlindedInbox::MAX_RUN_HINT_BYTESCall {}.abi_encode();
    let request = json!({ "to": stage.deployment().inbox, "data": Bytes::from(call) });
    let room = stage.anvil.call("eth_call", json!([request, "latest"])).await.unwrap();
    assert_eq!(room, json!(format!("{:#066x}", MAX_RUN_HINT_BYTES)));
}

#[tokio::test]
async fn data_that_is_missing_or_wrong_can_come_later() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = stage.writer(POSTER).await;
    let client = writer.client();

    // Too long for one transaction: the headers go first and the data follows in parts.
    let long = stage.batches(None, &[33_000, 33_000, 33_000, 1]);
    let headers: Vec<_> = long.iter().map(|batch| batch.sealed.header).collect();
    let sent = writer.post(&long, &stage.certify(&epochs, &headers[3])).await.unwrap();
    // Data of another run, and no data at all.
    let next = stage.batches(Some(&headers[3]), &[7]);
    let garbage = b"not a RunData";
    writer
        .post_headers(&[next[0].sealed.header], garbage, &stage.certify(&epochs, &next[0].sealed.header))
        .await
        .unwrap();
    let third = stage.batches(Some(&next[0].sealed.header), &[9]);
    let wrong = blindfold_l1::RunData::of(&next).encode();
    writer
        .post_headers(&[third[0].sealed.header], &wrong, &stage.certify(&epochs, &third[0].sealed.header))
        .await
        .unwrap();
    // Somebody else's parts are of no use and do no harm.
    let mut forged = third.clone();
    forged[0].sealed.items[0][0] ^= 1;
    stage.writer(USER).await.post_data(&forged).await.unwrap();
    writer.post_data(&third).await.unwrap();
    reverted(
        writer.post_data(&stage.batches(Some(&third[0].sealed.header), &[1])).await,
        "NotPosted { number: 7 }",
    );
    stage.anvil.mine(4).await.unwrap();

    let through = client.finalized().await.unwrap().number;
    let postings = client.postings(0, through).await.unwrap();
    assert_eq!(postings[0].data.whole(), Err(DataError::Absent));
    assert_eq!(postings[0].transaction, sent.transaction);
    assert!(matches!(postings[1].data.whole(), Err(DataError::Decode(_))));
    assert_eq!(postings[2].data.whole(), Err(DataError::Mismatch));
    assert_eq!(client.reposted_data(&headers, 0, through).await.unwrap().batches, plain(&long));
    assert_eq!(client.reposted_data(&postings[1].headers, 0, through).await.unwrap().batches.len(), 0);
    assert_eq!(client.reposted_data(&postings[2].headers, 0, through).await.unwrap().batches, plain(&third));
    assert_eq!(client.reposted_data(&[], 0, through).await.unwrap().batches.len(), 0);
}

/// Rule L-4.
#[tokio::test]
async fn runs_that_cannot_be_posted_are_named_before_sending() {
    let stage = Stage::new().await;
    let epochs = stage.register(100).await;
    let writer = stage.writer(POSTER).await;
    let batches = stage.batches(None, &[1, 2, 3]);
    let good = stage.certify(&epochs, &batches[2].sealed.header);

    assert_eq!(writer.post(&[], &good).await, Err(RunError::Empty.into()));
    assert_eq!(writer.post_data(&[]).await, Err(RunError::Empty.into()));
    let fault = RunError::OtherHeader { certified: good.header_hash, last: batches[1].sealed.header.hash() };
    assert_eq!(writer.post(&batches[..2], &good).await, Err(fault.into()));
    let gap = [batches[0].clone(), batches[2].clone()];
    assert_eq!(writer.post(&gap, &good).await, Err(RunError::NotARun(3).into()));
    let no_point = Certificate { signature: [0x80; 48], ..good };
    assert_eq!(writer.post(&batches, &no_point).await, Err(RunError::Signature.into()));
    let too_few = Certificate { signers: 3, ..good };
    reverted(writer.post(&batches, &too_few).await, "TooFewSigners { signers: 2, threshold: 3 }");
    let other_set = Certificate { signers: 7, ..good };
    reverted(writer.post(&batches, &other_set).await, "BadAggregateSignature");
}

/// Rule L-14.
#[tokio::test]
async fn deposits_count_once_they_are_final() {
    let stage = Stage::new().await;
    let early = stage.writer(USER).await.deposit(Address::repeat_byte(0xaa), 5).await;
    reverted(early, "NoEpoch");
    stage.register(100).await;
    let writer = stage.writer(USER).await;
    let client = writer.client();
    let payer = Address::repeat_byte(0xaa);
    let start = client.finalized().await.unwrap().number;
    let first = writer.deposit(payer, 5).await.unwrap();
    let second = writer.deposit(key(USER).address(), 7_000_000_000_000_000_000).await.unwrap();
    let finalized = client.finalized().await.unwrap().number;
    let early = client.deposits(start, second.block).await;
    assert_eq!(early, Err(L1Error::NotFinal { number: second.block, finalized }));
    assert_eq!(client.origin(second.block).await, Ok(None));
    stage.anvil.mine(4).await.unwrap();

    let deposits = client.deposits(start, second.block).await.unwrap();
    let found: Vec<_> = deposits.iter().map(|d| (d.payer, d.amount, d.l1_block)).collect();
    let expected = [(payer, 5, first.block), (key(USER).address(), 7_000_000_000_000_000_000, second.block)];
    assert_eq!(found, expected);
    assert_eq!(client.deposits(first.block, second.block).await.unwrap().len(), 1);
    let origin = client.origin(second.block).await.unwrap().unwrap();
    assert_eq!(origin.number, second.block);
    assert!(origin.timestamp > 0 && origin.base_fee > 0 && origin.blob_base_fee > 0);
    reverted(writer.deposit(Address::ZERO, 1).await, "ZeroPayer");
    reverted(writer.deposit(payer, 0).await, "ZeroAmount");
    let poor = L1Writer::new(client.clone(), SigningKey::from_bytes(&[9; 32]).unwrap());
    let error = poor.deposit(payer, 1).await.unwrap_err();
    assert!(matches!(error, L1Error::Rpc { .. }), "{error:?}");
}

#[tokio::test]
async fn other_chains_and_deployments_are_noticed_at_once() {
    let stage = Stage::new().await;
    let mut config = stage.config();
    config.deployment.l1_chain_id = 1;
    let error = L1Client::connect(config).await.unwrap_err();
    assert_eq!(error, L1Error::WrongChain { expected: 1, given: CHAIN_ID });
    let wanted = DeployConfig { l1_chain_id: 1, ..deploy_config() };
    let error = deploy(stage.anvil.url(), &key(0), wanted).await.unwrap_err();
    assert_eq!(error, L1Error::WrongChain { expected: 1, given: CHAIN_ID });

    let mut config = stage.config();
    config.contracts.fee_vault = Address::repeat_byte(9);
    let error = L1Client::connect(config).await.unwrap_err();
    assert_eq!(error, L1Error::NoContract { name: "FeeVault", address: Address::repeat_byte(9) });

    let other = deploy(stage.anvil.url(), &key(0), deploy_config()).await.unwrap();
    let mut config = stage.config();
    config.contracts.registry = other.registry;
    let error = L1Client::connect(config).await.unwrap_err();
    assert!(matches!(error, L1Error::OtherDeployment { contract: "CommitteeRegistry", .. }), "{error}");
    for contracts in [
        L1Contracts { forced_queue: other.forced_queue, ..stage.addresses.contracts() },
        L1Contracts { fee_vault: other.fee_vault, ..stage.addresses.contracts() },
        L1Contracts { hint_registry: other.hint_registry, ..stage.addresses.contracts() },
        L1Contracts { hint_verifier: other.hint_verifier, ..stage.addresses.contracts() },
        L1Contracts { output_registry: other.output_registry, ..stage.addresses.contracts() },
    ] {
        let error = L1Client::connect(L1Config { contracts, ..stage.config() }).await.unwrap_err();
        assert!(matches!(error, L1Error::OtherDeployment { .. }), "{error}");
    }
    // Contracts of this deployment that answer for its inbox and registry, too, in places that are not theirs.
    let own = stage.addresses.contracts();
    for (name, contracts) in [
        ("FeeVault", L1Contracts { fee_vault: own.hint_registry, ..own }),
        ("FeeVault", L1Contracts { fee_vault: own.forced_queue, ..own }),
        ("OutputRegistry", L1Contracts { output_registry: own.fee_vault, ..own }),
        ("DepositPortal", L1Contracts { deposit_portal: own.fee_vault, ..own }),
    ] {
        match L1Client::connect(L1Config { contracts, ..stage.config() }).await {
            Err(L1Error::OtherContract { name: reported, .. }) => assert_eq!(reported, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    let governed = DeployConfig { governor: key(USER).address(), ..deploy_config() };
    let governed = deploy(stage.anvil.url(), &key(0), governed).await.unwrap();
    let contracts = L1Contracts { deposit_portal: governed.deposit_portal, ..own };
    let error = L1Client::connect(L1Config { contracts, ..stage.config() }).await.unwrap_err();
    assert!(matches!(error, L1Error::OtherDeployment { contract: "DepositPortal", .. }), "{error}");
    let refused = DeployConfig { governor: Address::ZERO, ..deploy_config() };
    let error = deploy(stage.anvil.url(), &key(0), refused).await.unwrap_err();
    assert!(matches!(error, L1Error::Reverted { call: "CommitteeRegistry", .. }), "{error}");
}

async fn nonce(anvil: &ManagedAnvil, account: Address) -> u64 {
    let nonce = anvil.call("eth_getTransactionCount", json!([account, "latest"])).await.unwrap();
    serde_json::from_value::<U64>(nonce).unwrap().to()
}

#[tokio::test]
async fn a_deployment_that_broke_off_is_continued_and_nothing_is_paid_twice() {
    let anvil = anvil().await;
    let (url, deployer) = (anvil.url(), key(USER));
    let balance = |wei: u128| (deployer.address(), format!("{wei:#x}"));
    let config = DeployConfig { member_stake_wei: 1, ..deploy_config() };
    let plan = DeployPlan::new(url, deployer.address(), &config).await.unwrap();
    let whole = plan.funds(url).await.unwrap();
    assert!(whole.needed < whole.balance && plan.is_untouched(url).await.unwrap());

    // Ether for some contracts only.
    anvil.call("anvil_setBalance", json!(balance(u128::try_from(whole.needed).unwrap() / 3))).await.unwrap();
    let short = plan.funds(url).await.unwrap();
    assert!(short.needed > short.balance);
    plan.carry_out(url, &deployer).await.unwrap_err();
    let sent = nonce(&anvil, deployer.address()).await - plan.nonce();
    assert!((1..9).contains(&sent) && !plan.is_untouched(url).await.unwrap(), "{sent}");
    assert!(plan.funds(url).await.unwrap().needed < whole.needed);

    anvil.call("anvil_setBalance", json!(balance(10u128.pow(20)))).await.unwrap();
    let again = DeployPlan::again(deployer.address(), plan.nonce(), plan.addresses().block, &config).unwrap();
    assert_eq!((again.code_hash(), again.addresses()), (plan.code_hash(), plan.addresses()));
    for _ in 0..2 {
        again.carry_out(url, &deployer).await.unwrap();
        assert_eq!(nonce(&anvil, deployer.address()).await - plan.nonce(), 10);
        assert_eq!(again.funds(url).await.unwrap().needed, U256::ZERO);
    }
    L1Client::connect(plan.addresses().client_config(url)).await.unwrap();
}

#[tokio::test]
async fn what_deploying_costs_is_told_closely_before() {
    let anvil = anvil().await;
    let deployer = key(USER);
    let plan = DeployPlan::new(anvil.url(), deployer.address(), &deploy_config()).await.unwrap();
    let gas = plan.gas();
    plan.carry_out(anvil.url(), &deployer).await.unwrap();
    let mut used = 0;
    for block in 1..=9 {
        let block = anvil.call("eth_getBlockByNumber", json!([format!("{block:#x}"), false])).await.unwrap();
        used += serde_json::from_value::<U64>(block["gasUsed"].clone()).unwrap().to::<u64>();
    }
    assert!((used..used * 3 / 2).contains(&gas), "{gas} told, {used} used");
}

#[tokio::test]
async fn a_creation_that_no_block_takes_is_replaced_and_a_used_nonce_ends_the_deployment() {
    let anvil = anvil().await;
    let (url, deployer) = (anvil.url(), key(USER));
    let mut plan = DeployPlan::new(url, deployer.address(), &deploy_config()).await.unwrap();
    plan.confirmation_timeout_ms = 1;
    anvil.call("evm_setAutomine", json!([false])).await.unwrap();
    let error = plan.carry_out(url, &deployer).await.unwrap_err();
    assert!(matches!(error.error, L1Error::Unconfirmed { call: "CommitteeRegistry", .. }), "{error}");
    assert!(error.has_sent && !plan.is_untouched(url).await.unwrap());
    let error = DeployPlan::new(url, deployer.address(), &deploy_config()).await.unwrap_err();
    assert_eq!(error, L1Error::TransactionsWait { account: deployer.address(), waiting: 1 });
    anvil.mine(1).await.unwrap();
    anvil.call("evm_setAutomine", json!([true])).await.unwrap();
    plan.confirmation_timeout_ms = 60_000;
    assert!(!plan.carry_out(url, &deployer).await.unwrap(), "nothing of it is final");
    assert_eq!(nonce(&anvil, deployer.address()).await - plan.nonce(), 9);

    // What stands is of this deployment only with its settings.
    let whole = deploy_config();
    let committees = CommitteeSettings { switch_lead: whole.committees.switch_lead + 1, ..whole.committees };
    for (config, field) in [
        (DeployConfig { sequencer: Address::repeat_byte(7), ..whole }, "sequencer"),
        (DeployConfig { committees, ..whole }, "switchLead"),
        (DeployConfig { claim_delay: whole.claim_delay + 1, ..whole }, "claimDelay"),
    ] {
        let other = DeployPlan::again(deployer.address(), plan.nonce(), plan.addresses().block, &config);
        let error = other.unwrap().carry_out(url, &deployer).await.unwrap_err();
        assert!(!error.has_sent && !error.error.is_transient() && !error.is_final);
        match error.error {
            L1Error::OtherSetting { field: reported, .. }
            | L1Error::OtherDeployed { field: reported, .. } => {
                assert_eq!(reported, field);
            }
            other => panic!("{field}: {other}"),
        }
    }

    anvil.mine(4).await.unwrap();
    assert!(plan.carry_out(url, &deployer).await.unwrap(), "all of it is final");
    let config = DeployConfig { claim_delay: whole.claim_delay + 1, ..whole };
    let other = DeployPlan::again(deployer.address(), plan.nonce(), plan.addresses().block, &config).unwrap();
    assert!(other.carry_out(url, &deployer).await.unwrap_err().is_final);

    let other = DeployPlan::new(url, deployer.address(), &deploy_config()).await.unwrap();
    let client = L1Client::connect(plan.addresses().client_config(url)).await.unwrap();
    L1Writer::new(client, deployer.clone()).deposit_publisher_bond(1).await.unwrap();
    // Until that is final L1 may drop it.
    for is_final in [false, true] {
        let BrokenOff { error, is_final: reported, .. } = other.carry_out(url, &deployer).await.unwrap_err();
        assert!(matches!(error, L1Error::NonceUsed { name: "CommitteeRegistry", .. }), "{error}");
        assert_eq!(reported, is_final);
        anvil.mine(4).await.unwrap();
    }
    let stake = DeployConfig { member_stake_wei: 1 << 96, ..deploy_config() };
    let error = DeployPlan::again(deployer.address(), 0, 1, &stake).unwrap_err();
    assert_eq!(error, L1Error::StakeTooLarge { wei: 1 << 96 });
}

#[tokio::test]
async fn a_stuck_transaction_is_replaced() {
    let stage = Stage::new().await;
    stage.register(100).await;
    stage.anvil.call("evm_setAutomine", json!([false])).await.unwrap();
    let mut config = stage.config();
    config.confirmation_timeout_ms = 1;
    let client = L1Client::connect(config).await.unwrap();
    let start = client.finalized().await.unwrap().number;
    let writer = L1Writer::new(client.clone(), key(USER));
    let payer = Address::repeat_byte(0xbb);
    let error = writer.deposit(payer, 5).await.unwrap_err();
    assert!(matches!(error, L1Error::Unconfirmed { call: "deposit", waited_ms: 1, .. }), "{error}");
    assert_eq!(error.recovery(), Recovery::Retry);
    // Takes the place of the first.
    let error = writer.deposit(payer, 6).await.unwrap_err();
    assert!(matches!(error, L1Error::Unconfirmed { .. }), "{error}");
    stage.anvil.mine(4).await.unwrap();
    let deposits = client.deposits(start, client.finalized().await.unwrap().number).await.unwrap();
    assert_eq!(deposits.iter().map(|deposit| deposit.amount).collect::<Vec<_>>(), [6]);
}

#[tokio::test]
async fn development_keys_are_anvils() {
    let anvil = anvil().await;
    let accounts = anvil.call("eth_accounts", json!([])).await.unwrap();
    for index in 0..10 {
        let address: Address = accounts[index].as_str().unwrap().parse().unwrap();
        assert_eq!(dev_key(index).unwrap().address(), address);
    }
    assert!(dev_key(10).is_none());
}

#[tokio::test]
async fn an_anvil_that_does_not_start_says_why() {
    let running = anvil().await;
    let mut config = AnvilConfig::installed(&contracts()).unwrap();
    config.port = running.url().rsplit(':').next().unwrap().parse().unwrap();
    match ManagedAnvil::spawn(&config).await {
        Err(AnvilError::NotListening { .. }) => {}
        other => panic!("{other:?}"),
    }
    config.program = "/no/such/program".into();
    assert!(matches!(ManagedAnvil::spawn(&config).await, Err(AnvilError::Start { .. })));
    let missing = AnvilConfig::installed(std::path::Path::new("/no/such/folder"));
    assert!(matches!(missing, Err(AnvilError::NotInstalled { .. })));
}

#[tokio::test]
async fn anvil_ends_with_its_guard() {
    let anvil = anvil().await;
    let url = anvil.url().to_owned();
    drop(anvil);
    let error = deploy(&url, &key(0), deploy_config()).await.unwrap_err();
    assert!(matches!(error, L1Error::Unreachable { .. }), "{error}");
}
