//! What is sent to L1.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, Result, bail};
use blindfold_l1::{CodedBatch, L1Error, L1Writer, Sent};
use blindfold_protocol::Canonical;
use blindfold_rpc::BlindApiClient;
use blindfold_runtime::now;
use tokio::{task::JoinSet, time::sleep};

use super::{
    Measured,
    floods::Flood,
    testbed::{LOOK_INTERVAL, PATIENCE, Tally, Testbed},
};
use crate::devnet::accounts::account_key;

/// Gas that junk asks for: as little as a transfer.
const GAS: u64 = 21_000;
/// Junk of so many bytes, the least that the queue takes.
const JUNK_BYTES: usize = 16;
/// What a call has beside its data: the transaction's fields, its signature, the call's arguments.
const CALL_BYTES: usize = 300;

enum Call {
    Force(Vec<u8>),
    PostData(Arc<CodedBatch>),
}

impl Call {
    async fn send(&self, writer: &L1Writer) -> Result<Sent, L1Error> {
        match self {
            Self::Force(junk) => writer.force_transaction(GAS, junk).await,
            Self::PostData(batch) => writer.post_data(std::slice::from_ref(&**batch)).await,
        }
    }
}

impl Testbed {
    /// Forces bytes that are no transaction, from all accounts at once, and waits until the rollup has taken all of it.
    pub(super) async fn forced(&mut self, count: usize) -> Result<Measured> {
        let waiting = self.devnet.l1.forced_length().await?;
        let meter = self.begin().await?;
        let (admitted, refused) = self
            .by_all_accounts(count, |place| {
                let mut junk = vec![0xff; JUNK_BYTES];
                junk[..8].copy_from_slice(&(place as u64).to_be_bytes());
                Call::Force(junk)
            })
            .await?;
        self.forced_through(waiting + admitted as u64).await?;
        let bytes = count * (CALL_BYTES + JUNK_BYTES);
        self.end(meter, Tally { flood: Flood::Forced, sent: count, admitted, refused, bytes }).await
    }

    /// Gives L1 the data of the newest posted batch, as it is, again and again: anybody may, and readers of L1 have to look at
    /// the first copy. Opened data for batches that lack theirs costs them more, and is none of this.
    pub(super) async fn posted_data(&mut self, count: usize) -> Result<Measured> {
        let status = BlindApiClient::get_status(&self.node).await?;
        let posted = status.posted.context("L1 has no header yet")?;
        let batch = self.node.get_batch(posted).await?.with_context(|| format!("batch {posted}"))?;
        let sealed = batch.sealed.decode()?;
        let bytes = count * (CALL_BYTES + sealed.encode().len());
        let coded = Arc::new(CodedBatch { codes: vec![0; sealed.items.len()], sealed });
        let meter = self.begin().await?;
        let (admitted, refused) = self.by_all_accounts(count, |_| Call::PostData(Arc::clone(&coded))).await?;
        self.end(meter, Tally { flood: Flood::PostedData, sent: count, admitted, refused, bytes }).await
    }

    /// Every account makes its part of the calls, one after the other; the accounts at once.
    async fn by_all_accounts(
        &self,
        count: usize,
        call: impl Fn(usize) -> Call,
    ) -> Result<(usize, BTreeMap<String, usize>)> {
        let mut accounts = JoinSet::new();
        for account in 0..self.accounts {
            let writer = L1Writer::new(self.devnet.l1.clone(), account_key(account));
            let calls: Vec<Call> = (account..count).step_by(self.accounts).map(&call).collect();
            accounts.spawn(async move {
                let mut answers = Vec::with_capacity(calls.len());
                for call in calls {
                    answers.push(call.send(&writer).await);
                }
                answers
            });
        }
        let (mut admitted, mut refused) = (0, BTreeMap::new());
        while let Some(answers) = accounts.join_next().await {
            for answer in answers? {
                match answer {
                    Ok(_) => admitted += 1,
                    Err(L1Error::Reverted { .. }) => *refused.entry("reverted".to_owned()).or_default() += 1,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok((admitted, refused))
    }

    /// Waits until a batch that is opened has the first `count` entries of the queue behind it.
    async fn forced_through(&self, count: u64) -> Result<()> {
        let deadline = now() + PATIENCE;
        loop {
            let hinted = BlindApiClient::get_status(&self.node).await?.hinted;
            let batch = self.node.get_batch(hinted).await?;
            if let Some(batch) = batch
                && batch.sealed.decode()?.header.forced_cursor >= count
            {
                return Ok(());
            }
            if now() > deadline {
                bail!("{count} forced items are in no batch after {} s", PATIENCE.as_secs());
            }
            sleep(LOOK_INTERVAL).await;
        }
    }
}
