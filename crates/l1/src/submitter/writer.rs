//! Writing to the contracts of one deployment.

use std::{sync::Arc, time::Duration};

use alloy_eips::eip4844::Blob;
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall;
use blindfold_bte::bls::Signature as BlsSignature;
use blindfold_protocol::{BatchHeader, Canonical, Certificate, SigningKey};
use blindfold_runtime::now;
use serde::{Deserialize, Serialize};

use crate::{
    contracts::BlindedInbox,
    error::{L1Error, RunError},
    layer::Carried,
    posting::{
        blobs::BlobError,
        place::{DataPlace, LayerName, MAX_TRANSACTION_BYTES},
        run_data::{CodedBatch, MAX_POSTER_PART_BYTES, RunData, split_run_data},
    },
    reader::{
        client::L1Client,
        data_standing::{DataStanding, Supplier},
    },
    submitter::{
        account::{Call, GAS_LIMIT},
        costs::{DataCosts, Plan},
        pending::Sent,
        sender::Sender,
    },
};

/// The longest transaction with blobs that nodes relay, its blobs included.
const MAX_BLOB_TRANSACTION_BYTES: usize = 1024 * 1024;
/// The contracts' error for evidence whose commitment is of the same block.
const COMMITTED_NOW: &str = "CommittedInThisBlock";
/// Pause before evidence is shown again.
const REVEAL_POLL_MS: u64 = 500;
/// The part of `postingDeadline`, as a divisor, after which a header takes the surer way: half the time after which others post
/// it in the sequencer's place.
const URGENT_PART: u64 = 8;
/// The words of a header as the inbox takes it.
const POST_HEADER_BYTES: usize = 18 * 32;
/// What a transaction of `post` has beside its headers where it has no data, with room to spare.
const POST_OVERHEAD_BYTES: usize = 1_024;
/// The most gas of `post` beside its further headers, with room to spare: the transaction, the first run that was ever posted
/// and a certificate of a committee of 64 (docs/l1.md has the figures).
const POST_OVERHEAD_GAS: usize = 400_000;
/// The most gas of a further header, with room to spare: it has so many items that it is a run of its own, and takes
/// forced ones.
const POST_HEADER_GAS: usize = 45_000;
/// Headers that one transaction of `post` always holds, whatever is in their batches. Their bytes bound them.
pub const MAX_TRANSACTION_HEADERS: usize = {
    let by_bytes = (MAX_TRANSACTION_BYTES - POST_OVERHEAD_BYTES) / POST_HEADER_BYTES;
    let by_gas = (GAS_LIMIT as usize - POST_OVERHEAD_GAS) / POST_HEADER_GAS;
    if by_bytes < by_gas { by_bytes } else { by_gas }
};

/// Sends transactions from one account. Clones share it.
#[derive(Clone, Debug)]
pub struct L1Writer {
    client: L1Client,
    sender: Arc<Sender>,
    /// Where hints go.
    pub(crate) place: DataPlace,
    policy: DataPolicy,
}

/// Who says where the data of posted runs goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataPolicy {
    /// Prices and deadlines do: blobs where there is a beacon node to read them back, unless calldata costs a fifth less, and
    /// calldata for headers that are near their deadline.
    #[default]
    Auto,
    /// Always calldata.
    Calldata,
    /// Always blobs.
    Blobs,
    /// Always archives, with the data's hash in calldata.
    Archive,
}

impl From<DataPlace> for DataPolicy {
    fn from(place: DataPlace) -> Self {
        match place {
            DataPlace::Calldata => Self::Calldata,
            DataPlace::Blobs => Self::Blobs,
        }
    }
}

impl L1Writer {
    /// A writer for the client's deployment with an account's key.
    pub fn new(client: L1Client, key: SigningKey) -> Self {
        let config = client.config();
        let (chain_id, timeout_ms) = (config.deployment.l1_chain_id, config.confirmation_timeout_ms);
        let max_fee_wei = config.max_transaction_fee_wei;
        let sender = Sender::new(client.inner.rpc.clone(), chain_id, key, timeout_ms, max_fee_wei);
        let sender = Arc::new(sender);
        Self { client, sender, place: DataPlace::Calldata, policy: DataPolicy::Calldata }
    }

