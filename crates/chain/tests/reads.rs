//! The reads of `blind_*` and the pass-through of public reads, over a real socket.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;
use blindfold_chain::{AccountProofError, ReadApi, ReadContext, RoleView, Settled, announce, passthrough};
use blindfold_kit::*;
use blindfold_protocol::{Account, EnvelopeError, LedgerProof};
use blindfold_rpc::jsonrpsee::core::client::ClientT;
use blindfold_rpc::jsonrpsee::rpc_params;
use blindfold_rpc::types::{BatchState, EnvelopeState, FeeAccountProof, LedgerAt, LedgerTag};
use blindfold_rpc::{
    BlindApiClient, BlindApiServer, ClientConfig, Feed, FeedConfig, FeedEvent, FeedItem, HttpClient, Hub,
    READ_METHODS, ReceivedError, ServerConfig, ServerHandle, Topic, http_client, serve,
};
use blindfold_store::StoreError;

const LATEST: LedgerAt = LedgerAt::Tag(LedgerTag::Latest);

struct Role;

impl RoleView for Role {
    fn role(&self) -> &'static str {
        "full_node"
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([("answers".to_owned(), 42)])
    }

    fn reserved(&self, _payer: &alloy_primitives::Address) -> u128 {
        7
    }

    fn unsealed(&self, id: &B256) -> Option<(EnvelopeState, Option<String>)> {
        (*id == B256::repeat_byte(1)).then_some((EnvelopeState::Pending, None))
    }
}

struct Served {
    machine: Machine,
    hub: Hub,
    client: HttpClient,
    server: ServerHandle,
}

async fn served(machine: Machine) -> Served {
    let hub = Hub::default();
    let api = ReadApi::new(ReadContext {
        tracker: machine.tracker.clone(),
        parameters: parameter_set(),
        executor: machine.executor.clone(),
        hub: hub.clone(),
        role: Arc::new(Role),
    });
    let through = passthrough(machine.client.clone(), READ_METHODS.iter().copied().chain(["eth_newFilter"]));
    let server = serve(ServerConfig::new(([127, 0, 0, 1], 0).into()), api.into_rpc(), Some(through))
        .await
        .expect("it serves");
    let client =
        http_client(&format!("http://{}", server.local_addr()), &ClientConfig::default()).expect("a URL");
    Served { machine, hub, client, server }
}

