//! docs/openrpc.json is what the code generates; and what that says is true: the methods are those that the servers
//! register, no reason is left out, and every example is what the real types read and write.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use alloy_primitives::keccak256;
use async_trait::async_trait;
use blindfold_client::confidential::{ConfidentialDeployment, checked};
use blindfold_kit::chain_config;
use blindfold_openrpc::{FILE, document as generated, refusals, source};
use blindfold_protocol::{
    Account, Acknowledgement, Address, B256, BatchHeader, BatchHints, Bytes, Canonical, Certificate,
    CertifiedBatch, ChainConfig, DataAttestation, Deployment, Envelope, Hello, LedgerProof, Party, Promise,
    Release, ReleaseShare, SealedBatch, SignedHeader, SingletonShare, data::KIND_OPENED,
};
use blindfold_rpc::{
    BlindApiServer, CommitteeApiServer, Encoded, FeedEvent, ForwardApiServer, ProxyApiServer, RawEnvelope,
    ReceiptApiServer, RpcError, SequencerApiServer, SignerApiServer, SyncApiServer, Topic, Wire,
    confidential::{
        ConfidentialAccount, ConfidentialApiServer, ConfidentialParameters, ConfidentialStatus,
        ConfidentialTransactionInfo, PublicBalance,
    },
    jsonrpsee::{Extensions, PendingSubscriptionSink, core::SubscriptionResult},
    types::{
        BatchInfo, CommitteeStatus, EncryptionKeyInfo, FeeAccount, FeeAccountProof, ForwardedAnswer,
        ForwardedEnvelope, HeldBatch, LedgerAt, Receipt, Refusal, SendOptions, SentEnvelope, SignerStatus,
        Status, SyncOptions, SyncedEnvelope, TracedTransaction,
    },
};
use blindfold_sequencer::{ADMISSION_REASONS, SUBMISSION_REASONS};
use blindfold_signer::SIGNING_REASONS;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use syn::Item;

fn text_of_the_file() -> String {
    source::read(FILE).expect("it is here")
}

fn document() -> Value {
    serde_json::from_str(&text_of_the_file()).expect("openrpc.json is JSON")
}

