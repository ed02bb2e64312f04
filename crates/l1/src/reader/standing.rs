//! Where everything on L1 stands after its newest block, for people who act there by hand. None of it need be final:
//! what validity depends on is read elsewhere.

use alloy_eips::BlockId;
use alloy_primitives::{Address, B256, U256};
use alloy_provider::Provider;
use blindfold_protocol::L1Timing;

use crate::{
    contracts::{
        BlindedInbox, CommitteeRegistry, DepositPortal, FeeVault, ForcedQueue, HintRegistry, OutputRegistry,
    },
    error::L1Error,
    posting::evidence::{DisputeContract, GivenPromise},
    reader::{
        client::L1Client,
        postings::{Bond, PostedHead},
        queue::{KIND_ENVELOPE, KIND_TRANSACTION},
    },
    submitter::fees::Fees,
    transport::failed,
};

/// Forced items in a batch at most.
const MAX_FORCED_ITEMS: u64 = 16;

/// Where the contracts stand after one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// L1's newest block, which all of it is read at.
    pub block: u64,
    /// The deadlines of the contracts.
    pub timing: L1Timing,
    /// Whose signature stands under headers with this block as their L1 origin.
    pub sequencer: Address,
    /// The last header on L1.
    pub head: PostedHead,
    /// The block that it was posted in; 0 before the first.
    pub head_posted_at: u64,
    /// The last block with a certified header; 0 before the first.
    pub last_certified_at: u64,
    /// The block in which two headers of the next number were shown; 0 for none.
    pub equivocated_at: u64,
    /// Whether the end of the next number's epoch was announced and is due: L1's header is its last.
    pub end_due: bool,
    /// How many headers L1 made itself.
    pub l1_made: u64,
    /// How many items were ever forced.
    pub forced_length: u64,
    /// The next forced items that no header has taken: those that are due and the one after them, 17 at most.
    pub forced_next: Vec<QueuedItem>,
    /// The bond of that sequencer.
    pub bond: Bond,
    /// Accusations that nobody answered yet.
    pub open_accusations: u64,
    /// How many times hints were posted.
    pub hint_postings: u64,
    /// The last L2 block with a claimed output; 0 for none.
    pub last_output: u64,
}

/// An item that waits in the forced queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedItem {
    /// Its place in the queue, from 0.
    pub index: u64,
    /// A transaction in the clear, or else an envelope.
    pub is_transaction: bool,
    /// The block it was enqueued in.
    pub enqueued_at: u64,
    /// Gas of a transaction, 0 for an envelope.
    pub gas_limit: u64,
    /// Its length in a batch, in bytes.
    pub length: u32,
}

/// When L1 makes the next header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L1HeaderDue {
    /// Now, with so many forced items.
    Now {
        /// Forced items that it takes.
        items: u64,
    },
    /// Not before this block; a certified header may come until then.
    From(u64),
    /// It may, but there is nothing to put into one yet.
    NothingToInclude {
        /// From this block on it may make an empty one.
        empty_from: u64,
    },
}

/// What becomes of ether in `DepositPortal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portal {
    /// The contract that pays out, once something proves execution.
    pub outlet: Option<Address>,
    /// Whether the operator takes deposits although there is none.
    pub takes_deposits_without_outlet: bool,
}

/// A fee account as `FeeVault` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VaultAccount {
    /// What was paid out in all, in wei.
    pub paid: U256,
    /// Sum of the requests that [`L1Writer::exit`](crate::submitter::writer::L1Writer::exit) would count, in wei.
    pub requested: u128,
    /// The block of the first of them; 0 when there never was one.
    pub first_request: u64,
    /// The block of the last.
    pub last_request: u64,
    /// How long requests wait before an exit, in blocks.
    pub withdrawal_delay: u32,
}

/// What became of an accusation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccusationState {
    /// Nobody has accused of this promise.
    None,
    /// It waits for an answer.
    Open,
    /// The envelope was shown in a batch.
    Answered,
    /// Nobody answered in time: the bond is lost.
    Slashed,
}

