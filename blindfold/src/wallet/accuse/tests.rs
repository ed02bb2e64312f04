//! What is accused of, and what is not.

use blindfold_protocol::{BatchHeader, Deployment, SealedBatch, SequencerChange, SigningKey};
use blindfold_rpc::jsonrpsee::{RpcModule, types::Params};
use blindfold_rpc::types::{BatchState, EnvelopeState, Receipt};
use blindfold_rpc::{ServerConfig, serve};
use serde_json::json;

use super::*;
use crate::test_chain::chain;

#[test]
fn a_stored_promise_is_read_back_only_from_a_sequencer_that_l1_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("promise.json");
    let key = SigningKey::from_bytes(&[7; 32]).unwrap();
    let chain = chain();
    let first = SequencerChange { from_block: 0, sequencer: Address::repeat_byte(1) };
    let named = SequencerChange { from_block: 9, sequencer: key.address() };
    let strangers = Epochs::default().with_sequencers(vec![first], 9).unwrap();
    let epochs = Epochs::default().with_sequencers(vec![first, named], 9).unwrap();
    let promise = Promise::sign(&key, &chain.deployment, B256::repeat_byte(5), B256::repeat_byte(6), 77);
    store(NewFile::create(&path).unwrap(), &Encoded::new(&promise)).unwrap();
    let given = GivenPromise::new(&promise, key.address());
    assert_eq!(load(&path, &chain, &epochs).unwrap(), (promise, given));
    let stranger = load(&path, &chain, &strangers).unwrap_err().to_string();
    assert!(stranger.contains("not signed by a sequencer"), "{stranger}");

    let elsewhere = Deployment { l1_chain_id: chain.deployment.l1_chain_id + 1, ..chain.deployment };
    let other = ChainConfig { deployment: elsewhere, ..chain.clone() };
    assert!(load(&path, &other, &epochs).unwrap_err().to_string().contains("not signed by a sequencer"));
    fs::write(&path, "{}").unwrap();
    assert!(load(&path, &chain, &epochs).unwrap_err().to_string().contains("--promise-file"));
}

#[test]
fn an_accusation_says_until_when_it_can_be_answered() {
    let key = SigningKey::from_bytes(&[7; 32]).unwrap();
    let promise = Promise::sign(&key, &chain().deployment, B256::repeat_byte(5), B256::repeat_byte(6), 77);
    let accusation = Accusation { state: AccusationState::Open, accuser: key.address(), answer_until: 7_300 };
    let text = text(&promise, &accusation, 100);
    assert!(text.contains("7300") && text.contains("0.1 ether") && text.contains("wallet slash"));
    let json =
        serde_json::to_value(value(&GivenPromise::new(&promise, key.address()), &accusation, B256::ZERO))
            .unwrap();
    assert_eq!((&json["state"], &json["answerUntil"]), (&"open".into(), &7_300.into()));
}

/// What the user's node says.
struct Word {
    status: serde_json::Value,
    receipt: Option<Receipt>,
    batches: Vec<BatchInfo>,
}

impl Word {
    /// It serves `chain` and has everything certified up to `certified`.
    fn of(chain: &ChainConfig, certified: u64) -> Self {
        let Deployment { l1_chain_id, inbox } = chain.deployment;
        let hash = B256::ZERO;
        let status = json!({
            "role": "full_node", "version": "test", "chainId": chain.chain_id, "l1ChainId": l1_chain_id, "inbox": inbox,
            "head": {"number": certified, "hash": hash, "timestampMs": 0, "generation": 0},
            "certified": certified, "hinted": certified, "block": {"number": 1, "hash": hash, "timestamp": 0},
            "baseFee": "0x1", "gasBaseFee": "0x1", "counters": {},
        });
        Self { status, receipt: None, batches: Vec::new() }
    }

    /// A receipt of the promised envelope that names a batch.
    fn located(self, number: u64, state: EnvelopeState) -> Self {
        let receipt = serde_json::from_value(json!({"id": ID, "state": state, "number": number, "index": 0}));
        Self { receipt: Some(receipt.unwrap()), ..self }
    }

    /// Another batch, with these items and the verdicts on them.
    fn batch(mut self, number: u64, items: &[(&[u8], Option<&str>)]) -> Self {
        let header = BatchHeader {
            number,
            parent_hash: B256::ZERO,
            timestamp_ms: 0,
            l1_origin_number: 0,
            l1_origin_hash: B256::ZERO,
            l1_origin_time: 0,
            envelope_root: B256::ZERO,
            data_hash: B256::ZERO,
            envelope_count: items.len() as u32,
            envelope_bytes: 0,
            gas: 0,
            base_fee: 1,
            gas_base_fee: 1,
            fee_ledger_root: B256::ZERO,
            forced_cursor: 0,
            epoch: 1,
            rules: 1,
        };
        let signature = header.sign(&sequencer(), &chain().deployment).signature;
        let bytes = items.iter().map(|(item, _)| item.to_vec()).collect();
        self.batches.push(BatchInfo {
            number,
            hash: header.hash(),
            timestamp_ms: 0,
            state: BatchState::Executed,
            sealed: Encoded::new(&SealedBatch { header, signature, items: bytes }),
            certificate: None,
            release: None,
            hints: None,
            verdicts: items.iter().map(|(_, verdict)| verdict.map(str::to_owned)).collect(),
        });
        self
    }