#[test]
fn the_document_is_what_the_code_says() {
    let generated = generated().expect("the source has no form that the generator does not know");
    assert!(generated == text_of_the_file(), "{FILE} is not what the code says: run scripts/openrpc");
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

macro_rules! serve_nothing {
    ($($api:ident { $($method:ident($($given:ty),*) -> $result:ty;)* $({ $($more:tt)* })? })*) => {$(
        #[async_trait]
        impl $api for Nothing {
            $(async fn $method(&self, $(_: $given),*) -> Result<$result, RpcError> {
                nothing()
            })*
            $($($more)*)?
        }
    )*};
}

serve_nothing! {
    BlindApiServer {
        get_encryption_key() -> Vec<EncryptionKeyInfo>;
        get_receipt(B256) -> Option<Receipt>;
        get_batch(u64) -> Option<BatchInfo>;
        get_hints(u64) -> Option<Encoded<BatchHints>>;
        get_fee_account(Address) -> FeeAccount;
        get_fee_account_proof(Address, Option<LedgerAt>) -> Option<FeeAccountProof>;
        get_status() -> Status;
        {
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
    }
    ReceiptApiServer {
        get_receipts(Vec<B256>) -> Vec<Option<Receipt>>;
        {
            async fn subscribe_receipts(
                &self,
                pending: PendingSubscriptionSink,
                _: &Extensions,
                _: Vec<B256>,
            ) -> SubscriptionResult {
                pending.reject(RpcError::internal("this server serves nothing")).await;
                Ok(())
            }
        }
    }
    SyncApiServer {
        send_envelope_sync(&Extensions, Encoded<RawEnvelope>, Option<SyncOptions>) -> SyncedEnvelope;
    }
    SequencerApiServer {
        send_envelope(&Extensions, Encoded<RawEnvelope>, Option<SendOptions>) -> SentEnvelope;
        submit_acknowledgement(&Extensions, Encoded<Acknowledgement>) -> bool;
        submit_refusal(&Extensions, Refusal) -> bool;
        submit_hints(&Extensions, Encoded<Release>, Encoded<BatchHints>) -> bool;
    }
    ForwardApiServer {
        send_envelopes(&Extensions, Vec<ForwardedEnvelope>) -> Vec<ForwardedAnswer>;
    }
    CommitteeApiServer {
        get_certified(&Extensions, u64) -> Option<Encoded<CertifiedBatch>>;
        get_sealed(&Extensions, u64) -> Option<HeldBatch>;
        get_share(&Extensions, u64, Encoded<Certificate>) -> Encoded<ReleaseShare>;
        get_singleton(&Extensions, u64, u32) -> Encoded<SingletonShare>;
        attest_data(&Extensions, u64, u64, Bytes) -> Encoded<DataAttestation>;
        get_status() -> CommitteeStatus;
    }
    SignerApiServer {
        get_status() -> SignerStatus;
        sign_header(Encoded<BatchHeader>, Option<u64>) -> Encoded<SignedHeader>;
        sign_promise(B256, B256, u64, Option<u64>) -> Encoded<Promise>;
        sign_hello(String) -> String;
    }
    ConfidentialApiServer {
        get_status() -> ConfidentialStatus;
        get_parameters() -> ConfidentialParameters;
        get_account(Address, Option<u64>) -> Option<ConfidentialAccount>;
        get_public_balance(Address) -> PublicBalance;
        get_transaction(B256) -> Option<ConfidentialTransactionInfo>;
        get_transfers(Address, u64, Option<u64>) -> Vec<ConfidentialTransactionInfo>;
        get_state_root(u64) -> Option<B256>;
        get_invoice_total(Bytes, Bytes, Bytes, B256) -> Bytes;
    }
    ProxyApiServer {
        get_envelope(B256) -> Option<TracedTransaction>;
    }
}

#[test]
fn the_methods_are_those_that_the_servers_register() {
    let mut served = BTreeSet::new();
    served.extend(BlindApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(ReceiptApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(SyncApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(SequencerApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(ForwardApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(CommitteeApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(SignerApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(ConfidentialApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    served.extend(ProxyApiServer::into_rpc(Nothing).method_names().map(str::to_owned));
    let document = document();
    let described: Vec<String> =
        list(&document["methods"]).iter().map(|method| text(&method["name"]).to_owned()).collect();
    let unique: BTreeSet<String> = described.iter().cloned().collect();
    assert_eq!(described.len(), unique.len(), "a method is described twice");
    assert_eq!(unique, served, "left: openrpc.json, right: the servers");
}

/// A method that is counted under `other` is one that nobody can look at.
#[test]
fn every_method_is_counted_under_its_name() {
    let registry = blindfold_telemetry::Metrics::new("any", "test").expect("a registry");
    blindfold_rpc::RpcMetrics::new(&registry).expect("registers");
    let shown = registry.render();
    for method in list(&document()["methods"]).iter().map(|method| text(&method["name"])) {
        let is_subscription =
            ["blind_subscribe", "blind_unsubscribe"].iter().any(|prefix| method.starts_with(prefix));
        assert!(is_subscription || shown.contains(&format!("method=\"{method}\"")), "{method}");
    }
}

#[test]
fn every_reference_leads_somewhere_and_all_is_referred_to() {
    let (document, text_of_the_file) = (document(), text_of_the_file());
    let paths = text_of_the_file.split("\"$ref\": \"#").skip(1).filter_map(|rest| rest.split('"').next());
    let referred: BTreeSet<String> = paths.map(str::to_owned).collect();
    let components = document["components"].as_object().expect("components");
    let defined = components.iter().flat_map(|(kind, named)| {
        let names = named.as_object().expect("by name").keys();
        names.map(move |name| format!("/components/{kind}/{name}"))
    });
    assert_eq!(referred, defined.collect());
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
                    // What has a minimum is counted from zero.
                    "integer" if schema.get("minimum").is_some() => value.is_u64(),
                    "integer" => value.is_i64(),
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

/// Reads an example with the real type, and writes it again: byte for byte the same.
fn real<T: DeserializeOwned + Serialize>(text: &str) -> T {
    let parsed: T = serde_json::from_str(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    assert_eq!(serde_json::to_string(&parsed).expect("writes JSON"), text);
    parsed
}

/// The same for a structure that travels as hex, decoded to the last byte.
fn structure<T: Wire + Canonical>(text: &str) -> T {
    let decoded = real::<Encoded<T>>(text).decode();
    decoded.unwrap_or_else(|fault| panic!("{}: {fault}", T::NAME))
}

/// A wallet takes the account for one of the deployment whose parameters are shown.
fn taken_by_a_wallet(document: &Examples<'_>, account: &ConfidentialAccount) {
    let found = document.methods.iter().find(|method| method.name == "confidential_getParameters");
    let parameters: ConfidentialParameters = real(found.expect("described").examples[0].result.value.get());
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

/// What the document has of examples, as it stands there.
#[derive(Deserialize)]
struct Examples<'a> {
    #[serde(borrow)]
    methods: Vec<MethodExamples<'a>>,
}

#[derive(Deserialize)]
struct MethodExamples<'a> {
    name: String,
    #[serde(borrow)]
    examples: Vec<Example<'a>>,
}

#[derive(Deserialize)]
struct Example<'a> {
    #[serde(borrow)]
    params: Vec<Shown<'a>>,
    #[serde(borrow)]
    result: Shown<'a>,
}

#[derive(Deserialize)]
struct Shown<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
}

/// The deployment that the examples are from.
fn of_the_examples() -> Deployment {
    let inbox = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512".parse().expect("an address");
    Deployment { l1_chain_id: 31_337, inbox }
}

fn check_example(document: &Examples<'_>, method: &str, params: &[&str], result: &str) {
    let is_true = || assert_eq!(result, "true", "{method}");
    let is_id = |id: &str| assert!(real::<u64>(id) > 0, "a subscription id");
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
        ("blind_sendEnvelopeSync", [envelope, options @ ..]) => {
            let envelope =
                Envelope::decode(real::<Encoded<RawEnvelope>>(envelope).bytes()).expect("an envelope");
            let asked = options.first().map(|options| real::<SyncOptions>(options)).unwrap_or_default();
            let synced: SyncedEnvelope = real(result);
            assert_eq!((synced.id, synced.promise.is_some()), (envelope.id(), asked.promise));
            let receipt = synced.receipt.expect("the example has one");
            assert!(receipt.id == synced.id && receipt.state.has_reached(asked.until.into()));
        }
        ("blind_sendEnvelopes", [envelopes]) => {
            let envelopes: Vec<ForwardedEnvelope> = real(envelopes);
            let answers: Vec<ForwardedAnswer> = real(result);
            assert_eq!(envelopes.len(), answers.len());
            for (forwarded, answer) in envelopes.iter().zip(answers) {
                let id = Envelope::decode(forwarded.envelope.bytes()).expect("an envelope").id();
                assert!(answer.sent.is_some() != answer.refused.is_some());
                assert!(answer.sent.is_none_or(|sent| sent.id == id));
            }
        }
        ("blind_getReceipt", [id]) => {
            let id: B256 = real(id);
            if let Some(receipt) = real::<Option<Receipt>>(result) {
                assert_eq!(receipt.id, id);
            }
        }
        ("blind_getReceipts", [ids]) => {
            let (ids, receipts): (Vec<B256>, Vec<Option<Receipt>>) = (real(ids), real(result));
            assert_eq!(ids.len(), receipts.len());
            assert!(ids.iter().zip(receipts).all(|(id, receipt)| receipt.is_none_or(|it| it.id == *id)));
        }
        ("blind_subscribeReceipts", [ids]) => {
            assert!(!real::<Vec<B256>>(ids).is_empty());
            is_id(result);
        }
        ("blind_unsubscribeReceipts", [id]) => {
            is_id(id);
            is_true();
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
            if result != "null" {
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
            is_id(result);
        }
        ("blind_unsubscribe", [id]) => {
            is_id(id);
            is_true();
        }
        ("committee_getCertified", [number]) => {
            let number: u64 = real(number);
            if result != "null" {
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
        ("committee_attestData", [first, last, data]) => {
            let (given, data): (DataAttestation, Bytes) = (structure(result), real(data));
            let of = given.data;
            assert_eq!((of.first_number, of.last_number), (real(first), real(last)));
            assert_eq!((of.kind, of.data_hash), (KIND_OPENED, keccak256(&data)));
            assert_eq!(data.get(..2), Some([2, KIND_OPENED].as_slice()));
        }
        ("committee_getStatus", []) => drop(real::<CommitteeStatus>(result)),
        ("signer_getStatus", []) => drop(real::<SignerStatus>(result)),
        ("signer_signHeader", [header, term @ ..]) => {
            let (header, signed): (BatchHeader, SignedHeader) = (structure(header), structure(result));
            assert_eq!(signed.header, header);
            signed.signer(&of_the_examples()).expect("a signature");
            assert!(term.iter().all(|term| real::<u64>(term) > 0));
        }
        ("signer_signPromise", [id, item_hash, seal_by, term @ ..]) => {
            let promise: Promise = structure(result);
            let asked = (real(id), real(item_hash), real(seal_by));
            assert_eq!((promise.envelope_id, promise.item_hash, promise.seal_by), asked);
            promise.signer(&of_the_examples()).expect("a signature");
            assert!(term.iter().all(|term| real::<u64>(term) > 0));
        }
        ("signer_signHello", [server]) => {
            let server: Party = real::<String>(server).parse().expect("a party");
            assert!(matches!(server, Party::Member(_)));
            let hello: Hello = real::<String>(result).parse().expect("a hello");
            assert_eq!(hello.peer, Party::Sequencer);
        }
        ("confidential_getStatus", []) => drop(real::<ConfidentialStatus>(result)),
        ("confidential_getParameters", []) => drop(real::<ConfidentialParameters>(result)),
        ("confidential_getAccount", [owner, version @ ..]) => {
            let owner: Address = real(owner);
            if let Some(account) = real::<Option<ConfidentialAccount>>(result) {
                assert_eq!(account.owner, owner);
                version.iter().for_each(|version| assert_eq!(account.version, real::<u64>(version)));
                taken_by_a_wallet(document, &account);
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
            real::<Option<TracedTransaction>>(result);
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
    let (document, text_of_the_file) = (document(), text_of_the_file());
    let examples: Examples<'_> = serde_json::from_str(&text_of_the_file).expect("examples");
    let fits = |name: &str, schema: &Value, text: &str| {
        let value = serde_json::from_str(text).expect("JSON");
        matches_schema(&document, schema, &value).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    };
    for (method, MethodExamples { name, examples: of_method }) in
        list(&document["methods"]).iter().zip(&examples.methods)
    {
        assert_eq!(method["paramStructure"], "by-position", "{name}");
        assert!(!of_method.is_empty(), "{name} has no example");
        for Example { params, result } in of_method {
            let params: Vec<&str> = params.iter().map(|param| param.value.get()).collect();
            let descriptors = list(&method["params"]);
            let required = descriptors.iter().filter(|param| param["required"] == json!(true)).count();
            assert!((required..=descriptors.len()).contains(&params.len()), "{name}: parameters");
            for (descriptor, value) in descriptors.iter().zip(&params) {
                fits(name, &descriptor["schema"], value);
            }
            fits(name, &method["result"]["schema"], result.value.get());
            check_example(&examples, name, &params, result.value.get());
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

/// The reasons that methods with a prefix may give, as the document lists them.
fn reasons(prefix: &str) -> BTreeSet<String> {
    let document = document();
    let methods =
        list(&document["methods"]).iter().filter(|method| text(&method["name"]).starts_with(prefix));
    let errors = methods.flat_map(|method| list(&method["errors"])).map(|error| resolved(&document, error));
    errors.flat_map(|error| list(&error["data"]["reasons"])).map(|reason| text(reason).to_owned()).collect()
}

/// Every reason that a trait's methods give, beside those of calls that are handed on, is described.
fn all_are_described(api: &str, prefix: &str, handed_on: &[&str]) {
    let described = reasons(prefix);
    for reason in refusals::outcomes(api).expect("the sources are here").into_keys() {
        let known = described.contains(&reason) || handed_on.contains(&reason.as_str());
        assert!(known, "no method of {api} says that it may answer {reason}");
    }
}

#[test]
fn every_reason_is_described() {
    let reads = ["malformed_params", "reads_busy", "execution_client_unavailable"];
    all_are_described("BlindApi", "blind_", &reads);
    all_are_described("ReceiptApi", "blind_", &[]);
    all_are_described("SyncApi", "blind_", &[]);
    all_are_described("SequencerApi", "blind_", &[]);
    all_are_described("CommitteeApi", "committee_", &[]);
    all_are_described("SignerApi", "signer_", &[]);
    all_are_described("ConfidentialApi", "confidential_", &[]);
    all_are_described(refusals::EVERY, "", &["reads_busy"]);
    let described = reasons("blind_s");
    for reason in ADMISSION_REASONS.iter().chain(SUBMISSION_REASONS) {
        assert!(described.contains(*reason), "{reason} is not described");
    }
    // What does not decode is told as everywhere.
    let described = reasons("signer_");
    for reason in SIGNING_REASONS.iter().filter(|reason| **reason != "undecodable") {
        assert!(described.contains(*reason), "{reason} is not described");
    }
}

/// One of each kind of a refusal is made for the document: none is forgotten.
#[test]
fn every_kind_of_refusal_is_made() {
    let variants = |path: &str, name: &str| -> BTreeSet<String> {
        let enums = source::items(path).expect("Rust").into_iter().filter_map(|item| match item {
            Item::Enum(item) if item.ident == name => Some(item),
            _ => None,
        });
        enums.flat_map(|item| item.variants).map(|variant| variant.ident.to_string()).collect()
    };
    assert_eq!(
        kinds(&refusals::admission_refusals()),
        variants("sequencer/src/refusal.rs", "AdmissionRefusal")
    );
    assert_eq!(
        kinds(&refusals::submission_errors()),
        variants("sequencer/src/refusal.rs", "SubmissionError")
    );
    assert_eq!(kinds(&refusals::signing_refusals()), variants("signer/src/refusal.rs", "SigningRefusal"));
    assert_eq!(
        kinds(&refusals::share_request_errors()),
        variants("committee/src/share.rs", "ShareRequestError")
    );
}

/// Names of the variants of these values.
fn kinds(refusals: &[impl Debug]) -> BTreeSet<String> {
    let shown = refusals.iter().map(|refusal| format!("{refusal:?}"));
    shown.map(|shown| shown.split([' ', '(']).next().expect("a name").to_owned()).collect()
}
