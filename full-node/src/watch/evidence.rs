//! Cases that are not settled, durable: what is shown on L1, and the salt under which it was committed to.

use std::sync::Arc;

use alloy_primitives::{B256, U256, keccak256};
use blindfold_l1::{DisputeContract, PostedLog, challenge_evidence};
use blindfold_protocol::{Canonical, SignedHeader, header::BATCH_HEADER_BYTES};
use blindfold_runtime::random;
use blindfold_store::{Store, StoreError};
use parking_lot::Mutex;

use super::compare::{Fault, FaultKind};

/// Key under which the disputes lie in the store.
const META_KEY: &str = "full_node.watch";
/// Version byte of the stored form.
const FORMAT_VERSION: u8 = 2;
/// Cases kept at a time. Each cost its author gas, and one of a publisher's or sequencer's all its bond: more are found
/// again.
const MAX_CASES: usize = 256;
/// Length of an encoded [`SignedHeader`]: version, header, signature.
const SIGNED_HEADER_BYTES: usize = 1 + BATCH_HEADER_BYTES + 65;
const HINTS: u8 = 0;
const HEADERS: u8 = 1;

/// What is committed to before the evidence is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A posting is wrong.
    Hint {
        /// Id of the wrong posting.
        id: u64,
        /// Number of the batch.
        number: u64,
        /// Index of the wrong entry, from 0.
        index: u32,
    },
    /// The sequencer signed two headers for one number.
    Headers {
        /// The batch number of both.
        number: u64,
        /// Hash of one header.
        first: B256,
        /// Hash of the other one.
        second: B256,
    },
}

impl Claim {
    /// Before which contract it comes.
    pub fn contract(&self) -> DisputeContract {
        match self {
            Self::Hint { .. } => DisputeContract::Hints,
            Self::Headers { .. } => DisputeContract::Inbox,
        }
    }

    /// The hash that is committed to before the evidence is shown.
    pub fn evidence(&self) -> B256 {
        match *self {
            Self::Hint { id, number, index } => challenge_evidence(id, number, index),
            // abi.encode(number, smaller hash, larger hash)
            Self::Headers { number, first, second } => {
                let number = B256::from(U256::from(number));
                keccak256([number, first.min(second), first.max(second)].concat())
            }
        }
    }
}

/// What a dispute is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Offence {
    /// A posting that is wrong.
    Hints {
        /// Id of the wrong posting.
        id: u64,
        /// The L1 block that it was posted in.
        block: u64,
        /// Its root: an id may mean another posting after L1 took blocks back.
        root: B256,
        /// The entry that is wrong, and why.
        fault: Fault,
    },
    /// Two headers of one number, both signed by the sequencer.
    Headers(Box<[SignedHeader; 2]>),
}

/// A dispute, from what was found to what L1 decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dispute {
    /// Hides the evidence in the commitment until it is shown.
    pub(super) salt: B256,
    pub(super) offence: Offence,
}

impl Dispute {
    pub(super) fn claim(&self) -> Claim {
        match &self.offence {
            Offence::Hints { id, fault, .. } => {
                Claim::Hint { id: *id, number: fault.number, index: fault.index }
            }
            Offence::Headers(pair) => {
                let [first, second] = pair.as_ref().map(|header| header.header.hash());
                Claim::Headers { number: pair[0].header.number, first, second }
            }
        }
    }
}

/// What is on disk is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored disputes do not decode: the disk is damaged")]
pub struct DamagedEvidence;

/// Why the disputes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The disk failed, or refused a step.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is on disk is not what was written.
    #[error(transparent)]
    Damaged(#[from] DamagedEvidence),
}

/// The disputes of a node, shared between whoever finds evidence and the watcher that shows it.
///
/// Stored as `version u8 · disputes`, a dispute being `salt 32 · kind u8` and, for a posting (0), `id u64 · block u64 ·
/// root 32 · number u64 · index u32 · fault u8 · has key u8 · key 16`, for headers (1) two [`SignedHeader`]s.
pub struct EvidenceStore {
    store: Arc<dyn Store>,
    disputes: Mutex<Vec<Dispute>>,
    writer: tokio::sync::Mutex<()>,
}

impl EvidenceStore {
    /// Reads the disputes of a store.
    ///
    /// # Errors
    /// [`EvidenceError`].
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, EvidenceError> {
        let disputes = match store.meta(META_KEY).await? {
            Some(bytes) => decode(&bytes)?,
            None => Vec::new(),
        };
        Ok(Self { store, disputes: Mutex::new(disputes), writer: tokio::sync::Mutex::new(()) })
    }

    /// Keeps two headers of one number. The caller has verified both signatures. True when that is news; durable then.
    ///
    /// # Errors
    /// The disk.
    pub async fn keep_headers(&self, first: SignedHeader, second: SignedHeader) -> Result<bool, StoreError> {
        let number = first.header.number;
        let same = |dispute: &Dispute| match &dispute.offence {
            // One pair is enough to take the bond.
            Offence::Headers(pair) => pair[0].header.number == number,
            Offence::Hints { .. } => false,
        };
        self.keep(Offence::Headers(Box::new([first, second])), same).await
    }

    /// Keeps a wrong posting. True when that is news; durable then.
    pub(super) async fn keep_posting(&self, posting: &PostedLog, fault: Fault) -> Result<bool, StoreError> {
        let PostedLog { id, l1_block: block, root, .. } = *posting;
        let same = |dispute: &Dispute| match &dispute.offence {
            Offence::Hints { id: known, root: known_root, .. } => (*known, *known_root) == (id, root),
            Offence::Headers(_) => false,
        };
        self.keep(Offence::Hints { id, block, root, fault }, same).await
    }

