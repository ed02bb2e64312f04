//! The wallet believes nothing that it has not checked.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use blindfold_client::inclusion::{HintFinding, InclusionError};
use blindfold_client::{
    Call, CommitteeKey, CommitteeKeyError, EnvelopeMaker, Offer, Promised, SignedTransaction, Wallet,
    WalletEndpoints, WalletError,
};
use blindfold_kit::{Standby, plain_header};
use blindfold_protocol::{
    BatchHeader, BatchHints, Canonical, Certificate, ChainConfig, Deployment, Envelope, HintEntry, Promise,
    SealedBatch, SigningKey, Verdict, certificate, merkle, validity::item_leaf,
};
use blindfold_rpc::types::{BatchInfo, BatchState, EnvelopeState, Receipt};
use blindfold_rpc::{Encoded, RpcError, SequencerUrls};

use crate::common::{
    BASE_FEE, Double, GAS_BASE_FEE, HEAD, Registry, World, chain, committee, deal, epoch, fields, key,
    nonces, receipt, sequencer_key, transfer,
};

const NUMBER: u64 = HEAD;

fn wallet_with(world: &World, registry: Arc<Registry>, pinned: Option<B256>) -> Wallet {
    let endpoints =
        WalletEndpoints { node: world.node.url(), sequencers: world.config.sequencer_urls.clone() };
    Wallet::new(chain(), key(1), &endpoints, registry, pinned).expect("URLs")
}

fn wallet(world: &World) -> Wallet {
    wallet_with(world, Arc::clone(&world.registry), None)
}

fn call() -> Call {
    Call { to: fields(0).to, value: U256::from(5), input: Bytes::new(), gas_limit: None, nonce: None }
}

async fn envelope(world: &World) -> Envelope {
    let committee = CommitteeKey::fetch(&*world.registry, NUMBER, None).await.expect("a key");
    let offer = Offer {
        base_fee: BASE_FEE,
        gas_base_fee: GAS_BASE_FEE,
        priority_fee: 0,
        head: NUMBER - 1,
        generation: 0,
        expiry_batches: 64,
        promise: false,
    };
    let (chain, payer) = (chain(), key(1));
    let transaction = SignedTransaction::decode(transfer(1, 0).0, chain.chain_id).expect("a transfer");
    let maker = EnvelopeMaker { chain: &chain, committee: &committee, payer: &payer };
    maker.of_transactions(&[transaction], &offer).expect("it fits")
}

fn promise(signer: &SigningKey, id: B256, item_hash: B256, seal_by: u64) -> Promise {
    Promise::sign(signer, &chain().deployment, id, item_hash, seal_by)
}

#[tokio::test]
async fn a_sent_envelope_carries_the_call_and_shows_the_sequencer_nothing_else() {
    let world = World::start().await;
    let sent = wallet(&world).send(&call(), false).await.unwrap();
    let (id, bytes) = world.sequencer.state.lock().arrived[0].clone();
    assert_eq!((sent.envelope, sent.promised_by, sent.bytes), (id, None, bytes.len() as u64));
    assert_eq!(nonces(&bytes), [0]);
    let inner = &crate::common::open(&bytes)[0];
    assert_eq!((inner.hash, inner.sender, inner.gas_limit), (sent.transactions[0], key(1).address(), 21_000));
    let mut seen = world.sequencer.state.lock().calls.clone();
    seen.sort();
    assert_eq!(seen, ["blind_getEncryptionKey", "blind_sendEnvelope"]);
    let printed = format!("{inner:?}");
    assert!(printed.contains("redacted") && !printed.contains("0x7777"), "{printed}");
}

/// Rule J-5: the one that stands by is not asked for a promise in vain, and the one that died is passed by.
#[tokio::test]
async fn a_wallet_sends_to_whichever_sequencer_leads() {
    let mut world = World::start().await;
    let standby = Standby::start("http://nobody.example").await;
    let other = Double::start("sequencer").await;
    let urls = [standby.url(), world.sequencer.url(), other.url()];
    world.config.sequencer_urls = SequencerUrls::new(urls);
    let wallet = wallet(&world);
    wallet.send(&call(), false).await.unwrap();
    assert_eq!(world.sequencer.state.lock().arrived.len(), 1);
    world.sequencer.leave().await;
    wallet.send(&call(), false).await.unwrap();
    assert_eq!(other.state.lock().arrived.len(), 1);
    other.leave().await;
    let WalletError::Sequencer(nobody) = wallet.send(&call(), false).await.unwrap_err() else {
        panic!("a sequencer answered")
    };
    assert!(nobody.retry() && nobody.to_string().contains(&standby.url()), "{nobody}");
}

