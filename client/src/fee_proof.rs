//! What `FeeVault` pays against: a fee account in the ledger of a posted header. A server shows account and proof, L1
//! shows the header; the one is checked against the other before a transaction is paid for.

use alloy_primitives::{Address, B256};
use blindfold_l1::{AccountProof, L1Client, L1Error, PostedRun};
use blindfold_protocol::{Account, LedgerProof};
use blindfold_rpc::{
    BlindApiClient, ClientBuildError, ClientConfig, ReceivedError, http_client, types::LedgerAt,
};

/// How far back the run of a header is looked for that was posted already, in L1 blocks: a day.
const SEARCHED_BLOCKS: u64 = 7_200;

/// A fee account after one batch, as a server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeeProof {
    /// The payer whose account it is.
    pub payer: Address,
    /// Its balance and what was withdrawn.
    pub account: Account,
    /// The proof that it stands in the ledger.
    pub proof: LedgerProof,
    /// The batch after which the ledger is so.
    pub number: u64,
    /// Hash of that batch's header, says the server.
    pub header_hash: B256,
    /// The `feeLedgerRoot` that account and proof lead to.
    pub fee_ledger_root: B256,
}

/// Why there is no proof to go to L1 with.
#[derive(Debug, thiserror::Error)]
pub enum FeeProofError {
    /// The server's URL cannot be used.
    #[error(transparent)]
    Endpoint(#[from] ClientBuildError),
    /// The server refused, or did not answer.
    #[error("the server: {0}")]
    Server(ReceivedError),
    /// The ledger has no such account.
    #[error("{0} has no fee account: a deposit counts once its L1 block is final and a header follows it")]
    NoAccount(Address),
    /// The server's proof leads to no root.
    #[error("the server's proof for {0} is none: ask another node")]
    NotAProof(Address),
    /// L1 failed, or tells a contradiction.
    #[error(transparent)]
    L1(#[from] L1Error),
    /// The header that L1 has is not the one whose ledger the server showed.
    #[error(
        "L1 has another header {number} than your node ({posted} instead of {shown}): ask a node that follows L1"
    )]
    OtherHeader {
        /// Number of the batch.
        number: u64,
        /// Hash of the header on L1.
        posted: B256,
        /// Hash of the header that the server shows.
        shown: B256,
    },
}

impl FeeProof {
    /// Asks the sequencer or a full node at `url` (HTTP) for the account of `payer` after a header.
    ///
    /// # Errors
    /// [`FeeProofError`] but for those of L1.
    pub async fn fetch(url: &str, payer: Address, at: LedgerAt) -> Result<Self, FeeProofError> {
        let server = http_client(url, &ClientConfig::default())?;
        let found = server
            .get_fee_account_proof(payer, Some(at))
            .await
            .map_err(|error| FeeProofError::Server(error.into()))?
            .ok_or(FeeProofError::NoAccount(payer))?;
        let account = Account { balance: found.balance, withdrawn: found.withdrawn };
        let proof = LedgerProof { siblings: found.siblings };
        let (number, header_hash) = (found.number, found.header_hash);
        let root = proof.root_with(&payer, &account).filter(|_| found.address == payer);
        let fee_ledger_root = root.ok_or(FeeProofError::NotAProof(payer))?;
        Ok(Self { payer, account, proof, number, header_hash, fee_ledger_root })
    }

    /// Asks for the account after the last header that L1 has, whatever the server has sealed or certified since;
    /// `None` before the first.
    ///
    /// # Errors
    /// [`FeeProofError`]: a server that has not come as far refuses, and may be asked again.
    pub async fn fetch_posted(
        url: &str,
        payer: Address,
        l1: &L1Client,
    ) -> Result<Option<Self>, FeeProofError> {
        match l1.posted_head().await?.number {
            0 => Ok(None),
            number => Self::fetch(url, payer, LedgerAt::Number(number)).await.map(Some),
        }
    }

    /// Asks for the account after the newest header whose ledger `FeeVault` pays out by now, and proves it against that
    /// header; `None` before there is one.
    ///
    /// # Errors
    /// [`FeeProofError`].
    pub async fn fetch_payable(
        url: &str,
        payer: Address,
        l1: &L1Client,
    ) -> Result<Option<(Self, AccountProof)>, FeeProofError> {
        Self::fetch_payable_within(SEARCHED_BLOCKS, url, payer, l1).await
    }

