//! Messages over the roles' ports: made, sent, and seen to their end.

use std::{collections::BTreeMap, sync::Arc};

use alloy_primitives::{B256, Bytes, U256};
use anyhow::{Context, Result, bail};
use blindfold_bte::EncryptionKey;
use blindfold_client::{EnvelopeMaker, Offer, TransactionFields, transaction::sign, wallet::is_final};
use blindfold_protocol::{
    Acknowledgement, BatchHints, Bundle, BundleItem, Canonical, Certificate, Envelope, HintEntry, Release,
    SigningKey, bte::bls::SecretKey,
};
use blindfold_rpc::{
    BlindApiClient, CommitteeApiClient, Encoded, ReceivedError, SequencerApiClient,
    types::{EnvelopeState, SendOptions},
};
use blindfold_runtime::{now, rng};
use tokio::{
    task::JoinSet,
    time::{Duration, MissedTickBehavior, interval, sleep},
};

use super::{
    Measured,
    floods::Flood,
    testbed::{LOOK_INTERVAL, PATIENCE, Tally, Testbed},
};
use crate::devnet::accounts::{account_key, named_key};

/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
/// What the smallest HTTP request takes around the parameters of a call.
pub(super) const REQUEST_BYTES: usize = 150;

/// One message of a flood.
#[derive(Clone)]
pub(super) enum Message {
    /// An envelope, and whether a promise is asked for it.
    Envelope {
        id: B256,
        bytes: Bytes,
        promise: bool,
    },
    Acknowledgement(Box<Acknowledgement>),
    Hints(Arc<(Release, BatchHints)>),
    Share {
        number: u64,
        certificate: Certificate,
    },
    Singleton {
        number: u64,
        index: u32,
    },
}

impl Message {
    /// Bytes on the way: parameters are hex.
    pub(super) fn bytes(&self) -> usize {
        let parameters = match self {
            Self::Envelope { bytes, .. } => bytes.len(),
            Self::Acknowledgement(acknowledgement) => acknowledgement.encode().len(),
            Self::Hints(hints) => hints.0.encode().len() + hints.1.encode().len(),
            Self::Share { certificate, .. } => certificate.encode().len(),
            Self::Singleton { .. } => 0,
        };
        REQUEST_BYTES + 2 * parameters
    }
}

impl Testbed {
    /// Sends a flood and sees it to its end.
    pub(super) async fn flood(&mut self, flood: Flood, count: usize, rate: u64) -> Result<Measured> {
        let (count, rate) = (count * flood.messages(), rate * flood.messages() as u64);
        match flood {
            Flood::Forced => return self.forced(count).await,
            Flood::PostedData => return self.posted_data(count).await,
            Flood::UnreadSockets => return self.unread(count, rate).await,
            _ => {}
        }
        let all = match flood {
            Flood::Acknowledgements | Flood::Hints | Flood::Shares | Flood::Singletons => {
                vec![self.forged(flood).await?; count]
            }
            Flood::OldShares => self.old_shares(count).await?,
            _ => self.made(flood, count).await?,
        };
        let bytes = all.iter().map(Message::bytes).sum();
        let meter = self.begin().await?;
        let (admitted, refused) = self.send(&all, rate).await?;
        let envelope = |message: &Message| match message {
            Message::Envelope { id, .. } => Some(*id),
            _ => None,
        };
        let last = all.iter().zip(&admitted).rev().find(|(_, admitted)| **admitted);
        if let Some(last) = last.and_then(|(message, _)| envelope(message)) {
            self.finished(last, flood).await?;
        }
        let admitted = admitted.iter().filter(|admitted| **admitted).count();
        self.end(meter, Tally { flood, sent: count, admitted, refused, bytes }).await
    }

