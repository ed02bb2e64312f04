//! What the sequencer claims of L2 blocks: the outputs are in events, each of which tells where the one before is.

use alloy_sol_types::SolEvent;

use crate::{
    contracts::OutputRegistry,
    error::L1Error,
    reader::{client::L1Client, faults::Output},
};

/// One proposal of outputs, as its event says.
struct Proposal {
    /// The first L2 block that it claims.
    first: u64,
    /// The L1 block of the proposal before; 0 for none.
    previous_at: u64,
    outputs: Vec<Output>,
}

impl L1Client {
    /// What the sequencer claimed of L2 blocks in L1 blocks `after + 1 ..= through`, in order. `through` is final.
    ///
    /// # Errors
    /// [`L1Error::NotFinal`]; the errors of a call.
    pub async fn outputs(&self, after: u64, through: u64) -> Result<Vec<Output>, L1Error> {
        let proposals = self.proposals(after, through).await?;
        Ok(proposals.into_iter().flat_map(|proposal| proposal.outputs).collect())
    }

    /// The sequencer's claims about L2 blocks from `from` on, in order, at most `limit`, after the newest final block.
    /// One query for logs for each proposal that is new, and one for each that is read.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn final_outputs(&self, from: u64, limit: usize) -> Result<Vec<Output>, L1Error> {
        let registry = self.inner.config.contracts.output_registry;
        let last = self.final_view("lastBlock", registry, &OutputRegistry::lastBlockCall {}).await?;
        if last.unwrap_or_default() < from {
            return Ok(Vec::new());
        }
        let mut known = self.inner.proposals.lock().await;
        if known.keys().next().is_some_and(|first| *first > from) {
            known.clear();
        }
        let newest =
            self.final_view("lastProposedAt", registry, &OutputRegistry::lastProposedAtCall {}).await?;
        // Back from the newest proposal to one that is known, or that has the first block asked for.
        let mut at = newest.unwrap_or_default();
        while at != 0 && !known.values().any(|block| *block == at) {
            let proposals = self.proposals(at - 1, at).await?;
            let Some(earliest) = proposals.first() else { break };
            known.insert(earliest.first, at);
            if earliest.first <= from {
                break;
            }
            at = earliest.previous_at;
        }
        let start = known.range(..=from).next_back().map_or(from, |(first, _)| *first);
        // What lies before is not asked for again.
        *known = known.split_off(&start);
        let mut outputs = Vec::new();
        for block in known.values() {
            let proposals = self.proposals(block - 1, *block).await?;
            let wanted = proposals.into_iter().flat_map(|proposal| proposal.outputs);
            outputs.extend(wanted.filter(|output| output.l2_block >= from));
            if outputs.len() >= limit {
                break;
            }
        }
        outputs.truncate(limit);
        Ok(outputs)
    }

    /// The last L2 block with a claim, after the newest block; 0 for none.
    ///
    /// # Errors
    /// The errors of a call.
    pub async fn last_output(&self) -> Result<u64, L1Error> {
        let registry = self.inner.config.contracts.output_registry;
        self.inner.rpc.view("lastBlock", registry, &OutputRegistry::lastBlockCall {}).await
    }

    async fn proposals(&self, after: u64, through: u64) -> Result<Vec<Proposal>, L1Error> {
        let registry = self.inner.config.contracts.output_registry;
        let topics = [OutputRegistry::OutputsProposed::SIGNATURE_HASH];
        let mut proposals = Vec::new();
        for log in self.final_logs(registry, &topics, after, through).await? {
            let Some(event) = log.event::<OutputRegistry::OutputsProposed>()? else { continue };
            let outputs = event.outputs.iter().map(|output| Output {
                l2_block: output.l2Block,
                batch: output.batch,
                timestamp: output.timestamp,
                block_hash: output.blockHash,
                state_root: output.stateRoot,
            });
            let (first, previous_at) = (event.firstBlock, event.previousAt);
            proposals.push(Proposal { first, previous_at, outputs: outputs.collect() });
        }
        Ok(proposals)
    }
}