#[tokio::test]
async fn a_promise_must_name_this_envelope_in_time_and_be_the_sequencers() {
    let world = World::start().await;
    let (wallet, envelope) = (wallet(&world), envelope(&world).await);
    let (id, expiry) = (envelope.id(), envelope.header.expiry.number());
    let item = keccak256(envelope.encode());
    let submit = async |answered: Option<Promise>| {
        world.sequencer.state.lock().promise = answered;
        wallet.submit(&envelope, true).await
    };
    let claim = async |answered: Promise| match submit(Some(answered)).await {
        Err(WalletError::Claim(error)) => error,
        other => panic!("{other:?}"),
    };
    let honest = promise(&sequencer_key(), id, item, expiry);
    let checked = Some(Promised { promise: honest, unchecked: None });
    // Where L1 never answered, a promise is kept unless it is for something else.
    *world.registry.away.lock() = true;
    let kept = submit(Some(honest)).await.unwrap().unwrap();
    assert!(kept.promise == honest && kept.unchecked.is_some());
    let of_another = claim(promise(&sequencer_key(), id, B256::ZERO, expiry)).await;
    assert_eq!(of_another, InclusionError::PromiseOfAnother(id));
    *world.registry.away.lock() = false;
    assert_eq!(submit(Some(honest)).await.unwrap(), checked);
    // While L1 is away what it said last counts.
    *world.registry.away.lock() = true;
    assert_eq!(submit(Some(honest)).await.unwrap(), checked);
    let strangers = claim(promise(&key(8), id, item, expiry)).await;
    assert_eq!(strangers, InclusionError::PromiseSignature(sequencer_key().address()));
    *world.registry.away.lock() = false;
    assert!(matches!(submit(None).await, Err(WalletError::NoPromise(of)) if of == id));
    let other = B256::repeat_byte(1);
    let of_another = claim(promise(&sequencer_key(), other, item, expiry)).await;
    assert_eq!(of_another, InclusionError::PromiseOfAnother(other));
    // The id does not bind proof and signature: a copy that nobody accepts has it too.
    let mangled = claim(promise(&sequencer_key(), id, other, expiry)).await;
    assert_eq!(mangled, InclusionError::PromiseOfAnother(id));
    let signature = InclusionError::PromiseSignature(sequencer_key().address());
    assert_eq!(claim(promise(&key(8), id, item, expiry)).await, signature);
    assert_eq!(claim(Promise { seal_by: expiry - 1, ..honest }).await, signature);
    let mut broken = honest;
    broken.signature.0[64] = 9;
    assert_eq!(claim(broken).await, signature);
    let late = claim(promise(&sequencer_key(), id, item, expiry + 1)).await;
    assert_eq!(late, InclusionError::PromiseTooLate { seal_by: expiry + 1, expiry });
    // Not asked for, but given: it is checked all the same.
    world.sequencer.state.lock().promise = Some(promise(&key(8), id, item, expiry));
    assert!(matches!(wallet.submit(&envelope, false).await, Err(WalletError::Claim(_))));

    world.sequencer.state.lock().answered_id = Some(other);
    let wrong = wallet.submit(&envelope, false).await;
    assert!(matches!(wrong, Err(WalletError::WrongId { sent, got }) if sent == id && got == other));
    world.sequencer.state.lock().refusals.push_back(RpcError::refused("invalid_proof", "no"));
    let refused = wallet.submit(&envelope, false).await;
    assert!(matches!(refused, Err(WalletError::Sequencer(error)) if error.reason() == "invalid_proof"));
}