    /// Waits until an envelope's end, and with it that of those before it.
    pub(super) async fn finished(&self, id: B256, flood: Flood) -> Result<()> {
        let deadline = now() + PATIENCE;
        loop {
            let receipt = self.node.get_receipt(id).await?;
            match receipt.map(|receipt| receipt.state) {
                Some(state) if is_final(state) => {
                    let expected = match flood {
                        Flood::Malformed => EnvelopeState::Malformed,
                        Flood::Junk => EnvelopeState::Skipped,
                        _ => EnvelopeState::Executed,
                    };
                    if state != expected {
                        bail!("envelope {id} of {}: expected {expected:?}, seen {state:?}", flood.name());
                    }
                    return Ok(());
                }
                _ if now() > deadline => {
                    bail!("envelope {id} of {} is not final after {} s", flood.name(), PATIENCE.as_secs())
                }
                _ => sleep(LOOK_INTERVAL).await,
            }
        }
    }

    /// Certificate and hints of the newest batch with a good envelope.
    async fn newest_opened(&self) -> Result<(Certificate, BatchHints)> {
        let mut number = BlindApiClient::get_status(&self.node).await?.hinted;
        while number > 0 {
            let batch = self.node.get_batch(number).await?.with_context(|| format!("batch {number}"))?;
            let hints = batch.hints.context("hints")?.decode()?;
            if hints.entries.iter().any(|entry| matches!(entry, HintEntry::Key(_))) {
                return Ok((batch.certificate.context("a certificate")?.decode()?, hints));
            }
            number -= 1;
        }
        bail!("no batch has a good envelope")
    }

    /// All batches there are, one after the other, from the oldest on.
    async fn old_shares(&self, count: usize) -> Result<Vec<Message>> {
        let (certificate, _) = self.newest_opened().await?;
        let of = |number| Message::Share { number, certificate };
        Ok((1..=certificate.number).map(of).cycle().take(count).collect())
    }

    /// What is refused without an envelope.
    pub(super) async fn forged(&self, flood: Flood) -> Result<Message> {
        let (certificate, hints) = self.newest_opened().await?;
        let number = certificate.number;
        let nobody = SecretKey::generate(&[7; 32]).context("32 bytes")?;
        let signature = nobody.sign(&certificate.header_hash.0).to_bytes();
        Ok(match flood {
            Flood::Acknowledgements => Message::Acknowledgement(Box::new(Acknowledgement {
                epoch: certificate.epoch,
                number,
                header_hash: certificate.header_hash,
                member: 1,
                signature,
            })),
            Flood::Hints => {
                let wrong = |entry: &HintEntry| match entry {
                    HintEntry::Skipped => HintEntry::Skipped,
                    _ => HintEntry::Key([7; 16]),
                };
                let release = Release { number, header_hash: hints.header_hash, pds: vec![signature] };
                let entries = hints.entries.iter().map(wrong).collect();
                Message::Hints(Arc::new((release, BatchHints { entries, blindings: vec![], ..hints })))
            }
            Flood::Shares => Message::Share { number, certificate: Certificate { signature, ..certificate } },
            _ => {
                let good = hints.entries.iter().position(|entry| matches!(entry, HintEntry::Key(_)));
                Message::Singleton { number, index: good.context("a good envelope")?.try_into()? }
            }
        })
    }

    pub(super) async fn made(&self, flood: Flood, count: usize) -> Result<Vec<Message>> {
        let status = BlindApiClient::get_status(&self.sequencer).await?;
        let offer = Offer {
            base_fee: status.base_fee.saturating_mul(8),
            gas_base_fee: status.gas_base_fee.saturating_mul(8),
            priority_fee: 0,
            head: status.head.number,
            generation: status.head.generation,
            expiry_batches: blindfold_protocol::limits::EXPIRY_WINDOW,
            promise: false,
        };
        let base_fee = self.reads.base_fee().await?;
        let mut nonces = Vec::with_capacity(self.accounts);
        for index in 0..self.accounts {
            nonces.push(self.reads.nonce(&account_key(index).address()).await?);
        }
        let distinct = if flood == Flood::Repeated { 1 } else { count };
        let mut made = Vec::with_capacity(count);
        for index in 0..distinct {
            let key = match flood {
                Flood::Unfunded => named_key(&format!("nobody-{index}")),
                _ => account_key(index % self.accounts),
            };
            let fields = TransactionFields {
                chain_id: self.chain.chain_id,
                nonce: nonces[index % self.accounts] + (index / self.accounts) as u64,
                to: account_key((index + 1) % self.accounts).address(),
                value: U256::from(1),
                input: Bytes::new(),
                gas_limit: TRANSFER_GAS,
                max_fee_per_gas: base_fee.saturating_mul(16),
                max_priority_fee_per_gas: 0,
            };
            let (raw, _) = sign(&fields, &key);
            let bundle = Bundle { items: vec![BundleItem::transaction(raw.to_vec())] };
            made.push(self.envelope(flood, &key, &bundle, &offer)?);
        }
        while made.len() < count {
            made.push(made[0].clone());
        }
        Ok(made)
    }