/// Rules ST-1, ST-3.
#[tokio::test]
async fn an_envelope_is_followed_through_its_states() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let store = FaultyStore::new(memory());
    let machine = Machine::start(store.clone(), &l1, &ScriptedExecution::new()).await;
    let served = served(machine).await;
    let (machine, client) = (&served.machine, &served.client);
    let (good, bad) = (envelope(1, 1), malformed(1, 2));
    let sealed = sequencer.seal_envelopes(0, &[good.clone(), bad.clone(), envelope_with_wrong_key()]).await;
    assert!(matches!(sealed.verdicts[2], blindfold_protocol::Verdict::Skipped(EnvelopeError::WrongEpoch)));
    let closing = sequencer.seal(1_000, vec![]).await;

    assert_eq!(client.get_receipt(good.id()).await.unwrap(), None);
    assert_eq!(
        client.get_receipt(B256::repeat_byte(1)).await.unwrap().unwrap().state,
        EnvelopeState::Pending
    );
    assert_eq!(client.get_batch(1).await.unwrap(), None);
    machine.tracker.apply_sealed(&sealed.batch).await.unwrap();
    let receipt = client.get_receipt(good.id()).await.unwrap().unwrap();
    assert_eq!((receipt.state, receipt.number, receipt.index), (EnvelopeState::Sealed, Some(1), Some(0)));
    assert_eq!(receipt.header_hash, Some(sealed.hash));
    let skipped = client.get_receipt(envelope_with_wrong_key().id()).await.unwrap().unwrap();
    assert_eq!((skipped.state, skipped.reason.as_deref()), (EnvelopeState::Sealed, Some("wrong_epoch")));
    assert_eq!(client.get_batch(1).await.unwrap().unwrap().state, BatchState::Sealed);

    machine.take(&sealed).await;
    assert_eq!(client.get_receipt(good.id()).await.unwrap().unwrap().state, EnvelopeState::Certified);
    let skipped = client.get_receipt(envelope_with_wrong_key().id()).await.unwrap().unwrap();
    assert_eq!(skipped.state, EnvelopeState::Skipped);
    assert_eq!(client.get_hints(1).await.unwrap(), None);
    machine.hint(&sealed).await;
    machine.take(&closing).await;
    machine.executed(1).await;

    let receipt = client.get_receipt(good.id()).await.unwrap().unwrap();
    assert_eq!((receipt.state, receipt.block_number), (EnvelopeState::Executed, Some(1)));
    assert_eq!(receipt.block_hash, machine.executor.status().block.map(|block| block.hash));
    let inner = &receipt.transactions.unwrap()[0];
    assert!(inner.included && inner.reason.is_none());
    assert_eq!(inner.hash, Some(alloy_primitives::keccak256(transaction(1, 1))));
    let receipt = client.get_receipt(bad.id()).await.unwrap().unwrap();
    assert_eq!((receipt.state, receipt.transactions), (EnvelopeState::Malformed, None));
    let skipped = client.get_receipt(envelope_with_wrong_key().id()).await.unwrap().unwrap();
    assert_eq!((skipped.state, skipped.reason.as_deref()), (EnvelopeState::Skipped, Some("wrong_epoch")));

    // Each of them costs some rows: no batch is read for it, and no block twice.
    for whole in ["batch", "batches", "block", "block_of_batch", "blocks"] {
        store.fail(whole, StoreError::Failed("scripted".to_owned()));
    }
    for (id, state) in [(good.id(), EnvelopeState::Executed), (bad.id(), EnvelopeState::Malformed)] {
        assert_eq!(client.get_receipt(id).await.unwrap().unwrap().state, state);
    }
    store.heal();

    let batch = client.get_batch(1).await.unwrap().unwrap();
    assert_eq!((batch.state, batch.hash), (BatchState::Executed, sealed.hash));
    assert_eq!(batch.sealed.decode().unwrap(), *sealed.batch);
    assert_eq!(batch.certificate.unwrap().decode().unwrap(), certificate_of(&sealed.batch));
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    assert_eq!(batch.release.unwrap().decode().unwrap(), release);
    assert_eq!(client.get_hints(1).await.unwrap().unwrap().decode().unwrap(), hints);
    assert_eq!(batch.verdicts, vec![None, None, Some("wrong_epoch".to_owned())]);
}

fn envelope_with_wrong_key() -> blindfold_protocol::Envelope {
    envelope_with(1, 9, |fields| fields.epoch = 5)
}

#[tokio::test]
async fn accounts_keys_and_status_are_told() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let machine = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let Served { machine, client, server, .. } = served(machine).await;
    let sealed = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    machine.take(&sealed).await;

    let keys = client.get_encryption_key().await.unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].encryption_key_hash, epoch().encryption_key_hash);
    assert_eq!(keys[0].encryption_key.as_ref(), committee().encryption_key.to_bytes());
    assert_eq!((keys[0].first_number, keys[0].last_number), (1, LAST_NUMBER));

    let account = client.get_fee_account(payer(1).address()).await.unwrap();
    let held = machine.tracker.account(&payer(1).address());
    assert_eq!((account.balance, account.live_nonces, account.held), (held.balance - 7, 1, 500));
    assert_eq!(
        (account.base_fee, account.malformed_surcharge),
        (machine.tracker.next_base_fees().base_fee, 500)
    );

    let shown = client.get_fee_account_proof(payer(1).address(), Some(LATEST)).await.unwrap().unwrap();
    assert_eq!((shown.number, shown.header_hash, shown.balance), (1, sealed.hash, held.balance));
    assert_eq!(root_of(&shown), sealed.batch.header.fee_ledger_root);
    assert_eq!(
        client
            .get_fee_account_proof(alloy_primitives::Address::repeat_byte(0x77), Some(LATEST))
            .await
            .unwrap(),
        None
    );

    let status = client.get_status().await.unwrap();
    assert_eq!((status.role.as_str(), status.chain_id, status.l1_chain_id), ("full_node", CHAIN_ID, 900));
    assert_eq!(
        (status.head.number, status.head.hash, status.certified, status.hinted),
        (1, sealed.hash, 1, 0)
    );
    assert_eq!((status.block.number, status.counters["answers"]), (0, 42));
    machine.hint(&sealed).await;
    assert_eq!(client.get_status().await.unwrap().hinted, 1);
    assert!(server.shutdown().await);
}

