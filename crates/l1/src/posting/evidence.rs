//! What is shown to L1 against the sequencer or for it, and the commitments that go before.

use alloy_primitives::{Address, Bytes, U256, keccak256};
use alloy_sol_types::SolValue;
use blindfold_protocol::{
    B256, Canonical, Envelope, Promise, SealedBatch, Signature65, SignedHeader,
    fault::{CODE_FORCED_TRANSACTION, CODE_VOID, keeps_promise},
    merkle,
    validity::item_leaf,
};

use crate::posting::run::PostedRun;

/// The contract before which a case comes. Each has its own commitments and rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisputeContract {
    /// `BlindedInbox`: two headers for one number, a broken promise.
    Inbox,
    /// `HintRegistry`: a wrong posting.
    Hints,
}

/// A commitment as `CommitReveal` of the contracts wants it: who will show which evidence. The salt is random and kept
/// until the evidence is shown; without it others could find out which evidence is about to come.
pub fn commitment(sender: Address, evidence: B256, salt: B256) -> B256 {
    keccak256((sender, evidence, salt).abi_encode())
}

/// The evidence of two headers of one number.
pub fn equivocation_evidence(first: &SignedHeader, second: &SignedHeader) -> B256 {
    let (one, other) = (first.header.hash(), second.header.hash());
    keccak256((U256::from(first.header.number), one.min(other), one.max(other)).abi_encode())
}

/// The evidence of a promise that was not kept.
pub fn omission_evidence(envelope_id: B256, item_hash: B256, seal_by: u64) -> B256 {
    keccak256((envelope_id, item_hash, U256::from(seal_by)).abi_encode())
}

/// A promise, and who gave it: what an accusation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenPromise {
    /// The sequencer whose signature it bears.
    pub sequencer: Address,
    /// Id of the promised envelope.
    pub envelope_id: B256,
    /// keccak256 of the item that was promised: no copy with other bytes will do.
    pub item_hash: B256,
    /// The number up to which it is to be sealed.
    pub seal_by: u64,
}

impl GivenPromise {
    /// A promise that this sequencer signed.
    pub fn new(promise: &Promise, sequencer: Address) -> Self {
        let Promise { envelope_id, item_hash, seal_by, .. } = *promise;
        Self { sequencer, envelope_id, item_hash, seal_by }
    }

    /// Its id, by which `BlindedInbox` knows the accusation.
    pub fn id(&self) -> B256 {
        let unsigned = Promise {
            envelope_id: self.envelope_id,
            item_hash: self.item_hash,
            seal_by: self.seal_by,
            signature: Signature65([0; 65]),
        };
        keccak256((self.sequencer, unsigned.hash()).abi_encode())
    }
}

/// The evidence of a wrong entry of a posting.
pub fn challenge_evidence(posting: u64, number: u64, index: u32) -> B256 {
    keccak256((U256::from(posting), U256::from(number), U256::from(index)).abi_encode())
}

/// One item of a batch as the envelope tree has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemLeaf {
    /// The envelope's id; zero for an item that is none, or that L1 forced into a header of its own.
    pub id: B256,
    /// keccak256 of the item's bytes.
    pub item_hash: B256,
    /// Code of the verdict in the envelope tree.
    pub code: u8,
}

impl ItemLeaf {
    /// The leaf of an item with this verdict. Two hashes over the item.
    pub fn new(item: &[u8], code: u8) -> Self {
        let id = match code {
            CODE_VOID | CODE_FORCED_TRANSACTION => B256::ZERO,
            _ => Envelope::decode(item).map(|envelope| envelope.id()).unwrap_or_default(),
        };
        Self { id, item_hash: keccak256(item), code }
    }

    fn hash(&self) -> B256 {
        item_leaf(&self.id, &self.item_hash, self.code)
    }
}

/// The envelope tree of a batch, checked against its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeTree {
    /// The items in committed order.
    pub items: Vec<ItemLeaf>,
}

impl EnvelopeTree {
    /// The tree of a batch whose items have these verdict codes; `None` when that is not what its header commits to.
    pub fn new(batch: &SealedBatch, codes: &[u8]) -> Option<Self> {
        if codes.len() != batch.items.len() || batch.items.len() != batch.header.envelope_count as usize {
            return None;
        }
        let items = batch.items.iter().zip(codes).map(|(item, code)| ItemLeaf::new(item, *code)).collect();
        let tree = Self { items };
        (merkle::root(&tree.leaves()) == batch.header.envelope_root).then_some(tree)
    }

    /// The siblings of item `index`.
    pub fn proof(&self, index: u32) -> Option<Vec<B256>> {
        merkle::proof(&self.leaves(), usize::try_from(index).ok()?)
    }

    fn leaves(&self) -> Vec<B256> {
        self.items.iter().map(ItemLeaf::hash).collect()
    }
}

/// The place of a promised envelope in a posted batch: what answers an accusation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmissionAnswer {
    pub(crate) run: PostedRun,
    pub(crate) number: u64,
    pub(crate) index: u32,
    pub(crate) leaf: ItemLeaf,
    pub(crate) item_proof: Vec<B256>,
    pub(crate) promise: GivenPromise,
}

impl OmissionAnswer {
    /// The answer for a promised item that stands in `batch` of `run` with a verdict that keeps the promise; `None` when it
    /// does not, or when run, batch and codes do not belong together.
    pub fn new(run: PostedRun, batch: &SealedBatch, codes: &[u8], promise: GivenPromise) -> Option<Self> {
        let number = batch.header.number;
        if run.header(number) != Some(&batch.header) {
            return None;
        }
        let tree = EnvelopeTree::new(batch, codes)?;
        let place = tree.items.iter().position(|item| {
            (item.id, item.item_hash) == (promise.envelope_id, promise.item_hash)
                && !item.id.is_zero()
                && keeps_promise(item.code, number, promise.seal_by)
        })?;
        let index = u32::try_from(place).ok()?;
        let item_proof = tree.proof(index)?;
        Some(Self { run, number, index, leaf: tree.items[place], item_proof, promise })
    }
}

/// A fee account in the ledger after a posted header: what `FeeVault` pays against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProof {
    /// Whose account it is, and who is paid.
    pub payer: Address,
    /// What it can spend, in wei.
    pub balance: u128,
    /// What ever left it towards L1, in wei.
    pub withdrawn: u128,
    /// Siblings from the ledger's root down to it.
    pub siblings: Vec<B256>,
    /// The run that the header was posted in.
    pub run: PostedRun,
    /// Number of the header whose batch holds the item.
    pub number: u64,
}

/// Raw bytes for a call.
pub(crate) fn bytes(data: &[u8]) -> Bytes {
    Bytes::copy_from_slice(data)
}