    /// [`FeeProof::fetch_payable`], looking through so many L1 blocks before it asks for L1's last run.
    ///
    /// # Errors
    /// [`FeeProofError`].
    pub async fn fetch_payable_within(
        searched_blocks: u64,
        url: &str,
        payer: Address,
        l1: &L1Client,
    ) -> Result<Option<(Self, AccountProof)>, FeeProofError> {
        let delay = l1.claim_delay().await?;
        let Some(through) = l1.newest_block().await?.checked_sub(delay.into()) else { return Ok(None) };
        let runs = l1.recent_runs(through.saturating_sub(searched_blocks), through).await?;
        let run = match runs.last() {
            Some(last) => l1.headers_of(last).await?,
            // Nothing was posted for longer than that: L1's last run may be as old, if the rollup is gone.
            None => l1.head_run().await?.filter(|head| head.run.posted_at <= through),
        };
        let Some(run) = run else { return Ok(None) };
        let number = run.run.last;
        let Some(header) = run.header(number).copied() else { return Ok(None) };
        let shown = Self::fetch(url, payer, LedgerAt::Number(number)).await?;
        let posted = header.hash();
        if (posted, header.fee_ledger_root) != (shown.header_hash, shown.fee_ledger_root) {
            return Err(FeeProofError::OtherHeader { number, posted, shown: shown.header_hash });
        }
        let proof = shown.in_run(run, number);
        Ok(Some((shown, proof)))
    }

    /// The proof against L1's last header, where that has this very ledger: headers that L1 made leave the ledger as
    /// it was, and so do others.
    ///
    /// # Errors
    /// [`FeeProofError::L1`].
    pub async fn against_head(&self, l1: &L1Client) -> Result<Option<AccountProof>, FeeProofError> {
        let Some(run) = l1.head_run().await? else { return Ok(None) };
        let head = run.headers.last().copied();
        let fits = head.filter(|head| head.fee_ledger_root == self.fee_ledger_root);
        Ok(fits.map(|head| self.in_run(run, head.number)))
    }

    /// The proof against a header that L1 has: the last one, or the one that the server named; `None` while that is
    /// not posted.
    ///
    /// # Errors
    /// [`FeeProofError::L1`]; [`FeeProofError::OtherHeader`].
    pub async fn against_posted(&self, l1: &L1Client) -> Result<Option<AccountProof>, FeeProofError> {
        if let Some(proof) = self.against_head(l1).await? {
            return Ok(Some(proof));
        }
        if l1.posted_head().await?.number < self.number {
            return Ok(None);
        }
        let from = l1.newest_block().await?.saturating_sub(SEARCHED_BLOCKS);
        let Some(run) = l1.run_of(self.number, from).await? else { return Ok(None) };
        let Some(header) = run.header(self.number).copied() else { return Ok(None) };
        let posted = header.hash();
        if (posted, header.fee_ledger_root) != (self.header_hash, self.fee_ledger_root) {
            return Err(FeeProofError::OtherHeader { number: self.number, posted, shown: self.header_hash });
        }
        Ok(Some(self.in_run(run, self.number)))
    }

    /// Whether L1's last header, with which `at_head` proves the account, has not counted a deposit for it yet: it counts
    /// with a later header, before any request that is made now.
    ///
    /// # Errors
    /// [`FeeProofError::L1`].
    pub async fn deposit_waits(&self, at_head: &AccountProof, l1: &L1Client) -> Result<bool, FeeProofError> {
        let Some(head) = at_head.run.header(at_head.number) else { return Ok(false) };
        let newest = l1.newest_block().await?;
        Ok(!l1.recent_deposits(self.payer, head.l1_origin_number, newest).await?.is_empty())
    }

    fn in_run(&self, run: PostedRun, number: u64) -> AccountProof {
        AccountProof {
            payer: self.payer,
            balance: self.account.balance,
            withdrawn: self.account.withdrawn,
            siblings: self.proof.siblings.clone(),
            run,
            number,
        }
    }
}