/// The `feeLedgerRoot` that a proof leads to.
fn root_of(shown: &FeeAccountProof) -> B256 {
    let FeeAccountProof { address, balance, withdrawn, .. } = *shown;
    let proof = LedgerProof { siblings: shown.siblings.clone() };
    proof.root_with(&address, &Account { balance, withdrawn }).expect("a proof")
}

#[tokio::test]
async fn an_account_is_proved_by_the_posted_header_while_the_sequencer_seals_on() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.sqlite");
    let machine = Machine::start(disk(&path).await, &l1, &ScriptedExecution::new()).await;
    machine.tracker.store().keep_ledgers_from(0).await.unwrap();
    let served = served(machine).await;
    let (machine, client, payer) = (&served.machine, &served.client, payer(1).address());
    let refused = async |at| {
        let refused = client.get_fee_account_proof(payer, at).await.unwrap_err();
        match ReceivedError::from(refused) {
            ReceivedError::Refused(error) => (error.code, error.reason.into_owned(), error.retry),
            ReceivedError::NoAnswer(why) => panic!("no answer: {why}"),
        }
    };
    assert_eq!(refused(None).await, (-38003, "nothing_posted".to_owned(), true));

    // Two certified headers, one more that is not, each with other accounts; L1 has the first.
    let mut sealed = Vec::new();
    for nonce in 1..=3 {
        l1.deposit(alloy_primitives::Address::repeat_byte(nonce), 10 + u128::from(nonce));
        sealed.push(sequencer.seal_envelopes(u64::from(nonce) * 250, &[envelope(1, nonce.into())]).await);
    }
    machine.take(&sealed[0]).await;
    machine.take(&sealed[1]).await;
    machine.tracker.apply_sealed(&sealed[2].batch).await.unwrap();
    machine.executor.settle(Settled { posted: 1, ..Settled::default() }, 0);
    let tag = |tag| Some(LedgerAt::Tag(tag));
    let cases = [
        (None, 1),
        (tag(LedgerTag::Posted), 1),
        (Some(LedgerAt::Number(1)), 1),
        (tag(LedgerTag::Certified), 2),
        (Some(LedgerAt::Number(2)), 2),
        (tag(LedgerTag::Latest), 3),
    ];
    for (at, number) in cases {
        let shown = client.get_fee_account_proof(payer, at).await.unwrap().unwrap();
        let sealed = &sealed[number - 1];
        assert_eq!((shown.number, shown.header_hash), (number as u64, sealed.hash), "{at:?}");
        assert_eq!(root_of(&shown), sealed.batch.header.fee_ledger_root, "{at:?}");
    }
    // An account that came later is not in the earlier ledger.
    let late = alloy_primitives::Address::repeat_byte(3);
    assert_eq!(client.get_fee_account_proof(late, Some(LedgerAt::Number(2))).await.unwrap(), None);
    assert!(client.get_fee_account_proof(late, Some(LATEST)).await.unwrap().is_some());
    assert_eq!(refused(Some(LedgerAt::Number(4))).await, (-38003, "unknown_batch".to_owned(), true));

    // The same after a restart; what was posted long ago is forgotten.
    let Served { machine, server, client, .. } = served;
    drop(client);
    server.shutdown().await;
    machine.executor.stop().await;
    drop(machine);
    let machine = Machine::start(disk(&path).await, &l1, &ScriptedExecution::new()).await;
    let proved = machine.tracker.prove_account(&payer, 1).await.unwrap().unwrap();
    assert_eq!(proved.header.hash, sealed[0].hash);
    machine.tracker.store().keep_ledgers_from(2).await.unwrap();
    machine.tracker.prove_account(&payer, 2).await.unwrap().unwrap();
    let again = machine.tracker.prove_account(&payer, 1).await.unwrap();
    assert_eq!(again, Some(proved), "one that is still at hand is shown");
    machine.executor.stop().await;
    drop(machine);
    let machine = Machine::start(disk(&path).await, &l1, &ScriptedExecution::new()).await;
    let refused = machine.tracker.prove_account(&payer, 1).await;
    assert!(matches!(refused, Err(AccountProofError::Forgotten(1))), "{refused:?}");
}