/// An accusation of having broken one promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accusation {
    /// What has become of it.
    pub state: AccusationState,
    /// Who accused, and staked on it.
    pub accuser: Address,
    /// The block after which the bond is lost without an answer.
    pub answer_until: u64,
}

impl Standing {
    /// When L1 makes the header after one with `parent_items` items, by the contract's own rule (O-3, O-4).
    pub fn l1_header_due(&self, parent_items: u32) -> L1HeaderDue {
        let window = u64::from(self.timing.answer_window).max(1);
        let shown = self.equivocated_at.max(self.head_posted_at).saturating_add(window);
        let undecided = self.end_due || self.equivocated_at != 0 && self.block > shown;
        if !undecided {
            let deadline = u64::from(self.timing.posting_deadline).saturating_add(1);
            let waiting_since = self.waiting_since();
            let from = waiting_since.saturating_add(deadline);
            let Some(since) = self.block.checked_sub(from) else {
                let earlier = if self.equivocated_at == 0 { from } else { from.min(shown + 1) };
                return L1HeaderDue::From(earlier);
            };
            // Every second window belongs to a committee that is back; from its posting on, the pause after each.
            let windows = since / window;
            if self.last_certified_at < from && windows % 2 != 0 {
                return L1HeaderDue::From(from.saturating_add((windows + 1).saturating_mul(window)));
            }
            let pause = self.last_certified_at.saturating_add(self.timing.forced_delay.into());
            if waiting_since != self.last_certified_at && self.block <= pause {
                return L1HeaderDue::From(pause.saturating_add(1));
            }
        }
        let quiet_since = self.head_posted_at.saturating_add(self.timing.posting_deadline.into());
        match self.forced_due() {
            // After as long a silence of L1's own an empty one frees what was signed and is too old to be posted.
            0 if parent_items == 0 && !undecided && self.block <= quiet_since => {
                L1HeaderDue::NothingToInclude { empty_from: quiet_since.saturating_add(1) }
            }
            items => L1HeaderDue::Now { items },
        }
    }

    /// The block of the last certified posting, or the one in which the next forced item was due, if that is earlier.
    fn waiting_since(&self) -> u64 {
        let due = self.forced_next.first().map_or(u64::MAX, |item| self.due_at(item));
        due.min(self.last_certified_at)
    }

    /// How many of the next forced items are due now, 16 at most.
    pub fn forced_due(&self) -> u64 {
        let due = self.forced_next.iter().filter(|item| self.due_at(item) <= self.block).count();
        (due as u64).min(MAX_FORCED_ITEMS)
    }

    /// The block from which on a header must have taken the item.
    pub fn due_at(&self, item: &QueuedItem) -> u64 {
        item.enqueued_at.saturating_add(self.timing.forced_delay.into())
    }
}

