//! docs/openrpc.json against the code: the methods are those that the servers register, the reasons are those they
//! refuse with, and every example is what the real types read and write.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::keccak256;
use async_trait::async_trait;
use blindfold_client::confidential::{ConfidentialDeployment, checked};
use blindfold_kit::chain_config;
use blindfold_protocol::{
    Account, Acknowledgement, Address, B256, BatchHints, Bytes, Canonical, Certificate, CertifiedBatch,
    ChainConfig, Deployment, Envelope, EnvelopeError, LedgerProof, Promise, Release, ReleaseShare,
    SealedBatch, SingletonShare,
};
use blindfold_rpc::{
    BlindApiServer, CommitteeApiServer, Encoded, FeedEvent, RawEnvelope, RpcError, SequencerApiServer, Topic,
    Wire,
    confidential::{
        ConfidentialAccount, ConfidentialApiServer, ConfidentialParameters, ConfidentialStatus,
        ConfidentialTransactionInfo, PublicBalance,
    },
    jsonrpsee::{Extensions, PendingSubscriptionSink, core::SubscriptionResult, types::ErrorObjectOwned},
    types::{
        BatchInfo, CommitteeStatus, EncryptionKeyInfo, FeeAccount, FeeAccountProof, HeldBatch, LedgerAt,
        Receipt, Refusal, SendOptions, SentEnvelope, Status,
    },
};
use blindfold_sequencer::{ADMISSION_REASONS, AdmissionRefusal, SUBMISSION_REASONS, SubmissionError};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(include_str!("../../../docs/openrpc.json")).expect("openrpc.json is JSON")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} should be text"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Serves nothing; only its method table is looked at.
struct Nothing;

fn nothing<T>() -> Result<T, RpcError> {
    Err(RpcError::internal("this server serves nothing"))
}

#[async_trait]
impl BlindApiServer for Nothing {
    async fn get_encryption_key(&self) -> Result<Vec<EncryptionKeyInfo>, RpcError> {
        nothing()
    }
    async fn get_receipt(&self, _: B256) -> Result<Option<Receipt>, RpcError> {
        nothing()
    }
    async fn get_batch(&self, _: u64) -> Result<Option<BatchInfo>, RpcError> {
        nothing()
    }
    async fn get_hints(&self, _: u64) -> Result<Option<Encoded<BatchHints>>, RpcError> {
        nothing()
    }
    async fn get_fee_account(&self, _: Address) -> Result<FeeAccount, RpcError> {
        nothing()
    }
    async fn get_fee_account_proof(
        &self,
        _: Address,
        _: Option<LedgerAt>,
    ) -> Result<Option<FeeAccountProof>, RpcError> {
        nothing()
    }
    async fn get_status(&self) -> Result<Status, RpcError> {
        nothing()
    }
    async fn subscribe_topic(
        &self,
        pending: PendingSubscriptionSink,
        _: &Extensions,
        _: String,
    ) -> SubscriptionResult {
        pending.reject(RpcError::internal("this server serves nothing")).await;
        Ok(())
    }
}

#[async_trait]
impl SequencerApiServer for Nothing {
    async fn send_envelope(
        &self,
        _: &Extensions,
        _: Encoded<RawEnvelope>,
        _: Option<SendOptions>,
    ) -> Result<SentEnvelope, RpcError> {
        nothing()
    }
    async fn submit_acknowledgement(
        &self,
        _: &Extensions,
        _: Encoded<Acknowledgement>,
    ) -> Result<bool, RpcError> {
        nothing()
    }
    async fn submit_refusal(&self, _: &Extensions, _: Refusal) -> Result<bool, RpcError> {
        nothing()
    }
    async fn submit_hints(
        &self,
        _: &Extensions,
        _: Encoded<Release>,
        _: Encoded<BatchHints>,
    ) -> Result<bool, RpcError> {
        nothing()
    }
}