    /// Asks a node that says this whether the promise was kept; the answer that refuses the accusation.
    async fn asked(self) -> Result<(), String> {
        let mut module = RpcModule::new(self);
        module.register_method("blind_getStatus", |_, word, _| word.status.clone()).unwrap();
        let receipt = |word: &Word| serde_json::to_value(&word.receipt).unwrap();
        module.register_method("blind_getReceipt", move |_, word, _| receipt(word)).unwrap();
        let batch = |params: Params<'_>, word: &Word| {
            let [number]: [u64; 1] = params.parse().unwrap();
            serde_json::to_value(word.batches.iter().find(|batch| batch.number == number)).unwrap()
        };
        module.register_method("blind_getBatch", move |params, word, _| batch(params, word)).unwrap();
        let server = serve(ServerConfig::new(([127, 0, 0, 1], 0).into()), module, None).await.unwrap();
        let promise = Promise::sign(&sequencer(), &chain().deployment, ID, keccak256(ITEM), SEAL_BY);
        let asked = not_kept(&format!("http://{}", server.local_addr()), &chain(), &promise).await;
        asked.map_err(|error| format!("{error:#}"))
    }
}

const ID: B256 = B256::repeat_byte(5);
const ITEM: &[u8] = b"the promised bytes";
/// Another proof or signature: the same id.
const COPY: &[u8] = b"the promised bytez";
const SEAL_BY: u64 = 77;

fn sequencer() -> SigningKey {
    SigningKey::from_bytes(&[7; 32]).unwrap()
}

#[tokio::test]
async fn nobody_is_accused_on_the_word_of_a_node_that_cannot_know() {
    let chain = chain();
    let behind = Word::of(&chain, SEAL_BY - 1).asked().await.unwrap_err();
    assert!(behind.contains("up to 76") && behind.contains("batch 77"), "{behind}");
    let elsewhere = ChainConfig { chain_id: chain.chain_id + 1, ..chain.clone() };
    let other = Word::of(&elsewhere, SEAL_BY).batch(SEAL_BY, &[]).asked().await.unwrap_err();
    assert!(other.contains("another chain"), "{other}");
    let without_the_batch = Word::of(&chain, SEAL_BY).asked().await.unwrap_err();
    assert!(without_the_batch.contains("does not have batch 77"), "{without_the_batch}");
    let another = Word::of(&chain, SEAL_BY).batch(SEAL_BY, &[(ITEM, None)]);
    let verdicts = another.batches.iter().map(|batch| BatchInfo { verdicts: Vec::new(), ..batch.clone() });
    let unjudged = Word { batches: verdicts.collect(), ..Word::of(&chain, SEAL_BY) };
    assert!(unjudged.asked().await.unwrap_err().contains("is not that batch"));
    // It knows every batch up to there, and none holds the envelope.
    Word::of(&chain, SEAL_BY).batch(SEAL_BY, &[]).asked().await.unwrap();
}

#[tokio::test]
async fn a_promise_is_kept_by_the_promised_bytes_as_l1_judges_them() {
    use EnvelopeState::{Executed, Skipped};
    let word = || Word::of(&chain(), SEAL_BY + 3);
    let kept = async |word: Word| word.asked().await.unwrap_err().contains("the promise was kept");

    assert!(kept(word().located(70, Executed).batch(70, &[(b"x", None), (ITEM, None)])).await);
    assert!(kept(word().located(SEAL_BY, Executed).batch(SEAL_BY, &[(ITEM, None)])).await);
    // A copy of it was accepted in the same batch.
    let twice: &[(&[u8], _)] = &[(COPY, None), (ITEM, Some("duplicate"))];
    assert!(kept(word().located(70, Executed).batch(70, twice)).await);
    // What the payer brought about counts in the last batch, wherever a copy was left out before.
    let spoilt = || word().batch(SEAL_BY, &[(ITEM, Some("insufficient_funds"))]);
    assert!(kept(spoilt().located(SEAL_BY, Skipped)).await);
    assert!(kept(spoilt().located(70, Skipped).batch(70, &[(COPY, Some("invalid_proof"))])).await);

    let empty = || word().batch(SEAL_BY, &[]);
    for broken in [
        // Others than the promised bytes keep no promise, and other verdicts do not.
        word().located(SEAL_BY, Skipped).batch(SEAL_BY, &[(COPY, Some("invalid_proof"))]),
        word().located(SEAL_BY, Executed).batch(SEAL_BY, &[(COPY, None)]),
        word().located(SEAL_BY, Skipped).batch(SEAL_BY, &[(ITEM, Some("fee_too_low"))]),
        // An earlier batch that says so may be older than the promise.
        empty().located(70, Skipped).batch(70, &[(ITEM, Some("fee_nonce_used"))]),
        // Too late.
        empty().located(SEAL_BY + 1, Executed).batch(SEAL_BY + 1, &[(ITEM, None)]),
    ] {
        broken.asked().await.unwrap();
    }
}