    async fn keep(&self, offence: Offence, same: impl Fn(&Dispute) -> bool) -> Result<bool, StoreError> {
        let _writing = self.writer.lock().await;
        let mut disputes = self.list();
        if disputes.len() >= MAX_CASES || disputes.iter().any(same) {
            return Ok(false);
        }
        disputes.push(Dispute { salt: B256::from(random::<[u8; 32]>()), offence });
        self.write(disputes).await?;
        Ok(true)
    }

    /// Forgets a dispute that is settled for good.
    pub(super) async fn close(&self, settled: &Dispute) -> Result<(), StoreError> {
        let _writing = self.writer.lock().await;
        let mut disputes = self.list();
        disputes.retain(|dispute| dispute != settled);
        self.write(disputes).await
    }

    async fn write(&self, disputes: Vec<Dispute>) -> Result<(), StoreError> {
        self.store.put_meta(META_KEY, &encode(&disputes)).await?;
        *self.disputes.lock() = disputes;
        Ok(())
    }

    /// All of them, oldest first.
    pub(super) fn list(&self) -> Vec<Dispute> {
        self.disputes.lock().clone()
    }
}

fn encode(disputes: &[Dispute]) -> Vec<u8> {
    let mut bytes = vec![FORMAT_VERSION];
    for dispute in disputes {
        bytes.extend_from_slice(dispute.salt.as_slice());
        match &dispute.offence {
            Offence::Hints { id, block, root, fault } => {
                bytes.push(HINTS);
                bytes.extend_from_slice(&id.to_be_bytes());
                bytes.extend_from_slice(&block.to_be_bytes());
                bytes.extend_from_slice(root.as_slice());
                bytes.extend_from_slice(&fault.number.to_be_bytes());
                bytes.extend_from_slice(&fault.index.to_be_bytes());
                bytes.push(fault.kind as u8);
                bytes.push(u8::from(fault.key.is_some()));
                bytes.extend_from_slice(&fault.key.unwrap_or_default());
            }
            Offence::Headers(pair) => {
                bytes.push(HEADERS);
                pair.iter().for_each(|header| bytes.extend_from_slice(&header.encode()));
            }
        }
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<Dispute>, DamagedEvidence> {
    let mut rest = bytes.strip_prefix(&[FORMAT_VERSION]).ok_or(DamagedEvidence)?;
    let mut disputes = Vec::new();
    while !rest.is_empty() {
        let salt = B256::new(take(&mut rest)?);
        let offence = match take::<1>(&mut rest)? {
            [HINTS] => Offence::Hints {
                id: u64::from_be_bytes(take(&mut rest)?),
                block: u64::from_be_bytes(take(&mut rest)?),
                root: B256::new(take(&mut rest)?),
                fault: Fault {
                    number: u64::from_be_bytes(take(&mut rest)?),
                    index: u32::from_be_bytes(take(&mut rest)?),
                    kind: kind(take(&mut rest)?)?,
                    key: key(take(&mut rest)?, take(&mut rest)?)?,
                },
            },
            [HEADERS] => Offence::Headers(Box::new([header(&mut rest)?, header(&mut rest)?])),
            _ => return Err(DamagedEvidence),
        };
        disputes.push(Dispute { salt, offence });
    }
    if disputes.len() > MAX_CASES { Err(DamagedEvidence) } else { Ok(disputes) }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], DamagedEvidence> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(DamagedEvidence)?;
    *rest = tail;
    Ok(*head)
}

fn kind([byte]: [u8; 1]) -> Result<FaultKind, DamagedEvidence> {
    FaultKind::ALL.into_iter().find(|kind| *kind as u8 == byte).ok_or(DamagedEvidence)
}

fn key(there: [u8; 1], key: [u8; 16]) -> Result<Option<[u8; 16]>, DamagedEvidence> {
    match there {
        [0] if key == [0; 16] => Ok(None),
        [1] => Ok(Some(key)),
        _ => Err(DamagedEvidence),
    }
}

fn header(rest: &mut &[u8]) -> Result<SignedHeader, DamagedEvidence> {
    SignedHeader::decode(&take::<SIGNED_HEADER_BYTES>(rest)?).map_err(|_| DamagedEvidence)
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::{BatchHeader, Signature65};

    use super::*;

    fn signed(mark: u8) -> SignedHeader {
        let header = BatchHeader { parent_hash: B256::repeat_byte(mark), ..blindfold_kit::plain_header(3) };
        SignedHeader { header, signature: Signature65([mark; 65]) }
    }

    fn disputes() -> Vec<Dispute> {
        let hints = |key| Offence::Hints {
            id: 4,
            block: 5,
            root: B256::repeat_byte(6),
            fault: Fault { number: 7, index: 8, kind: FaultKind::NotMalformed, key },
        };
        [hints(None), hints(Some([9; 16])), Offence::Headers(Box::new([signed(1), signed(2)]))]
            .into_iter()
            .map(|offence| Dispute { salt: B256::repeat_byte(3), offence })
            .collect()
    }

    #[test]
    fn cases_come_back_and_damage_is_refused() {
        let bytes = encode(&disputes());
        assert_eq!(decode(&bytes), Ok(disputes()));
        assert_eq!(decode(&encode(&[])), Ok(vec![]));
        let ends: Vec<usize> = (0..=disputes().len()).map(|n| encode(&disputes()[..n]).len()).collect();
        for cut in (0..bytes.len()).filter(|cut| !ends.contains(cut)) {
            assert_eq!(decode(&bytes[..cut]), Err(DamagedEvidence), "{cut}");
        }
        for (at, value) in [(0, FORMAT_VERSION + 1), (33, 2), (94, 7), (95, 2)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert_eq!(decode(&bytes), Err(DamagedEvidence), "{at}");
        }
    }
}