    fn envelope(&self, flood: Flood, key: &SigningKey, bundle: &Bundle, offer: &Offer) -> Result<Message> {
        let maker = EnvelopeMaker { chain: &self.chain, committee: &self.committee, payer: key };
        let honest = maker.of_bundle(bundle, TRANSFER_GAS, offer)?;
        // The header names the committee's key in any case.
        let encrypted = |to: &EncryptionKey, message: &[u8]| -> Result<Envelope> {
            let ad = honest.header.hash();
            let (ciphertext, proof, _) = to.encrypt(&ad.0, message, &[], &mut rng())?;
            Ok(Envelope::sign(honest.header, ciphertext, proof, key))
        };
        let envelope = match flood {
            Flood::Malformed => encrypted(&self.foreign, &bundle.encode_padded()?)?,
            Flood::Junk => encrypted(&self.committee.key, &vec![0xff; bundle.encode_padded()?.len()])?,
            Flood::DamagedProof => {
                let mut proof = honest.proof;
                proof.s[31] ^= 1;
                Envelope::sign(honest.header, honest.ciphertext, proof, key)
            }
            _ => honest,
        };
        let mut bytes = envelope.encode();
        if flood == Flood::Undecodable {
            bytes.fill(0xff);
        }
        Ok(Message::Envelope { id: envelope.id(), bytes: bytes.into(), promise: flood == Flood::Promised })
    }

    /// Sends at the rate, whatever the answers. Which of them were taken, and the others' reasons.
    pub(super) async fn send(
        &self,
        all: &[Message],
        rate: u64,
    ) -> Result<(Vec<bool>, BTreeMap<String, usize>)> {
        let mut tick = interval(Duration::from_secs_f64(1.0 / rate as f64));
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut calls = JoinSet::new();
        for (place, message) in all.iter().cloned().enumerate() {
            tick.tick().await;
            let sequencer = self.sequencer.clone();
            let member =
                self.members.get(place % self.members.len().max(1)).cloned().context("no members")?;
            calls.spawn(async move {
                let answer = match message {
                    Message::Envelope { bytes, promise, .. } => {
                        let options = promise.then_some(SendOptions { promise });
                        sequencer.send_envelope(Encoded::from_bytes(bytes), options).await.map(drop)
                    }
                    Message::Acknowledgement(one) => {
                        sequencer.submit_acknowledgement(Encoded::new(&one)).await.map(drop)
                    }
                    Message::Hints(one) => {
                        sequencer.submit_hints(Encoded::new(&one.0), Encoded::new(&one.1)).await.map(drop)
                    }
                    Message::Share { number, certificate } => {
                        member.get_share(number, Encoded::new(&certificate)).await.map(drop)
                    }
                    Message::Singleton { number, index } => {
                        member.get_singleton(number, index).await.map(drop)
                    }
                };
                (place, answer.map_err(ReceivedError::from))
            });
        }
        let (mut admitted, mut refused) = (vec![false; all.len()], BTreeMap::new());
        while let Some(answer) = calls.join_next().await {
            match answer? {
                (place, Ok(())) => admitted[place] = true,
                (_, Err(error)) => *refused.entry(error.reason().to_owned()).or_default() += 1,
            }
        }
        Ok((admitted, refused))
    }
}
