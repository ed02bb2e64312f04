//! Encrypted transfers of many accounts, made before the clock starts.

use std::{collections::VecDeque, sync::Arc};

use alloy_primitives::{B256, Bytes};
use anyhow::{Result, anyhow};
use blindfold_client::{CommitteeKey, EnvelopeMaker, Node, Offer, SignedTransaction};
use blindfold_protocol::{Canonical, ChainConfig, SigningKey, limits::EXPIRY_WINDOW};
use blindfold_rpc::{BlindApiClient, HttpClient};
use blindfold_runtime::blocking;
use rand::{SeedableRng, rngs::StdRng};

use super::super::data::{Transfer, transfer_on};
use crate::devnet::accounts::account_key;

/// What envelopes offer, over the fees of the moment: blocks and batches may fill up.
pub(super) const FEE_MARGIN: u128 = 16;
/// Sums of transfers are so small that no account is ever empty: at most four digits at such a power of ten, in wei.
pub(super) const POWERS: std::ops::Range<u8> = 6..10;

/// An envelope that waits to be sent.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) id: B256,
    pub(super) bytes: Bytes,
    pub(super) transfer: Transfer,
}

/// Whoever sends.
pub(super) struct Supply {
    pub(super) chain: Arc<ChainConfig>,
    pub(super) committee: Arc<CommitteeKey>,
    pub(super) keys: Arc<Vec<SigningKey>>,
    pub(super) seed: u64,
    /// Length of each transfer's input.
    pub(super) input_bytes: usize,
    /// How many were made.
    pub(super) made: u64,
}

impl Supply {
    /// The same accounts each time.
    pub(super) fn new(
        chain: Arc<ChainConfig>,
        committee: CommitteeKey,
        accounts: usize,
        (seed, input_bytes): (u64, usize),
    ) -> Self {
        let keys = Arc::new((0..accounts).map(account_key).collect());
        Self { chain, committee: Arc::new(committee), keys, seed, input_bytes, made: 0 }
    }

    /// The nonce of each account's next transaction.
    pub(super) async fn nonces(&self, node: &Node) -> Result<Vec<u64>> {
        let mut nonces = Vec::with_capacity(self.keys.len());
        for key in self.keys.iter() {
            nonces.push(node.nonce(&key.address()).await?);
        }
        Ok(nonces)
    }

    /// So many envelopes, by account in the order of their nonces, on all cores.
    pub(super) async fn envelopes(
        &mut self,
        count: usize,
        node: &Node,
        sequencer: &HttpClient,
    ) -> Result<Vec<VecDeque<Made>>> {
        let status = sequencer.get_status().await?;
        let offer = Offer {
            base_fee: status.base_fee.saturating_mul(FEE_MARGIN),
            gas_base_fee: status.gas_base_fee.saturating_mul(FEE_MARGIN),
            priority_fee: 0,
            head: status.head.number,
            generation: status.head.generation,
            expiry_batches: EXPIRY_WINDOW,
            promise: false,
        };
        let nonces = self.nonces(node).await?;
        let base_fee = node.base_fee().await?.saturating_mul(FEE_MARGIN);
        let (chain, committee, keys) = (self.chain.clone(), self.committee.clone(), self.keys.clone());
        let input_bytes = self.input_bytes;
        let seed = self.seed.wrapping_mul(1 << 32).wrapping_add(self.made);
        self.made += count as u64;
        blocking(move || {
            let accounts = keys.len();
            let one = |index: usize| -> Result<Made> {
                let (account, earlier) = (index % accounts, (index / accounts) as u64);
                let mut rng = StdRng::seed_from_u64(seed.wrapping_add(index as u64));
                let nonce = nonces[account] + earlier;
                let transfer = transfer_on(
                    chain.chain_id,
                    &mut rng,
                    &keys[account],
                    (nonce, POWERS, input_bytes),
                    base_fee,
                );
                let signed = SignedTransaction::decode(transfer.raw.clone(), chain.chain_id)?;
                let maker = EnvelopeMaker { chain: &chain, committee: &committee, payer: &keys[account] };
                let envelope = maker.of_transactions(&[signed], &offer)?;
                Ok(Made { id: envelope.id(), bytes: envelope.encode().into(), transfer })
            };
            let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            std::thread::scope(|scope| {
                // Each thread has accounts of its own, so that what it makes is in order.
                let workers: Vec<_> = (0..threads)
                    .map(|worker| {
                        let one = &one;
                        scope.spawn(move || {
                            (worker..accounts)
                                .step_by(threads)
                                .map(|account| {
                                    let all = (account..count).step_by(accounts).map(one);
                                    Ok((account, all.collect::<Result<VecDeque<_>>>()?))
                                })
                                .collect::<Result<Vec<_>>>()
                        })
                    })
                    .collect();
                let mut queues = vec![VecDeque::new(); accounts];
                for worker in workers {
                    for (account, queue) in
                        worker.join().map_err(|_| anyhow!("an encrypting thread panicked"))??
                    {
                        queues[account] = queue;
                    }
                }
                Ok(queues)
            })
        })
        .await?
    }
}