#[tokio::test]
async fn the_ledger_of_a_pruned_batch_is_forgotten() {
    let (l1, store) = (l1(), memory());
    store.bind(&chain_config().deployment, "full_node").await.unwrap();
    store.keep_ledgers_from(0).await.unwrap();
    let sequencer = Sealer::new(&l1).await;
    let served = served(Machine::start(Arc::clone(&store), &l1, &ScriptedExecution::new()).await).await;
    let (machine, client) = (&served.machine, &served.client);
    for number in 1..=4 {
        let sealed = sequencer.seal_envelopes(number * 1_000, &[envelope(1, number)]).await;
        machine.take(&sealed).await;
        machine.hint(&sealed).await;
    }
    machine.executed(3).await;
    store.keep_ledgers_from(3).await.unwrap();
    assert_eq!(store.prune(u64::MAX, 0).await.unwrap().through, 2);
    let asked = client.get_fee_account_proof(payer(1).address(), Some(LedgerAt::Number(1))).await;
    let refused = ReceivedError::from(asked.unwrap_err());
    assert_eq!((refused.reason(), refused.retry()), ("ledger_forgotten", false));
    let shown = client.get_fee_account_proof(payer(1).address(), Some(LedgerAt::Number(3))).await;
    assert_eq!(shown.unwrap().unwrap().number, 3);
}

#[tokio::test]
async fn topics_carry_what_was_announced() {
    let l1 = l1();
    let sequencer = Sealer::new(&l1).await;
    let machine = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let served = served(machine).await;
    let sealed = sequencer.seal_envelopes(0, &[envelope(1, 1)]).await;
    let (release, hints) = open_batch(&sealed.batch, &sealed.verdicts);
    let events = [
        announce::header(&sealed.batch, sealed.hash, &sealed.verdicts),
        announce::certificate(&certificate_of(&sealed.batch)),
        announce::release(&release),
        announce::hints(&hints),
    ];
    let mut feed = Feed::start(
        format!("ws://{}", served.server.local_addr()),
        Topic::ALL.to_vec(),
        FeedConfig::default(),
    );
    assert_eq!(within("the feed", feed.next()).await, Some(FeedItem::Connected));
    for event in events {
        served.hub.publish(&event);
        assert_eq!(within("an event", feed.next()).await, Some(FeedItem::Event(event)));
    }
    assert!(matches!(announce::hints(&hints), FeedEvent::Hints(_)));
}

/// Rule J-4.
#[tokio::test]
async fn reads_pass_through_with_the_clients_own_errors() {
    let l1 = l1();
    let machine = Machine::start(memory(), &l1, &ScriptedExecution::new()).await;
    let served = served(machine).await;
    let client = &served.client;
    let answer: serde_json::Value =
        client.request("eth_getBalance", rpc_params!["0x1", "latest"]).await.unwrap();
    assert_eq!(answer["method"], "eth_getBalance");
    assert_eq!(answer["params"], serde_json::json!(["0x1", "latest"]));
    let error = |method: &'static str| {
        let client = client.clone();
        async move {
            let refused = client.request::<serde_json::Value, _>(method, rpc_params![]).await.unwrap_err();
            match ReceivedError::from(refused) {
                ReceivedError::Refused(error) => (error.code, error.reason.into_owned(), error.retry),
                ReceivedError::NoAnswer(why) => panic!("no answer: {why}"),
            }
        }
    };
    assert_eq!(error("eth_getBlockByHash").await, (3, "unspecified".to_owned(), false));
    assert_eq!(error("eth_getLogs").await, (-38001, "reads_busy".to_owned(), true));
    assert_eq!(error("eth_getCode").await, (-38003, "execution_client_unavailable".to_owned(), true));
    assert_eq!(error("eth_newFilter").await, (-32601, "unknown_method".to_owned(), false));
    assert_eq!(error("eth_call").await, (-38002, "plaintext_refused".to_owned(), false));
    assert_eq!(error("eth_sendRawTransaction").await, (-38002, "plaintext_refused".to_owned(), false));
    assert_eq!(error("debug_setHead").await, (-32601, "unknown_method".to_owned(), false));
}