#[async_trait]
impl CommitteeApiServer for Nothing {
    async fn get_certified(
        &self,
        _: &Extensions,
        _: u64,
    ) -> Result<Option<Encoded<CertifiedBatch>>, RpcError> {
        nothing()
    }
    async fn get_sealed(&self, _: &Extensions, _: u64) -> Result<Option<HeldBatch>, RpcError> {
        nothing()
    }
    async fn get_share(
        &self,
        _: &Extensions,
        _: u64,
        _: Encoded<Certificate>,
    ) -> Result<Encoded<ReleaseShare>, RpcError> {
        nothing()
    }
    async fn get_singleton(
        &self,
        _: &Extensions,
        _: u64,
        _: u32,
    ) -> Result<Encoded<SingletonShare>, RpcError> {
        nothing()
    }
    async fn get_status(&self) -> Result<CommitteeStatus, RpcError> {
        nothing()
    }
}

#[async_trait]
impl ConfidentialApiServer for Nothing {
    async fn get_status(&self) -> Result<ConfidentialStatus, RpcError> {
        nothing()
    }
    async fn get_parameters(&self) -> Result<ConfidentialParameters, RpcError> {
        nothing()
    }
    async fn get_account(&self, _: Address, _: Option<u64>) -> Result<Option<ConfidentialAccount>, RpcError> {
        nothing()
    }
    async fn get_public_balance(&self, _: Address) -> Result<PublicBalance, RpcError> {
        nothing()
    }
    async fn get_transaction(&self, _: B256) -> Result<Option<ConfidentialTransactionInfo>, RpcError> {
        nothing()
    }
    async fn get_transfers(
        &self,
        _: Address,
        _: u64,
        _: Option<u64>,
    ) -> Result<Vec<ConfidentialTransactionInfo>, RpcError> {
        nothing()
    }
    async fn get_state_root(&self, _: u64) -> Result<Option<B256>, RpcError> {
        nothing()
    }
    async fn get_invoice_total(&self, _: Bytes, _: Bytes, _: Bytes, _: B256) -> Result<Bytes, RpcError> {
        nothing()
    }
}

/// The proxy's own methods, as its source registers them.
fn methods_of_the_proxy() -> BTreeSet<String> {
    let source = include_str!("../../../client/src/proxy/rpc.rs");
    let registered = source.split("_method(\"").skip(1).filter_map(|rest| rest.split('"').next());
    registered.filter(|name| name.starts_with("proxy_")).map(str::to_owned).collect()
}