    /// The account that pays for the transactions.
    pub fn address(&self) -> Address {
        self.sender.address()
    }

    /// The reader of the same deployment.
    pub fn client(&self) -> &L1Client {
        &self.client
    }

    /// Has data of runs and hints go where it is said. Blobs are read back through a beacon node only.
    pub fn with_data_in(mut self, place: DataPlace) -> Self {
        (self.place, self.policy) = (place, place.into());
        self
    }

    /// Has data of runs go where this says; hints stay where they are.
    pub fn with_data_policy(mut self, policy: DataPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Whether data of runs may go into blobs: only where they can be read can those that are there be told from none (DC-1).
    pub fn may_post_blobs(&self) -> bool {
        match self.policy {
            DataPolicy::Auto => self.client.inner.beacon.is_some(),
            DataPolicy::Calldata | DataPolicy::Archive => false,
            DataPolicy::Blobs => true,
        }
    }

    /// What data of runs cost since the writer was made.
    pub fn data_costs(&self) -> DataCosts {
        self.sender.costs()
    }

    /// Where data goes that these transactions bring.
    async fn layer_by_price(&self, plan: impl Fn(DataPlace) -> Plan) -> Result<LayerName, L1Error> {
        match self.policy {
            DataPolicy::Calldata => return Ok(LayerName::Calldata),
            DataPolicy::Blobs => return Ok(LayerName::Blobs),
            DataPolicy::Archive => return Ok(LayerName::Archive),
            DataPolicy::Auto if !self.may_post_blobs() || !self.sender.takes_blobs() => {
                return Ok(LayerName::Calldata);
            }
            DataPolicy::Auto => {}
        }
        let estimate = self.sender.estimate(&plan(DataPlace::Calldata), &plan(DataPlace::Blobs)).await?;
        let place = estimate.cheaper();
        tracing::debug!(?place, ?estimate, "where data goes, by what it costs in wei");
        Ok(place.into())
    }

    /// Whether these headers have waited so long, or their epoch ends so soon, that nothing else counts (DC-3): blobs can be dear
    /// or scarce for hours.
    async fn is_urgent(&self, headers: &[BatchHeader]) -> Result<bool, L1Error> {
        let Some(first) = headers.first() else { return Ok(false) };
        let timing = match &self.client.config().deployed_with {
            Some(with) => with.timing,
            None => self.client.timing().await?,
        };
        let patience = u64::from(timing.posting_deadline) / URGENT_PART;
        let newest = self.client.newest_block().await?;
        if newest >= first.l1_origin_number.saturating_add(patience) {
            return Ok(true);
        }
        let end = self.client.announced_end().await?.filter(|end| end.epoch == first.epoch);
        Ok(end.is_some_and(|end| newest.saturating_add(patience) >= end.until))
    }

    /// Posts a run with its data and the certificate of its last header, and waits until it is in a block. Data that
    /// does not fit one transaction follows in parts. Of headers that somebody posted before only the data is new.
    /// Rule L-4.
    ///
    /// # Errors
    /// [`L1Error::Run`] for what cannot be a run; [`L1Error::Reverted`] when the inbox refuses, for instance because
    /// another header is there already; [`L1Error::TransactionTooLarge`] when the headers alone are too long; the errors
    /// of a call.
    pub async fn post(&self, batches: &[CodedBatch], certificate: &Certificate) -> Result<Sent, L1Error> {
        let headers: Vec<BatchHeader> = batches.iter().map(|batch| batch.sealed.header).collect();
        let may_wait = self.may_post_blobs() || self.policy == DataPolicy::Archive;
        let urgent = may_wait && self.is_urgent(&headers).await?;
        // Headers that must not wait for blobs or archives go alone where data may be nowhere else.
        if !urgent || self.policy == DataPolicy::Auto {
            let data = RunData::of(batches).encode();
            let layer = match urgent {
                true => LayerName::Calldata,
                false => self.layer_of_run(&headers, &data, certificate).await?,
            };
            match self.post_headers_in(layer, &headers, &data, certificate).await {
                Err(
                    L1Error::TransactionTooLarge { .. }
                    | L1Error::GasAboveLimit { .. }
                    | L1Error::Blobs(BlobError::TooLong { .. }),
                ) => {}
                // Headers alone cost a fraction of that.
                Err(fault @ L1Error::FeeAboveLimit { .. }) => {
                    if !urgent && !self.is_urgent(&headers).await? {
                        return Err(fault);
                    }
                    tracing::warn!(%fault, "headers near their deadline go alone, and their data follows");
                }
                // The data follows in calldata.
                Err(fault @ L1Error::BlobsRefused { .. }) if self.policy == DataPolicy::Auto => {
                    warn_of_refused_blobs(&fault);
                }
                outcome => return outcome,
            }
        }
        let sent = self.post_headers(&headers, &[], certificate).await?;
        self.post_data(batches).await?;
        Ok(sent)
    }

    /// Posts a run of headers with these bytes as data, which may be empty.
    ///
    /// # Errors
    /// As [`L1Writer::post`].
    pub async fn post_headers(
        &self,
        headers: &[BatchHeader],
        data: &[u8],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        let layer = match data {
            [] => LayerName::Calldata,
            data => self.layer_of_run(headers, data, certificate).await?,
        };
        self.post_headers_in(layer, headers, data, certificate).await
    }

    async fn layer_of_run(
        &self,
        headers: &[BatchHeader],
        data: &[u8],
        certificate: &Certificate,
    ) -> Result<LayerName, L1Error> {
        let head = post_call(headers, Bytes::new(), certificate)?.abi_encode();
        self.layer_by_price(|place| Plan::of_post(place, &head, headers.len(), data)).await
    }

    async fn post_headers_in(
        &self,
        layer: LayerName,
        headers: &[BatchHeader],
        data: &[u8],
        certificate: &Certificate,
    ) -> Result<Sent, L1Error> {
        check_run(headers, certificate)?;
        let Carried { input, blobs } = match data {
            [] => Carried::default(),
            data => self.client.layer(layer).publish(data).await?,
        };
        let call = post_call(headers, input, certificate)?;
        let call = call_with_blobs("post", self.client.config().deployment.inbox, &call, blobs);
        let data = (!data.is_empty()).then_some((layer, data.len()));
        self.sender.send(Call { data, ..call }).await
    }

    /// Posts the data of posted batches again, in as many parts as it takes. Gives the last transaction.
    ///
    /// # Errors
    /// [`RunError::Empty`]; [`L1Error::Reverted`] for batches that are not posted; the errors of a call.
    pub async fn post_data(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        let mut sent = None;
        let mut rest = batches;
        while !rest.is_empty() {
            // No more at once than readers keep of it while it is not complete.
            let mut bytes = 0usize;
            let fits = |batch: &&CodedBatch| {
                bytes = bytes.saturating_add(batch.sealed.items.iter().map(|item| item.len() + 8).sum());
                bytes <= MAX_POSTER_PART_BYTES / 2
            };
            let length = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(length);
            sent = Some(self.post_data_at_once(now).await?);
            rest = later;
        }
        sent.ok_or(L1Error::Run(RunError::Empty))
    }

    /// Which posted headers lack data, as [`L1Client::data_standing`] has it for whoever posts where this writer does.
    ///
    /// # Errors
    /// As there.
    pub async fn data_standing(&self, above: u64, after: u64) -> Result<DataStanding, L1Error> {
        self.client.data_standing(above, after, self.supplier()).await
    }

    /// Whether headers that were posted in blocks that are not final have no data there, as
    /// [`L1Client::lacks_new_data`] has it for this writer.
    ///
    /// # Errors
    /// As there.
    pub async fn lacks_new_data(&self, headers: &[BatchHeader]) -> Result<bool, L1Error> {
        self.client.lacks_new_data(headers, self.supplier()).await
    }

    fn supplier(&self) -> Supplier {
        Supplier { account: self.address(), blobs_expire: self.may_post_blobs() }
    }

    async fn post_data_at_once(&self, batches: &[CodedBatch]) -> Result<Sent, L1Error> {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else {
            return Err(RunError::Empty.into());
        };
        let numbers = (first.sealed.header.number, last.sealed.header.number);
        self.post_run_data(numbers, &RunData::of(batches).encode()).await
    }

    /// Posts a `RunData` for these numbers in as many parts as it takes. Gives the last transaction.
    pub(crate) async fn post_run_data(
        &self,
        (first, last): (u64, u64),
        data: &[u8],
    ) -> Result<Sent, L1Error> {
        let name = self.layer_by_price(|place| Plan::of_data(place, data)).await?;
        match self.post_run_data_in(name, (first, last), data).await {
            Err(fault @ L1Error::BlobsRefused { .. }) if self.policy == DataPolicy::Auto => {
                warn_of_refused_blobs(&fault);
                self.post_run_data_in(LayerName::Calldata, (first, last), data).await
            }
            outcome => outcome,
        }
    }

    async fn post_run_data_in(
        &self,
        name: LayerName,
        (first, last): (u64, u64),
        data: &[u8],
    ) -> Result<Sent, L1Error> {
        let layer = self.client.layer(name);
        let room = layer.room_bytes();
        let parts = split_run_data(first, last, data, room).ok_or(L1Error::TransactionTooLarge {
            call: "postData",
            bytes: data.len(),
            limit: room * usize::from(crate::posting::run_data::MAX_PARTS),
        })?;
        let inbox = self.client.config().deployment.inbox;
        let mut calls = Vec::with_capacity(parts.len());
        for part in parts {
            let (named, part) = (part.name(), part.encode());
            let Carried { input, blobs } = layer.publish(&part).await?;
            let call = BlindedInbox::postDataCall { firstNumber: first, data: input };
            let mut call = call_with_blobs("postData", inbox, &call, blobs);
            if name == LayerName::Blobs {
                // Blobs may be out of reach when somebody asks what is lacking.
                let mut input = call.input.to_vec();
                input.extend_from_slice(&named.behind_call());
                call.input = input.into();
            }
            calls.push(Call { data: Some((name, part.len())), ..call });
        }
        // Encoded data is never empty, so there was a part.
        self.sender.send_in_a_row(calls).await?.ok_or(L1Error::Run(RunError::Empty))
    }

    /// Has L1 make the header after `parent`, which is its head, out of the next items that are due.
    ///
    /// # Errors
    /// [`L1Error::Reverted`] when it is not time for that, or the head is another; the errors of a call.
    pub async fn post_l1_header(&self, parent: &BatchHeader) -> Result<Sent, L1Error> {
        let call = BlindedInbox::postL1HeaderCall { parent: parent.into() };
        self.send("postL1Header", self.client.config().deployment.inbox, U256::ZERO, &call).await
    }

    pub(crate) async fn send<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        value: U256,
        call: &C,
    ) -> Result<Sent, L1Error> {
        let input = call.abi_encode().into();
        let (to, blobs, size_limit_bytes) = (TxKind::Call(to), Vec::new(), Some(MAX_TRANSACTION_BYTES));
        self.sender
            .send(Call { name, to, value, input, blobs, size_limit_bytes, nonce: None, data: None })
            .await
    }