#[tokio::test]
async fn a_node_of_another_chain_is_named_before_anything_is_encrypted() {
    let world = World::start().await;
    let endpoints = WalletEndpoints { node: world.node.url(), sequencers: world.sequencer.url().into() };
    let deployment = chain().deployment;
    let elsewhere = Deployment { inbox: Address::repeat_byte(0x77), ..deployment };
    let other_l1 = Deployment { l1_chain_id: deployment.l1_chain_id + 1, ..deployment };
    for (settings, field) in [
        (ChainConfig { chain_id: chain().chain_id + 1, ..chain() }, "chainId"),
        (ChainConfig { deployment: elsewhere, ..chain() }, "inbox"),
        (ChainConfig { deployment: other_l1, ..chain() }, "l1ChainId"),
    ] {
        let wallet = Wallet::new(settings, key(1), &endpoints, world.registry.clone(), None).expect("URLs");
        match wallet.status().await {
            Err(WalletError::OtherChain(other)) => assert_eq!(other.field, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    assert!(world.sequencer.state.lock().arrived.is_empty());
}

#[tokio::test]
async fn where_a_promise_is_asked_for_the_offer_covers_the_steepest_rise_until_it_is_kept() {
    let world = World::start().await;
    // An eighth and a wei at least for each header: four that a sequencer leaves, and those that come meanwhile.
    let after = |fee: u128, headers: u32| (0..headers).fold(fee, |fee, _| fee + fee.div_ceil(8).max(1));
    for (promise, least, most) in [(false, 0, 2), (true, 8, 32)] {
        let _ = wallet(&world).send(&call(), promise).await;
        let (_, bytes) = world.sequencer.state.lock().arrived.pop().expect("an envelope");
        let header = Envelope::decode(&bytes).expect("an envelope").header;
        for (offered, fee) in [(header.max_fee, BASE_FEE), (header.max_gas_fee, GAS_BASE_FEE)] {
            assert!(offered >= after(fee, least), "{offered} for {fee} with promise = {promise}");
            assert!(offered <= after(fee, most).max(2 * fee), "{offered} for {fee} with promise = {promise}");
        }
    }
}

#[tokio::test]
async fn only_the_key_that_l1_and_the_pin_name_is_used() {
    let world = World::start().await;
    let send = async |registry: Registry, pinned| {
        let sent = wallet_with(&world, Arc::new(registry), pinned).send(&call(), false).await;
        match sent {
            Err(WalletError::CommitteeKey(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let other = deal(8).encryption_key;
    let other_hash = B256::from(other.hash());
    let right = epoch().encryption_key_hash;

    let error = send(Registry::default(), Some(other_hash)).await;
    assert!(matches!(error, CommitteeKeyError::WrongHash { epoch: 1, expected, got }
        if expected == other_hash && got == right));
    let registry = Registry::default();
    *registry.key_bytes.lock() = other.to_bytes().to_vec();
    let error = send(registry, None).await;
    assert!(matches!(error, CommitteeKeyError::WrongHash { expected, got, .. }
        if expected == right && got == other_hash));
    for bytes in [vec![], vec![0xff; 576], vec![0; 575]] {
        let registry = Registry::default();
        *registry.key_bytes.lock() = bytes;
        assert!(matches!(send(registry, None).await, CommitteeKeyError::Unusable { epoch: 1, .. }));
    }
    let registry = Registry::default();
    *registry.away.lock() = true;
    assert!(matches!(send(registry, None).await, CommitteeKeyError::L1(_)));
    let registry = Registry::default();
    registry.epochs.lock()[0].last = HEAD;
    assert!(matches!(send(registry, None).await, CommitteeKeyError::NoEpoch(number) if number == HEAD + 1));
    world.node.state.lock().head = u64::MAX;
    assert!(matches!(send(Registry::default(), None).await, CommitteeKeyError::NoEpoch(u64::MAX)));
    world.node.state.lock().head = HEAD;

    world.sequencer.state.lock().keys[0].encryption_key_hash = other_hash;
    let error = send(Registry::default(), None).await;
    assert!(matches!(error, CommitteeKeyError::SequencerDisagrees { epoch: 1, served, registered }
        if served == other_hash && registered == right));
    assert!(world.sequencer.state.lock().arrived.is_empty(), "nothing was sent");

    world.sequencer.state.lock().keys[0].encryption_key_hash = right;
    wallet_with(&world, Arc::clone(&world.registry), Some(right)).send(&call(), false).await.unwrap();
}

/// A certified batch that holds some bytes and the envelope, with hints.
struct Batch {
    sealed: SealedBatch,
    hints: BatchHints,
    verdicts: Vec<Option<String>>,
}

impl Batch {
    fn with(envelope: &Envelope) -> Self {
        Self::judged(envelope, None)
    }

    /// The committee certified this verdict on the envelope.
    fn judged(envelope: &Envelope, verdict: Option<&str>) -> Self {
        let verdicts = vec![Some("undecodable".to_owned()), verdict.map(str::to_owned)];
        let code = Verdict::code_of_reason(verdict).expect("a verdict");
        let items = vec![b"no envelope".to_vec(), envelope.encode()];
        let ids = [B256::ZERO, envelope.id()];
        let leaves: Vec<B256> = ids
            .iter()
            .zip(&items)
            .zip([1, code])
            .map(|((id, item), code)| item_leaf(id, &keccak256(item), code))
            .collect();
        let header = BatchHeader {
            parent_hash: B256::repeat_byte(1),
            timestamp_ms: 1_800_000_000_000,
            l1_origin_number: 1,
            envelope_root: merkle::root(&leaves),
            envelope_count: 2,
            envelope_bytes: items.iter().map(|item| item.len() as u32).sum(),
            gas: 21_000,
            base_fee: BASE_FEE,
            ..plain_header(NUMBER)
        };
        let sealed = seal(header, items, &sequencer_key());
        let entries = vec![HintEntry::Skipped, HintEntry::Key(session_key(envelope))];
        Self {
            hints: BatchHints { number: NUMBER, header_hash: header.hash(), entries, blindings: vec![] },
            sealed,
            verdicts,
        }
    }

    fn certificate(&self, members: &[u16]) -> Certificate {
        let (header, chain) = (&self.sealed.header, chain());
        let acknowledgements: Vec<_> = members
            .iter()
            .map(|member| {
                let key = &committee().bls[usize::from(*member) - 1];
                let (number, hash) = (header.number, header.hash());
                certificate::sign_acknowledgement(key, &chain.deployment, 1, number, hash, *member)
            })
            .collect();
        let one_is_enough = blindfold_protocol::Epoch { threshold: 1, ..epoch() };
        certificate::aggregate(&one_is_enough, &acknowledgements).expect("acknowledgements of one header")
    }

    fn info(&self) -> BatchInfo {
        BatchInfo {
            number: NUMBER,
            hash: self.sealed.header.hash(),
            timestamp_ms: self.sealed.header.timestamp_ms,
            state: BatchState::Certified,
            sealed: Encoded::new(&self.sealed),
            certificate: Some(Encoded::new(&self.certificate(&[1, 3]))),
            release: None,
            hints: Some(Encoded::new(&self.hints)),
            verdicts: self.verdicts.clone(),
        }
    }
}

fn seal(header: BatchHeader, items: Vec<Vec<u8>>, signer: &SigningKey) -> SealedBatch {
    let signed = header.sign(signer, &chain().deployment);
    SealedBatch { header, signature: signed.signature, items }
}

fn session_key(envelope: &Envelope) -> [u8; 16] {
    *crate::common::opening(envelope).0.as_bytes()
}

#[tokio::test]
async fn inclusion_is_believed_only_as_far_as_it_is_proved() {
    let world = World::start().await;
    let (wallet, envelope) = (wallet(&world), envelope(&world).await);
    let id = envelope.id();
    assert!(matches!(wallet.check(id).await, Err(WalletError::Unknown(unknown)) if unknown == id));
    let located = Receipt { number: Some(NUMBER), ..receipt(id, EnvelopeState::Certified) };
    world.node.state.lock().receipts.insert(id, located);
    assert!(matches!(wallet.check(id).await, Err(WalletError::Unknown(_))), "the batch is not there");

    let batch = Batch::with(&envelope);
    let check = async |info: BatchInfo| {
        world.node.state.lock().batches.insert(NUMBER, info);
        match wallet.check(id).await {
            Ok(inclusion) => Ok(inclusion),
            Err(WalletError::Claim(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    };
    let sealed_as = |sealed: SealedBatch| BatchInfo { sealed: Encoded::new(&sealed), ..batch.info() };
    let certified_by = |certificate: &Certificate| BatchInfo {
        certificate: Some(Encoded::new(certificate)),
        ..batch.info()
    };
    let hinted = |hints: &BatchHints| BatchInfo { hints: Some(Encoded::new(hints)), ..batch.info() };
    let entries =
        |entry: HintEntry| BatchHints { entries: vec![HintEntry::Skipped, entry], ..batch.hints.clone() };

    let found = check(batch.info()).await.unwrap();
    assert_eq!((found.id, found.number, found.index, found.signers), (id, NUMBER, 1, 2));
    assert_eq!((found.header_hash, found.hint), (batch.sealed.header.hash(), HintFinding::WellFormed));
    assert_eq!(check(BatchInfo { hints: None, ..batch.info() }).await.unwrap().hint, HintFinding::NotYet);
    // The committee certified that it is accepted: a hint cannot say otherwise, nor can the node.
    assert_eq!(check(hinted(&entries(HintEntry::Skipped))).await, Err(InclusionError::Hints));
    let denied = vec![Some("undecodable".to_owned()), Some("expired".to_owned())];
    assert_eq!(check(BatchInfo { verdicts: denied, ..batch.info() }).await, Err(InclusionError::Root));
    let unknown = vec![Some("undecodable".to_owned()), Some("fashion".to_owned())];
    assert_eq!(check(BatchInfo { verdicts: unknown, ..batch.info() }).await, Err(InclusionError::Root));
    let skipped = Batch::judged(&envelope, Some("expired"));
    assert_eq!(check(skipped.info()).await.unwrap().hint, HintFinding::Skipped);
    let malformed = hinted(&entries(HintEntry::Malformed([0; 48])));
    assert_eq!(check(malformed).await.unwrap().hint, HintFinding::Malformed);

    // The batch.
    let broken = BatchInfo { sealed: Encoded::from_bytes(vec![1, 2]), ..batch.info() };
    assert_eq!(check(broken).await, Err(InclusionError::Undecodable("sealed batch")));
    let header = batch.sealed.header;
    let items = batch.sealed.items.clone();
    let other = BatchHeader { number: NUMBER + 1, ..header };
    let wrong = check(sealed_as(seal(other, items.clone(), &sequencer_key()))).await;
    assert_eq!(wrong, Err(InclusionError::WrongBatch { asked: NUMBER, got: NUMBER + 1 }));
    let forged = check(sealed_as(seal(header, items.clone(), &key(8)))).await;
    assert_eq!(forged, Err(InclusionError::HeaderSignature(sequencer_key().address())));
    let changed = BatchHeader { gas: 1, ..header };
    let unsigned = check(sealed_as(SealedBatch { header: changed, ..batch.sealed.clone() })).await;
    assert_eq!(unsigned, Err(InclusionError::HeaderSignature(sequencer_key().address())));

    // The items.
    let mut tampered = items.clone();
    if let Some(byte) = tampered[1].last_mut() {
        *byte ^= 1;
    }
    let tampered = SealedBatch { items: tampered, ..batch.sealed.clone() };
    assert_eq!(check(sealed_as(tampered)).await, Err(InclusionError::Root));
    let fewer = SealedBatch { items: items[1..].to_vec(), ..batch.sealed.clone() };
    assert_eq!(check(sealed_as(fewer)).await, Err(InclusionError::Root));
    let swapped = SealedBatch { items: items.iter().rev().cloned().collect(), ..batch.sealed.clone() };
    assert_eq!(check(sealed_as(swapped)).await, Err(InclusionError::Root));
    let another = Batch::with(&self::envelope(&world).await);
    assert_eq!(check(another.info()).await, Err(InclusionError::Absent));

    // The certificate.
    let uncertified = BatchInfo { certificate: None, ..batch.info() };
    assert_eq!(check(uncertified).await, Err(InclusionError::NotCertified));
    let broken = BatchInfo { certificate: Some(Encoded::from_bytes(vec![1])), ..batch.info() };
    assert_eq!(check(broken).await, Err(InclusionError::Undecodable("certificate")));
    let honest = batch.certificate(&[1, 2, 3]);
    assert_eq!(check(certified_by(&honest)).await.unwrap().signers, 3);
    let mut no_point = honest;
    no_point.signature[0] ^= 0x80;
    for forged in [
        batch.certificate(&[2]),
        another.certificate(&[1, 2, 3]),
        Certificate { header_hash: batch.sealed.header.hash(), ..another.certificate(&[1, 2, 3]) },
        Certificate { signers: 0b011, ..honest },
        Certificate { signers: 0b1111, ..honest },
        Certificate { number: NUMBER + 1, ..honest },
        Certificate { epoch: 2, ..honest },
        no_point,
    ] {
        assert_eq!(check(certified_by(&forged)).await, Err(InclusionError::Certificate), "{forged:?}");
    }

    // The hint.
    let broken = BatchInfo { hints: Some(Encoded::from_bytes(vec![9])), ..batch.info() };
    assert_eq!(check(broken).await, Err(InclusionError::Undecodable("hints")));
    let wrong = check(hinted(&entries(HintEntry::Key([7; 16])))).await;
    assert_eq!(wrong, Err(InclusionError::WrongHint));
    for foreign in [
        BatchHints { number: NUMBER + 1, ..batch.hints.clone() },
        BatchHints { header_hash: B256::ZERO, ..batch.hints.clone() },
        BatchHints { entries: batch.hints.entries[1..].to_vec(), ..batch.hints.clone() },
    ] {
        assert_eq!(check(hinted(&foreign)).await, Err(InclusionError::Hints));
    }
}

#[tokio::test]
async fn an_envelope_has_its_names_before_it_is_sent_and_goes_again_as_it_was() {
    let world = World::start().await;
    let wallet = wallet(&world);
    let prepared = wallet.prepare(&call(), true).await.unwrap();
    let id = prepared.envelope.id();
    assert!(world.sequencer.state.lock().arrived.is_empty());

    // Whether it was taken is not known: the same bytes go again, and no second envelope.
    world.sequencer.leave().await;
    let lost = wallet.deliver(&prepared, false).await;
    assert!(matches!(lost, Err(WalletError::Sequencer(error)) if error.reason() == "no_answer"));
    world.sequencer.come_back().await;
    let sent = wallet.deliver(&prepared, false).await.unwrap();
    assert_eq!((sent.envelope, &sent.transactions), (id, &prepared.transactions));
    let known = RpcError::conflict("already_known", "in a batch");
    world.sequencer.state.lock().refusals.push_back(known.clone());
    assert_eq!(wallet.deliver(&prepared, false).await.unwrap(), sent);
    let bytes = Bytes::from(prepared.envelope.encode());
    assert_eq!(world.sequencer.state.lock().arrived, vec![(id, bytes); 2]);

    // What was taken without a promise, now or before, is told apart from what was not taken.
    world.sequencer.state.lock().refusals.push_back(known);
    for without in [wallet.deliver(&prepared, true).await, wallet.deliver(&prepared, true).await] {
        let text = without.unwrap_err().to_string();
        assert!(text.contains(&id.to_string()) && text.contains("may be executed"), "{text}");
        assert!(!text.contains("send without"), "{text}");
    }
}

/// The envelope with another fee signature: another item, with the same id.
fn copy_of(envelope: &Envelope) -> Envelope {
    let mut copy = envelope.clone();
    copy.fee_signature.0[0] ^= 1;
    assert_eq!(copy.id(), envelope.id());
    copy
}

#[tokio::test]
async fn an_envelope_is_skipped_only_where_these_bytes_are_and_never_will_be_anything_else() {
    let world = World::start().await;
    let (wallet, envelope) = (wallet(&world), envelope(&world).await);
    let (id, expiry) = (envelope.id(), envelope.header.expiry.number());
    let skipped = |reason: &str| Receipt {
        reason: Some(reason.to_owned()),
        number: Some(NUMBER),
        index: Some(1),
        ..receipt(id, EnvelopeState::Skipped)
    };
    let serve = |receipt: Receipt, item: &Envelope| {
        let batch = Batch::judged(item, receipt.reason.as_deref()).info();
        let mut node = world.node.state.lock();
        node.batches.insert(NUMBER, batch);
        node.receipts.insert(id, receipt);
    };
    let now = async || wallet.wait(&envelope, 0, |_| ()).await;
    let goes_on = |waited: Result<Receipt, WalletError>| {
        let text = waited.unwrap_err().to_string();
        assert!(text.contains("may be executed") && text.contains(&format!("batch {expiry}")), "{text}");
    };

    // Anybody can make a copy that is skipped, and have L1 force it into a batch: the envelope itself comes later.
    serve(skipped("invalid_fee_signature"), &copy_of(&envelope));
    goes_on(now().await);
    let (reported, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let script = async {
        assert_eq!(reports.recv().await, Some(EnvelopeState::Skipped));
        world.node.called_again("blind_getReceipt", 2).await;
        world.node.state.lock().set(id, EnvelopeState::Executed);
    };
    let waited = wallet.wait(&envelope, 600_000, |state| reported.send(state).unwrap());
    let (ended, ()) = tokio::join!(waited, script);
    assert_eq!(ended.unwrap().state, EnvelopeState::Executed);

    // A fault of these bytes stays. What depends on the batch may pass.
    serve(skipped("invalid_fee_signature"), &envelope);
    assert_eq!(now().await.unwrap().reason.as_deref(), Some("invalid_fee_signature"));
    for reason in ["insufficient_funds", "fee_too_low", "fee_nonce_used", "wrong_generation"] {
        serve(skipped(reason), &envelope);
        goes_on(now().await);
    }
    // The sequencer's word, where it is asked as the node: in no batch.
    for state in [EnvelopeState::Skipped, EnvelopeState::Expired] {
        world.node.state.lock().receipts.insert(id, receipt(id, state));
        goes_on(now().await);
    }
    // What was opened is over.
    world.node.state.lock().receipts.insert(id, skipped("bad_bundle"));
    assert_eq!(now().await.unwrap().reason.as_deref(), Some("bad_bundle"));

    // When the node has every batch that can hold it, whatever was skipped is all there is.
    serve(skipped("invalid_fee_signature"), &copy_of(&envelope));
    world.node.state.lock().certified = expiry;
    assert_eq!(now().await.unwrap().state, EnvelopeState::Skipped);
    world.node.state.lock().set(id, EnvelopeState::Certified);
    goes_on(now().await);
    world.node.state.lock().receipts.clear();
    let none = now().await.unwrap();
    assert_eq!((none.id, none.state, none.reason), (id, EnvelopeState::Expired, None));
    // A header that L1 made bars it, and may stand in the place of a batch that held it and was opened.
    world.node.state.lock().certified = HEAD;
    world.node.state.lock().generation = 1;
    assert_eq!(now().await.unwrap().reason.as_deref(), Some("wrong_generation"));
}

#[tokio::test]
async fn waiting_ends_with_a_final_state_or_with_the_time_given() {
    let world = World::start().await;
    let (wallet, envelope) = (wallet(&world), envelope(&world).await);
    let id = envelope.id();
    let timed_out = wallet.wait(&envelope, 0, |_| ()).await;
    assert!(matches!(timed_out, Err(WalletError::TimedOut { state: None, .. })));
    world.node.state.lock().set(id, EnvelopeState::Sealed);
    let timed_out = wallet.wait(&envelope, 0, |_| ()).await;
    assert!(matches!(timed_out, Err(WalletError::TimedOut { state: Some(EnvelopeState::Sealed), .. })));

    // A node that is away for a moment does not end it.
    let mut seen = Vec::new();
    let (reported, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let script = async {
        reports.recv().await.unwrap();
        world.node.leave().await;
        world.node.state.lock().set(id, EnvelopeState::Executed);
        world.node.come_back().await;
    };
    let wait = wallet.wait(&envelope, 600_000, |state| {
        seen.push(state);
        reported.send(state).unwrap();
    });
    let (receipt, ()) = tokio::join!(wait, script);
    assert_eq!(receipt.unwrap().state, EnvelopeState::Executed);
    assert_eq!(seen, [EnvelopeState::Sealed, EnvelopeState::Executed]);
    world.node.leave().await;
    assert!(
        matches!(wallet.wait(&envelope, 0, |_| ()).await, Err(WalletError::NodeRpc(error)) if error.retry())
    );
}
