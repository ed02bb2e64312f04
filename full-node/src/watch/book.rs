//! Cases that are not settled, durable: what is shown on L1, and the salt under which it was committed to.

use std::sync::Arc;

use alloy_primitives::{B256, U256, keccak256};
use blindfold_l1::{Court, PostedLog, challenge_evidence};
use blindfold_protocol::{Canonical, SignedHeader, header::BATCH_HEADER_BYTES};
use blindfold_runtime::random;
use blindfold_store::{Store, StoreError};
use parking_lot::Mutex;

use super::compare::{Fault, FaultKind};

/// Key under which the book lies in the store.
const META_KEY: &str = "full_node.watch";
/// Version byte of the stored form.
const BOOK_VERSION: u8 = 2;
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
        /// The posting.
        id: u64,
        /// The batch.
        number: u64,
        /// The entry.
        index: u32,
    },
    /// The sequencer signed two headers for one number.
    Headers {
        /// The number.
        number: u64,
        /// Hash of one header.
        first: B256,
        /// Hash of the other one.
        second: B256,
    },
}

impl Claim {
    /// Before which contract it comes.
    pub fn court(&self) -> Court {
        match self {
            Self::Hint { .. } => Court::Hints,
            Self::Headers { .. } => Court::Inbox,
        }
    }

    /// What is committed to.
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

/// What a case is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Matter {
    /// A posting that is wrong.
    Hints {
        /// The posting.
        id: u64,
        /// Its L1 block.
        block: u64,
        /// Its root: an id may mean another posting after L1 took blocks back.
        root: B256,
        /// Where it is wrong.
        fault: Fault,
    },
    /// Two headers of one number, both signed by the sequencer.
    Headers(Box<[SignedHeader; 2]>),
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// Hides the evidence in the commitment until it is shown.
    pub(super) salt: B256,
    pub(super) matter: Matter,
}

impl Case {
    pub(super) fn claim(&self) -> Claim {
        match &self.matter {
            Matter::Hints { id, fault, .. } => {
                Claim::Hint { id: *id, number: fault.number, index: fault.index }
            }
            Matter::Headers(pair) => {
                let [first, second] = pair.as_ref().map(|header| header.header.hash());
                Claim::Headers { number: pair[0].header.number, first, second }
            }
        }
    }
}

/// What is on disk is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored cases do not decode: the disk is damaged")]
pub struct DamagedBook;

/// Why the cases could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is on disk is not what was written.
    #[error(transparent)]
    Damaged(#[from] DamagedBook),
}

/// The cases of a node, shared between whoever finds evidence and the watcher that shows it.
///
/// Stored as `version u8 · cases`, a case being `salt 32 · kind u8` and, for a posting (0), `id u64 · block u64 ·
/// root 32 · number u64 · index u32 · fault u8 · has key u8 · key 16`, for headers (1) two [`SignedHeader`]s.
pub struct CaseBook {
    store: Arc<dyn Store>,
    cases: Mutex<Vec<Case>>,
    writer: tokio::sync::Mutex<()>,
}

impl CaseBook {
    /// Reads the cases of a store.
    ///
    /// # Errors
    /// [`BookError`].
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, BookError> {
        let cases = match store.meta(META_KEY).await? {
            Some(bytes) => decode(&bytes)?,
            None => Vec::new(),
        };
        Ok(Self { store, cases: Mutex::new(cases), writer: tokio::sync::Mutex::new(()) })
    }

    /// Keeps two headers of one number. The caller has verified both signatures. True when that is news; durable then.
    ///
    /// # Errors
    /// The disk.
    pub async fn keep_headers(&self, first: SignedHeader, second: SignedHeader) -> Result<bool, StoreError> {
        let number = first.header.number;
        let same = |case: &Case| match &case.matter {
            // One pair is enough to take the bond.
            Matter::Headers(pair) => pair[0].header.number == number,
            Matter::Hints { .. } => false,
        };
        self.keep(Matter::Headers(Box::new([first, second])), same).await
    }

    /// Keeps a wrong posting. True when that is news; durable then.
    pub(super) async fn keep_posting(&self, posting: &PostedLog, fault: Fault) -> Result<bool, StoreError> {
        let PostedLog { id, l1_block: block, root, .. } = *posting;
        let same = |case: &Case| match &case.matter {
            Matter::Hints { id: known, root: known_root, .. } => (*known, *known_root) == (id, root),
            Matter::Headers(_) => false,
        };
        self.keep(Matter::Hints { id, block, root, fault }, same).await
    }

    async fn keep(&self, matter: Matter, same: impl Fn(&Case) -> bool) -> Result<bool, StoreError> {
        let _writing = self.writer.lock().await;
        let mut cases = self.list();
        if cases.len() >= MAX_CASES || cases.iter().any(same) {
            return Ok(false);
        }
        cases.push(Case { salt: B256::from(random::<[u8; 32]>()), matter });
        self.write(cases).await?;
        Ok(true)
    }