    /// A call that shows evidence. The commitment to it may be in the newest block, on which calls are tried: then it
    /// waits for the next one.
    pub(crate) async fn reveal<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        value: U256,
        call: &C,
    ) -> Result<Sent, L1Error> {
        let started = now();
        let limit = Duration::from_millis(self.client.config().confirmation_timeout_ms);
        loop {
            match self.send(name, to, value, call).await {
                Err(L1Error::Reverted { reason, .. })
                    if reason.starts_with(COMMITTED_NOW) && started.elapsed() < limit =>
                {
                    tokio::time::sleep(Duration::from_millis(REVEAL_POLL_MS)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// A call with these blobs, which may be none.
    pub(crate) async fn send_with_blobs<C: SolCall>(
        &self,
        name: &'static str,
        to: Address,
        call: &C,
        blobs: Vec<Blob>,
    ) -> Result<Sent, L1Error> {
        self.sender.send(call_with_blobs(name, to, call, blobs)).await
    }
}

/// DC-5.
fn warn_of_refused_blobs(fault: &L1Error) {
    tracing::warn!(%fault, "data goes into calldata, which may cost more; blobs are tried again in an hour");
}

fn call_with_blobs<C: SolCall>(name: &'static str, to: Address, call: &C, blobs: Vec<Blob>) -> Call {
    let limit = if blobs.is_empty() { MAX_TRANSACTION_BYTES } else { MAX_BLOB_TRANSACTION_BYTES };
    let (to, value) = (TxKind::Call(to), U256::ZERO);
    let (input, size_limit_bytes) = (call.abi_encode().into(), Some(limit));
    Call { name, to, value, input, blobs, size_limit_bytes, nonce: None, data: None }
}

fn post_call(
    headers: &[BatchHeader],
    data: Bytes,
    certificate: &Certificate,
) -> Result<BlindedInbox::postCall, RunError> {
    let signature = BlsSignature::from_bytes(&certificate.signature).map_err(|_| RunError::Signature)?;
    Ok(BlindedInbox::postCall {
        headers: headers.iter().map(BlindedInbox::BatchHeader::from).collect(),
        data,
        certificate: BlindedInbox::Certificate {
            signers: certificate.signers,
            signature: Bytes::copy_from_slice(&signature.to_eip2537()),
        },
    })
}

/// What the inbox would refuse anyway, named before anything is sent.
fn check_run(headers: &[BatchHeader], certificate: &Certificate) -> Result<(), RunError> {
    let last = headers.last().ok_or(RunError::Empty)?;
    let hash = last.hash();
    if (certificate.header_hash, certificate.number, certificate.epoch) != (hash, last.number, last.epoch) {
        return Err(RunError::OtherHeader { certified: certificate.header_hash, last: hash });
    }
    for (parent, header) in headers.iter().zip(headers.iter().skip(1)) {
        let follows = parent.number.checked_add(1) == Some(header.number)
            && header.parent_hash == parent.hash()
            && header.epoch == parent.epoch;
        if !follows {
            return Err(RunError::NotARun(header.number));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use blindfold_bte::bls::SecretKey;

    use super::*;
    use crate::test_header::plain_header;

    #[test]
    fn as_many_headers_are_posted_at_once_as_nodes_relay() {
        /// Nonce, fees, address, signature and the lengths of all these.
        const ENVELOPE_BYTES: usize = 200;
        let signature = SecretKey::generate(&[7; 32]).expect("a key").sign(&[1; 32]).to_bytes();
        let header = plain_header(1);
        let header_hash = header.hash();
        let certificate = Certificate { number: 1, header_hash, epoch: 1, signers: 7, signature };
        let bytes = |headers: usize| {
            let call = post_call(&vec![header; headers], Bytes::new(), &certificate).expect("a call");
            call.abi_encode().len() + ENVELOPE_BYTES
        };
        assert_eq!(MAX_TRANSACTION_HEADERS, 225);
        assert!(bytes(MAX_TRANSACTION_HEADERS) <= MAX_TRANSACTION_BYTES);
        assert!(bytes(MAX_TRANSACTION_HEADERS + 2) > MAX_TRANSACTION_BYTES, "room is left for another one");
    }
}