impl L1Client {
    /// The newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn newest_block(&self) -> Result<u64, L1Error> {
        self.inner.rpc.newest().await
    }

    /// What an account has after the newest block, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn balance(&self, account: Address) -> Result<U256, L1Error> {
        self.inner.rpc.provider.get_balance(account).await.map_err(failed("eth_getBalance"))
    }

    /// What a transaction sent now would offer for a unit of gas, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn gas_offer(&self) -> Result<u128, L1Error> {
        Ok(Fees::fresh(&self.inner.rpc, 0, false).await?.max_fee)
    }

    /// What the beacon node says it is; `None` without one.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn beacon_version(&self) -> Result<Option<String>, L1Error> {
        match &self.inner.beacon {
            Some(beacon) => beacon.version().await.map(Some),
            None => Ok(None),
        }
    }

    /// The deadlines of the deployment.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn timing(&self) -> Result<L1Timing, L1Error> {
        self.timing_at(BlockId::latest()).await
    }

    pub(crate) async fn timing_at(&self, block: BlockId) -> Result<L1Timing, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let timing = self.inner.rpc.view_at("timing", inbox, &BlindedInbox::timingCall {}, block).await?;
        Ok(L1Timing {
            posting_deadline: timing.postingDeadline,
            forced_delay: timing.forcedDelay,
            answer_window: timing.answerWindow,
            hint_deadline: timing.hintDeadline,
            challenge_window: timing.challengeWindow,
            withdrawal_delay: timing.withdrawalDelay,
            max_origin_age_seconds: timing.maxOriginAgeSeconds,
        })
    }

    /// Where all contracts stand, after one and the same block. Some twenty calls, and one for each due forced item.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn standing(&self) -> Result<Standing, L1Error> {
        let block = self.newest_block().await?;
        let at = BlockId::number(block);
        let (rpc, config) = (&self.inner.rpc, &self.inner.config);
        let (inbox, contracts) = (config.deployment.inbox, &config.contracts);
        let head = self.posted_head_at(block).await?;
        let next = head.number.saturating_add(1);
        let shown = BlindedInbox::equivocatedAtCall { number: next };
        let end = CommitteeRegistry::endDueCall { number: next };
        let accusations = BlindedInbox::openAccusationsCall {};
        let length = rpc.view_at("length", contracts.forced_queue, &ForcedQueue::lengthCall {}, at).await?;
        let postings = HintRegistry::postingCountCall {};
        let outputs = OutputRegistry::lastBlockCall {};
        let sequencer = rpc.view_at("sequencer", inbox, &BlindedInbox::sequencerCall {}, at).await?;
        let mut standing = Standing {
            block,
            timing: self.timing_at(at).await?,
            sequencer,
            head,
            head_posted_at: rpc
                .view_at("headPostedAt", inbox, &BlindedInbox::headPostedAtCall {}, at)
                .await?,
            last_certified_at: rpc
                .view_at("lastCertifiedAt", inbox, &BlindedInbox::lastCertifiedAtCall {}, at)
                .await?,
            equivocated_at: rpc.view_at("equivocatedAt", inbox, &shown, at).await?.saturating_to(),
            end_due: rpc.view_at("endDue", contracts.registry, &end, at).await?,
            l1_made: rpc
                .view_at("l1MadeCount", inbox, &BlindedInbox::l1MadeCountCall {}, at)
                .await?
                .saturating_to(),
            forced_length: length,
            forced_next: Vec::new(),
            bond: self.bond_at(sequencer, at).await?,
            open_accusations: rpc.view_at("openAccusations", inbox, &accusations, at).await?.saturating_to(),
            hint_postings: rpc.view_at("postingCount", contracts.hint_registry, &postings, at).await?,
            last_output: rpc.view_at("lastBlock", contracts.output_registry, &outputs, at).await?,
        };
        let end = length.min(head.forced_cursor.saturating_add(MAX_FORCED_ITEMS + 1));
        for index in head.forced_cursor..end {
            let entry = ForcedQueue::entryCall { index };
            let entry = rpc.view_at("entry", contracts.forced_queue, &entry, at).await?;
            let item = QueuedItem {
                index,
                is_transaction: entry.kind == KIND_TRANSACTION,
                enqueued_at: entry.enqueuedAt,
                gas_limit: entry.gasLimit,
                length: entry.length,
            };
            standing.forced_next.push(item);
            if standing.due_at(&item) > block {
                break;
            }
        }
        Ok(standing)
    }

    /// What `FeeVault` knows of a payer, after the newest block.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn vault_account(&self, payer: Address) -> Result<VaultAccount, L1Error> {
        let vault = self.inner.config.contracts.fee_vault;
        let rpc = &self.inner.rpc;
        let pending = rpc.view("pending", vault, &FeeVault::pendingCall { payer }).await?;
        let delay = FeeVault::withdrawalDelayCall {};
        Ok(VaultAccount {
            paid: self.paid(payer).await?,
            requested: pending.amount,
            first_request: pending.firstBlock,
            last_request: pending.lastBlock,
            withdrawal_delay: rpc.view("withdrawalDelay", vault, &delay).await?,
        })
    }

    /// What is on record over a promise, after the newest block.
    ///
    /// # Errors
    /// [`L1Error::Malformed`] for a state that the contract does not have; the errors of a call.
    pub async fn accusation(&self, promise: &GivenPromise) -> Result<Accusation, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let call = BlindedInbox::accusationsCall { promiseId: promise.id() };
        let found = self.inner.rpc.view("accusations", inbox, &call).await?;
        let state = match found.state {
            0 => AccusationState::None,
            1 => AccusationState::Open,
            2 => AccusationState::Answered,
            3 => AccusationState::Slashed,
            other => {
                return Err(L1Error::Malformed {
                    method: "eth_call".to_owned(),
                    reason: format!("accusations: state {other}"),
                });
            }
        };
        let window = self.timing().await?.answer_window;
        Ok(Accusation {
            state,
            accuser: found.accuser,
            answer_until: found.accusedAt.saturating_add(window.into()),
        })
    }

    /// The L1 block of a commitment to `HintRegistry`, or to the inbox; `None` for none, or when it is used up.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn committed_at(
        &self,
        contract: DisputeContract,
        commitment: B256,
    ) -> Result<Option<u64>, L1Error> {
        let block: U256 = if contract == DisputeContract::Hints {
            let registry = self.inner.config.contracts.hint_registry;
            let call = HintRegistry::committedAtCall { commitment };
            self.inner.rpc.view("committedAt", registry, &call).await?
        } else {
            let inbox = self.inner.config.deployment.inbox;
            let call = BlindedInbox::committedAtCall { commitment };
            self.inner.rpc.view("committedAt", inbox, &call).await?
        };
        Ok((!block.is_zero()).then(|| block.saturating_to()))
    }

    /// Whether these two headers ([`equivocation_evidence`](crate::posting::evidence::equivocation_evidence)) were shown with
    /// this signer's signature, after this block, or after the newest for `None`.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn shown_together(
        &self,
        signer: Address,
        evidence: B256,
        block: Option<u64>,
    ) -> Result<bool, L1Error> {
        let inbox = self.inner.config.deployment.inbox;
        let call = BlindedInbox::shownTogetherCall { signer, evidence };
        let at = block.map_or_else(BlockId::latest, BlockId::number);
        self.inner.rpc.view_at("shownTogether", inbox, &call, at).await
    }

    /// How many L1 blocks after a header's posting `FeeVault` pays out its ledger.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn claim_delay(&self) -> Result<u32, L1Error> {
        let vault = self.inner.config.contracts.fee_vault;
        self.inner.rpc.view("claimDelay", vault, &FeeVault::claimDelayCall {}).await
    }

    /// What forcing an envelope costs after the newest block, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn forced_envelope_fee(&self, envelope: &[u8]) -> Result<U256, L1Error> {
        self.forced_fee(KIND_ENVELOPE, 0, envelope).await
    }

    /// What forcing a raw transaction with this gas limit costs after the newest block, in wei.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn forced_transaction_fee(&self, gas_limit: u64, raw: &[u8]) -> Result<U256, L1Error> {
        self.forced_fee(KIND_TRANSACTION, gas_limit, raw).await
    }

    pub(crate) async fn forced_fee(&self, kind: u8, gas_limit: u64, item: &[u8]) -> Result<U256, L1Error> {
        let queue = self.inner.config.contracts.forced_queue;
        let call = ForcedQueue::quoteCall { kind, gasLimit: gas_limit, item: item.to_vec().into() };
        self.inner.rpc.view("quote", queue, &call).await
    }

    /// Whether `DepositPortal` has a way back for what is deposited there, and whether it takes deposits without one.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn portal(&self) -> Result<Portal, L1Error> {
        let (rpc, portal) = (&self.inner.rpc, self.inner.config.contracts.deposit_portal);
        let outlet = rpc.view("outlet", portal, &DepositPortal::outletCall {}).await?;
        let open = DepositPortal::takesDepositsWithoutOutletCall {};
        Ok(Portal {
            outlet: (!outlet.is_zero()).then_some(outlet),
            takes_deposits_without_outlet: rpc.view("takesDepositsWithoutOutlet", portal, &open).await?,
        })
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