    /// Forgets a case that is settled for good.
    pub(super) async fn close(&self, settled: &Case) -> Result<(), StoreError> {
        let _writing = self.writer.lock().await;
        let mut cases = self.list();
        cases.retain(|case| case != settled);
        self.write(cases).await
    }

    async fn write(&self, cases: Vec<Case>) -> Result<(), StoreError> {
        self.store.put_meta(META_KEY, &encode(&cases)).await?;
        *self.cases.lock() = cases;
        Ok(())
    }

    /// All of them, oldest first.
    pub(super) fn list(&self) -> Vec<Case> {
        self.cases.lock().clone()
    }
}

fn encode(cases: &[Case]) -> Vec<u8> {
    let mut bytes = vec![BOOK_VERSION];
    for case in cases {
        bytes.extend_from_slice(case.salt.as_slice());
        match &case.matter {
            Matter::Hints { id, block, root, fault } => {
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
            Matter::Headers(pair) => {
                bytes.push(HEADERS);
                pair.iter().for_each(|header| bytes.extend_from_slice(&header.encode()));
            }
        }
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<Case>, DamagedBook> {
    let mut rest = bytes.strip_prefix(&[BOOK_VERSION]).ok_or(DamagedBook)?;
    let mut cases = Vec::new();
    while !rest.is_empty() {
        let salt = B256::new(take(&mut rest)?);
        let matter = match take::<1>(&mut rest)? {
            [HINTS] => Matter::Hints {
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
            [HEADERS] => Matter::Headers(Box::new([header(&mut rest)?, header(&mut rest)?])),
            _ => return Err(DamagedBook),
        };
        cases.push(Case { salt, matter });
    }
    if cases.len() > MAX_CASES { Err(DamagedBook) } else { Ok(cases) }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], DamagedBook> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(DamagedBook)?;
    *rest = tail;
    Ok(*head)
}

fn kind([byte]: [u8; 1]) -> Result<FaultKind, DamagedBook> {
    FaultKind::ALL.into_iter().find(|kind| *kind as u8 == byte).ok_or(DamagedBook)
}

fn key(there: [u8; 1], key: [u8; 16]) -> Result<Option<[u8; 16]>, DamagedBook> {
    match there {
        [0] if key == [0; 16] => Ok(None),
        [1] => Ok(Some(key)),
        _ => Err(DamagedBook),
    }
}

fn header(rest: &mut &[u8]) -> Result<SignedHeader, DamagedBook> {
    SignedHeader::decode(&take::<SIGNED_HEADER_BYTES>(rest)?).map_err(|_| DamagedBook)
}

#[cfg(test)]
mod tests {
    use blindfold_protocol::{BatchHeader, Signature65};

    use super::*;

    fn signed(mark: u8) -> SignedHeader {
        let header = BatchHeader {
            number: 3,
            parent_hash: B256::repeat_byte(mark),
            timestamp_ms: 1,
            l1_origin_number: 2,
            l1_origin_hash: B256::ZERO,
            l1_origin_time: 0,
            envelope_root: B256::ZERO,
            data_hash: B256::ZERO,
            envelope_count: 0,
            envelope_bytes: 0,
            gas: 0,
            base_fee: 7,
            gas_base_fee: 1,
            fee_ledger_root: B256::ZERO,
            forced_cursor: 0,
            epoch: 1,
            rules: 1,
        };
        SignedHeader { header, signature: Signature65([mark; 65]) }
    }

    fn cases() -> Vec<Case> {
        let hints = |key| Matter::Hints {
            id: 4,
            block: 5,
            root: B256::repeat_byte(6),
            fault: Fault { number: 7, index: 8, kind: FaultKind::NotMalformed, key },
        };
        [hints(None), hints(Some([9; 16])), Matter::Headers(Box::new([signed(1), signed(2)]))]
            .into_iter()
            .map(|matter| Case { salt: B256::repeat_byte(3), matter })
            .collect()
    }

    #[test]
    fn cases_come_back_and_damage_is_refused() {
        let bytes = encode(&cases());
        assert_eq!(decode(&bytes), Ok(cases()));
        assert_eq!(decode(&encode(&[])), Ok(vec![]));
        let ends: Vec<usize> = (0..=cases().len()).map(|n| encode(&cases()[..n]).len()).collect();
        for cut in (0..bytes.len()).filter(|cut| !ends.contains(cut)) {
            assert_eq!(decode(&bytes[..cut]), Err(DamagedBook), "{cut}");
        }
        for (at, value) in [(0, BOOK_VERSION + 1), (33, 2), (94, 7), (95, 2)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert_eq!(decode(&bytes), Err(DamagedBook), "{at}");
        }
    }
}