#[test]
fn the_methods_are_those_that_the_servers_register() {
    let mut served = methods_of_the_proxy();
    served.extend(BlindApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(SequencerApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(CommitteeApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(ConfidentialApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    let document = document();
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let described: Vec<String> =
        list(&document["methods"]).iter().map(|method| text(&method["name"]).to_owned()).collect();
    let unique: BTreeSet<String> = described.iter().cloned().collect();
    assert_eq!(described.len(), unique.len(), "a method is described twice");
    assert_eq!(unique, served, "left: openrpc.json, right: the servers");
}

/// Follows a reference inside the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(path) => {
            let pointer = path.strip_prefix('#').unwrap_or_else(|| panic!("{path} leads outside"));
            document.pointer(pointer).unwrap_or_else(|| panic!("{path} leads nowhere"))
        }
        None => value,
    }
}

/// Holds a value against the part of JSON Schema that the document uses; what it does not know it refuses.
fn matches_schema(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolved(document, schema);
    for (keyword, rule) in schema.as_object().ok_or("no schema")? {
        match keyword.as_str() {
            "title" | "description" | "minimum" | "maximum" | "maxLength" => {}
            "maxItems" => {
                let count = value.as_array().map_or(0, Vec::len) as u64;
                if rule.as_u64().is_none_or(|most| count > most) {
                    return Err(format!("{count} items are more than {rule}"));
                }
            }
            "type" => {
                let fits = match text(rule) {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_u64(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => return Err(format!("unknown type {other}")),
                };
                if !fits {
                    return Err(format!("{value} is no {rule}"));
                }
            }
            "enum" if !list(rule).contains(value) => return Err(format!("{value} is none of {rule}")),
            "enum" => {}
            // Every pattern is of 0x-hex; the real types check the digits.
            "pattern" if value.as_str().is_some_and(|hex| !hex.starts_with("0x")) => {
                return Err(format!("{value} is no 0x-hex"));
            }
            "pattern" => {}
            "oneOf" => {
                let fitting = list(rule)
                    .iter()
                    .filter(|option| matches_schema(document, option, value).is_ok())
                    .count();
                if fitting != 1 {
                    return Err(format!("{value} fits {fitting} of {rule}"));
                }
            }
            "items" => {
                for item in list(value) {
                    matches_schema(document, rule, item)?;
                }
            }
            "required" => {
                if let Some(missing) = list(rule).iter().find(|key| value.get(text(key)).is_none()) {
                    return Err(format!("{missing} is missing in {value}"));
                }
            }
            "properties" => {
                for (key, field) in value.as_object().into_iter().flatten() {
                    let property = rule.get(key).ok_or(format!("{key} is not described"))?;
                    matches_schema(document, property, field)?;
                }
            }
            "additionalProperties" => {
                if rule.is_object() {
                    for field in value.as_object().into_iter().flatten().map(|(_, field)| field) {
                        matches_schema(document, rule, field)?;
                    }
                }
            }
            other => return Err(format!("the test does not know the keyword {other}")),
        }
    }
    Ok(())
}

/// Reads an example with the real type, and writes it again: nothing may be lost or changed.
fn real<T: DeserializeOwned + Serialize>(value: &Value) -> T {
    let parsed: T = serde_json::from_value(value.clone()).unwrap_or_else(|fault| panic!("{value}: {fault}"));
    assert_eq!(serde_json::to_value(&parsed).expect("writes JSON"), *value);
    parsed
}

/// The same for a structure that travels as hex, decoded to the last byte.
fn structure<T: Wire + Canonical>(value: &Value) -> T {
    let decoded = real::<Encoded<T>>(value).decode();
    decoded.unwrap_or_else(|fault| panic!("{}: {fault}", T::NAME))
}

/// A wallet takes the account for one of the deployment whose parameters are shown.
fn taken_by_a_wallet(document: &Value, account: &ConfidentialAccount) {
    let methods = list(&document["methods"]);
    let found = methods.iter().find(|entry| entry["name"] == "confidential_getParameters");
    let example = &found.expect("described")["examples"][0]["result"]["value"];
    let parameters: ConfidentialParameters = real(example);
    let chain = chain_config();
    let deployment = Deployment { l1_chain_id: parameters.l1_chain_id, ..chain.deployment };
    let chain = ChainConfig { chain_id: parameters.chain_id, deployment, ..ChainConfig::clone(&chain) };
    let deployment = ConfidentialDeployment {
        contract: parameters.contract,
        seed: parameters.seed,
        auditor_key: parameters.auditor_key,
        operator: parameters.operator,
        minimum_fee: parameters.minimum_fee,
        allocations: Vec::new(),
        keys: BTreeMap::new(),
    };
    let (_, settings) = deployment.settings(&chain).expect("a deployment");
    checked(&settings, account.owner, account).expect("an account under its root");
}

fn check_transaction(info: &ConfidentialTransactionInfo) {
    assert_eq!(info.id, keccak256(&info.transaction));
    assert_eq!(info.applied, info.reason.is_none());
}

fn check_example(method: &str, params: &[&Value], result: &Value) {
    let is_true = || assert_eq!(*result, json!(true), "{method}");
    match (method, params) {
        ("blind_getEncryptionKey", []) => {
            let keys: Vec<EncryptionKeyInfo> = real(result);
            for key in keys {
                let bytes: &[u8; blindfold_bte::GT_BYTES] =
                    key.encryption_key.as_ref().try_into().expect("576 bytes");
                let parsed = blindfold_bte::EncryptionKey::from_bytes(bytes).expect("a key");
                assert_eq!(B256::from(parsed.hash()), key.encryption_key_hash);
            }
        }
        ("blind_sendEnvelope", [envelope, options @ ..]) => {
            let envelope =
                Envelope::decode(real::<Encoded<RawEnvelope>>(envelope).bytes()).expect("an envelope");
            let asked = options.first().is_some_and(|options| real::<SendOptions>(options).promise);
            let sent: SentEnvelope = real(result);
            assert_eq!(sent.id, envelope.id());
            assert_eq!(sent.promise.is_some(), asked);
            if let Some(promise) = sent.promise {
                let promise: Promise = promise.decode().expect("a promise");
                assert_eq!(promise.envelope_id, sent.id);
            }
        }
        ("blind_getReceipt", [id]) => {
            let id: B256 = real(id);
            if let Some(receipt) = real::<Option<Receipt>>(result) {
                assert_eq!(receipt.id, id);
            }
        }
        ("blind_getBatch", [number]) => {
            let number: u64 = real(number);
            let Some(batch) = real::<Option<BatchInfo>>(result) else { return };
            let sealed = batch.sealed.decode().expect("a sealed batch");
            assert_eq!((batch.number, batch.hash), (number, sealed.header.hash()));
            assert_eq!(batch.verdicts.len(), sealed.items.len());
            let certificate =
                batch.certificate.expect("the example has all").decode().expect("a certificate");
            let release = batch.release.expect("the example has all").decode().expect("a release");
            let hints = batch.hints.expect("the example has all").decode().expect("hints");
            for hash in [certificate.header_hash, release.header_hash, hints.header_hash] {
                assert_eq!(hash, batch.hash);
            }
        }
        ("blind_getHints", [number]) => {
            let number: u64 = real(number);
            if !result.is_null() {
                assert_eq!(structure::<BatchHints>(result).number, number);
            }
        }
        ("blind_getFeeAccount", [address]) => {
            let address: Address = real(address);
            assert_eq!(real::<FeeAccount>(result).address, address);
        }
        ("blind_getFeeAccountProof", [address, at]) => {
            let address: Address = real(address);
            real::<LedgerAt>(at);
            if let Some(proof) = real::<Option<FeeAccountProof>>(result) {
                assert_eq!(proof.address, address);
                let account = Account { balance: proof.balance, withdrawn: proof.withdrawn };
                assert!(LedgerProof { siblings: proof.siblings }.root_with(&address, &account).is_some());
            }
        }
        ("blind_getStatus", []) => drop(real::<Status>(result)),
        ("blind_submitAcknowledgement", [acknowledgement]) => {
            structure::<Acknowledgement>(acknowledgement);
            is_true();
        }
        ("blind_submitRefusal", [refusal]) => {
            real::<Refusal>(refusal);
            is_true();
        }
        ("blind_submitHints", [release, hints]) => {
            let (release, hints) = (structure::<Release>(release), structure::<BatchHints>(hints));
            assert_eq!((release.number, release.header_hash), (hints.number, hints.header_hash));
            is_true();
        }
        ("blind_subscribe", [topic]) => {
            real::<Topic>(topic);
            assert!(result.is_u64() || result.is_string(), "a subscription id");
        }
        ("blind_unsubscribe", [id]) => {
            assert!(id.is_u64() || id.is_string(), "a subscription id");
            is_true();
        }
        ("committee_getCertified", [number]) => {
            let number: u64 = real(number);
            if !result.is_null() {
                let batch: CertifiedBatch = structure(result);
                assert_eq!((batch.sealed.header.number, batch.certificate.number), (number, number));
            }
        }
        ("committee_getSealed", [number]) => {
            let number: u64 = real(number);
            if let Some(held) = real::<Option<HeldBatch>>(result) {
                assert_eq!(held.sealed.decode().expect("a batch").header.number, number);
                let certificate =
                    held.certificate.map(|certificate| certificate.decode().expect("a certificate"));
                assert!(certificate.is_none_or(|certificate| certificate.number == number));
            }
        }
        ("committee_getShare", [number, certificate]) => {
            let (number, certificate): (u64, Certificate) = (real(number), structure(certificate));
            let share: ReleaseShare = structure(result);
            assert_eq!((share.number, share.header_hash), (number, certificate.header_hash));
        }
        ("committee_getSingleton", [number, index]) => {
            let share: SingletonShare = structure(result);
            assert_eq!((share.number, share.index), (real(number), real(index)));
        }
        ("committee_getStatus", []) => drop(real::<CommitteeStatus>(result)),
        ("confidential_getStatus", []) => drop(real::<ConfidentialStatus>(result)),
        ("confidential_getParameters", []) => drop(real::<ConfidentialParameters>(result)),
        ("confidential_getAccount", [owner, version @ ..]) => {
            let owner: Address = real(owner);
            if let Some(account) = real::<Option<ConfidentialAccount>>(result) {
                assert_eq!(account.owner, owner);
                version.iter().for_each(|version| assert_eq!(account.version, real::<u64>(version)));
                taken_by_a_wallet(&document(), &account);
            }
        }
        ("confidential_getPublicBalance", [owner]) => {
            let owner: Address = real(owner);
            assert_eq!(real::<PublicBalance>(result).owner, owner);
        }
        ("confidential_getTransaction", [id]) => {
            let id: B256 = real(id);
            if let Some(info) = real::<Option<ConfidentialTransactionInfo>>(result) {
                assert_eq!(info.id, id);
                check_transaction(&info);
            }
        }
        ("confidential_getTransfers", [owner, from, limit @ ..]) => {
            real::<Address>(owner);
            let from: u64 = real(from);
            let infos: Vec<ConfidentialTransactionInfo> = real(result);
            limit.iter().for_each(|limit| assert!(infos.len() as u64 <= real::<u64>(limit)));
            for info in infos {
                assert!(info.applied && info.sequence >= from);
                check_transaction(&info);
            }
        }
        ("confidential_getStateRoot", [version]) => {
            real::<u64>(version);
            real::<Option<B256>>(result);
        }
        ("proxy_getEnvelope", [hash]) => {
            real::<B256>(hash);
        }
        ("confidential_getInvoiceTotal", [key, quantities, prices, mask_seed]) => {
            for bytes in [key, quantities, prices, &result] {
                real::<Bytes>(bytes);
            }
            real::<B256>(mask_seed);
        }
        (method, params) => panic!("no example of {method} has {} parameters", params.len()),
    }
}

#[test]
fn every_example_fits_its_schema_and_the_real_types() {
    let document = document();
    for method in list(&document["methods"]) {
        let name = text(&method["name"]);
        assert_eq!(method["paramStructure"], "by-position", "{name}");
        let examples = list(&method["examples"]);
        assert!(!examples.is_empty(), "{name} has no example");
        for example in examples {
            let params: Vec<&Value> = list(&example["params"]).iter().map(|param| &param["value"]).collect();
            let descriptors = list(&method["params"]);
            let required = descriptors.iter().filter(|param| param["required"] == json!(true)).count();
            assert!((required..=descriptors.len()).contains(&params.len()), "{name}: parameters");
            for (descriptor, value) in descriptors.iter().zip(&params) {
                let schema = &descriptor["schema"];
                matches_schema(&document, schema, value).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            }
            let result = &example["result"]["value"];
            let schema = &method["result"]["schema"];
            matches_schema(&document, schema, result).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            check_example(name, &params, result);
        }
    }
}

#[test]
fn every_notification_fits_its_schema_and_the_real_types() {
    let document = document();
    let notifications = document["x-notifications"].as_object().expect("notifications by topic");
    let topics: Vec<&str> = Topic::ALL.iter().map(|topic| topic.as_str()).collect();
    let mut described: Vec<&str> = notifications.keys().map(String::as_str).collect();
    described.sort_by_key(|name| topics.iter().position(|topic| topic == name));
    assert_eq!(described, topics);
    for topic in Topic::ALL {
        let notification = &notifications[topic.as_str()];
        let example = &notification["example"];
        matches_schema(&document, &notification["schema"], example)
            .unwrap_or_else(|fault| panic!("{}: {fault}", topic.as_str()));
        let event = FeedEvent::parse(topic, &example.to_string()).expect("a notification of its topic");
        let written: Value = serde_json::from_str(event.to_raw().expect("writes JSON").get()).expect("JSON");
        assert_eq!(written, *example);
        match event {
            FeedEvent::Header(event) => drop::<SealedBatch>(event.sealed.decode().expect("a sealed batch")),
            FeedEvent::Certificate(event) => drop::<Certificate>(event.certificate.decode().expect("stands")),
            FeedEvent::Release(event) => drop::<Release>(event.release.decode().expect("a release")),
            FeedEvent::Hints(event) => drop::<BatchHints>(event.hints.decode().expect("hints")),
            FeedEvent::Block(_) => {}
        }
    }
}

/// Reasons of a method, each with code and retry, as the document lists them.
fn reasons(document: &Value, method: &str) -> BTreeMap<String, (i64, bool)> {
    let methods = list(&document["methods"]);
    let found = methods.iter().find(|entry| entry["name"] == method).expect("described");
    let errors = list(&found["errors"]).iter().map(|error| resolved(document, error));
    errors
        .flat_map(|error| {
            let code = error["code"].as_i64().expect("a code");
            let retry = error["data"]["retry"].as_bool().expect("retry");
            let reasons = list(&error["data"]["reasons"]).iter();
            reasons.map(move |reason| (text(reason).to_owned(), (code, retry))).collect::<Vec<_>>()
        })
        .collect()
}

fn code_and_retry(error: RpcError) -> (String, (i64, bool)) {
    let object = ErrorObjectOwned::from(error.clone());
    (error.reason.into_owned(), (object.code().into(), error.retry))
}

#[test]
fn the_reasons_of_admission_are_those_of_the_sequencer() {
    let mut refusals: BTreeMap<String, (i64, bool)> = [
        AdmissionRefusal::TooLarge { bytes: 1, limit: 1 },
        AdmissionRefusal::AlreadyKnown,
        AdmissionRefusal::PoolFull,
        AdmissionRefusal::PayerLimit { limit: 1 },
        AdmissionRefusal::SourceLimit,
        AdmissionRefusal::Overloaded,
        AdmissionRefusal::NoEpoch,
        AdmissionRefusal::EpochEnds { epoch: 1, until: 1 },
        AdmissionRefusal::PromiseTerms { detail: String::new() },
        AdmissionRefusal::PromiseCapacity { batches: 1 },
        AdmissionRefusal::Backlogged { behind: "posting" },
        AdmissionRefusal::Recovering,
        AdmissionRefusal::OutOfOffice,
        AdmissionRefusal::Storage,
        AdmissionRefusal::ShuttingDown,
    ]
    .into_iter()
    .chain(EnvelopeError::ALL.map(|fault| AdmissionRefusal::Fault { fault, detail: String::new() }))
    .map(|refusal| code_and_retry(refusal.into()))
    .collect();
    assert_eq!(refusals.len(), ADMISSION_REASONS.len());
    // What the server scaffolding adds to every method.
    refusals.extend([
        ("invalid_params".to_owned(), (-32602, false)),
        ("rate_limited".to_owned(), (-38001, true)),
        ("too_many_answers".to_owned(), (-38001, true)),
        ("internal".to_owned(), (-32603, true)),
    ]);
    assert_eq!(reasons(&document(), "blind_sendEnvelope"), refusals);
}

#[test]
fn the_reasons_of_submissions_are_those_of_the_sequencer() {
    let document = document();
    let mut described = BTreeMap::new();
    for method in ["blind_submitAcknowledgement", "blind_submitRefusal", "blind_submitHints"] {
        described.extend(reasons(&document, method));
    }
    let hash = B256::ZERO;
    let made: BTreeMap<String, (i64, bool)> = [
        SubmissionError::UnknownBatch { number: 1, newest: 0 },
        SubmissionError::WrongHeader { number: 1, known: hash, offered: hash },
        SubmissionError::WrongEpoch { number: 1, known: 1, offered: 2 },
        SubmissionError::UnknownMember { member: 9, members: 4 },
        SubmissionError::InvalidSignature { member: 1 },
        SubmissionError::DuplicateAcknowledgement { number: 1, member: 1 },
        SubmissionError::AlreadyCertified { number: 1 },
        SubmissionError::NotCertified { number: 1 },
        SubmissionError::ReleaseMismatch,
        SubmissionError::InvalidRelease { index: 0 },
        SubmissionError::Overloaded,
        SubmissionError::Storage,
        SubmissionError::ShuttingDown,
    ]
    .into_iter()
    .map(|refusal| code_and_retry(refusal.into()))
    .collect();
    for (reason, outcome) in made {
        assert_eq!(described.get(&reason), Some(&outcome), "{reason}");
    }
    for reason in SUBMISSION_REASONS {
        assert!(described.contains_key(*reason), "{reason} is not described");
    }
}
